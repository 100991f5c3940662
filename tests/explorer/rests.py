"""What a process knows while it rests, so that histories which it has forgotten are not told apart.

A program says where it rests: where all that its code can still read hangs on objects that it names. Two histories
after which these are the same, at the same time, lead to the same steps, and the first one goes on for both.
"""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from enum import Enum
from functools import lru_cache
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from azguard.accounts.account import Account
from azguard.address import Address

_OF_PROCESS = re.compile("0xE[0-9]{13}")
# They are what they look like.
_PLAIN = (type(None), int, float, bytes, datetime, timedelta, Enum, Address)
# The flag of a type that a class statement has made.
_IS_OF_PYTHON = 1 << 9
# They are the same for all processes, or do nothing but what their name says.
_SHARED = (Account, ModuleType, type, BuiltinFunctionType)


class Rest(NamedTuple):
    """A process rests."""

    #: A digest of all that it knows, of its versions by the order in which they are found in it.
    known: int
    #: These versions, by the numbers that it has given them: see ``names``.
    versions: tuple[int, ...]


def find_rest(*roots: Any) -> Rest:
    """Digest all that code can reach from these objects.

    Raises:
        TypeError: one of them is of a type whose memory cannot be listed.
    """
    walk = _Walk()
    for root in roots:
        walk.take(root)
    return Rest(hash(tuple(walk.found)), tuple(walk.versions))


class _Walk:
    """Walks over objects in an order that depends on them alone."""

    def __init__(self) -> None:
        self.found: list[Any] = []
        self.versions: dict[int, int] = {}
        #: The objects that were met, by their ids: so they are kept, and nothing else has those.
        self._met: dict[int, tuple[int, Any]] = {}

    def take(self, value: Any) -> None:
        """Add what a value is."""
        kind = type(value)
        if kind is str:
            self.found.append(_OF_PROCESS.sub(self._number, value) if "0xE" in value else value)
            return
        find_parts = _choose(kind)  # type: ignore[arg-type]  # a type can be hashed
        if find_parts is None:
            self.found.append(value)
        elif (met := self._met.get(id(value))) is not None:
            self.found.append(met[0])
        else:
            self._met[id(value)] = len(self._met), value
            parts = find_parts(value)
            self.found += (kind, len(parts))
            for part in parts:
                self.take(part)

    def _number(self, found: re.Match[str]) -> str:
        number = int(found[0][3:])
        return f"0xE{self.versions.setdefault(number, len(self.versions)):013d}"


@lru_cache(maxsize=1000)
def _choose(kind: Any) -> Callable[[Any], tuple[Any, ...]] | None:
    """Choose the function that lists the parts of an object of this type; None for a plain value."""
    if issubclass(kind, _PLAIN):
        return None
    if issubclass(kind, _SHARED):
        return lambda value: (id(value),)
    if kind in _PARTS:
        return _PARTS[kind]
    if issubclass(kind, tuple):
        return tuple
    if hasattr(kind, "remembered"):
        return lambda value: value.remembered
    # What is written in C, or has slots, keeps more than its attributes tell.
    is_told = all(each is object or each.__flags__ & _IS_OF_PYTHON for each in kind.__mro__)
    if not is_told or any("__slots__" in vars(each) for each in kind.__mro__):
        raise TypeError(f"what a {kind} remembers is not known")
    return lambda value: (tuple(vars(value)), *vars(value).values())


_PARTS: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    list: tuple,
    dict: lambda value: tuple(part for pair in value.items() for part in pair),
    set: lambda value: tuple(sorted(value)),
    frozenset: lambda value: tuple(sorted(value)),
    FunctionType: lambda value: (id(value.__code__), value.__defaults__, value.__kwdefaults__, value.__closure__),
    MethodType: lambda value: (value.__func__, value.__self__),
    CellType: lambda value: (value.cell_contents,),
}
