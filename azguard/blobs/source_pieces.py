"""Content that the service takes from another blob: ranges of one version of it, for an append or for pages."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from azguard.accounts.target import Target
from azguard.blobs import copy_sources
from azguard.blobs.copy_sources import PinnedSource, SourceMovedError
from azguard.conditions.resolve import Conditions
from azguard.errors import AzguardError, UsageError
from azguard.requests.deadline import Deadline
from azguard.resources import copies

# What every service version takes from a source in one request.
_PIECE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class SourcePiece:
    """A range of one version of a source."""

    source: Target
    pinned: PinnedSource
    offset: int
    length: int

    def __len__(self) -> int:
        return self.length

    @property
    def url(self) -> str:
        """Return the URL by which the service reads the source."""
        return copies.to_url(self.source)

    @property
    def condition(self) -> dict[str, str]:
        """Return the request header by which this version alone is taken."""
        return self.pinned.condition


def read(source: Target, conditions: Mapping[str, str], deadline: Deadline) -> Iterator[SourcePiece]:
    """Yield the ranges of the version that is there now, if the conditions on the source hold for it.

    Raises:
        Changed: they do not.
        NotFound, Forbidden, Unauthenticated: it is not there, or may not be read.
        UsageError: it is empty.
    """
    pinned = copy_sources.pin(source, conditions, deadline)
    if not pinned.content_length:
        raise UsageError(f"the source {source} is empty", address=str(source.address), reason="source_is_empty")
    for offset in range(0, pinned.content_length, _PIECE_BYTES):
        yield SourcePiece(source, pinned, offset, min(_PIECE_BYTES, pinned.content_length - offset))


@contextmanager
def explain(piece: object, conditions: Conditions, deadline: Deadline) -> Iterator[None]:
    """Say of a refusal which side was refused, if the piece is of a source.

    Raises:
        AzguardError: the refusal.
    """
    try:
        yield
    except AzguardError as error:
        if not isinstance(piece, SourcePiece):
            raise
        try:
            raise copy_sources.judge(error, piece.source, piece.pinned, conditions, deadline) from error
        except SourceMovedError as moved:
            raise moved.refusal from error
