"""Operations on containers, and on the account as a whole, which have no conditions."""

from functools import partial

from azguard.wire.rows import (
    ACQUIRE,
    BREAK,
    CHANGE,
    CHANGED_SINCE,
    DATES,
    LIST,
    RELEASE,
    RENEW,
    VERSION,
    XML,
    Guard,
    Lease,
    Part,
    Settlement,
    changes,
    creates,
    leases,
    reads,
    speaks,
    undeletes,
)

_leases = partial(leases, page="lease-container", honours=DATES)

# Containers have ETags and honour them nowhere.
CONTAINER_CREATE = creates(
    "container.create",
    "create-container",
    http=speaks("PUT", sends="metadata public_access", returns=VERSION, ok=(201,)),
)
CONTAINER_UNDELETE = undeletes("container")
CONTAINER_LIST = reads("container.list", "list-containers2", http=LIST)
CONTAINER_GET_PROPERTIES = reads(
    "container.get_properties",
    "get-container-properties",
    lease=Lease.OPTIONAL,
    http=speaks(
        "GET", returns="etag last_modified metadata lease public_access has_immutability_policy has_legal_hold"
    ),
)
# A leased container takes metadata and ACLs from anyone, so a lease cannot keep --etag for these two; and
# --if-unmodified-since on the ACL sees whole seconds only.
CONTAINER_SET_METADATA = changes(
    "container.set_metadata",
    "set-container-metadata",
    CHANGED_SINCE,
    Lease.OPTIONAL,
    Guard.COMPARE,
    part=Part.METADATA,
    settle=Settlement.LINEAGE,
    http=speaks("PUT", "metadata", sends="metadata", returns=VERSION),
)
CONTAINER_GET_ACL = reads(
    "container.get_acl",
    "get-container-acl",
    lease=Lease.OPTIONAL,
    http=speaks("GET", "acl", returns="etag last_modified public_access"),
)
CONTAINER_SET_ACL = changes(
    "container.set_acl",
    "set-container-acl",
    DATES,
    Lease.OPTIONAL,
    Guard.COMPARE,
    part=Part.ACL,
    settle=Settlement.FOUND,
    http=speaks("PUT", "acl", sends="public_access", returns=VERSION, headers=XML),
)
# The lease keeps other deleters out, and a container made anew does not have it. Writers of metadata and ACL
# need no lease: against them If-Unmodified-Since has to go along, once the second of the last change is over.
CONTAINER_DELETE = changes(
    "container.delete",
    "delete-container",
    DATES,
    Lease.REQUIRED,
    Guard.LEASE,
    settle=Settlement.HELD,
    http=speaks("DELETE", ok=(202,)),
)
CONTAINER_LEASE_ACQUIRE = _leases("container.lease_acquire", http=ACQUIRE)
CONTAINER_LEASE_RENEW = _leases("container.lease_renew", settle=Settlement.REPEATED, http=RENEW)
CONTAINER_LEASE_CHANGE = _leases("container.lease_change", http=CHANGE)
CONTAINER_LEASE_RELEASE = _leases("container.lease_release", http=RELEASE)
CONTAINER_LEASE_BREAK = _leases("container.lease_break", http=BREAK)
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
    "account.get_information",
    "get-account-information",
    http=speaks("GET", "properties", path="", query=(("restype", "account"),)),
)
ACCOUNT_GET_BLOB_SERVICE = reads(
    "account.get_blob_service",
    "get-blob-service-properties",
    http=speaks("GET", "properties", path="", query=(("restype", "service"),)),
)
