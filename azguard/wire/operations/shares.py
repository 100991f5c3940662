"""Operations on shares, directories and files."""

from functools import partial
from typing import Any

from azguard.wire.rows import (
    ABORT_COPY,
    LIST,
    XML,
    Guard,
    Lease,
    Part,
    Settlement,
    changes,
    creates,
    free,
    leases,
    reads,
    sets_metadata,
    speaks,
    undeletes,
)

_DESTINATION = "x-ms-destination-lease-id"
_VERSION = "etag last_modified"
_CONTENT = "content_type content_encoding content_language content_disposition cache_control content_md5"
#: What SMB clients see of a file or a directory: what can be set, and all.
_SMB_SETTINGS = "attributes created written changed permission_key"
_SMB = f"{_SMB_SETTINGS} file_id parent_id"
_FILE_PROPERTIES = f"{_VERSION} content_settings lease copy size metadata {_SMB}"
# The service drops a dot at the end of the name of a source, too, unless it is told.
_FROM_SOURCE = (("x-ms-source-allow-trailing-dot", "true"),)
_RENAME = speaks(
    "PUT",
    "rename",
    headers=_FROM_SOURCE,
    sends=f"rename_source replace_if_exists source_lease_id destination_lease_id metadata {_SMB_SETTINGS}",
    returns=_VERSION,
)
# A write under a lease: the service compares no version, and refuses other writers while it is held.
_HELD: dict[str, Any] = {"lease": Lease.REQUIRED, "guard": Guard.LEASE}
_changes_held = partial(changes, **_HELD, settle=Settlement.HELD)
_sets_metadata = partial(sets_metadata, http=speaks("PUT", "metadata", sends="metadata", returns=_VERSION))

# Shares. Unlike a container's, the lease of a share is required by everything that changes the share itself.
SHARE_CREATE = creates(
    "share.create", http=speaks("PUT", sends="metadata quota access_tier", returns=_VERSION, ok=(201,))
)
SHARE_UNDELETE = undeletes("share")
SHARE_LIST = reads("share.list", "list-shares", http=LIST)
SHARE_DELETE = _changes_held("share.delete", http=speaks("DELETE", sends="delete_snapshots", ok=(202,)))
SHARE_GET_PROPERTIES = reads(
    "share.get_properties",
    lease=Lease.OPTIONAL,
    http=speaks("GET", returns=f"{_VERSION} lease metadata quota access_tier protocols root_squash"),
)
SHARE_SET_PROPERTIES = _changes_held(
    "share.set_properties", http=speaks("PUT", "properties", sends="quota", returns=_VERSION)
)
SHARE_SET_METADATA = _sets_metadata("share.set_metadata", **_HELD)
SHARE_GET_ACL = reads("share.get_acl", lease=Lease.OPTIONAL, http=speaks("GET", "acl", returns=_VERSION))
SHARE_SET_ACL = _changes_held("share.set_acl", part=Part.ACL, http=speaks("PUT", "acl", headers=XML, returns=_VERSION))
# A permission that files can have: it never changes, and has a key that the service chooses. Nothing lists them.
SHARE_CREATE_PERMISSION = free(
    "share.create_permission",
    "create-permission",
    settle=Settlement.REPEATED,
    http=speaks(
        "PUT", "filepermission", headers=(("Content-Type", "application/json"),), returns="permission_key", ok=(201,)
    ),
)
SHARE_GET_PERMISSION = reads(
    "share.get_permission", "get-permission", http=speaks("GET", "filepermission", sends="permission_key")
)
SHARE_GET_STATS = reads("share.get_stats", lease=Lease.OPTIONAL, http=speaks("GET", "stats"))
SHARE_SNAPSHOT = free(
    "share.snapshot",
    settle=Settlement.LINEAGE,
    http=speaks("PUT", "snapshot", sends="metadata", returns=f"snapshot {_VERSION}", ok=(201,)),
)
SHARE_LEASES = leases("share", since="2020-02-10")

# Directories have neither conditions nor leases.
DIRECTORY_CREATE = creates("directory.create", http=speaks("PUT", sends="metadata", returns=_VERSION, ok=(201,)))
DIRECTORY_DELETE = changes(
    "directory.delete", guard=Guard.COMPARE, settle=Settlement.BEFORE, http=speaks("DELETE", ok=(202,))
)
DIRECTORY_LIST = reads(
    "directory.list",
    "list-directories-and-files",
    http=speaks(
        "GET", "list", headers=(("x-ms-file-extended-info", "true"),), sends="prefix include marker maxresults"
    ),
)
DIRECTORY_GET_PROPERTIES = reads("directory.get_properties", http=speaks("GET", returns=f"{_VERSION} metadata {_SMB}"))
DIRECTORY_SET_PROPERTIES = changes(
    "directory.set_properties",
    guard=Guard.COMPARE,
    settle=Settlement.NOTHING,
    http=speaks("PUT", "properties", sends=_SMB_SETTINGS, returns=_VERSION),
)
DIRECTORY_SET_METADATA = _sets_metadata("directory.set_metadata", guard=Guard.COMPARE)
# The lease is that of a file which stands where the directory is to go. A rename creates only as long as it
# goes without "replace if exists": documented, not recorded.
DIRECTORY_RENAME = creates(
    "directory.rename",
    lease=Lease.REQUIRED,
    guard=Guard.COMPARE,
    lease_header=_DESTINATION,
    settle=Settlement.IDENTITY,
    http=_RENAME,
)

# Files. Create File and Copy File overwrite and cannot be told to create only; Rename File can.
FILE_CREATE = _changes_held(
    "file.create",
    settle=Settlement.FOUND,
    http=speaks(
        "PUT",
        headers=(("x-ms-type", "file"),),
        sends=f"size metadata {_CONTENT} {_SMB_SETTINGS}",
        returns=_VERSION,
        ok=(201,),
    ),
)
FILE_GET = reads(
    "file.get", lease=Lease.OPTIONAL, http=speaks("GET", sends="range", returns=_FILE_PROPERTIES, ok=(200, 206))
)
FILE_DELETE = _changes_held("file.delete", "delete-file2", http=speaks("DELETE", ok=(202,)))
FILE_GET_PROPERTIES = reads("file.get_properties", lease=Lease.OPTIONAL, http=speaks("HEAD", returns=_FILE_PROPERTIES))
FILE_SET_PROPERTIES = _changes_held(
    "file.set_properties",
    http=speaks("PUT", "properties", sends=f"size permission {_CONTENT} {_SMB_SETTINGS}", returns=_VERSION),
)
FILE_SET_METADATA = _sets_metadata("file.set_metadata", **_HELD)
# The CRC-64 conditions of Put Range From URL compare the source's range, not a version, and have no flag.
FILE_PUT_RANGE = _changes_held(
    "file.put_range",
    "put-range",
    http=speaks("PUT", "range", sends="write range body_type", returns=_VERSION, ok=(201,)),
)
FILE_LIST_RANGES = reads(
    "file.list_ranges",
    "list-ranges",
    lease=Lease.OPTIONAL,
    http=speaks("GET", "rangelist", sends="range prevsharesnapshot marker"),
)
FILE_COPY = _changes_held(
    "file.copy",
    settle=Settlement.FOUND,
    http=speaks(
        "PUT",
        headers=_FROM_SOURCE,
        sends="copy_source permission_copy_mode",
        returns=f"{_VERSION} copy_id copy_status",
        ok=(202,),
    ),
)
FILE_ABORT_COPY = free(
    "file.abort_copy", "abort-copy-file", lease=Lease.REQUIRED, settle=Settlement.FOUND, http=ABORT_COPY
)
FILE_LEASES = leases("file", renews=False)
FILE_RENAME = creates(
    "file.rename",
    lease=Lease.REQUIRED,
    guard=Guard.LEASE,
    lease_header=_DESTINATION,
    source_lease=True,
    settle=Settlement.IDENTITY,
    http=_RENAME,
)
# On files and directories alike.
FILE_LIST_HANDLES = reads(
    "file.list_handles", "list-handles", http=speaks("GET", "listhandles", sends="recursive marker maxresults")
)
# An operator's act, like breaking a lease: there is no version it could be tied to.
FILE_FORCE_CLOSE_HANDLES = free(
    "file.force_close_handles",
    "force-close-handles",
    settle=Settlement.REPEATED,
    http=speaks(
        "PUT",
        "forceclosehandles",
        sends="handle_id recursive marker",
        returns="handles_closed handles_failed next_marker",
    ),
)
