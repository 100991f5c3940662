"""What people type who know az storage or a Unix shell, and what it is called here: tables of data.

``guesses`` answers with the command to type. A row costs nothing until an unknown word was typed.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Ours(NamedTuple):
    """A command of ours, and what it is about where nothing was typed."""

    command: str
    #: The address, with words in capitals for what is not known; empty where the command takes none.
    address: str
    #: What else belongs to it.
    rest: str = ""


_BLOB, _CONTAINER, _TABLE, _ENTITY, _QUEUE = "CONTAINER/NAME", "CONTAINER", "TABLE", "TABLE/PARTITION/ROW", "QUEUE"
_SHARE, _DIRECTORY, _FILE = "SHARE", "SHARE/NAME", "SHARE/PATH"
# From a folder here to the names below one there.
_TREES = "FOLDER CONTAINER/PREFIX/"
_FILE_TREES = "FOLDER SHARE/PREFIX/"
_ENTRY = "--metadata NAME=VALUE"
_LISTED = ("blob", "file", "share", "dir", "container", "table", "queue", "profile", "cache")
_DELETED = ("blob", "file", "share", "dir", "container", "table", "message", "entity")
# Our noun, and that of az.
_WITH_METADATA = {
    "blob": "blob", "file": "file", "share": "share", "dir": "directory", "container": "container", "queue": "queue",
}  # fmt: skip
_WITH_POLICIES = ("share", "container", "table", "queue")
# Nouns whose metadata and policies the service guards by no version.
_RACING = ("container", "queue")
_LEASE_VERBS = ("acquire", "renew", "change", "release", "break")

#: The address that a command takes, by its noun or by its own words; the others take none.
ADDRESSES: Mapping[str, str] = {
    "blob": _BLOB,
    "blob list": _CONTAINER,
    "container": _CONTAINER,
    "container list": "",
    "table": _TABLE,
    "table list": "",
    "queue": _QUEUE,
    "message": _QUEUE,
    "message update": "QUEUE/ID",
    "message delete": "QUEUE/ID",
    "queue list": "",
    "share": _SHARE,
    "share list": "",
    "dir": _DIRECTORY,
    "dir list": _SHARE,
    "file": _FILE,
    "file list": _SHARE,
    "entity": _ENTITY,
    "entity query": _TABLE,
    "entity transaction": _TABLE,
    "lease": f"blob:{_BLOB}",
    "lease list": _CONTAINER,
    "lock": "NAME",
    "lock list": _CONTAINER,
    "safe-update": f"blob:{_BLOB}",
    "status": f"blob:{_BLOB}",
}


def find_address(command: str) -> str:
    """Return the address that a command takes; empty where it takes none."""
    return ADDRESSES.get(command, ADDRESSES.get(command.partition(" ")[0], ""))


# Our command, what else belongs to it, and what others call it.
_NAMES = (
    ("blob put", "-f FILE", "upload, blob upload, blob create, blob write"),
    ("blob get", "-f FILE", "download, blob download"),
    ("blob get", "", "cat, blob read, blob cat"),
    ("blob list", "", "ls"),
    ("blob delete", "", "rm, del, blob remove"),
    ("blob show", "", "blob stat"),
    ("container create", "", "mkdir"),
    ("safe-update", "-- COMMAND", "update"),
    ("blob set-properties", "", "blob update"),
    ("blob tags set", "--tags NAME=VALUE", "blob tag set"),
    ("blob tags get", "", "blob tag list, blob tag"),
    ("blob tier", "--tier TIER", "blob set-tier"),
    ("blob legal-hold set", "", "blob set-legal-hold"),
    ("blob immutability set", "UNTIL", "blob immutability-policy set"),
    ("blob immutability clear", "", "blob immutability-policy delete"),
    ("blob copy", "--source URL", "blob rewrite"),
    ("blob copy", "--source CONTAINER/NAME", "blob copy start"),
    ("file copy", "--source SHARE/PATH", "file copy start"),
    ("file put", "-f FILE", "file upload"),
    ("file get", "-f FILE", "file download"),
    ("file get", "", "file cat"),
    ("file show", "", "file stat"),
    ("file properties set", "", "file update, file set-properties"),
    ("dir properties set", "", "dir set-properties"),
    ("share quota", "GIB", "share update"),
    ("container acl get", "", "container show-permission"),
    ("container acl set", "--allow-race", "container set-permission"),
    ("container undelete", "", "container restore"),
    ("share undelete", "", "share restore"),
    ("lease show", "", "blob lease, lease status"),
    ("message put", "", "message send"),
    ("message get", "", "message receive"),
    ("queue delete", "--last-writer-wins", "queue rm"),
    ("entity get", "", "entity show"),
    ("entity query", "", "entity list, entity ls"),
    ("entity insert", "", "entity add"),
    ("entity merge", "", "entity update"),
    ("entity upsert", "", "entity put"),
    ("lock hold", "", "lock acquire, lock take"),
    ("lock run", "-- COMMAND", "lock exec"),
    ("lock show", "", "lock status"),
    ("lock release", "", "lock unlock"),
    ("emulator start", "", "emulator up, emulator launch"),
    ("emulator status", "", "emulator ps"),
    ("cache export", "", "cache dump"),
    *((f"{noun} list", "", f"{noun} ls") for noun in _LISTED),
    *((f"{noun} delete", "", f"{noun} rm") for noun in _DELETED),
    *((f"{noun} create", "", f"{noun} add") for noun in ("container", "queue", "share")),
    *((f"{noun} abort-copy", "", f"{noun} copy cancel") for noun in ("blob", "file")),
    *((f"{noun} metadata get", "", f"{other} metadata show") for noun, other in _WITH_METADATA.items()),
    *(
        (f"{noun} metadata set", "--allow-race" if noun in _RACING else _ENTRY, f"{other} metadata update")
        for noun, other in _WITH_METADATA.items()
    ),
    *((f"dir {verb}", "", f"directory {verb}") for verb in ("create", "show", "exists", "list", "delete")),
    *((f"lease {verb}", "", f"blob lease {verb}") for verb in _LEASE_VERBS),
    *((f"{noun} acl get", "", f"{noun} policy list, {noun} policy show") for noun in _WITH_POLICIES),
    *(
        (f"{noun} acl set", "-f FILE --allow-race" if noun in _RACING else "-f FILE", f"{noun} policy {verb}")
        for noun in _WITH_POLICIES
        for verb in ("create", "update", "delete")
    ),
)
_SYNC = f"{_TREES} --recursive --unchanged skip --mirror"
#: Words of az storage and of a shell, without ``azguard`` or ``az storage`` before them.
COMMANDS: Mapping[str, Ours] = {
    **{
        name: Ours(command, find_address(command), rest)
        for command, rest, names in _NAMES
        for name in names.split(", ")
    },
    # These take another address than the command does elsewhere, or have it in the rest.
    "blob edit": Ours("edit", f"blob:{_BLOB}"),
    "blob upload-batch": Ours("blob put", "", f"{_TREES} --recursive"),
    "blob download-batch": Ours("blob get", "", "CONTAINER/PREFIX/ FOLDER --recursive"),
    "blob delete-batch": Ours("blob delete", "", "CONTAINER/PREFIX/ --recursive"),
    "blob sync": Ours("blob put", "", _SYNC),
    "sync": Ours("blob put", "", _SYNC),
    "file mv": Ours("file rename", "SHARE/OLD", "SHARE/NEW"),
    "file upload-batch": Ours("file put", "", f"{_FILE_TREES} --recursive"),
    "file download-batch": Ours("file get", "", "SHARE/PREFIX/ FOLDER --recursive"),
    "file delete-batch": Ours("file delete", "", "SHARE/PREFIX/ --recursive"),
    "share list-handle": Ours("file handle list", _SHARE, "--recursive"),
    "share close-handle": Ours("file handle close", _SHARE, "--close-all"),
    **{f"container lease {verb}": Ours(f"lease {verb}", f"container:{_CONTAINER}") for verb in _LEASE_VERBS},
    "container lease": Ours("lease show", f"container:{_CONTAINER}"),
    "lock ls": Ours("lock list", ""),
    **{f"profile {verb}": Ours("profile set", "NAME") for verb in ("add", "create", "new")},
    "cache load": Ours("cache import", "FILE"),
}

#: The options of az that name a part of the address, by the part that they name.
PARTS: Mapping[str, str] = {
    option: part
    for part, options in (
        ("CONTAINER", "-c --container-name --container --destination-container"),
        ("NAME", "-n --name -b --blob-name --blob --destination-blob"),
        ("TABLE", "-t --table-name --table"),
        ("QUEUE", "--queue-name --queue"),
        ("SHARE", "-s --share-name --share"),
        ("PATH", "-p --path"),
        ("ID", "--id"),
        ("PARTITION", "--partition-key"),
        ("ROW", "--row-key"),
        ("", "-e --entity"),
    )
    for option in options.split()
}

#: Options of other tools, and what is written instead, also ``ONE|OTHER``; in the order in which they are offered.
OPTIONS: Mapping[str, str] = {
    "-u": "--source",
    "--source": "--file",
    "--source-url": "--source",
    "--dest": "--file",
    "--overwrite": "--last-writer-wins",
    "--stale": "--older-than",
    "--force": "--last-writer-wins",
    "--type": "--blob-type",
    "--tags-condition": "--if-tags",
    "--etag-match": "--if-match",
    "--account": "--account-name",
    "--key": "--account-key",
    "--sas": "--sas-token",
    "--format": "--output",
    "--json": "--output json",
    "--jq": "--query JMESPATH",
    "--max-results": "--num-results",
    "--limit": "--num-results",
    "--last": "--num-results",
    "--count": "--max-messages|--num-messages",
    "--range": "--offset SIZE --length SIZE",
    "--include-snapshots": "--include snapshots",
    "--top": "--num-results",
    "-f": "--version-of",
    "--file": "--version-of",
    "--wait-lease": "--wait 60s",
    "--break-period": "--lease-break-period",
    "--duration": "--lease-duration",
}

# What azguard does not do yet, and az storage does under the same words.
_OF_AZ = (
    "account", "queue stats", "queue generate-sas", "share generate-sas", "share url", "file generate-sas", "file url",
    "file copy start-batch", "blob url", "blob generate-sas", "blob copy start-batch", "blob query", "blob restore",
    "blob incremental-copy", "blob service-properties", "container generate-sas", "container immutability-policy",
    "container legal-hold",
)  # fmt: skip
#: The first words, and the command of az that does it.
ELSEWHERE: Mapping[str, str] = {
    **{words: f"az storage {words}" for words in _OF_AZ},
    "login": "az login, then --auth-mode login",
}

_RESTORE, _MOVE, _STEAL = "restore", "move", "steal"
#: Verbs that other tools have → the verb of ``INSTEAD`` that means the same.
MEANINGS: Mapping[str, str] = {
    **dict.fromkeys(("undelete", "restore", "recover", "undo", "revert", "rollback", "reset"), _RESTORE),
    **dict.fromkeys(("move", "rename", "mv"), _MOVE),
    **dict.fromkeys(("steal", "seize", "force", "force-unlock", "takeover"), _STEAL),
    "release": "release",
}
#: Verbs of git, gh and kubectl that azguard has not: none of them is a misspelt one of ours.
VERBS_OF_OTHERS = frozenset((
    "add", "apply", "checkout", "clone", "commit", "describe", "diff", "download", "drain", "edit", "exec", "fetch",
    "log", "logs", "merge", "patch", "post", "pull", "push", "rebase", "remove", "require", "scale", "stat", "tag",
    "top", "upload", "view",
))  # fmt: skip
_OPERATOR = "ask its holder, or end it as an operator"
_SNAPSHOTS = "a share has snapshots: azguard share snapshot SHARE"
#: What there is instead of a verb that a noun cannot have.
INSTEAD: Mapping[tuple[str, str], str] = {
    ("file", _RESTORE): f"files have no undelete; {_SNAPSHOTS}",
    ("dir", _RESTORE): f"directories have no undelete; {_SNAPSHOTS}",
    ("table", _RESTORE): "the service cannot restore a deleted table",
    ("entity", _RESTORE): "the service cannot restore a deleted entity, or an earlier version of one",
    ("queue", _RESTORE): "the service cannot restore a deleted queue",
    ("message", _RESTORE): "the service cannot restore a deleted message",
    ("blob", _MOVE): "blobs have no move: first azguard blob copy, then azguard blob delete of the source",
    ("container", _MOVE): "the service cannot rename a container",
    ("share", _MOVE): "the service cannot rename a share",
    ("table", _MOVE): "the service cannot rename a table",
    ("queue", _MOVE): "the service cannot rename a queue",
    ("lock", _STEAL): f"a lock is not taken over: {_OPERATOR}: azguard lock break --help",
    ("lease", _STEAL): f"a lease is not taken over: {_OPERATOR}: azguard lease break --help",
    (
        "message",
        "release",
    ): "others may receive it at once with: azguard message update QUEUE/ID --visibility-timeout 0",
}
#: Copies have two ends, and one of them is a file.
COPIES = ("cp", "copy", "mv", "blob cp")
