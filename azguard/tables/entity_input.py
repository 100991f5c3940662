"""An entity to write, as azguard, the service or the Azure CLI printed it, and the version that it was read as."""

import json
from typing import Any, NamedTuple

from azguard.accounts.target import Target
from azguard.address import Kind
from azguard.conditions import etags
from azguard.conditions.seen import SeenVersion
from azguard.documents import json_text
from azguard.errors import UsageError
from azguard.requests.lineage import KEY
from azguard.tables import edm, reads, writes
from azguard.tables.edm import Entity

# The service and azguard keep these beside the properties; they are no part of what is written.
_NOT_WRITTEN = (edm.TIMESTAMP, KEY)
# The Azure CLI prints the ETag under this name among the properties; its value tells it from a property of that name.
_AZ_ETAG = "etag"
#: More than the JSON of any entity has: 1 MiB in the service's count, whose every letter may be an escape of six bytes.
MOST_BYTES = 16 * 1024 * 1024


class EntityCopy(NamedTuple):
    """An entity to write."""

    entity: Entity
    #: The version that it was read as, if it says so.
    version: SeenVersion | None


def parse(content: bytes, name: str, example: str) -> dict[str, Any]:
    """Return a JSON object; ``name`` and ``example`` are for the error.

    Raises:
        UsageError: it is not one, is too long for one, or a key is in it twice.
    """
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
    """Return what a delete needs of a copy: the keys and the version. ``name`` is where the copy came from.

    Raises:
        UsageError: it has no version, and a delete has no use for anything else.
    """
    if copy.version is None:
        raise UsageError(
            f"a delete takes nothing from {name} but {reads.ETAG}, and there is none",
            reason="delete_copy_without_etag",
        )
    return EntityCopy(with_keys_of(target, {}).entity, copy.version)


def _make_error(message: str, example: str) -> UsageError:
    return UsageError(message, reason="entity_not_json", values={"example": example})


def _version(found: Entity) -> SeenVersion | None:
    """Return the version that an entity was read as: by azguard, by the service itself, or by the Azure CLI."""
    stated = {name: value for name, value in found.items() if name == reads.ETAG or _is_az_etag(name, value)}
    for name, value in stated.items():
        if not isinstance(value, str) or not etags.is_version(Kind.ENTITY, value):
            raise UsageError(
                f"{name} is {json.dumps(value)}, which is not the ETag of an entity", reason="entity_bad_etag"
            )
    if len(set(stated.values())) > 1:
        raise UsageError(
            f"the entity has two versions: {reads.ETAG} is {stated[reads.ETAG]}, {_AZ_ETAG} is {stated[_AZ_ETAG]}",
            reason="entity_two_versions",
        )
    return SeenVersion(next(iter(stated.values()))) if stated else None


def _is_az_etag(name: str, value: object) -> bool:
    return name == _AZ_ETAG and writes.parse_timestamp(str(value)) is not None
