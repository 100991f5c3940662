"""How results are laid out for people: read from their types, before they become plain values."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property

from azguard.columns import Column


@dataclass(frozen=True)
class Layout:
    """The columns of a result, and how their values are shown."""

    #: The columns of a list, from left to right; without any, the first fields that there are.
    columns: tuple[Column, ...] = ()
    #: The columns of results within the result.
    inner: tuple[Column, ...] = ()
    #: Whether the fields have names of the user's own, as the properties of an entity have.
    is_verbatim: bool = False
    #: The fields that hold names and values of the user's own, such as metadata.
    verbatim: frozenset[str] = frozenset()

    @cached_property
    def by_name(self) -> Mapping[str, Column]:
        """Return each column by its name."""
        return {each.name: each for each in (*self.inner, *self.columns)}


def of(result: object) -> Layout:
    """Return the layout of a result, or of a list of results."""
    rows = result if isinstance(result, (list, tuple)) else [result]
    kinds = dict.fromkeys(map(type, rows))
    # A list may hold two types, of which one has some of the columns of the other.
    return Layout(
        columns=max(map(_columns, kinds), key=len, default=()),
        inner=tuple(column for kind in dict.fromkeys(_kinds(rows)) for column in _columns(kind)),
        verbatim=frozenset(_names_of_mappings(rows)),
        is_verbatim=any(getattr(kind, "IS_VERBATIM", False) for kind in kinds),
    )


def _columns(kind: type) -> tuple[Column, ...]:
    found: tuple[Column, ...] = getattr(kind, "COLUMNS", ())
    return found


def _kinds(values: Sequence[object]) -> Iterator[type]:
    for value in values:
        yield type(value)
        if is_dataclass(value) and not isinstance(value, type):
            yield from _kinds([getattr(value, each.name) for each in fields(value)])


def _names_of_mappings(values: Sequence[object]) -> Iterator[str]:
    for value in values:
        if is_dataclass(value) and not isinstance(value, type):
            for each in fields(value):
                found = getattr(value, each.name)
                if isinstance(found, Mapping):
                    yield each.name
                yield from _names_of_mappings([found])
