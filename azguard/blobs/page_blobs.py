"""A page blob: found, created, and the ranges of it that hold pages."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from azguard import columns
from azguard.accounts.target import Target
from azguard.blobs import existing, properties, types
from azguard.blobs.page_write import PAGE_BLOB, PageWrite, check_range
from azguard.conditions.resolve import Conditions
from azguard.errors import BadRequest, Changed, Exists, GaveUp, NotFound
from azguard.requests.calls import page_timeouts, pages, write_timeouts
from azguard.requests.commits import verdict_from_lineage
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage, fresh_op
from azguard.requests.settle import Finding, WriteRequest, send_until_settled


class Found(NamedTuple):
    """A page blob: its version, and whether it was created just now."""

    etag: str
    created: bool


@dataclass(frozen=True)
class PageRange:
    """A range of a page blob."""

    COLUMNS: ClassVar = (columns.RANGE_START, columns.RANGE_END, columns.RANGE_LENGTH, columns.CLEARED)

    #: The first byte, and the last one.
    start: int
    end: int
    length: int
    #: Whether it was cleared since the snapshot that it is compared with.
    cleared: bool


def find(given: PageWrite, end: int, deadline: Deadline) -> Found:
    """Return the page blob that is written to; ``end`` is behind the last byte of the first piece.

    Raises:
        BadRequest: it is of another type, or too short.
        Exists: it was never read, so that it could only be created.
        Changed: it is no longer the version that the write is for.
        NotFound: there is none, and none is to be created.
    """
    target, expected = given.target, given.conditions.expected_etag
    try:
        found = properties.fetch(target, Conditions(), deadline)
    except NotFound as error:
        if given.create_bytes is None or error.service_code == "ContainerNotFound":
            raise error if error.reason else error.but(reason="pages_of_nothing") from error
        existing.check_creatable(target, given.conditions, error)
        return Found(_create(given, given.create_bytes, deadline), created=True)
    address = str(target.address)
    if given.conditions.never_read:
        raise _build_never_read(target)
    _check_type(target, found)
    if end > found.size:
        raise BadRequest(
            f"{target} has {found.size:,} bytes, so that nothing can be written at byte {end - 1:,}",
            address,
            reason="pages_behind_end",
        )
    if expected is not None and found.etag != expected:
        refusal = Changed(f"{target} changed since you read it", address, expected_etag=expected, seen=found)
        raise properties.describe_conflict(refusal, target, deadline)
    return Found(found.etag, created=False)


def _check_type(target: Target, found: Any) -> None:
    kind = properties.type_of(found)
    if kind != PAGE_BLOB:
        raise BadRequest(
            f"{target} is {types.describe(kind)}, and has no pages", str(target.address), reason="no_page_blob"
        )


def _create(given: PageWrite, length: int, deadline: Deadline) -> str:
    """Create the blob, full of zeros, only if there is none; return its ETag.

    Raises:
        Exists: another writer was first.
    Source: https://learn.microsoft.com/rest/api/storageservices/put-blob
    """
    op, settings, client = fresh_op(), given.settings, given.target.account.blob(given.target.address)
    assert settings is not None
    stamped = {**(settings.metadata or {}), KEY: str(Lineage().after(op, None))}

    def look(patience: Deadline) -> Finding[Any]:
        try:
            found = properties.fetch(given.target, Conditions(), patience)
        except NotFound:
            return Finding(verdict_from_lineage(Lineage(), op, None, None))
        history = Lineage.parse((found.metadata or {}).get(KEY))
        answer = {"etag": found.etag, "is_found": True}
        return Finding(verdict_from_lineage(history, op, None, found.etag), answer, seen=found)

    request = WriteRequest(
        target=given.target,
        send=lambda: client.create_page_blob(
            length,
            settings.for_sdk()["content_settings"],
            stamped,
            headers={"If-None-Match": "*"},
            **write_timeouts(deadline),
        ),
        look=look,
    )
    answer = send_until_settled(request, deadline).answer
    etag: str = answer["etag"]
    # Pages that another writer has written since leave the lineage as it is.
    if answer.get("is_found") and _has_pages(given.target, etag, deadline.fresh()):
        raise _build_never_read(given.target)
    return etag


def _has_pages(target: Target, etag: str, deadline: Deadline) -> bool:
    client, headers = target.account.blob(target.address), {"If-Match": etag}
    return any(pages(client.list_page_ranges(headers=headers, **page_timeouts(deadline)), target, deadline))


def _build_never_read(target: Target) -> Exists:
    return Exists(f"{target} exists, and this scope never read it", str(target.address), reason="pages_never_read")


def _build_changing(target: Target) -> GaveUp:
    message = f"{target} changes faster than its ranges can be listed"
    return GaveUp(message, str(target.address), reason="pages_keep_changing")


def list_ranges(
    target: Target,
    conditions: Conditions,
    deadline: Deadline,
    *,
    offset: int | None,
    length: int | None,
    previous: str | None,
) -> Iterator[PageRange]:
    """Yield the ranges of one version that hold pages; with ``previous``, a snapshot's time, those that differ from it.

    Raises:
        BadRequest: it is no page blob.
        Changed: a condition did not hold.
        GaveUp: the blob changes faster than its ranges can be listed.
        UsageError: the part to look at does not consist of whole pages.
    Source: https://learn.microsoft.com/rest/api/storageservices/get-page-ranges
    """
    check_range(offset or 0, length)
    client = target.account.blob(target.address)
    while True:
        with properties.explain_stale_read(target, conditions, deadline):
            found = properties.fetch(target, conditions, deadline)
        _check_type(target, found)
        # All pages of the answer are of this version.
        pinned = Conditions({"If-Match": found.etag}, lease_id=conditions.lease_id).request_headers

        asked = {"headers": dict(pinned), **page_timeouts(deadline)}
        listed = client.list_page_ranges(offset=offset, length=length, previous_snapshot=previous, **asked)
        try:
            ranges = list(pages(listed, target, deadline))
        except Changed as error:
            if deadline.passed:
                raise _build_changing(target) from error
        else:
            break
    for each in ranges:
        yield PageRange(each.start, each.end, each.end - each.start + 1, bool(each.cleared))
