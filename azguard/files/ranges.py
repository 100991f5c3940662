"""Which ranges of a file hold data; the rest is zeros, and takes no room."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.target import Target
from azguard.conditions.etags import quote
from azguard.conditions.resolve import Conditions
from azguard.errors import Changed, NotFound
from azguard.files import writes
from azguard.requests.calls import page_timeouts, pages
from azguard.requests.deadline import Deadline


@dataclass(frozen=True)
class FileRange:
    """A range of a file."""

    COLUMNS: ClassVar = (columns.RANGE_START, columns.RANGE_END, columns.RANGE_LENGTH, columns.CLEARED)

    #: The first byte, and the last one.
    start: int
    end: int
    length: int
    #: Whether it was cleared since the snapshot that it is compared with.
    cleared: bool


@dataclass(frozen=True)
class RangesAsked:
    """Which ranges are listed."""

    #: Begin at this byte; None is the first.
    offset: int | None = None
    #: Look at so many bytes; None is all.
    length: int | None = None
    #: The time of a snapshot: list only what differs from it.
    previous: str | None = None


def list_ranges(target: Target, asked: RangesAsked, conditions: Conditions, deadline: Deadline) -> Iterator[FileRange]:
    """Yield the ranges of one version that hold data.

    Raises:
        Changed: the file changes faster than its ranges can be listed.
        Locked: the lease that the conditions name is not held.
        NotFound: there is no such file, or no such snapshot.
    Source: https://learn.microsoft.com/rest/api/storageservices/list-ranges
    """
    before = quote(writes.fetch(target, conditions.lease_id, deadline).etag)
    while True:
        found = _find(target, asked, conditions, deadline)
        # The service lists page by page, and takes no condition that would tie them to one version.
        now = quote(writes.fetch(target, conditions.lease_id, deadline).etag)
        if now == before:
            break
        if deadline.passed:
            raise Changed(
                f"{target} changes faster than its ranges can be listed",
                str(target.address),
                current_etag=now,
                reason="file_keeps_changing",
            )
        before = now
    for each in found:
        yield FileRange(each.start, each.end, each.end - each.start + 1, bool(each.cleared))


def _find(target: Target, asked: RangesAsked, conditions: Conditions, deadline: Deadline) -> list[Any]:
    """Return the SDK's ranges; the share itself was there just now, so that one that is missing is the snapshot."""
    try:
        return list(pages(_ask(target, asked, conditions, page_timeouts(deadline)), target, deadline))
    except NotFound as error:
        if asked.previous is None or error.service_code != "ShareNotFound":
            raise
        share = target.address.container
        raise error.but(
            message=f"the share {share} has no snapshot {asked.previous}",
            reason="share_snapshot_not_found",
            values={"container": share},
        ) from error


def _ask(target: Target, asked: RangesAsked, conditions: Conditions, timeouts: Mapping[str, Any]) -> Any:
    client, sent = target.account.file(target.address), {"headers": dict(conditions.request_headers), **timeouts}
    # The SDK takes a length only beside an offset.
    offset = 0 if asked.offset is None and asked.length is not None else asked.offset
    if asked.previous is None:
        return client.list_ranges(offset=offset, length=asked.length, **sent)
    return client.list_ranges_diff(asked.previous, offset=offset, length=asked.length, **sent)
