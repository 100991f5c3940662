"""Entities as text: what a transform gets, what it returns, and the canonical form in which both are compared."""

import base64
import json
from collections.abc import Mapping
from typing import Any

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import TransformFailed, UsageError
from azguard.frozen import frozen
from azguard.guards import versions
from azguard.guards.versions import SeenVersion
from azguard.requests.lineage import KEY
from azguard.tables import edm, writes
from azguard.tables.edm import ANNOTATION, KEYS, Entity
from azguard.tables.entities import ETAG

# These are what JSON's own values mean without an annotation.
_IMPLIED = (edm.STRING, edm.BOOLEAN, edm.INT32)
# The service and azguard keep these beside the properties; they are no part of what is written.
_NOT_WRITTEN = (edm.TIMESTAMP, KEY)
# The Azure CLI prints the ETag under this name among the properties; its value tells it from a property of that name.
_AZ_ETAG = "etag"
#: More than the JSON of any entity has: 1 MiB in the service's count, whose every letter may be an escape of six bytes.
MOST_BYTES = 16 * 1024 * 1024


def encode(entity: Mapping[str, Any]) -> bytes:
    """Return an entity as JSON, in its order."""
    return json.dumps(entity, indent=2, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def encode_canonical(entity: Mapping[str, Any]) -> bytes:
    """Return the JSON that is the same for two entities exactly if their properties have equal types and values."""
    canonical: Entity = {}
    for name, kind, value in sorted(edm.iterate_properties(entity), key=lambda each: (each[0] not in KEYS, each[0])):
        canonical[name] = _spell(kind, value)
        if kind not in _IMPLIED:
            canonical[name + ANNOTATION] = kind
    return encode(canonical)


def parse(content: bytes) -> Entity:
    """Return the entity that a transform gave."""
    from azguard.documents import json_text

    try:
        text = content.decode("utf-8-sig")
        json_text.parse(text)  # The stricter reader: no key twice, no NaN.
    except UnicodeDecodeError as error:
        raise TransformFailed(f"the new entity is not UTF-8, at byte {error.start}") from None
    except json_text.NotJson as error:
        raise TransformFailed(f"the new entity is not JSON: {error}") from None
    entity = json.loads(text)
    if not isinstance(entity, dict):
        raise TransformFailed("the new entity is not a JSON object", reason="entity_not_object")
    return entity


def canonicalize(content: bytes, address: Address) -> bytes:
    """Return the output of a transform in the canonical spelling, with the keys of the address."""
    entity = parse(content)
    if KEY in entity:
        raise TransformFailed(f"{KEY} is how azguard knows its own writes; it cannot be edited")
    keys = dict(zip(KEYS, address.parts[1:], strict=True))
    for name, part in keys.items():
        if entity.get(name, part) != part or entity.get(name + ANNOTATION, edm.STRING) != edm.STRING:
            raise TransformFailed(f"{name} is part of the entity's name and cannot change", reason="entity_key_changed")
    try:
        edm.check_limits({**entity, **keys})
        return encode_canonical({**entity, **keys})
    except UsageError as error:
        raise error.as_kind(TransformFailed) from None


def drop_orphan_types(before: bytes, after: bytes) -> bytes:
    """Return the output of a transform without the annotations of properties that the transform deleted.

    ``jq 'del(.count)'`` leaves the type of the property behind.

    Raises:
        TransformFailed: the output is not one JSON object.
    """
    old = parse(before)
    new = parse(after)
    orphans = {
        name
        for name in new
        if name.endswith(ANNOTATION) and (bare := name.removesuffix(ANNOTATION)) not in new and bare in old
    }
    return encode({name: value for name, value in new.items() if name not in orphans}) if orphans else after


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


@frozen
class EntityCopy:
    """An entity to write."""

    entity: Entity
    #: The version that it was read as, if it says so.
    version: SeenVersion | None


def parse_input(content: bytes, name: str, example: str) -> dict[str, Any]:
    """Return a JSON object; ``name`` and ``example`` are for the error.

    Raises:
        UsageError: it is not one, is too long for one, or a key is in it twice.
    """
    from azguard.documents import json_text  # which properties of the command line do not need

    if len(content) > MOST_BYTES:
        raise UsageError(f"{name} has more than {MOST_BYTES:,} bytes, so it is no entity", reason="entity_too_large")
    if not content.strip():
        raise _make_error(f"{name} is empty, and it is to hold JSON", example)
    try:
        text = content.decode("utf-8-sig")  # PowerShell writes a byte order mark
        json_text.parse(text)
        found = json.loads(text)
    except (UnicodeDecodeError, json_text.NotJson) as error:
        raise _make_error(f"{name} is not JSON: {error}", example) from None
    if not isinstance(found, dict):
        raise _make_error(f"{name} is not a JSON object", example)
    return found


def with_keys_of(target: Target, found: Entity) -> EntityCopy:
    """Return an entity with the keys of its address, and without what the service sets itself.

    Raises:
        UsageError: it has other keys, or its ETag is not one of an entity.
    """
    keys = dict(zip(edm.KEYS, target.address.parts[1:], strict=True))
    for name, key in keys.items():
        if found.get(name, key) != key:
            raise UsageError(
                f"{name} is {found[name]!r} in the entity, and {key!r} in the address",
                address=str(target.address),
                reason="entity_other_keys",
            )
    dropped = {*_NOT_WRITTEN, *edm.KEYS}
    kept = {
        name: value
        for name, value in found.items()
        if name.removesuffix(edm.ANNOTATION) not in dropped
        and not name.startswith("odata.")
        and not _is_az_etag(name, value)
    }
    return EntityCopy({**keys, **kept}, _version(found))


def for_delete(target: Target, copy: EntityCopy, name: str) -> EntityCopy:
    """Return the part of a copy that a delete needs: the keys and the version. ``name`` is where the copy came from.

    Raises:
        UsageError: the copy has no version, and a delete uses only the version.
    """
    if copy.version is None:
        raise UsageError(
            f"{name} has no {ETAG}, and a delete takes only that from it",
            reason="delete_copy_without_etag",
        )
    return EntityCopy(with_keys_of(target, {}).entity, copy.version)


def _make_error(message: str, example: str) -> UsageError:
    return UsageError(message, reason="entity_not_json", values={"example": example})


def _version(found: Entity) -> SeenVersion | None:
    """Return the version that an entity was read as: by azguard, by the service itself, or by the Azure CLI."""
    stated = {name: value for name, value in found.items() if name == ETAG or _is_az_etag(name, value)}
    for name, value in stated.items():
        if not isinstance(value, str) or not versions.is_version(Kind.ENTITY, value):
            raise UsageError(
                f"{name} is {json.dumps(value)}, which is not the ETag of an entity", reason="entity_bad_etag"
            )
    if len(set(stated.values())) > 1:
        raise UsageError(
            f"the entity has two versions: {ETAG} is {stated[ETAG]}, {_AZ_ETAG} is {stated[_AZ_ETAG]}",
            reason="entity_two_versions",
        )
    return SeenVersion(next(iter(stated.values()))) if stated else None


def _is_az_etag(name: str, value: object) -> bool:
    return name == _AZ_ETAG and writes.parse_timestamp(str(value)) is not None


def build_initial(text: str | None, address: Address) -> bytes:
    """Return the entity that an update starts from where there is none: its keys, and what the text has.

    Raises:
        UsageError: the text is no entity.
    """
    keys = dict(zip(KEYS, address.parts[1:], strict=True))
    try:
        entity = {**keys, **parse((text or "{}").encode("utf-8", "surrogateescape"))}
        canonicalize(encode(entity), address)
    except TransformFailed as error:
        raise error.as_kind(UsageError) from None
    return encode(entity)
