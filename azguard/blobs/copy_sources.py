"""The source of a copy, an append or pages: how the service is told of it, its version, and what refuses it.

The version is chosen by a read of its properties, which carries the conditions on the source. The copy then names
this version alone. So each condition held for what is copied, and the metadata that is sent belongs to the content.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from azguard.accounts.account import Target
from azguard.errors import AzguardError, Changed, Exists, Forbidden, NotFound, NotModified, Unauthenticated, UsageError
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, drop_lineage
from azguard.resources import copies, properties
from azguard.wire.rows import Condition

# What every service version takes from a source in one request.
_PIECE_BYTES = 4 * 1024 * 1024


@frozen
class PinnedSource:
    """The one version of a source that a copy takes."""

    etag: str
    content_length: int
    blob_type: str | None
    #: Without azguard's own key, whose history is the source's.
    metadata: Mapping[str, str]
    #: Whether the source has a lineage, which the service would copy.
    has_lineage: bool
    has_tags: bool

    @property
    def condition(self) -> dict[str, str]:
        """Return the request header by which the copy takes this version alone."""
        return {Condition.SOURCE_IF_MATCH.header: self.etag}


class SourceMovedError(Exception):
    """The source is no longer the version that was pinned; ``refusal`` says so to the caller."""

    def __init__(self, refusal: Changed) -> None:
        self.refusal = refusal
        super().__init__(refusal.message)


def pin(source: Target, conditions: Mapping[str, str], deadline: Deadline) -> PinnedSource:
    """Return the version of a source that is there now, if the conditions on the source hold for it."""
    headers = {_as_on_a_read(name): value for name, value in conditions.items()}
    try:
        found = properties.fetch(source, Conditions(headers=headers), deadline)
    except (Changed, NotModified) as error:
        raise copies.to_changed(error, source) from error
    except (NotFound, Forbidden, Unauthenticated) as error:
        raise copies.to_unread(error, source) from error
    metadata = found.metadata or {}
    return PinnedSource(
        etag=found.etag,
        content_length=found.size,
        blob_type=found.blob_type,
        metadata=drop_lineage(metadata),
        has_lineage=KEY in metadata,
        has_tags=bool(found.tag_count),
    )


def judge(
    error: AzguardError, source: Target, pinned: PinnedSource | None, conditions: Conditions, deadline: Deadline
) -> AzguardError:
    """Return the refusal of a copy, with the side that was refused; ``conditions`` are those on the destination."""
    if error.service_code == "SourceConditionNotMet" or isinstance(error, NotModified):
        raise SourceMovedError(copies.to_changed(error, source)) from error
    if error.service_code == copies.UNREADABLE:
        found = copies.judge_unreadable(error, source)
        if isinstance(found, Changed):
            raise SourceMovedError(found) from error
        return found
    if error.service_code == "BlobNotFound" and isinstance(error, NotFound):
        return copies.to_unreadable(error, source)
    # The emulator has one code for both sides.
    is_ambiguous = error.service_code == "ConditionNotMet" and isinstance(error, Changed)
    if is_ambiguous:
        is_of_source = _still_holds(conditions, error) if pinned is None else _has_moved(source, pinned, deadline)
        if is_of_source:
            raise SourceMovedError(copies.to_changed(error, source)) from error
    if isinstance(error, (Changed, Exists)):
        return error.but(facts={**error.facts, "side": "destination"})
    return error


def _still_holds(conditions: Conditions, error: AzguardError) -> bool:
    expected = conditions.expected_etag
    return expected is not None and getattr(error.seen, "etag", None) == expected


def _has_moved(source: Target, pinned: PinnedSource, deadline: Deadline) -> bool:
    try:
        return bool(properties.fetch(source, Conditions(), deadline.fresh()).etag != pinned.etag)
    except AzguardError:
        return True


def _as_on_a_read(header: str) -> str:
    condition = next(each for each in Condition if each.header == header)
    return Condition(condition.removeprefix("source-")).header


@frozen
class SourcePiece:
    """A range of one version of a source."""

    source: Target
    pinned: PinnedSource
    offset: int
    length: int

    def __len__(self) -> int:
        return self.length

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of a request that copies the range: the URL of the source, and the bytes to take."""
        end = self.offset + self.length - 1
        return {"copy_source": copies.to_url(self.source), "source_range": f"bytes={self.offset}-{end}"}

    @property
    def condition(self) -> dict[str, str]:
        """Return the request header by which this version alone is taken."""
        return self.pinned.condition


def read_pieces(source: Target, conditions: Mapping[str, str], deadline: Deadline) -> Iterator[SourcePiece]:
    """Yield the ranges of the version that is there now, if the conditions on the source hold for it.

    Raises:
        Changed: they do not.
        NotFound, Forbidden, Unauthenticated: it is not there, or may not be read.
        UsageError: it is empty.
    """
    pinned = pin(source, conditions, deadline)
    if not pinned.content_length:
        raise UsageError(f"the source {source} is empty", address=str(source.address), reason="source_is_empty")
    for offset in range(0, pinned.content_length, _PIECE_BYTES):
        yield SourcePiece(source, pinned, offset, min(_PIECE_BYTES, pinned.content_length - offset))


@contextmanager
def explain_piece(piece: object, conditions: Conditions, deadline: Deadline) -> Iterator[None]:
    """Say of a refusal which side was refused, if the piece is of a source."""
    try:
        yield
    except AzguardError as error:
        if not isinstance(piece, SourcePiece):
            raise
        try:
            raise judge(error, piece.source, piece.pinned, conditions, deadline) from error
        except SourceMovedError as moved:
            raise moved.refusal from error
