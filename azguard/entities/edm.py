"""Entities as JSON with OData annotations ⇄ what the SDK sends.

An entity is a JSON object whose properties may each have a neighbour ``NAME@odata.type``. Every type but string,
boolean and Edm.Int32 is written with it, Edm.Double included: a filter command may well write ``1.0`` as ``1``.

Source: https://learn.microsoft.com/rest/api/storageservices/payload-format-for-table-service-operations
"""

import base64
import binascii
import math
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from azguard.errors import UsageError

Entity = dict[str, Any]
PARTITION_KEY, ROW_KEY, TIMESTAMP = "PartitionKey", "RowKey", "Timestamp"
KEYS = (PARTITION_KEY, ROW_KEY)
ANNOTATION = "@odata.type"
STRING, BOOLEAN, INT32, INT64 = "Edm.String", "Edm.Boolean", "Edm.Int32", "Edm.Int64"
DOUBLE, DATETIME, GUID, BINARY = "Edm.Double", "Edm.DateTime", "Edm.Guid", "Edm.Binary"
TYPES = (STRING, BOOLEAN, INT32, INT64, DOUBLE, DATETIME, GUID, BINARY)
# JSON has no numbers for these.
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
# The service keeps 100 ns, in UTC; years begin with 1601.
_DATETIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,7})?)?Z")


def from_service(answer: Mapping[str, Any]) -> Entity:
    """Return an entity as azguard shows it, from the JSON of the service's answer."""
    entity: Entity = {}
    for name, value in answer.items():
        if name.startswith("odata.") or name.endswith(ANNOTATION):
            continue
        entity[name] = value
        kind = answer.get(name + ANNOTATION) or (DOUBLE if isinstance(value, float) else None)
        if kind not in (None, STRING, BOOLEAN, INT32) and name != TIMESTAMP:
            entity[name + ANNOTATION] = kind
    return entity


def for_sdk(entity: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entity as the SDK takes it, every value with its type; what the service sets itself stays out.

    Raises:
        UsageError: a value does not have its type; names the property.
    """
    from azure.data.tables import EdmType

    return {name: (value, EdmType(kind)) for name, kind, value in typed(entity)}


def typed(entity: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield each property's name, type and value as it is sent; a null is no property.

    Raises:
        UsageError: a value does not have its type, or an annotation has no property; names it.
    """
    for name in entity:
        bare = name.removesuffix(ANNOTATION)
        if bare != name and bare not in entity:
            raise UsageError(f"{name} annotates a property that is not there", hint=f"add {bare}, or leave it out")
    for name, value in entity.items():
        if name.endswith(ANNOTATION) or name.startswith("odata.") or name == TIMESTAMP or value is None:
            continue
        kind = entity.get(name + ANNOTATION) or _implied(name, value)
        if kind not in TYPES:
            raise UsageError(f"{name}: {kind!r} is not a type of the Table service", hint=" ".join(TYPES))
        yield name, kind, _CHECKS[kind](name, value)


def kind_of(entity: Mapping[str, Any], name: str) -> str:
    """Return the type of a property that is there."""
    return str(entity.get(name + ANNOTATION) or _implied(name, entity[name]))


def _implied(name: str, value: Any) -> str:
    """Return the type that a JSON value has without an annotation."""
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int):
        if not -(2**31) <= value < 2**31:
            raise UsageError(f"{name}: {value} is more than Edm.Int32 takes", hint=f'"{name}{ANNOTATION}": "{INT64}"')
        return INT32
    if isinstance(value, float):
        return DOUBLE
    if isinstance(value, str):
        return STRING
    shape = "array" if isinstance(value, list) else "object"
    raise UsageError(
        f"{name}: a property is a string, a number or a boolean, not a JSON {shape}",
        hint="keep it as a string of JSON, or in properties of its own",
    )


def _wrong(name: str, value: Any, kind: str, hint: str | None = None) -> UsageError:
    return UsageError(f"{name}: {value!r} is not an {kind}", hint=hint)


def _string(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong(name, value, STRING, "put it in quotes")
    return value


def _boolean(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong(name, value, BOOLEAN, "true or false")
    return value


def _integer(kind: str, bits: int) -> Callable[[str, Any], int]:
    def check(name: str, value: Any) -> int:
        text = str(value)
        if isinstance(value, (bool, float)) or not re.fullmatch(r"-?\d+", text):
            raise _wrong(name, value, kind, "a whole number")
        if not -(2 ** (bits - 1)) <= int(text) < 2 ** (bits - 1):
            raise _wrong(name, value, kind, f"it has {bits} bits")
        return int(text)

    return check


def _double(name: str, value: Any) -> float | str:
    if isinstance(value, str) and value in _NOT_FINITE:
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise _wrong(name, value, DOUBLE, "a number, or one of the texts " + " ".join(_NOT_FINITE))
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise _wrong(name, value, DOUBLE, "a number, or one of the texts " + " ".join(_NOT_FINITE)) from None
    if math.isnan(number):
        return "NaN"
    return number if math.isfinite(number) else "Infinity" if number > 0 else "-Infinity"


def _datetime(name: str, value: Any) -> str:
    if not isinstance(value, str) or not _DATETIME.fullmatch(value):
        raise _wrong(name, value, DATETIME, "UTC, to 100 ns at most: 2026-11-21T10:00:00.1234567Z")
    return value


def _guid(name: str, value: Any) -> str:
    try:
        return str(uuid.UUID(value))
    except (ValueError, AttributeError, TypeError):
        raise _wrong(name, value, GUID, "e.g. c9da6455-213d-42c9-9a79-3e9149a57833") from None


def _binary(name: str, value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise _wrong(name, value, BINARY, "it is written in base64") from None


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
