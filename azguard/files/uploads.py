"""Content into a file, whole or not at all: a temporary file beside it, which is then put in its place."""

import hashlib
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from azguard import columns
from azguard.accounts.account import Target
from azguard.errors import Changed, NotFound, UsageError
from azguard.files import placing, temporary
from azguard.files.download import FileDownload
from azguard.files.guarding import Guarding
from azguard.files.placing import NewVersion
from azguard.files.properties import SmbProperties, to_content_settings
from azguard.files.temporary import PIECE_BYTES, TemporaryFile
from azguard.guards.requested import RequestedConditions
from azguard.guards.resolve import Conditions, resolve
from azguard.guards.versions import quote_etag
from azguard.requests.delivery import WHOLE
from azguard.requests.lineage import KEY
from azguard.requests.results import ContentPut
from azguard.requests.settle import Settled
from azguard.requests.sources import read_up_to
from azguard.resources.properties import ContentHeaders
from azguard.wire.operations.shares import FILE_RENAME

_PIECE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class _EarlierPut:
    """What is to be written, which was written before."""

    content_hash: str
    length: int
    #: Whether the version that was found holds it still.
    is_there: bool


def _measure(found: Any, version: NewVersion, first: bytes, source: BinaryIO) -> _EarlierPut:
    """Read a source, of which ``first`` was read already, and compare it with the version that was found."""
    digest, length = hashlib.sha256(), 0
    piece = first
    while piece:
        digest.update(piece)
        length += len(piece)
        piece = read_up_to(source, _PIECE_BYTES)
    is_there = length == found.size and _hash_found(found, version) == digest.hexdigest()
    return _EarlierPut(f"sha256:{digest.hexdigest()}", length, is_there)


def _hash_found(found: Any, version: NewVersion) -> str | None:
    """Return the hash of the version that was found; None if another one has taken its place."""
    digest = hashlib.sha256()
    try:
        content = FileDownload(version.target, version.conditions.lease_id, version.deadline.fresh, WHOLE)
        if quote_etag(content.properties.etag) != quote_etag(found.etag):
            return None
        for piece in content.read_pieces(in_order=True):
            digest.update(piece.content)
    except (Changed, NotFound):
        return None
    return digest.hexdigest()


@dataclass(frozen=True, kw_only=True)
class FilePut(ContentPut):
    """What a put wrote."""

    lineage: str | None = field(default=None, metadata=columns.UNPRINTED)


@dataclass(frozen=True, kw_only=True)
class FileUpload(NewVersion):
    """One put that is not sent yet."""

    headers: ContentHeaders
    smb: SmbProperties


def create_only(target: Target) -> Conditions:
    """Return the conditions of a put that only creates, even if this scope has read a version."""
    return resolve(FILE_RENAME, RequestedConditions(), target)


def put(
    upload: FileUpload,
    source: BinaryIO,
    size: int | None,
    guarding_by: Guarding,
    progress: Callable[[int], None],
    *,
    allow_empty: bool = True,
) -> FilePut:
    """Write a file from a stream of any length; ``size`` is its length in bytes, if that is known.

    Raises:
        Changed: it is no longer the version that the conditions name; nothing was written.
        Exists: create-only, and it exists.
        Locked: it is leased, or another program has it open.
        OutcomeUnknown: the answer was lost, and it cannot be known whether it was applied.
        UsageError: the content is not what its MD5 says, or it is empty and must not be.
    Source: https://learn.microsoft.com/rest/api/storageservices/create-file, /put-range and /rename-file
    """
    first = read_up_to(source, PIECE_BYTES)
    if not first and not allow_empty:
        raise UsageError("the input is empty; nothing was written", reason="put_is_empty")
    upload, found = placing.look_early(upload, guarding_by)
    if found is not None and placing.is_of(found, upload.op):
        return _to_earlier_put(upload, found, _measure(found, upload, first, source))
    settings = _choose_settings(upload, found)
    beginning = len(first) if len(first) < PIECE_BYTES else max(size or 0, len(first))
    made = temporary.create(upload.target, beginning, settings, upload.deadline.fresh, guarding_by.temporary)
    with ExitStack() as stack:
        stack.callback(made.remove)
        made.rename_away()
        made.fill(first, source, progress)
        _check_md5(upload, made)
        smb = placing.choose_smb(upload.smb, found)
        settled, after = placing.put_in_place(upload, made, found, guarding_by, smb)
        # Renamed, it is not there any more.
        made.forget()
        stack.pop_all()
    return _to_file_put(upload, made, settled, after, found)


def _choose_settings(upload: FileUpload, found: Any | None) -> dict[str, Any]:
    smb = placing.choose_smb(upload.smb, found)
    return {
        "metadata": upload.stamp(found, keeps_locks=False),
        "content_settings": to_content_settings(upload.headers),
        # The rename sets all that SMB clients see: the ranges move the times, and ReadOnly would refuse them.
        **({"permission_key": smb["permission_key"]} if "permission_key" in smb else {}),
    }


def _check_md5(upload: FileUpload, made: TemporaryFile) -> None:
    import base64

    told = upload.headers.content_md5
    if told is not None and base64.b64decode(told) != made.md5.digest():
        raise UsageError(
            "the content has another MD5 than the one given; nothing was written", reason="content_md5_differs"
        )


def _to_file_put(
    upload: FileUpload, made: TemporaryFile, settled: Settled[Any], metadata: Mapping[str, str], found: Any | None
) -> FilePut:
    etag = settled.answer.get("etag")
    return FilePut(
        address=str(upload.target.address),
        etag=None if etag is None else quote_etag(etag),
        last_modified=settled.answer.get("last_modified"),
        content_length=made.length,
        content_type=upload.headers.content_type,
        content_hash=f"sha256:{made.sha256.hexdigest()}",
        guard=upload.conditions.guard,
        attempts=settled.attempts,
        created=upload.is_creation,
        replaced_length=None if found is None else found.size,
        lineage=metadata[KEY],
    )


def _to_earlier_put(upload: FileUpload, found: Any, measured: _EarlierPut) -> FilePut:
    """Return the result of the put that an earlier run of the same op made."""
    return FilePut(
        address=str(upload.target.address),
        etag=quote_etag(found.etag) if measured.is_there else None,
        last_modified=found.last_modified if measured.is_there else None,
        content_length=measured.length,
        content_type=upload.headers.content_type,
        content_hash=measured.content_hash,
        guard=upload.conditions.guard,
        attempts=1,
        created=upload.is_creation,
        lineage=found.metadata[KEY],
    )
