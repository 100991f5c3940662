"""A page blob: found, created, its ranges, its length and sequence number; and one write of pages as a value.

A page is a range of 512 bytes.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.account import Target
from azguard.blobs import headers, refusals
from azguard.blobs.content.upload import Settings, create_empty
from azguard.errors import BadRequest, Changed, Exists, GaveUp, NotFound, UsageError
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.leases.recorded import LeaseRecords
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage, fresh_op, verdict_from_lineage
from azguard.requests.results import ContentWritten, Written
from azguard.requests.settle import Finding, WriteRequest, send_until_settled
from azguard.resources import properties
from azguard.resources.downloads import DataRange, name_range, walk_ranges
from azguard.resources.parts import Rewritten
from azguard.wire.operations.blobs import (
    BLOB_GET_PAGE_RANGES,
    BLOB_PUT_PAGE_BLOB,
    BLOB_RESIZE,
    BLOB_SET_SEQUENCE_NUMBER,
)
from azguard.wire.rows import SEQUENCE, Operation

PAGE_BLOB = "PageBlob"
#: The length of a page.
PAGE_BYTES = 512
#: The most that one Put Page takes.
PIECE_BYTES = 4 * 1024 * 1024
#: The longest page blob: 8 TiB.
MOST_BYTES = 8 * 1024**4


@frozen(kw_only=True)
class PagesWritten(Written):
    """What a write of pages did."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.OFFSET, columns.WRITTEN_BYTES, columns.ETAG)

    blob_type: str
    #: The byte at which the first page begins.
    offset: int
    written_bytes: int
    #: None where a lost answer was settled.
    sequence_number: int | None
    #: Whether the blob was created for it.
    created: bool


@frozen(kw_only=True)
class PageBlobChanged(ContentWritten):
    """A change of the length or of the sequence number of a page blob."""

    blob_type: str
    sequence_number: int


@frozen(kw_only=True)
class PageWrite:
    """One write of pages that is not sent yet."""

    target: Target
    conditions: Conditions
    #: How long one piece is tried for.
    deadline: Deadline
    offset: int
    #: Whether no condition is wanted, so that no lease of our own is acquired either.
    is_unconditional: bool = False
    #: The length of the blob to create where there is none; None creates none.
    create_bytes: int | None = None
    settings: Settings | None = None

    def build_headers(self, etag: str, *, is_first: bool) -> dict[str, str]:
        """Return the condition headers of one piece; ``etag`` is of the version that was found, or of our last piece.

        Sequence numbers are compared beside an ETag, and no other condition is.
        """
        if self.is_unconditional:
            return {}
        numbers = {each.header for each in SEQUENCE}
        own = self.conditions.without_source().headers
        beside = {name: value for name, value in own.items() if name in numbers}
        if is_first and len(beside) < len(own):
            return dict(own)
        return {**beside, "If-Match": etag}


def check_range(offset: int, length: int | None, argument: str = "length") -> None:
    """Refuse a range that does not consist of whole pages; ``argument`` is the name of its length.

    Raises:
        UsageError: one of the two is no multiple of 512.
    """
    for name, number in (("offset", offset), (argument, length or 0)):
        if number % PAGE_BYTES:
            # No content is no page.
            below = max(number - number % PAGE_BYTES, 0 if name == "offset" else PAGE_BYTES)
            raise UsageError(
                f"{name} {number:,} is no multiple of {PAGE_BYTES}: a page has {PAGE_BYTES} bytes",
                argument=name,
                reason="not_whole_pages",
                values={"below": below, "above": below + PAGE_BYTES},
            )


def find_or_create(given: PageWrite, end: int, deadline: Deadline) -> tuple[str, bool]:
    """Return the ETag of the page blob to write to, and whether it was created for the write.

    ``end`` is behind the last byte of the first piece. Raises as ``page_write.put`` does, and Exists: the blob was
    never read, so that it could only be created.
    """
    target, expected = given.target, given.conditions.expected_etag
    try:
        found = properties.fetch(target, Conditions(), deadline)
    except NotFound as error:
        if given.create_bytes is None or error.service_code == "ContainerNotFound":
            raise error if error.reason else error.but(reason="pages_of_nothing") from error
        refusals.check_creatable(target, given.conditions, error)
        return _create(given, given.create_bytes, deadline), True
    address = str(target.address)
    if given.conditions.never_read:
        raise _build_never_read(target)
    _check_type(target, found)
    if end > found.size:
        raise BadRequest(
            f"{target} has {found.size:,} bytes, so nothing can be written at byte {end - 1:,}",
            address,
            reason="pages_behind_end",
        )
    if expected is not None and found.etag != expected:
        refusal = Changed(f"{target} changed since you read it", address, expected_etag=expected, seen=found)
        raise refusals.describe_conflict(refusal, target, deadline)
    return found.etag, False


def _check_type(target: Target, found: Any) -> None:
    kind = found.blob_type
    if kind != PAGE_BLOB:
        raise BadRequest(
            f"{target} is {refusals.describe_type(kind)}, and has no pages",
            str(target.address),
            reason="no_page_blob",
        )


def _create(given: PageWrite, length: int, deadline: Deadline) -> str:
    """Create the blob, full of zeros, only if there is none; return its ETag.

    Source: https://learn.microsoft.com/rest/api/storageservices/put-blob
    """
    op, settings = fresh_op(), given.settings
    assert settings is not None
    stamped = {**(settings.metadata or {}), KEY: str(Lineage().after(op, None))}

    def look(patience: Deadline) -> Finding[Any]:
        found = properties.find(given.target, patience)
        if found is None:
            return Finding(verdict_from_lineage(Lineage(), op, None, None))
        history = Lineage.find(found.metadata)
        answer = {"etag": found.etag, "is_found": True}
        return Finding(verdict_from_lineage(history, op, None, found.etag), answer, seen=found)

    def send() -> Any:
        return create_empty(BLOB_PUT_PAGE_BLOB, given.target, settings, deadline, size=length, metadata=stamped)

    answer = send_until_settled(WriteRequest(BLOB_PUT_PAGE_BLOB, given.target, look, send=send), deadline).answer
    etag: str = answer["etag"]
    if answer.get("is_found"):
        # Pages that another writer has written since leave the lineage as it is.
        pages = walk_ranges(BLOB_GET_PAGE_RANGES, given.target, {"If-Match": etag}, deadline.fresh())
        if any(True for _ in pages):
            raise _build_never_read(given.target)
    return etag


def _build_never_read(target: Target) -> Exists:
    return Exists(f"{target} exists, and this scope never read it", str(target.address), reason="pages_never_read")


def list_ranges(
    target: Target,
    conditions: Conditions,
    deadline: Deadline,
    *,
    offset: int | None,
    length: int | None,
    previous: str | None,
) -> Iterator[DataRange]:
    """Yield the ranges of one version that hold pages; with ``previous``, a snapshot's time, those that differ from it.

    Raises:
        BadRequest: it is no page blob.
        Changed: a condition did not hold.
        GaveUp: the blob changes faster than its ranges can be listed.
        UsageError: the part to look at does not consist of whole pages.
    Source: https://learn.microsoft.com/rest/api/storageservices/get-page-ranges
    """
    check_range(offset or 0, length)
    asked = {"range": name_range(offset, length), "prevsnapshot": previous}
    while True:
        with refusals.explain_stale_read(target, conditions, deadline):
            found = properties.fetch(target, conditions, deadline)
        _check_type(target, found)
        # All pages of the answer are of this version.
        pinned = Conditions({"If-Match": found.etag}, lease_id=conditions.lease_id).request_headers
        try:
            ranges = list(walk_ranges(BLOB_GET_PAGE_RANGES, target, pinned, deadline, **asked))
        except Changed as error:
            if deadline.passed:
                told = f"{target} changes faster than its ranges can be listed"
                raise GaveUp(told, str(target.address), reason="pages_keep_changing") from error
        else:
            break
    yield from ranges


@frozen(kw_only=True)
class PageBlobChange:
    """What is to change of a page blob: its length, or its sequence number."""

    length: int | None = None
    #: ``update``, ``max`` or ``increment``; None leaves the number as it is.
    action: str | None = None
    number: int | None = None

    def make(
        self, target: Target, conditions: Conditions, records: LeaseRecords, deadline: Deadline
    ) -> tuple[PageBlobChanged, Rewritten]:
        """Change it under a lease, which proves whose the change is if the answer is lost.

        Raises:
            BadRequest: it is no page blob.
            Changed: it is not the version that the conditions name.
            OutcomeUnknown: the answer was lost, and the lease ended before it could be asked.
            UsageError: the length does not consist of whole pages.
        Source: https://learn.microsoft.com/rest/api/storageservices/set-blob-properties
        """
        check_range(0, self.length, "size")
        known: dict[str, Any] = {}

        def plan(found: Any, under: Conditions) -> WriteRequest[Mapping[str, Any]]:
            _check_type(target, found)
            length, number = known["length"], known["number"] = self._foresee(found)
            operation, sent = self._describe()
            return WriteRequest(
                operation=operation,
                target=target,
                given=sent,
                look=lambda patience: headers.find_outcome(
                    found,
                    target,
                    under.lease_id,
                    patience,
                    lambda current: (current.size, current.page_blob_sequence_number) == (length, number),
                ),
            )

        done = headers.rewrite(target, conditions, lambda: records, deadline, plan, is_proved=True)
        told = {"content_length": known["length"], "sequence_number": known["number"]}
        return PageBlobChanged(**vars(done.written), blob_type=PAGE_BLOB, **told), done

    def _foresee(self, found: Any) -> tuple[int, int]:
        """Return the length and the sequence number that it gives to a version."""
        before = found.page_blob_sequence_number or 0
        number = self.number or 0
        after = {"update": number, "max": max(before, number), "increment": before + 1}
        length: int = found.size if self.length is None else self.length
        return length, before if self.action is None else after[self.action]

    def _describe(self) -> tuple[Operation, Mapping[str, Any]]:
        if self.action is None:
            return BLOB_RESIZE, {"size": self.length}
        return BLOB_SET_SEQUENCE_NUMBER, {"sequence_action": self.action, "sequence_number": self.number}
