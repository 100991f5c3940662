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
_FILE = "SHARE/PATH"
# From a folder here to the names below one there.
_TREES = "FOLDER CONTAINER/PREFIX/"

#: Words of az storage and of a shell, without ``azguard`` or ``az storage`` before them.
COMMANDS: Mapping[str, Ours] = {
    "upload": Ours("blob put", _BLOB, "-f FILE"),
    "download": Ours("blob get", _BLOB, "-f FILE"),
    "cat": Ours("blob get", _BLOB),
    "ls": Ours("blob list", _CONTAINER),
    "rm": Ours("blob delete", _BLOB),
    "del": Ours("blob delete", _BLOB),
    "mkdir": Ours("container create", _CONTAINER),
    "update": Ours("safe-update", f"blob:{_BLOB}", "-- COMMAND"),
    "blob upload": Ours("blob put", _BLOB, "-f FILE"),
    "blob download": Ours("blob get", _BLOB, "-f FILE"),
    "blob create": Ours("blob put", _BLOB, "-f FILE"),
    "blob write": Ours("blob put", _BLOB, "-f FILE"),
    "blob read": Ours("blob get", _BLOB),
    "blob cat": Ours("blob get", _BLOB),
    "blob ls": Ours("blob list", _CONTAINER),
    "blob rm": Ours("blob delete", _BLOB),
    "blob remove": Ours("blob delete", _BLOB),
    "blob stat": Ours("blob show", _BLOB),
    "blob update": Ours("blob set-properties", _BLOB),
    "blob edit": Ours("edit", f"blob:{_BLOB}"),
    "blob metadata update": Ours("blob metadata set", _BLOB, "--metadata NAME=VALUE"),
    "blob metadata show": Ours("blob metadata get", _BLOB),
    "blob tag set": Ours("blob tags set", _BLOB, "--tags NAME=VALUE"),
    "blob tag list": Ours("blob tags get", _BLOB),
    "blob tag": Ours("blob tags get", _BLOB),
    "blob set-tier": Ours("blob tier", _BLOB, "--tier TIER"),
    "blob rewrite": Ours("blob copy", _BLOB, "--source URL"),
    "blob upload-batch": Ours("blob put", "", f"{_TREES} --recursive"),
    "blob download-batch": Ours("blob get", "", "CONTAINER/PREFIX/ -f FOLDER --recursive"),
    "blob delete-batch": Ours("blob delete", "", "CONTAINER/PREFIX/ --recursive"),
    "blob sync": Ours("blob put", "", f"{_TREES} --recursive --unchanged skip --mirror"),
    "sync": Ours("blob put", "", f"{_TREES} --recursive --unchanged skip --mirror"),
    "blob copy start": Ours("blob copy", _BLOB, "--source CONTAINER/NAME"),
    "blob copy cancel": Ours("blob abort-copy", _BLOB),
    "file copy start": Ours("file copy", _FILE, "--source SHARE/PATH"),
    "file copy cancel": Ours("file abort-copy", _FILE),
    "blob lease acquire": Ours("lease acquire", f"blob:{_BLOB}"),
    "blob lease renew": Ours("lease renew", f"blob:{_BLOB}"),
    "blob lease change": Ours("lease change", f"blob:{_BLOB}"),
    "blob lease release": Ours("lease release", f"blob:{_BLOB}"),
    "blob lease break": Ours("lease break", f"blob:{_BLOB}"),
    "blob lease": Ours("lease show", f"blob:{_BLOB}"),
    "container ls": Ours("container list", ""),
    "container rm": Ours("container delete", _CONTAINER),
    "container add": Ours("container create", _CONTAINER),
    "container metadata show": Ours("container metadata get", _CONTAINER),
    "container metadata update": Ours("container metadata set", _CONTAINER, "--allow-race"),
    "container show-permission": Ours("container acl get", _CONTAINER),
    "container set-permission": Ours("container acl set", _CONTAINER, "--allow-race"),
    "container policy list": Ours("container acl get", _CONTAINER),
    "container policy show": Ours("container acl get", _CONTAINER),
    "container policy create": Ours("container acl set", _CONTAINER, "-f FILE --allow-race"),
    "container policy update": Ours("container acl set", _CONTAINER, "-f FILE --allow-race"),
    "container policy delete": Ours("container acl set", _CONTAINER, "-f FILE --allow-race"),
    "container lease acquire": Ours("lease acquire", f"container:{_CONTAINER}"),
    "container lease renew": Ours("lease renew", f"container:{_CONTAINER}"),
    "container lease change": Ours("lease change", f"container:{_CONTAINER}"),
    "container lease release": Ours("lease release", f"container:{_CONTAINER}"),
    "container lease break": Ours("lease break", f"container:{_CONTAINER}"),
    "container lease": Ours("lease show", f"container:{_CONTAINER}"),
    "table ls": Ours("table list", ""),
    "table rm": Ours("table delete", _TABLE),
    "table policy list": Ours("table acl get", _TABLE),
    "table policy": Ours("table acl get", _TABLE),
    "message send": Ours("message put", _QUEUE),
    "message receive": Ours("message get", _QUEUE),
    "message rm": Ours("message delete", "QUEUE/ID"),
    "queue ls": Ours("queue list", ""),
    "queue rm": Ours("queue delete", _QUEUE, "--last-writer-wins"),
    "queue add": Ours("queue create", _QUEUE),
    "queue metadata show": Ours("queue metadata get", _QUEUE),
    "queue metadata update": Ours("queue metadata set", _QUEUE, "--allow-race"),
    "queue policy list": Ours("queue acl get", _QUEUE),
    "queue policy show": Ours("queue acl get", _QUEUE),
    "queue policy create": Ours("queue acl set", _QUEUE, "-f FILE --allow-race"),
    "queue policy update": Ours("queue acl set", _QUEUE, "-f FILE --allow-race"),
    "queue policy delete": Ours("queue acl set", _QUEUE, "-f FILE --allow-race"),
    "entity show": Ours("entity get", _ENTITY),
    "entity list": Ours("entity query", _TABLE),
    "entity ls": Ours("entity query", _TABLE),
    "entity rm": Ours("entity delete", _ENTITY),
    "entity add": Ours("entity insert", _ENTITY),
    "entity update": Ours("entity merge", _ENTITY),
    "entity put": Ours("entity upsert", _ENTITY),
    "lock acquire": Ours("lock hold", "NAME"),
    "lock take": Ours("lock hold", "NAME"),
    "lock exec": Ours("lock run", "NAME", "-- COMMAND"),
    "lock status": Ours("lock show", "NAME"),
    "lock ls": Ours("lock list", ""),
    "lock unlock": Ours("lock release", "NAME"),
    "lease status": Ours("lease show", f"blob:{_BLOB}"),
}

#: The options of az that name a part of the address, by the part that they name.
PARTS: Mapping[str, str] = {
    "-c": "CONTAINER",
    "--container-name": "CONTAINER",
    "--container": "CONTAINER",
    "-n": "NAME",
    "--name": "NAME",
    "-b": "NAME",
    "--blob-name": "NAME",
    "--blob": "NAME",
    "--destination-container": "CONTAINER",
    "--destination-blob": "NAME",
    "-t": "TABLE",
    "--table-name": "TABLE",
    "--table": "TABLE",
    "--queue-name": "QUEUE",
    "--queue": "QUEUE",
    "--id": "ID",
    "--partition-key": "PARTITION",
    "--row-key": "ROW",
    "-e": "",
    "--entity": "",
}

#: Options of other tools, and what is written instead; in the order in which they are offered.
OPTIONS: Mapping[str, str] = {
    "-u": "--source",
    "--overwrite": "--last-writer-wins",
    "--force": "--last-writer-wins",
    "--tags-condition": "--if-tags",
    "--etag-match": "--if-match",
    "--account": "--account-name",
    "--key": "--account-key",
    "--sas": "--sas-token",
    "--format": "--output",
    "--json": "--output json",
    "--max-results": "--num-results",
    "--limit": "--num-results",
    "--break-period": "--lease-break-period",
    "--duration": "--lease-duration",
}

#: What azguard does not do yet: the first words, and the command of az that does it.
ELSEWHERE: Mapping[str, str] = {
    "queue stats": "az storage queue stats",
    "queue generate-sas": "az storage queue generate-sas",
    "directory": "az storage directory",
    "file": "az storage file",
    "account": "az storage account",
    "blob url": "az storage blob url",
    "blob generate-sas": "az storage blob generate-sas",
    "blob copy start-batch": "az storage blob copy start-batch",
    "blob query": "az storage blob query",
    "blob restore": "az storage blob restore",
    "blob incremental-copy": "az storage blob incremental-copy",
    "blob immutability-policy": "az storage blob immutability-policy",
    "blob set-legal-hold": "az storage blob set-legal-hold",
    "blob service-properties": "az storage blob service-properties",
    "container generate-sas": "az storage container generate-sas",
    "container restore": "az storage container restore",
    "container immutability-policy": "az storage container immutability-policy",
    "container legal-hold": "az storage container legal-hold",
}

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
#: Copies have two ends, and one of them is a file.
COPIES = ("cp", "copy", "mv", "blob cp")
