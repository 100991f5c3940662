"""Entities as text: what a transform gets, what it returns, and the canonical form in which both are compared."""

import base64
import json
from collections.abc import Mapping
from typing import Any

from azguard.address import Address
from azguard.documents import json_text
from azguard.documents.json_text import NotJson
from azguard.errors import TransformFailed, UsageError
from azguard.requests.lineage import KEY
from azguard.tables import edm, limits
from azguard.tables.edm import ANNOTATION, KEYS, Entity

# These are what JSON's own values mean without an annotation.
_IMPLIED = (edm.STRING, edm.BOOLEAN, edm.INT32)


def encode(entity: Mapping[str, Any]) -> bytes:
    """Return an entity as JSON in the service's order, with its timestamp."""
    return _json(entity)


def encode_canonical(entity: Mapping[str, Any]) -> bytes:
    """Return the JSON that is the same for two entities exactly if their properties have equal types and values.

    Raises:
        UsageError: a value does not have its type.
    """
    canonical: Entity = {}
    for name, kind, value in sorted(edm.iterate_properties(entity), key=lambda each: (each[0] not in KEYS, each[0])):
        canonical[name] = _spell(kind, value)
        if kind not in _IMPLIED:
            canonical[name + ANNOTATION] = kind
    return _json(canonical)


def parse(content: bytes) -> Entity:
    """Return the entity that a transform gave.

    Raises:
        TransformFailed: it is not one JSON object.
    """
    try:
        text = content.decode("utf-8-sig")
        json_text.parse(text)  # The stricter reader: no key twice, no NaN.
    except UnicodeDecodeError as error:
        raise TransformFailed(f"the new entity is not UTF-8, at byte {error.start}") from None
    except NotJson as error:
        raise TransformFailed(f"the new entity is not JSON: {error}") from None
    entity = json.loads(text)
    if not isinstance(entity, dict):
        raise TransformFailed("the new entity is not a JSON object", reason="entity_not_object")
    return entity


def canonicalize(content: bytes, address: Address) -> bytes:
    """Return what a transform gave in the canonical spelling, with the keys of the address.

    Raises:
        TransformFailed: it is no entity, or another one.
    """
    entity = parse(content)
    if KEY in entity:
        raise TransformFailed(f"{KEY} is how azguard knows its own writes; it cannot be edited")
    keys = dict(zip(KEYS, address.parts[1:], strict=True))
    for name, part in keys.items():
        if entity.get(name, part) != part or entity.get(name + ANNOTATION, edm.STRING) != edm.STRING:
            raise TransformFailed(
                f"{name} is part of the entity's name and cannot change",
                reason="entity_key_changed",
            )
    try:
        limits.check({**entity, **keys})
        return encode_canonical({**entity, **keys})
    except UsageError as error:
        raise error.as_kind(TransformFailed) from None


def drop_orphan_types(before: bytes, after: bytes) -> bytes:
    """Return what a transform gave without the annotations of properties that it took away.

    ``jq 'del(.count)'`` leaves the type of what it deletes behind.

    Raises:
        TransformFailed: it is not one JSON object.
    """
    old = parse(before)
    new = parse(after)
    orphans = {
        name
        for name in new
        if name.endswith(ANNOTATION) and (bare := name.removesuffix(ANNOTATION)) not in new and bare in old
    }
    return _json({name: value for name, value in new.items() if name not in orphans}) if orphans else after


def _spell(kind: str, value: Any) -> Any:
    if kind == edm.INT64:
        return str(value)
    if kind == edm.BINARY:
        return base64.b64encode(value).decode()
    if kind == edm.DATETIME:
        return _trim_fraction(value)
    return value


def _trim_fraction(text: str) -> str:
    """Return a time to the second, and as much of its fraction as is not zero."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    fraction = fraction.rstrip("0")
    return f"{whole}.{fraction}Z" if fraction else f"{whole}Z"


def _json(entity: Mapping[str, Any]) -> bytes:
    return json.dumps(entity, indent=2, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
