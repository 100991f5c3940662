"""What a program does to a blob that is not azguard, between any two steps."""

from dataclasses import replace
from functools import partial
from typing import Any

from azguard.requests.lineage import DEPTH, Lineage
from tests.explorer import service
from tests.explorer.blob_service import Blob, BlobService
from tests.explorer.scenario import Foreign, Services

PATH = "site/a"
#: What a program writes that has deleted the blob.
CREATED_AGAIN = b"n"
LINEAGE = "azguardlineage"


def change_blob(**changes: Any) -> Foreign:
    """Return a write that drops the metadata, unless it says which."""

    def act(services: Services, now: float) -> Services | None:
        blobs: BlobService = services["blob"]
        if (blob := blobs.blobs.get(PATH)) is None or service.is_locked(blob.lease, now):
            return None
        made = {name: value(blob) if callable(value) else value for name, value in changes.items()}
        return {**services, "blob": blobs.write(PATH, now, **made)}

    return act


def _take_back(blob: Blob) -> tuple[tuple[str, str], ...]:
    """Return the metadata without the last entry of the lineage."""
    rest = (blob.meta(LINEAGE) or "").partition(",")[2]
    others = tuple(pair for pair in blob.metadata if pair[0] != LINEAGE)
    return tuple(sorted((*others, (LINEAGE, rest)))) if rest else others


def _trim(blob: Blob) -> tuple[tuple[str, str], ...]:
    """Return the metadata after as many updates of others as a lineage has entries, and keys."""
    entries = ",".join(f"other{number:011d}.0x0{number:013d}" for number in range(DEPTH, 0, -1))
    return tuple(sorted((*(pair for pair in blob.metadata if pair[0] != LINEAGE), (LINEAGE, entries))))


def _trim_to_keys(blob: Blob) -> tuple[tuple[str, str], ...]:
    """Return the metadata after so many updates of others that the keys alone are left of what was there before."""
    kept = Lineage.parse(blob.meta(LINEAGE)).keys
    others = tuple(pair for pair in _trim(blob) if pair[0] != LINEAGE)
    entries = dict(_trim(blob))[LINEAGE]
    return tuple(sorted((*others, (LINEAGE, f"{entries},keys:{kept}" if kept else entries))))


def _delete(services: Services, now: float) -> Services | None:
    blobs: BlobService = services["blob"]
    blob = blobs.blobs.get(PATH)
    if blob is None or service.is_locked(blob.lease, now):
        return None
    return {**services, "blob": blobs.delete(PATH)}


def _recreate(services: Services, now: float) -> Services | None:
    deleted = _delete(services, now)
    if deleted is None:
        return None
    return {**services, "blob": deleted["blob"].write(PATH, now, content=CREATED_AGAIN)}


def create(services: Services, now: float) -> Services | None:
    """Create the blob where there is none."""
    blobs: BlobService = services["blob"]
    return None if PATH in blobs.blobs else {**services, "blob": blobs.write(PATH, now, content=CREATED_AGAIN)}


def _break(services: Services, now: float) -> Services | None:
    blobs: BlobService = services["blob"]
    blob = blobs.blobs.get(PATH)
    if blob is None or blob.lease is None or not service.is_locked(blob.lease, now):
        return None
    return {**services, "blob": blobs.with_lease(PATH, replace(blob.lease, broken=now))}


def _add(letter: bytes, blob: Blob) -> bytes:
    return blob.content + letter


FOREIGN: dict[str, Foreign] = {
    "writes, and drops the metadata": change_blob(content=lambda blob: blob.content + b"f", metadata=()),
    "writes, and keeps the metadata": change_blob(content=lambda blob: blob.content + b"f"),
    "writes other content and metadata that it had read before": change_blob(content=b"g", metadata=_take_back),
    "wipes the metadata": change_blob(metadata=()),
    "deletes the blob": _delete,
    "deletes the blob and creates it again": _recreate,
    "breaks the lease": _break,
}
#: As many azguards do that update the blob meanwhile.
TRIMS: dict[str, Foreign] = {
    "writes so often that the history is of others": change_blob(
        content=lambda blob: blob.content + b"f", metadata=_trim
    ),
}
#: As many do as a lineage has entries, and fewer than it has keys.
KEYS_LEFT: dict[str, Foreign] = {
    "writes so often that the keys alone are left": change_blob(
        content=lambda blob: blob.content + b"f", metadata=_trim_to_keys
    ),
}
#: What may have happened where a process does not know how its write ended: others may also write the same.
BEYOND: dict[str, Foreign] = {
    **FOREIGN,
    "creates the blob": create,
    **{f"writes what {name} writes": change_blob(content=partial(_add, name.encode())) for name in "ABK"},
}
