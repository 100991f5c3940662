"""The limits of the Table service on an entity, checked before anything is sent.

Source: https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model
"""

import json
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from azguard import naming
from azguard.errors import UsageError
from azguard.tables import edm
from azguard.tables.edm import KEYS

PROPERTIES = 252
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
# What the SDK writes without its type.
_PLAIN = (edm.INT32, edm.BOOLEAN)
_SIZES = {edm.BOOLEAN: 1, edm.INT32: 4, edm.INT64: 8, edm.DOUBLE: 8, edm.DATETIME: 8, edm.GUID: 16}
# A C# identifier begins with a letter or an underscore; the others may follow.
_LETTERS = ("Lu", "Ll", "Lt", "Lm", "Lo", "Nl")
_FOLLOWING = (*_LETTERS, "Mn", "Mc", "Nd", "Pc")


def check(entity: Mapping[str, Any]) -> None:
    """Refuse an entity that the service would refuse, whole or with only the properties that are to be merged."""
    properties = [each for each in edm.iterate_properties(entity) if each[0] not in KEYS]
    _check_keys(entity)
    for name, kind, value in properties:
        _check_name(name)
        _check_value(name, kind, value)
    if len(properties) > PROPERTIES:
        raise UsageError(
            f"{properties[PROPERTIES][0]} is one property too many: there are {len(properties)}, "
            f"and an entity has at most {PROPERTIES} besides its keys",
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
    others = sum(_count_bytes(*each) for each in edm.iterate_properties(entity) if each[0] not in KEYS)
    left = ENTITY_BYTES - _count_key_bytes(entity) - others - _count_bytes(name, edm.STRING, "")
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
        raise UsageError(
            f"{name!r} is not a property name the service takes",
            reason="property_name_malformed",
        )


def _check_value(name: str, kind: str, value: Any) -> None:
    if kind not in (edm.STRING, edm.BINARY):
        return
    size = _utf16(value) if kind == edm.STRING else len(value)
    if size > VALUE_BYTES:
        unit = "bytes in UTF-16" if kind == edm.STRING else "bytes"
        raise UsageError(
            f"{name} has {size:,} {unit}, and the service takes {VALUE_BYTES:,} (64 KiB)",
            reason="value_too_large",
        )


def _count_bytes(name: str, kind: str, value: Any) -> int:
    return _PROPERTY_BYTES + _utf16(name) + _count_value_bytes(kind, value)


def _count_value_bytes(kind: str, value: Any) -> int:
    if kind == edm.STRING:
        return _utf16(value) + _LENGTH_BYTES
    if kind == edm.BINARY:
        return len(value) + _LENGTH_BYTES
    return _SIZES[kind]


def _utf16(text: str) -> int:
    """Return the bytes of a text in UTF-16, which is what the service counts."""
    return len(text.encode("utf-16-le", "surrogatepass"))


def estimate_part_bytes(path: Sequence[str], sent: edm.Entity) -> int:
    """Return about how many bytes a write takes in the body of a transaction, where JSON is all ASCII."""
    body: dict[str, Any] = {}
    for name, kind, _ in edm.iterate_properties(sent):
        body |= {name: sent[name]} if kind in _PLAIN else {name: sent[name], name + edm.ANNOTATION: kind}
    return _PART_BYTES + 3 * sum(len(part.encode()) for part in path) + len(json.dumps(body))
