"""Results as what JSON knows: what all formats of the output are made from."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Any

from azguard.times import iso

# What JSON knows already; not what is derived from it, such as an enum of text.
_AS_IT_IS = (str, int, float, bool, type(None))


def to_json_form(value: object) -> Any:
    """Return a result as what JSON knows: dataclasses as objects, times as ISO 8601, enums as their value."""
    kind = type(value)
    if kind in _AS_IT_IS:
        return value
    if is_dataclass(kind):
        return {name: to_json_form(getattr(value, name)) for name in _list_printed(kind)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, Mapping):
        return {str(key): to_json_form(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_json_form(each) for each in value]
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    return str(value)


@cache
def _list_printed(kind: type) -> tuple[str, ...]:
    """List the fields of a result that are printed, in order; a line of a tree asks for them for each file."""
    names = [each.name for each in fields(kind) if "is_unprinted" not in each.metadata]
    first = [name for name in getattr(kind, "FIRST", ()) if name in names]
    last = [name for name in getattr(kind, "LAST", ()) if name in names and name not in first]
    return (*first, *(name for name in names if name not in {*first, *last}), *last)
