"""Listings that are read page by page, each asked for again on transient failures."""

from collections.abc import Iterator
from typing import Any

from azguard.accounts.account import Target
from azguard.requests.calls import Markers, page_timeouts, read
from azguard.requests.deadline import Deadline
from azguard.wire.call import call
from azguard.wire.items import Page, parse_page
from azguard.wire.rows import Operation


def walk_pages(
    operation: Operation, target: Target, deadline: Deadline, wrapper: str, *tags: str, **asked: Any
) -> Iterator[Page]:
    """Yield the pages of a listing, in constant memory; see ``items.parse_page``.

    Raises:
        Unavailable: the service gave no page in time, or one that leads back to an earlier one.
    """
    marker, markers, timeouts = None, Markers(target), page_timeouts(deadline)
    while True:
        page = read(
            lambda _: parse_page(call(operation, target, timeouts, **asked, marker=marker), wrapper, *tags),  # noqa: B023  # called at once
            target,
            deadline.fresh(),
        )
        marker = page.marker
        markers.note(marker)
        yield page
        if marker is None:
            return
