"""What a command takes, from ``azguard help --json`` and nothing else, and words for each option and argument."""

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from tests.pairs import samples

_SHARED = ("Conditions", "Account", "General")
_KINDS = ("blob", "container", "queue", "entity", "table", "share", "dir", "file")
_OF_NO_KIND = ("help", "completion", "profile", "cache import", "entity transaction")


@dataclass(frozen=True)
class Typed:
    """An option that is typed, or an argument that can be left out."""

    #: How rules name it; with its value where a rule is about that.
    names: tuple[str, ...]
    group: str
    #: All of its names on a line; empty of an argument.
    flags: tuple[str, ...] = ()
    #: The values that it is given; empty of a flag.
    values: tuple[str, ...] = ()

    @property
    def is_place(self) -> bool:
        """Return whether it is told by its place."""
        return not self.flags

    def choose(self, chance: random.Random) -> "Chosen":
        """Return it with one of its values."""
        return Chosen(self, chance.choice(self.values) if self.values else None)


@dataclass(frozen=True)
class Chosen:
    """What is typed, with its value."""

    row: Typed
    value: str | None

    @property
    def words(self) -> list[str]:
        """Return it as it is typed."""
        if self.row.is_place:
            return str(self.value).split()
        return [self.row.flags[0]] if self.value is None else [self.row.flags[0], self.value]

    def write(self, chance: random.Random) -> list[str]:
        """Return it as it can be typed too: by another of its names, with its value behind a ``=``."""
        name = chance.choice(self.row.flags) if self.row.flags else ""
        if self.value is None or not name.startswith("--") or chance.random() < 0.5:
            return [name or self.words[0], *self.words[1:]]
        return [f"{name}={self.value}"]


@dataclass(frozen=True)
class Described:
    """A command, as ``azguard help --json`` describes it."""

    data: dict[str, Any]

    @property
    def name(self) -> str:
        """Return its words."""
        return str(self.data["name"])

    @property
    def rules(self) -> list[dict[str, Any]]:
        """Return which options go together."""
        rules: list[dict[str, Any]] = self.data["rules"]
        return rules

    @cached_property
    def own(self) -> list[Typed]:
        """Return what it takes that others do not, or not all: options, and arguments that can be left out."""
        places = [_place(self.name, each) for each in self.data["arguments"] if not each["required"]]
        return [*places, *(each for each in self._options if each.group not in _SHARED)]

    @cached_property
    def shared(self) -> list[Typed]:
        """Return the options that it shares with others."""
        return [each for each in self._options if each.group in _SHARED]

    @cached_property
    def _options(self) -> list[Typed]:
        named = {name for rule in self.rules for side in ("options", "others", "unless") for name in rule[side]}
        return [each for option in self.data["options"] if self._types(option) for each in self._list(option, named)]

    def _types(self, option: dict[str, Any]) -> bool:
        name = option["names"][0]
        return name not in samples.NOT_TYPED or (self.name == samples.TYPED_BY and name in samples.OF_PROFILES)

    def _list(self, option: dict[str, Any], named: set[str]) -> Iterator[Typed]:
        name, flags = option["names"][0], tuple(option["names"])
        if option["off"]:
            yield Typed((option["off"],), option["group"], (option["off"],))
        if option["metavar"] is None:
            yield Typed((name,), option["group"], flags)
            return
        values = _find_values(self.name, option)
        alone = [value for value in values if f"{name}={value}" in named]
        for value in alone:
            yield Typed((name, f"{name}={value}"), option["group"], flags, (value,))
        if others := tuple(value for value in values if value not in alone):
            yield Typed((name,), option["group"], flags, others)

    @cached_property
    def formats(self) -> list[str]:
        """Return the formats of what it shows."""
        option = next(each for each in self.data["options"] if "--output" in each["names"])
        return list(option["type"]["choices"])

    @cached_property
    def places(self) -> list[Typed]:
        """Return the arguments that it needs."""
        return [_place(self.name, each) for each in self.data["arguments"] if each["required"]]

    @property
    def tail(self) -> tuple[str, ...]:
        """Return the command that it runs; empty if it needs none."""
        return samples.TAILS.get(self.name, ())

    @cached_property
    def always(self) -> list[Typed]:
        """Return what stands in every line that can have it."""
        return [each for each in self.own if each.names[0] in samples.ALWAYS.get(self.name, ())]

    @cached_property
    def meant(self) -> list[Typed]:
        """Return what says that a write without a guard is meant, or that a gap beside the guard is."""
        return [each for each in self.shared if self.is_unguarded and each.names[0] in samples.MEANT]

    @property
    def ordered(self) -> tuple[str, ...]:
        """Return the options that mean something else in another order."""
        return samples.ORDERED.get(self.name, ())

    @property
    def stdin(self) -> bytes:
        """Return what it reads from stdin."""
        return next((found for name, found in samples.STDIN.items() if self.name.endswith(name)), samples.CONTENT)

    def find_kind(self, words: list[str]) -> str | None:
        """Return the kind of the first address of a line, given the words of its arguments."""
        if not words or self.name.startswith(_OF_NO_KIND):
            return None
        kind = words[0].partition(":")[0]
        return kind if kind in _KINDS else "blob"

    @property
    def is_unguarded(self) -> bool:
        """Return whether the service guards no version here: then the line has to say that this is meant."""
        conditions = self.data["conditions"]
        return conditions["without_one"] not in (None, "no") and conditions["etag_kept_by"] in ("none", "compare")


@cache
def describe_all() -> tuple[Described, ...]:
    """Return all commands."""
    told = subprocess.run([sys.executable, "-m", "azguard", "help", "--json"], capture_output=True, check=True).stdout
    return tuple(Described(each) for each in json.loads(told)["commands"])


def _place(command: str, argument: dict[str, Any]) -> Typed:
    metavar = argument["metavar"].strip("[]")
    words = command.split()
    own = [samples.PLACES_OF.get((" ".join(words[:length]), metavar)) for length in range(len(words), 0, -1)]
    values = next(filter(None, own), None) or samples.PLACES.get(argument["metavar"]) or samples.PLACES[metavar]
    return Typed((metavar.removeprefix("-- "),), "Arguments", values=values)


def _strip(metavar: str) -> str:
    """Return what stands for a value without the brackets around it."""
    return metavar[1:-1] if metavar.startswith("[") and metavar.endswith("]") else metavar


def _find_values(command: str, option: dict[str, Any]) -> tuple[str, ...]:
    name, kind, metavar = option["names"][0], option["type"], _strip(option["metavar"])
    for words in (command, command.split(maxsplit=1)[0]):
        if (words, name) in samples.BY_COMMAND:
            return samples.BY_COMMAND[words, name]
    if command == samples.TYPED_BY and name in samples.OF_PROFILES:
        return samples.OF_PROFILES[name]
    if name in samples.BY_OPTION:
        return samples.BY_OPTION[name]
    if kind["name"] == "choice":
        return tuple(kind["choices"])
    if "least" in kind:
        least = f"{max(kind['least'], 0):g}"
        return (f"{least}s",) if kind["name"] == "duration" else (least,)
    return samples.BY_TYPE.get(kind["name"]) or samples.BY_METAVAR[metavar]
