"""``name=value`` and ``name:type=value`` → properties.

Nothing is guessed: without a type a value is a string, so that ``0152`` stays what it is. The pairs of the Azure CLI,
``name=5 name@odata.type=Edm.Int32``, mean what they mean there.
"""

from collections.abc import Iterable
from typing import Any

from azguard.errors import UsageError
from azguard.tables import edm
from azguard.tables.edm import ANNOTATION, BOOLEAN, DOUBLE, INT32, STRING, Entity

# The types by their suffix: int64 is Edm.Int64.
SUFFIXES = {kind.removeprefix("Edm.").lower(): kind for kind in edm.TYPES}
# JSON has these itself, or they need no annotation.
_PLAIN = (STRING, BOOLEAN, INT32)


def parse_entity(texts: Iterable[str]) -> Entity:
    """Return an entity, or some properties of one, from texts such as ``n:int64=5``.

    Raises:
        UsageError: a text is no property, is given twice, or its value does not have its type.
    """
    kinds: dict[str, str] = {}
    values: dict[str, str] = {}
    for text in texts:
        name, kind, value = split(text)
        bare = name.removesuffix(ANNOTATION)
        if bare != name:
            kind = value
        if (kind and bare in kinds) or (bare == name and bare in values):
            raise UsageError(f"{bare} is given twice", reason="property_typed_twice")
        if kind:
            kinds[bare] = kind
        if bare == name:
            values[bare] = value
    missing = next((name for name in kinds if name not in values), None)
    if missing is not None:
        raise UsageError(
            f"{missing}{ANNOTATION} is the type of a property that is not there",
            reason="type_without_property",
            values={"property": missing},
        )
    made: Entity = {}
    for name, value in values.items():
        kind = kinds.get(name, STRING)
        made[name] = parse_value(name, kind, value)
        if kind not in _PLAIN:
            made[name + ANNOTATION] = kind
    return made


def split(text: str) -> tuple[str, str | None, str]:
    """Return the name, the type if one is given, and the value of ``name:type=value``.

    Raises:
        UsageError: there is no name or no ``=``, or the type is none.
    """
    left, equals, value = text.partition("=")
    name, colon, suffix = left.partition(":")
    if not equals or not name:
        raise _make_error(f"{text!r} is not a property")
    if not colon:
        return name, None, value
    kind = SUFFIXES.get(suffix.lower()) or (suffix if suffix in edm.TYPES else None)
    if kind is None:
        raise _make_error(f"{name}: {suffix!r} is not a type")
    return name, kind, value


def _make_error(message: str) -> UsageError:
    return UsageError(message, reason="property_malformed", values={"types": " ".join(SUFFIXES)})


def parse_value(name: str, kind: str, text: str) -> Any:
    """Return a text as the JSON value of a property of a type.

    Raises:
        UsageError: the text does not have that type, or it is no type; names the property.
    """
    value: Any = text
    if kind == BOOLEAN and text in ("true", "false"):
        value = text == "true"
    sent = edm.check_value(name, kind, value)
    return sent if kind in (INT32, DOUBLE) else value
