"""What is typed: words for options and arguments, by how ``help --json`` writes them; right ones, and wrong ones.

``{message}`` and the like stand for what the stage knows: see ``stage``.
"""

import base64
import hashlib
from collections.abc import Mapping

#: What is written, from a file or stdin; whole pages, so that a page blob takes it.
CONTENT = b'{"n": "1"}'
PAGE = CONTENT.ljust(512)
#: One line: of several the order is not known.
LINES = b"blob show pairs/a.json --query content_length\n"
#: What is typed into stdin, where that is no content.
STDIN: Mapping[str, bytes] = {
    "blob page put": PAGE,
    "acl set": b'{"policies": {}}',
    "batch": LINES,
    "entity transaction": b'{"op": "insert", "address": "Pairs/p/made", "entity": {"n": 1}}\n',
}
_GUID = "01234567-89ab-cdef-0123-456789abcdef"
_WRONG_ETAG = '"0x8DC0000000000A1"'
_WRONG_ENTITY_ETAG = "W/\"datetime'2026-01-01T00%3A00%3A00.0000000Z'\""

#: A value for each way in which help writes one.
BY_METAVAR: Mapping[str, tuple[str, ...]] = {
    "A|B": ("ReadOnly",),
    "BASE64": ("AAAAAAAAAAAAAAAAAAAAAA==",),
    "BLOB|URL": ("pairs/source.json",),
    "FILE|BLOB|URL": ("pairs/source.json",),
    "CLIENT": ("nobody",),
    "CONTAINER": ("pairs",),
    "DATE": ("2026-10-06",),
    "DURATION|-1": ("1h", "-1"),
    "ETAG": (_WRONG_ETAG,),
    "ETAG|*": ("*", _WRONG_ETAG),
    "ETAG|*|@last": ("@last", "*", _WRONG_ETAG),
    "ETAG|@last": ("@last", _WRONG_ETAG),
    "EXPR": ("\"state\" = 'new'",),
    "FILE": ("result.json",),
    "FILE|-": ("in.json", "-"),
    "GUID": (_GUID,),
    "ID": (_GUID,),
    "ID|@held": ("@held", _GUID),
    "ID|snapshot|version": ("snapshot",),
    "INITIAL": ("{}",),
    "JMESPATH": ("n",),
    "KEY": ("pairs",),
    "KEY=VALUE": ("pair=1",),
    "KEY|@FILE": (base64.b64encode(bytes(32)).decode(),),
    "KINDS": ("metadata", "snapshots"),
    "LIST": ("leased",),
    "N": ("1", "3"),
    "MARKER": ("b",),
    "NAME": ("pairs",),
    "NAME,…": ("n",),
    "NAME[:TYPE]=VALUE": ("n=2", "m:int32=3"),
    "ODATA": ("n eq '1'",),
    "OFFSET:LENGTH": ("0:10",),
    "PATH": ("n", "gone"),
    "PATH=JSON": ("n=2",),
    "PATH=TEXT": ("n=2",),
    "PATH[=N]": ("m", "m=3"),
    "PATTERN": ("*.json",),
    "R|@last|@FILE": ("@last", "AgAAAAMAAAAA"),
    "SAS|@FILE": ("{sas}",),
    "SIZE": ("512", "4KiB"),
    "TABLE": ("Pairs",),
    "TEXT": ("text",),
    "TIME": ("2026-01-01T00:00:00Z",),
    "TIME|DURATION": ("1h",),
    "TYPE": ("text/plain",),
    "VERSION": ("01D64EB9886F00C4",),
}
#: Values by their type, where the metavar says no more.
BY_TYPE: Mapping[str, tuple[str, ...]] = {"duration": ("1s",), "size": ("512",), "integer": ("1", "3")}
#: Values of options that have less choice than their metavar says.
BY_OPTION: Mapping[str, tuple[str, ...]] = {
    "--append-position": ("10", "0"),
    "--conflict-exit-code": ("9",),
    "--connection-string": ("{connection}",),
    "--content": (CONTENT.decode(),),
    "--content-md5": (base64.b64encode(hashlib.md5(CONTENT, usedforsecurity=False).digest()).decode(),),
    "--events": ("events.jsonl",),
    "--if-older-than": ("1h",),
    "--last": ("last.jsonl",),
    "--lease-break-period": ("0s",),
    "--lost-after": ("1m",),
    "--lost-exit-code": ("8",),
    "--merge-patch": ("in.json",),
    "--json-patch": ("patch.json",),
    "--poison-exit-code": ("3",),
    "--poison-queue": ("pairs-poison",),
    "--query": ("@",),
    "--scope": ("pairs", "another"),
    "--source-sas": ("{sas}",),
    "--source-encryption-key": ("MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",),
    "--time-to-live": ("1h", "-1"),
    "--timeout": ("5s",),
    "--previous-snapshot": ("2026-01-01T00:00:00.0000000Z",),
    "--version-of": ("in.json",),
    "--expiry-time": ("2099-01-01T00:00:00Z",),
    "--while-pid": ("1",),
}
#: Those of one command.
BY_COMMAND: Mapping[tuple[str, str], tuple[str, ...]] = {
    **{(f"{noun} acl set", "--file"): ("policies.json",) for noun in ("container", "queue", "share", "table")},
    ("batch", "--file"): ("lines.txt", "-"),
    ("blob page put", "--content"): (PAGE.decode(),),
    ("blob page put", "--offset"): ("0",),
    ("blob page put", "--file"): ("page.json",),
    ("blob page put", "--source"): ("pairs/page",),
    ("blob page clear", "--offset"): ("0",),
    ("blob page clear", "--length"): ("512",),
    ("blob block commit", "--file"): ("ids.txt",),
    ("blob wait", "--until"): ("exists", "unleased", "changed"),
    ("blob wait", "--wait"): ("0.1s",),
    ("cache import", "FILE|-"): ("cache.jsonl",),
    ("emulator env", "--shell"): ("sh",),
    ("lease wait", "--wait"): ("0.1s",),
    ("lock hold", "--until"): ("1h",),
    ("lock run", "--terraform"): ("blob:pairs/source.json",),
    ("entity", "--etag"): ("@last", _WRONG_ENTITY_ETAG),
    ("entity", "--if-match"): ("@last", "*", _WRONG_ENTITY_ETAG),
    ("queue work", "--max-time"): ("1h",),
    ("queue work", "--visibility-timeout"): ("30s",),
    ("share delete", "--delete-snapshots"): ("include",),
    ("share list", "--include"): ("snapshots", "snapshots,deleted"),
    ("container list", "--include"): ("deleted",),
}
_CONTAINERS = ("blob:pairs/a.json", "blob:pairs/held", "container:pairs", "share:pairs", "file:pairs/a.json")
_LOCKS = ("pairs", "blob:pairs/a.json", "table:Pairs", "share:pairs", "file:pairs/a.json")
_RESOURCES = (
    "blob:pairs/a.json", "container:pairs", "queue:pairs", "entity:Pairs/p/r", "share:pairs", "dir:pairs/dir",
    "file:pairs/a.json",
)  # fmt: skip
#: Arguments, by how help writes them.
PLACES: Mapping[str, tuple[str, ...]] = {
    "-- CMD...": ("-- sed s/1/2/",),
    "ADDRESS": _RESOURCES,
    "ADDRESS...": ("blob:pairs/a.json entity:Pairs/p/r",),
    "ADDRESS... -- CMD [ARG...]": _LOCKS,
    "BLOB": ("pairs/a.json",),
    "CONTAINER": ("pairs",),
    "CONTAINER/PREFIX/": ("pairs/tree/",),
    "COMMAND|TOPIC": ("blob put", "conditions"),
    "DESTINATION": ("pairs/a.json",),
    "DIR": ("out",),
    "FILE|-": ("in.json",),
    "FROM": ("pairs-poison",),
    "GIB": ("5",),
    "KEY": ("1*1",),
    "NAME": ("pairs",),
    "NAME[:TYPE]=VALUE": ("n=2", "n=2 m:int32=3"),
    "NEW": ("pairs/b.json",),
    "OLD": ("pairs/a.json",),
    "QUEUE": ("pairs",),
    "QUEUE -- CMD [ARG...]": ("pairs",),
    "QUEUE/ID": ("pairs/{message}",),
    "SDDL": ("O:SYG:SYD:(A;;FA;;;WD)",),
    "SHARE": ("pairs",),
    "SHARE/PATH": ("pairs/a.json",),
    "SHARE/PATH -- CMD [ARG...]": ("pairs/a.json",),
    "SHARE/PREFIX/": ("pairs/tree/",),
    "SHARE[/PATH]": ("pairs",),
    "SIZE": ("512",),
    "SOURCE": ("pairs/source.json",),
    "TABLE": ("Pairs",),
    "TABLE/PARTITION/ROW": ("Pairs/p/r",),
    "TEXT": ("text",),
    "TIER": ("Hot",),
    "TO": ("pairs",),
    "UNTIL": ("2099-01-01",),
    "bash|zsh|fish|powershell": ("bash", "zsh", "fish", "powershell"),
}
#: Arguments of commands, or of all commands of a noun, that want another one.
PLACES_OF: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("blob append", "BLOB"): ("pairs/log",),
    ("blob page", "BLOB"): ("pairs/page",),
    ("blob restore", "BLOB"): ("pairs/source.json",),
    ("blob undelete", "BLOB"): ("pairs/source.json",),
    ("cache import", "FILE|-"): ("cache.jsonl",),
    ("dir", "SHARE/PATH"): ("pairs/dir",),
    ("dir", "OLD"): ("pairs/dir",),
    ("dir", "NEW"): ("pairs/renamed",),
    ("dir create", "SHARE/PATH"): ("pairs/made",),
    ("entity insert", "TABLE/PARTITION/ROW"): ("Pairs/p/made", "Pairs/p/r"),
    ("entity transaction", "FILE|-"): ("transaction.jsonl",),
    ("lease", "ADDRESS"): _CONTAINERS,
    **{(f"lease {verb}", "ADDRESS"): ("blob:pairs/held", _CONTAINERS[0]) for verb in ("renew", "change", "release")},
    ("lock", "ADDRESS"): ("held", "blob:pairs/held"),
    ("lock hold", "ADDRESS"): _LOCKS,
    ("safe-update", "ADDRESS"): (*_RESOURCES, "table:Pairs"),
    ("cache show", "ADDRESS"): ("blob:pairs/a.json",),
}
#: What stands in every line of a command that can have it: it would wait without end, or for another.
ALWAYS: Mapping[str, tuple[str, ...]] = {
    "blob wait": ("--wait",),
    "lease wait": ("--wait",),
    "lock hold": ("--for",),
    "queue work": ("--drain",),
}
#: What says that a write is meant although the service does not guard it.
MEANT = ("--last-writer-wins", "--allow-race")
#: Options that are done one after the other, as they stand in the line: their order is kept.
ORDERED: Mapping[str, tuple[str, ...]] = {
    "safe-update": (
        "--set", "--set-string", "--unset", "--increment", "--merge-patch", "--json-patch", "--append", "--append-line",
    ),
}  # fmt: skip
#: What a command waits for, or is told, by a command of the user's.
TAILS: Mapping[str, tuple[str, ...]] = {
    "queue work": ("--", "true"),
    "lock run": ("--", "true"),
    "file lock run": ("--", "true"),
}
#: Commands that are not played, and why.
NOT_PLAYED: Mapping[str, str] = {
    "demo": "it starts its own emulator and writers; tests/system/test_demo.py types it",
    "doctor": "it sends hundreds of requests; tests/azurite/test_doctor.py types it",
    "emulator start": "it starts servers; tests/system/test_emulator.py types it",
    "emulator run": "it starts servers; tests/system/test_emulator_run.py types it",
}
#: Options that are not typed, and why.
NOT_TYPED: Mapping[str, str] = {
    "--account-key": "of the account that is there",
    "--account-name": "it names another account",
    "--auth-mode": "it logs in",
    "--blob-endpoint": "it names another account",
    "--debug": "it shows a traceback",
    "--emulator": "it names another account",
    "--endpoint-suffix": "it names another account",
    "--file-endpoint": "it names another account",
    "--profile": "it names another account",
    "--queue-endpoint": "it names another account",
    "--sas-token": "of the account that is there",
    "--table-endpoint": "it names another account",
    "--watch": "it does not end",
}
#: They are typed where they are only kept.
TYPED_BY = "profile set"
OF_PROFILES: Mapping[str, tuple[str, ...]] = {
    "--account-key": ("{key}",),
    "--account-name": ("pairs",),
    "--auth-mode": ("key",),
    "--blob-endpoint": ("http://127.0.0.1:1/pairs",),
    "--connection-string": ("{connection}",),
    "--endpoint-suffix": ("core.chinacloudapi.cn",),
    "--file-endpoint": ("http://127.0.0.1:1/pairs",),
    "--queue-endpoint": ("http://127.0.0.1:1/pairs",),
    "--sas-token": ("{sas}",),
    "--table-endpoint": ("http://127.0.0.1:1/pairs",),
}
