"""The commands, by name: their modules and their summaries."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

_NONE: Mapping[str, str] = MappingProxyType({})


class CommandEntry(NamedTuple):
    """One line of ``azguard --help``: the module under ``commands``, and what it is for."""

    module: str
    summary: str
    #: Its commands, and groups of them, that have modules of their own: the name of each → its module.
    parts: Mapping[str, str] = _NONE


ROOT = "azguard"
# The commands of a blob in the order of its help, with their modules: one run imports one of them.
_PARTS_OF_BLOB = MappingProxyType(
    {
        "get": "blob_get",
        "put": "blob_put",
        "show": "blob",
        "exists": "blob",
        "list": "blob",
        "delete": "blob_delete",
        "copy": "blob_copy",
        "abort-copy": "blob_copy",
        "snapshot": "blob_snapshot",
        "restore": "blob_snapshot",
        "undelete": "blob_snapshot",
        "append": "blob_append",
        "append seal": "blob_append",
        "wait": "blob_wait",
        "metadata": "blob_metadata",
        "tags": "blob_tags",
        "set-properties": "blob_properties",
        "tier": "blob_properties",
        "page": "blob_page",
        "block": "blob_block",
    }
)
# So that the list stands before wait, as in the summary.
_PARTS_OF_LEASE = MappingProxyType({"list": "lease_list", "wait": "lease"})

_PARTS_OF_QUEUE = MappingProxyType(
    {
        "create": "queue",
        "show": "queue",
        "exists": "queue",
        "list": "queue",
        "delete": "queue",
        "work": "queue_work",
        "move": "queue_move",
        "poison": "queue_poison",
        "metadata": "queue_metadata",
        "acl": "queue_acl",
    }
)

_PARTS_OF_FILE = MappingProxyType(
    {
        "get": "file_get",
        "put": "file_put",
        "show": "file",
        "exists": "file",
        "list": "file",
        "delete": "file",
        "prune": "file_prune",
        "copy": "file_copy",
        "abort-copy": "file_copy",
        "rename": "file_rename",
        "resize": "file_resize",
        "set-properties": "file_properties",
        "metadata": "file_metadata",
        "range": "file_range",
        "handle": "file_handle",
        "lock": "file_lock",
    }
)

_PARTS_OF_SHARE = MappingProxyType(
    {
        "snapshot": "share_snapshot",
        "stats": "share_snapshot",
        "quota": "share_snapshot",
        "metadata": "share_metadata",
        "acl": "share_acl",
    }
)

# In the order of --help.
COMMANDS = {
    "safe-update": CommandEntry("safe_update", "Read, change and write back, exactly once."),
    "edit": CommandEntry("edit", "Change a blob or an entity in your editor, exactly once."),
    "blob": CommandEntry(
        "blob",
        "Blobs: get, put, show, exists, list, delete, copy, snapshot, restore, metadata, tags, tier.",
        _PARTS_OF_BLOB,
    ),
    "container": CommandEntry(
        "container",
        "Containers: create, show, exists, list, delete, metadata, acl.",
        {"metadata": "container_metadata", "acl": "container_acl"},
    ),
    "table": CommandEntry("table", "Tables: create, list, delete, and their access policies."),
    "entity": CommandEntry("entity", "Entities: get, query, insert, replace, merge, upsert, delete."),
    "queue": CommandEntry(
        "queue",
        "Queues: create, show, exists, list, delete, work, move, poison, metadata, acl.",
        _PARTS_OF_QUEUE,
    ),
    "message": CommandEntry("message", "Messages of queues: put, get, peek, update, delete, clear."),
    "share": CommandEntry(
        "share",
        "File shares: create, show, exists, list, delete, snapshot, stats, quota, metadata, acl.",
        _PARTS_OF_SHARE,
    ),
    "dir": CommandEntry(
        "dir",
        "Directories: create, show, exists, list, delete, rename, set-properties, metadata.",
        {"rename": "dir_properties", "set-properties": "dir_properties", "metadata": "dir_metadata"},
    ),
    "file": CommandEntry(
        "file",
        "Files: get, put, show, list, delete, prune, copy, rename, resize, set-properties, metadata, range, handle, "
        "lock.",
        _PARTS_OF_FILE,
    ),
    "lease": CommandEntry(
        "lease",
        "Leases: acquire, renew, release, break, show, list, wait.",
        _PARTS_OF_LEASE,
    ),
    "lock": CommandEntry(
        "lock",
        "Hold a lock for a command or for many steps. See and break locks.",
        {
            "run": "lock",
            "hold": "lock_hold",
            "check": "lock_hold",
            "release": "lock_hold",
            "log": "lock_log",
            "show": "lock",
            "list": "lock_list",
            "break": "lock_break",
        },
    ),
    "status": CommandEntry("status", "Compare what you read with what the service has now."),
    "cache": CommandEntry("cache", "The ETags this machine remembers."),
    "profile": CommandEntry("profile", "Named accounts in the configuration file."),
    "emulator": CommandEntry("emulator", "A local Azurite to try things on."),
    "demo": CommandEntry("demo", "Watch updates get lost, doubled, and applied exactly once."),
    "help": CommandEntry("help", "The help of a command, or of a topic."),
    "version": CommandEntry("version", "The version of azguard."),
    "completion": CommandEntry("completion", "The script with which your shell completes command lines."),
}
