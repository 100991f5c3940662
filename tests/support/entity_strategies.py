"""Any entity the Table service takes, as azguard writes it."""

import base64
import string
from typing import Any

from hypothesis import strategies as st

from azguard.tables import edm

# What no key may hold, and halves of characters, which are no text.
_NOT_IN_KEYS = "/\\#?" + "".join(map(chr, (*range(0x20), *range(0x7F, 0xA0))))
_TEXT = st.characters(exclude_categories=["Cs"])
_FIRST = string.ascii_letters + "_äß名"
names = st.builds(str.__add__, st.sampled_from(_FIRST), st.text(_FIRST + string.digits, max_size=8)).filter(
    lambda name: name not in (*edm.KEYS, edm.TIMESTAMP) and not name.lower().startswith(("xml", "azguard"))
)


def keys(min_size: int = 0) -> st.SearchStrategy[str]:
    """Return any partition or row key."""
    return st.text(st.characters(exclude_categories=["Cs"], exclude_characters=_NOT_IN_KEYS), min_size=min_size)


def moments() -> st.SearchStrategy[str]:
    """Return any DateTime as the service writes it: to 100 ns, without zeros at the end."""

    def written(moment: Any, ticks: int) -> str:
        fraction = f".{ticks:07d}".rstrip("0").rstrip(".")
        return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"

    from datetime import datetime

    return st.builds(written, st.datetimes(datetime(1601, 1, 1)), st.integers(0, 9_999_999))  # noqa: DTZ001  # the zone is added there


def doubles() -> st.SearchStrategy[Any]:
    """Return any double: those JSON has no numbers for are texts."""
    return st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(["NaN", "Infinity", "-Infinity"])


def values() -> st.SearchStrategy[tuple[str, Any]]:
    """Return a type and a value of it."""
    of = {
        edm.STRING: st.text(_TEXT),
        edm.BOOLEAN: st.booleans(),
        edm.INT32: st.integers(-(2**31), 2**31 - 1),
        edm.INT64: st.integers(-(2**63), 2**63 - 1).map(str),
        edm.DOUBLE: doubles(),
        edm.DATETIME: moments(),
        edm.GUID: st.uuids().map(str),
        edm.BINARY: st.binary().map(lambda content: base64.b64encode(content).decode()),
    }
    return st.one_of([st.tuples(st.just(kind), value) for kind, value in of.items()])


@st.composite
def entities(draw: st.DrawFn, key: st.SearchStrategy[str] | None = None) -> dict[str, Any]:
    """Return an entity with up to eight properties."""
    key = keys() if key is None else key
    entity: dict[str, Any] = {edm.PARTITION_KEY: draw(key), edm.ROW_KEY: draw(key)}
    for name, (kind, value) in draw(st.dictionaries(names, values(), max_size=8)).items():
        entity[name] = value
        if kind not in (edm.STRING, edm.BOOLEAN, edm.INT32):
            entity[name + edm.ANNOTATION] = kind
    return entity
