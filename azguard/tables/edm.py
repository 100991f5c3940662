"""Entities as JSON with OData annotations ⇄ what is sent; and the limits of an entity.

An entity is a JSON object whose properties may each have a neighbour ``NAME@odata.type``. Every type but string,
boolean and Edm.Int32 is written with it, Edm.Double included: a filter command may well write ``1.0`` as ``1``.

Source: https://learn.microsoft.com/rest/api/storageservices/payload-format-for-table-service-operations
"""

import base64
import binascii
import json
import math
import re
import unicodedata
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from azguard import naming
from azguard.errors import UsageError

Entity = dict[str, Any]
PARTITION_KEY = "PartitionKey"
ROW_KEY = "RowKey"
TIMESTAMP = "Timestamp"
KEYS = (PARTITION_KEY, ROW_KEY)
ANNOTATION = "@odata.type"
STRING = "Edm.String"
BOOLEAN = "Edm.Boolean"
INT32 = "Edm.Int32"
INT64 = "Edm.Int64"
DOUBLE = "Edm.Double"
DATETIME = "Edm.DateTime"
GUID = "Edm.Guid"
BINARY = "Edm.Binary"
TYPES = (STRING, BOOLEAN, INT32, INT64, DOUBLE, DATETIME, GUID, BINARY)
# JSON has no numbers for these.
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
# The service keeps 100 ns, in UTC, and takes a time without a zone for UTC.
_DATETIME = r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2})?)(\.[0-9]{1,7})?Z?"
_FIRST_YEAR = 1601
_HALF_CHARACTER = r"[\ud800-\udfff]"
# How much of a refused value a message shows.
_SHOWN_CHARACTERS = 60
_WHOLE = r"-?[0-9]+"
_DECIMAL = r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?"
# The types by their suffix: int64 is Edm.Int64.
SUFFIXES = {kind.removeprefix("Edm.").lower(): kind for kind in TYPES}
_PLAIN = (STRING, BOOLEAN, INT32)  # JSON has them itself, or they need no annotation.
# Source: https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model
MOST_PROPERTIES = 252
NAME_CHARACTERS = 255
VALUE_BYTES = 64 * 1024
ENTITY_BYTES = 1024 * 1024
# The bytes of an entity besides its data. The same source holds for the next two.
# Source: https://learn.microsoft.com/archive/blogs/avkashchauhan/how-the-size-of-an-entity-is-caclulated-in-windows-azure-table-storage
_ENTITY_BYTES = 4
# The bytes of a property besides its name and its value.
_PROPERTY_BYTES = 8
# The bytes of the length of a string or of binary data.
_LENGTH_BYTES = 4
# What the headers and the boundary of a part of a transaction take besides its path and its JSON: 485 bytes, measured.
_PART_BYTES = 512
_SIZES = {BOOLEAN: 1, INT32: 4, INT64: 8, DOUBLE: 8, DATETIME: 8, GUID: 16}
# A C# identifier begins with a letter or an underscore; the others may follow.
_LETTERS = ("Lu", "Ll", "Lt", "Lm", "Lo", "Nl")
_FOLLOWING = (*_LETTERS, "Mn", "Mc", "Nd", "Pc")


def from_service(answer: Mapping[str, Any]) -> Entity:
    """Return an entity as azguard shows it, from the JSON of the service's answer."""
    entity: Entity = {}
    for name, value in answer.items():
        if name.startswith("odata.") or name.endswith(ANNOTATION):
            continue
        kind = answer.get(name + ANNOTATION) or (DOUBLE if isinstance(value, float) else None)
        # The emulator writes 1.0 as 1.
        entity[name] = float(value) if kind == DOUBLE and isinstance(value, int) else value
        if kind not in (None, STRING, BOOLEAN, INT32) and name != TIMESTAMP:
            entity[name + ANNOTATION] = kind
    return entity


def to_body(entity: Mapping[str, Any]) -> bytes:
    """Return an entity as it is sent, every value with its type; what the service sets itself stays out."""
    body: dict[str, Any] = {}
    for name, kind, value in iterate_properties(entity):
        body[name] = _WRITTEN[kind](value) if kind in _WRITTEN else value
        body[name + ANNOTATION] = kind
    return json.dumps(body).encode()


def iterate_properties(entity: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield each property's name, type and value as it is sent; a null is no property."""
    for name in entity:
        bare = name.removesuffix(ANNOTATION)
        if bare != name and bare not in entity:
            raise UsageError(
                f"{name} annotates a property that is not there",
                reason="annotation_without_property",
                values={"property": bare},
            )
    for name, value in entity.items():
        if name.endswith(ANNOTATION) or name.startswith("odata.") or name == TIMESTAMP or value is None:
            continue
        kind = entity.get(name + ANNOTATION) or _infer_type(name, value)
        yield name, kind, check_value(name, kind, value)


def check_value(name: str, kind: str, value: Any) -> Any:
    """Return a JSON value of a type as it is sent. Any name will do: a parameter may well be called Timestamp."""
    if kind not in TYPES:
        raise UsageError(
            f"{name}: {kind!r} is not a type of the Table service",
            reason="property_type_unknown",
            values={"types": " ".join(TYPES)},
        )
    return _CHECKS[kind](name, value)


def kind_of(entity: Mapping[str, Any], name: str) -> str:
    """Return the type of a property that is there."""
    return str(entity.get(name + ANNOTATION) or _infer_type(name, entity[name]))


def _infer_type(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int):
        if not -(2**31) <= value < 2**31:
            raise UsageError(
                f"{name} is beyond what {INT32} takes",
                reason="int32_too_large",
                values={"annotation": name + ANNOTATION, "type": INT64},
            )
        return INT32
    if isinstance(value, float):
        return DOUBLE
    if isinstance(value, str):
        return STRING
    shape = "array" if isinstance(value, list) else "object"
    raise UsageError(
        f"{name}: a property is a string, a number or a boolean, not a JSON {shape}",
        reason="property_nested",
    )


def _wrong_type(name: str, value: Any, kind: str, *, reason: str) -> UsageError:
    shown = repr(value)
    shown = shown if len(shown) <= _SHOWN_CHARACTERS else f"{shown[:_SHOWN_CHARACTERS]}…"
    return UsageError(f"{name}: {shown} is not an {kind}", reason=reason)


def _string(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong_type(name, value, STRING, reason="string_without_quotes")
    if not value.isascii() and re.search(_HALF_CHARACTER, value):
        raise _wrong_type(name, value, STRING, reason="string_not_unicode")
    return value


def _boolean(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong_type(name, value, BOOLEAN, reason="boolean_malformed")
    return value


def _integer(kind: str, bits: int) -> Callable[[str, Any], int]:
    def check(name: str, value: Any) -> int:
        text = isinstance(value, str) and re.fullmatch(_WHOLE, value)
        if isinstance(value, bool) or not (isinstance(value, int) or text):
            raise _wrong_type(name, value, kind, reason="integer_malformed")
        try:
            number = int(value)
        except ValueError:
            number = 2**bits  # Python reads no more than 4,300 digits
        if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
            raise UsageError(f"{name} is beyond what {kind} takes", reason="integer_too_large", values={"bits": bits})
        return number

    return check


def _double(name: str, value: Any) -> float | str:
    if isinstance(value, str) and value in _NOT_FINITE:
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise _wrong_type(name, value, DOUBLE, reason="double_malformed")
    if isinstance(value, str) and not re.fullmatch(_DECIMAL, value):
        raise _wrong_type(name, value, DOUBLE, reason="double_malformed")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    # 1e999 is read as infinity, which has a name of its own.
    if not math.isfinite(number):
        raise UsageError(f"{name} is beyond what {DOUBLE} takes", reason="double_malformed")
    return number


def _datetime(name: str, value: Any) -> str:
    found = re.fullmatch(_DATETIME, value) if isinstance(value, str) else None
    try:
        if found is None or datetime.fromisoformat(found[1]).year < _FIRST_YEAR or (found[3] and not found[2]):
            raise _wrong_type(name, value, DATETIME, reason="datetime_malformed")
    except ValueError:
        raise _wrong_type(name, value, DATETIME, reason="datetime_malformed") from None
    return f"{found[1]}{'' if found[2] else ':00'}{found[3] or ''}Z"


def _guid(name: str, value: Any) -> str:
    try:
        return str(uuid.UUID(value))
    except (ValueError, AttributeError, TypeError):
        raise _wrong_type(name, value, GUID, reason="guid_malformed") from None


def _binary(name: str, value: Any) -> bytes:
    if not isinstance(value, str):
        raise _wrong_type(name, value, BINARY, reason="binary_malformed")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise _wrong_type(name, value, BINARY, reason="binary_malformed") from None


_CHECKS: Mapping[str, Callable[[str, Any], Any]] = {
    STRING: _string,
    BOOLEAN: _boolean,
    INT32: _integer(INT32, 32),
    INT64: _integer(INT64, 64),
    DOUBLE: _double,
    DATETIME: _datetime,
    GUID: _guid,
    BINARY: _binary,
}


# How a value stands in JSON, where it is not what was checked.
_WRITTEN: Mapping[str, Callable[[Any], str]] = {INT64: str, BINARY: lambda value: base64.b64encode(value).decode()}


def parse_entity(texts: Iterable[str]) -> Entity:
    """Return an entity, or some properties of one, from texts such as ``n:int64=5``.

    Raises:
        UsageError: a text is no property, is given twice, or its value does not have its type.
    """
    kinds: dict[str, str] = {}
    values: dict[str, str] = {}
    for text in texts:
        name, kind, value = split_typed(text)
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


def split_typed(text: str) -> tuple[str, str | None, str]:
    """Return the name, the type if one is given, and the value of ``name:type=value``."""
    left, equals, value = text.partition("=")
    name, colon, suffix = left.partition(":")
    if not equals or not name:
        raise _make_error(f"{text!r} is not a property")
    if not colon:
        return name, None, value
    kind = SUFFIXES.get(suffix.lower()) or (suffix if suffix in TYPES else None)
    if kind is None:
        raise _make_error(f"{name}: {suffix!r} is not a type")
    return name, kind, value


def _make_error(message: str) -> UsageError:
    return UsageError(message, reason="property_malformed", values={"types": " ".join(SUFFIXES)})


def parse_value(name: str, kind: str, text: str) -> Any:
    """Return a text as the JSON value of a property of a type."""
    value: Any = text
    if kind == BOOLEAN and text in ("true", "false"):
        value = text == "true"
    sent = check_value(name, kind, value)
    return sent if kind in (INT32, DOUBLE) else value


def check_limits(entity: Mapping[str, Any]) -> None:
    """Refuse an entity that the service would refuse, whole or with only the properties that are to be merged."""
    properties = [each for each in iterate_properties(entity) if each[0] not in KEYS]
    _check_keys(entity)
    for name, kind, value in properties:
        _check_name(name)
        _check_value(name, kind, value)
    if len(properties) > MOST_PROPERTIES:
        raise UsageError(
            f"{properties[MOST_PROPERTIES][0]} is one property too many: there are {len(properties)}, "
            f"and an entity has at most {MOST_PROPERTIES} besides its keys",
            reason="too_many_properties",
        )
    sizes = {name: _count_bytes(name, kind, value) for name, kind, value in properties}
    total = _count_key_bytes(entity) + sum(sizes.values())
    if total > ENTITY_BYTES:
        largest = max(sizes, key=lambda name: sizes[name])
        raise UsageError(
            f"the entity has {total:,} bytes, and the service takes {ENTITY_BYTES:,} (1 MiB); "
            f"the largest property is {largest}, with {sizes[largest]:,}",
            reason="entity_too_large",
        )


def count_room(entity: Mapping[str, Any], name: str) -> int:
    """Return how many characters one more string property may have; negative where there is no room."""
    others = sum(_count_bytes(*each) for each in iterate_properties(entity) if each[0] not in KEYS)
    left = ENTITY_BYTES - _count_key_bytes(entity) - others - _count_bytes(name, STRING, "")
    return min(left, VALUE_BYTES) // 2


def _count_key_bytes(entity: Mapping[str, Any]) -> int:
    return _ENTITY_BYTES + sum(_utf16(str(entity.get(key, ""))) for key in KEYS)


def _check_keys(entity: Mapping[str, Any]) -> None:
    for key in KEYS:
        value = entity.get(key)
        if value is None:
            raise UsageError(f"{key} is missing", reason="entity_without_key")
        if not isinstance(value, str):
            raise UsageError(
                f"{key}: {value!r} is not a string",
                reason="key_not_string",
                values={"key": key, "value": value},
            )
        naming.check_key(value, key)


def _check_name(name: str) -> None:
    if _utf16(name) > 2 * NAME_CHARACTERS:
        raise UsageError(
            f"the name of property {name[:40]}… has {_utf16(name) // 2} characters; the service takes {NAME_CHARACTERS}"
        )
    categories = [unicodedata.category(each) for each in name]
    valid = bool(name) and (name[0] == "_" or categories[0] in _LETTERS) and set(categories) <= set(_FOLLOWING)
    if not valid:
        raise UsageError(f"{name!r} is not a property name the service takes", reason="property_name_malformed")


def _check_value(name: str, kind: str, value: Any) -> None:
    if kind not in (STRING, BINARY):
        return
    size = _utf16(value) if kind == STRING else len(value)
    if size > VALUE_BYTES:
        unit = "bytes in UTF-16" if kind == STRING else "bytes"
        raise UsageError(
            f"{name} has {size:,} {unit}, and the service takes {VALUE_BYTES:,} (64 KiB)",
            reason="value_too_large",
        )


def _count_bytes(name: str, kind: str, value: Any) -> int:
    around = _PROPERTY_BYTES + _utf16(name)
    if kind in _SIZES:
        return around + _SIZES[kind]
    return around + _LENGTH_BYTES + (_utf16(value) if kind == STRING else len(value))


def _utf16(text: str) -> int:
    """Return the bytes of a text in UTF-16, which is what the service counts."""
    return len(text.encode("utf-16-le", "surrogatepass"))


def estimate_part_bytes(path: Sequence[str], sent: Entity) -> int:
    """Return about how many bytes a write takes in the body of a transaction."""
    return _PART_BYTES + 3 * sum(len(part.encode()) for part in path) + len(to_body(sent))
