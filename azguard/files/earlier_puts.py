"""A put that an earlier run has committed, whose process was killed before it could record it.

Its op is in the lineage. That alone does not prove that its content is still there: a program that writes a range, or
over SMB, leaves the metadata as they are. So the content is compared.
"""

import hashlib
from dataclasses import dataclass
from typing import Any, BinaryIO

from azguard.conditions.etags import quote
from azguard.errors import Changed, NotFound
from azguard.files.download import WHOLE, FileDownload
from azguard.files.placing import NewVersion
from azguard.requests.sources import read_up_to

_PIECE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class EarlierPut:
    """What is to be written, which was written before."""

    content_hash: str
    length: int
    #: Whether the version that was found holds it still.
    is_there: bool


def measure(found: Any, version: NewVersion, first: bytes, source: BinaryIO) -> EarlierPut:
    """Read a source, of which ``first`` was read already, and compare it with the version that was found."""
    digest, length = hashlib.sha256(), 0
    piece = first
    while piece:
        digest.update(piece)
        length += len(piece)
        piece = read_up_to(source, _PIECE_BYTES)
    is_there = length == found.size and _hash(found, version) == digest.hexdigest()
    return EarlierPut(f"sha256:{digest.hexdigest()}", length, is_there)


def _hash(found: Any, version: NewVersion) -> str | None:
    """Return the hash of the version that was found; None if another one has taken its place."""
    digest = hashlib.sha256()
    try:
        content = FileDownload(version.target, version.conditions.lease_id, version.deadline.fresh, WHOLE)
        if quote(content.properties.etag) != quote(found.etag):
            return None
        for piece in content.read_pieces(in_order=True):
            digest.update(piece.content)
    except (Changed, NotFound):
        return None
    return digest.hexdigest()
