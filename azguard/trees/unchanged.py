"""Whether a file of this machine and one of the service hold the same content, as far as that can be proved."""

import base64
import hashlib
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple

from azguard.accounts.target import Target
from azguard.cache import copies
from azguard.cache.copies import Copy
from azguard.cache.reads import KnownContent, Reads
from azguard.trees.store import ListedItem

_PIECE_BYTES = 1 << 20


class SameVersion(NamedTuple):
    """A version that was listed, and that a file holds: what a read of it would have told."""

    etag: str | None
    last_modified: datetime | None
    content_length: int | None
    content_hash: str
    blob_type: str | None
    #: None if it is not known here.
    lineage: str | None
    #: The file that holds it, even if another has taken its place since.
    copy: Copy


def is_same(file: Path, target: Target, listed: ListedItem, reads: Reads) -> bool:
    """Return whether a file holds the content of the version that was listed.

    It does if the service's MD5 or the hash that was recorded for that very version says so. An equal size, time or
    name says nothing. Not known is not the same, as of a file that is gone or cannot be read.
    """
    with suppress(OSError):
        if _may_be_same(file, listed):
            known = reads.find_content(target, listed.etag, copies.find_at(file))
            if known is not None:
                return _hash(file, "sha256") == [known.sha256]
            return listed.content_md5 is not None and _hash(file, "md5") == [base64.b64decode(listed.content_md5)]
    return False


def find_same(file: Path, target: Target, listed: ListedItem, reads: Reads) -> SameVersion | None:
    """Return the version that was listed, if a file holds it: see ``is_same``."""
    with suppress(OSError):
        if _may_be_same(file, listed):
            with open(file, "rb") as stream:
                copy = copies.find_behind(stream.fileno(), file)
                known = reads.find_content(target, listed.etag, copy)
                # In one pass: between two of them the file could change.
                sha256, md5 = _hash_stream(stream, "sha256", "md5")
            wanted = None if listed.content_md5 is None else base64.b64decode(listed.content_md5)
            if (md5 == wanted) if known is None else (sha256 == known.sha256):
                return _build(listed, known or KnownContent(sha256, None, getattr(listed, "blob_type", None)), copy)
    return None


def is_version(file: Path, target: Target, etag: str, reads: Reads) -> bool:
    """Return whether a file holds the content of a version that this scope got or put, by its recorded hash."""
    with suppress(OSError):
        known = reads.find_content(target, etag, copies.find_at(file))
        return known is not None and _hash(file, "sha256") == [known.sha256]
    return False


def is_as_read(file: Path, target: Target, reads: Reads) -> bool:
    """Return whether a file holds what was read into it from there, unchanged since."""
    with suppress(OSError):
        read = reads.find_read_hash(target, copies.find_at(file))
        return read is not None and _hash(file, "sha256") == [read]
    return False


def _may_be_same(file: Path, listed: ListedItem) -> bool:
    return listed.content_length in (None, file.stat().st_size)


def _build(listed: ListedItem, known: KnownContent, copy: Copy) -> SameVersion:
    return SameVersion(
        etag=listed.etag,
        last_modified=listed.last_modified,
        content_length=listed.content_length,
        content_hash=f"sha256:{known.sha256.hex()}",
        blob_type=known.blob_type,
        lineage=known.lineage,
        copy=copy,
    )


def _hash(file: Path, *algorithms: str) -> list[bytes]:
    """Return the digests of a file's content."""
    with open(file, "rb") as stream:
        return _hash_stream(stream, *algorithms)


def _hash_stream(stream: BinaryIO, *algorithms: str) -> list[bytes]:
    # MD5 is what the service stores; here it finds equal content and proves no origin.
    digests = [hashlib.new(each, usedforsecurity=False) for each in algorithms]
    for piece in iter(partial(stream.read, _PIECE_BYTES), b""):
        for each in digests:
            each.update(piece)
    return [each.digest() for each in digests]
