"""Operations on containers, and on the account as a whole, which have no conditions."""

from azguard.wire.rows import (
    CHANGED_SINCE,
    DATES,
    LIST,
    VERSION,
    XML,
    Guard,
    Lease,
    Settlement,
    changes,
    creates,
    leases,
    reads,
    sets_acl,
    sets_metadata,
    speaks,
    undeletes,
)

# Containers have ETags and honour them nowhere.
CONTAINER_CREATE = creates(
    "container.create", http=speaks("PUT", sends="metadata public_access", returns=VERSION, ok=(201,))
)
CONTAINER_UNDELETE = undeletes("container")
CONTAINER_LIST = reads("container.list", "list-containers2", http=LIST)
CONTAINER_GET_PROPERTIES = reads(
    "container.get_properties",
    lease=Lease.OPTIONAL,
    http=speaks(
        "GET", returns="etag last_modified metadata lease public_access has_immutability_policy has_legal_hold"
    ),
)
# A leased container takes metadata and ACLs from anyone, so a lease cannot keep --etag for these two; and
# --if-unmodified-since on the ACL sees whole seconds only.
CONTAINER_SET_METADATA = sets_metadata(
    "container.set_metadata",
    honours=CHANGED_SINCE,
    lease=Lease.OPTIONAL,
    guard=Guard.COMPARE,
    http=speaks("PUT", "metadata", sends="metadata", returns=VERSION),
)
CONTAINER_GET_ACL = reads(
    "container.get_acl", lease=Lease.OPTIONAL, http=speaks("GET", "acl", returns="etag last_modified public_access")
)
CONTAINER_SET_ACL = sets_acl(
    "container.set_acl",
    honours=DATES,
    lease=Lease.OPTIONAL,
    guard=Guard.COMPARE,
    http=speaks("PUT", "acl", sends="public_access", returns=VERSION, headers=XML),
)
# The lease keeps other deleters out, and a container made anew does not have it. Writers of metadata and ACL
# need no lease: against them If-Unmodified-Since has to go along, once the second of the last change is over.
CONTAINER_DELETE = changes(
    "container.delete",
    honours=DATES,
    lease=Lease.REQUIRED,
    guard=Guard.LEASE,
    settle=Settlement.HELD,
    http=speaks("DELETE", ok=(202,)),
)
CONTAINER_LEASES = leases("container", honours=DATES)
CONTAINER_LIST_BLOBS = reads(
    "container.list_blobs",
    "list-blobs",
    http=speaks(
        "GET",
        "list",
        path="{name}",
        query=(("restype", "container"),),
        sends="prefix delimiter marker maxresults include",
    ),
)

ACCOUNT_GET_INFORMATION = reads(
    "account.get_information", http=speaks("GET", "properties", path="", query=(("restype", "account"),))
)
ACCOUNT_GET_BLOB_SERVICE = reads(
    "account.get_blob_service",
    "get-blob-service-properties",
    http=speaks("GET", "properties", path="", query=(("restype", "service"),)),
)
