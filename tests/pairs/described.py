"""What a command takes, from ``azguard help --json`` and nothing else, and a value for each option and argument."""

import base64
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from azguard.cli.rules.engine import Rule

#: Commands that wait for a person or another program, start servers, or tell of azguard itself.
NOT_PLAYED = ("demo", "edit", "emulator", "completion", "help", "version", "lock hold", "queue work", "cache import")
#: Nor those that take a document of a form of its own, and one that only names an account.
_OF_OTHER_FORMS = (
    "container acl set",
    "share acl set",
    "queue acl set",
    "table acl set",
    "entity transaction",
    "profile set",
)
#: A value for each way in which help writes one.
_VALUES = {
    "ADDRESS": "pairs/a.json",
    "BASE64": "AAAAAAAAAAAAAAAAAAAAAA==",
    "CONTAINER/NAME|URL": "pairs/source.json",
    "SHARE/PATH|URL": "pairs/source.json",
    "ETAG": '"0x8DC0000000000A1"',
    "ETAG|*": "*",
    "ETAG|*|@last": '"0x8DC0000000000A1"',
    "ETAG|@last": '"0x8DC0000000000A1"',
    "EXPR": "\"state\" = 'new'",
    "FILE": "result.json",
    "FILE|-": "in.json",
    "GIB": "5",
    "GUID": "01234567-89ab-cdef-0123-456789abcdef",
    "ID": "01234567-89ab-cdef-0123-456789abcdef",
    "ID|@held": "01234567-89ab-cdef-0123-456789abcdef",
    "JMESPATH": "@",
    "KEY": "pairs",
    "KEY=VALUE": "pair=1",
    "LIST": "leased",
    "KINDS": "metadata",
    "DURATION": "1s",
    "NAME[:TYPE]=VALUE": "n=1",
    "NAME,…": "n",
    "ODATA": "n eq 1",
    "PATH": "gone",
    "PATH=JSON": "n=1",
    "PATH=TEXT": "n=1",
    "PATH[=N]": "n",
    "PATTERN": "*.json",
    "PID": "1",
    "SIZE": "512",
    "BYTES": "512",
    "TEXT": "text",
    "TIME": "2026-01-01T00:00:00Z",
    "TIME|DURATION": "1h",
    "TYPE": "text/plain",
    "N": "1",
    "NAME": "pairs",
    "TIER": "Hot",
    "QUEUE": "pairs",
    "TABLE": "Pairs",
    "CONTAINER": "pairs",
    "[INITIAL]": "{}",
    "A|B": "ReadOnly",
}
#: What is written, from a file or stdin.
CONTENT = b'{"n": "1"}'
_SHARED = ("Conditions", "Account", "General")
_OF_TYPES = {"duration": "1s", "size": "512", "integer": "1"}
#: Values of options whose metavar says too little.
_OF_OPTIONS = {
    "--content": CONTENT.decode(),
    "--events": "in.json",
    "--if-older-than": "1s",
    "--content-md5": base64.b64encode(hashlib.md5(CONTENT, usedforsecurity=False).digest()).decode(),
}
#: Arguments, by how help writes them.
_PLACES = {
    "ADDRESS": "blob:pairs/a.json",
    "ADDRESS...": "blob:pairs/a.json",
    "ADDRESS... -- CMD [ARG...]": "pairs",
    "BLOB": "pairs/a.json",
    "SOURCE": "pairs/source.json",
    "DESTINATION": "pairs/a.json",
    "OLD": "pairs/a.json",
    "NEW": "pairs/b.json",
    "FROM": "pairs-poison",
    "CONTAINER": "pairs",
    "CONTAINER/NAME": "pairs/a.json",
    "FILE|-": "in.json",
    "FILE": "pairs/a.json",
    "GIB": "5",
    "NAME": "pairs",
    "QUEUE": "pairs",
    "QUEUE/ID": "pairs/1",
    "SHARE": "pairs",
    "SHARE/PATH": "pairs/a.json",
    "SHARE/PATH -- CMD [ARG...]": "pairs/a.json",
    "SHARE[/PATH]": "pairs",
    "SIZE": "512",
    "TABLE": "Pairs",
    "TABLE/PARTITION/ROW": "Pairs/p/r",
    "TIER": "Hot",
    "TO": "pairs-poison",
}
#: Options that end a line without its command, or name an account that is not there.
_LEFT_OUT = (
    "--connection-string", "--account-name", "--account-key", "--sas-token", "--auth-mode", "--profile",
    "--blob-endpoint", "--table-endpoint", "--queue-endpoint", "--file-endpoint", "--endpoint-suffix", "--emulator",
    "--debug", "--watch",
)  # fmt: skip


@dataclass(frozen=True)
class Typed:
    """An option that is typed."""

    name: str
    #: What switches it off, for a flag that is on.
    off: str
    #: Its value; empty of a flag.
    value: str
    group: str

    @property
    def words(self) -> list[str]:
        """Return the option as it is typed."""
        return [self.name, self.value] if self.value else [self.off or self.name]

    @property
    def names(self) -> tuple[str, ...]:
        """Return how rules name it: also with its value."""
        return (self.name, f"{self.name}={self.value}") if self.value else (self.off or self.name,)


@dataclass(frozen=True)
class Described:
    """A command, as ``azguard help --json`` describes it."""

    name: str
    data: dict[str, Any]

    @cached_property
    def rules(self) -> list[Rule]:
        """Return which options go together."""
        return [
            Rule(
                kind=each["kind"],
                options=tuple(each["options"]),
                others=tuple(each["others"]),
                unless=tuple(each["unless"]),
                why=each["why"] or "",
                hint=each["hint"] or "",
            )
            for each in self.data["rules"]
        ]

    @cached_property
    def own(self) -> list[Typed]:
        """Return the options of its own that are typed."""
        return [each for each in self._list_options() if each.group not in _SHARED]

    @cached_property
    def shared(self) -> list[Typed]:
        """Return the options that it shares with others."""
        return [each for each in self._list_options() if each.group in _SHARED]

    def _list_options(self) -> list[Typed]:
        options = [each for each in self.data["options"] if each["names"][0] not in _LEFT_OUT]
        return [Typed(each["names"][0], each["off"] or "", _find_value(each), each["group"]) for each in options]

    @cached_property
    def places(self) -> list[str]:
        """Return the words of the arguments that it needs."""
        places = {**_PLACES, "ADDRESS": "pairs"} if self.name.startswith("lock ") else _PLACES
        return [places[each["metavar"]] for each in self.data["arguments"] if each["required"]]

    @cached_property
    def place_names(self) -> list[str]:
        """Return how rules name those arguments."""
        return [each["metavar"].strip("[]") for each in self.data["arguments"] if each["required"]]

    @property
    def statuses(self) -> list[int]:
        """Return the exit statuses that it can end with."""
        return list(self.data["statuses"])

    @property
    def is_unguarded(self) -> bool:
        """Return whether the service can guard nothing here: then it has to be said that it is meant."""
        conditions = self.data["conditions"]
        return conditions["without_one"] not in (None, "no") and conditions["etag_kept_by"] == "none"

    @property
    def runs_command(self) -> bool:
        """Return whether a command of the user's follows ``--``."""
        return any("CMD" in each["metavar"] and each["required"] for each in self.data["arguments"])


def list_described() -> Iterator[Described]:
    """Yield the commands that are played."""
    told = subprocess.run([sys.executable, "-m", "azguard", "help", "--json"], capture_output=True, check=True).stdout
    for data in json.loads(told)["commands"]:
        if not data["name"].startswith((*NOT_PLAYED, *_OF_OTHER_FORMS)):
            yield Described(data["name"], data)


def _find_value(option: dict[str, Any]) -> str:
    """Return a value of an option; empty of a flag."""
    if option["metavar"] is None:
        return ""
    name, kind = option["names"][0], option["type"]
    if kind["name"] == "choice":
        return str(kind["choices"][0])
    if name in _OF_OPTIONS:
        return _OF_OPTIONS[name]
    if "least" in kind:
        return f"{kind['least']:g}s" if kind["name"] == "duration" else str(kind["least"])
    if kind["name"] in _OF_TYPES:
        return _OF_TYPES[kind["name"]]
    metavar = option["metavar"]
    metavar = metavar[1:-1] if metavar.startswith("[") and metavar.endswith("]") else metavar
    return _VALUES.get(metavar) or metavar.partition("|")[0]
