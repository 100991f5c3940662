"""What is in a directory, or in the root of a share, page by page in constant memory."""

from collections.abc import Iterator
from itertools import islice

from azguard.accounts.target import Target
from azguard.address import Address, Kind
from azguard.files.described import EntryListed, describe_entry
from azguard.requests.calls import page_timeouts, pages
from azguard.requests.deadline import Deadline

_PAGE = 5000
_INCLUDED = ["timestamps", "Etag", "Attributes", "PermissionKey"]


def list_entries(
    target: Target, deadline: Deadline, *, prefix: str | None, limit: int | None, kind: Kind | None = None
) -> Iterator[EntryListed]:
    """Yield what is in a directory or share, of one kind or both. Nothing below its directories is listed.

    Raises:
        NotFound: there is no such share or directory.
    Source: https://learn.microsoft.com/rest/api/storageservices/list-directories-and-files
    """
    address = target.address
    found = target.account.directory(address).list_directories_and_files(
        name_starts_with=prefix,
        include=_INCLUDED,
        include_extended_info=True,
        results_per_page=_PAGE if limit is None or kind is not None else min(limit, _PAGE),
        **page_timeouts(deadline),
    )
    start = f"{address.path}/" if address.path else ""
    every = (
        describe_entry(
            Address(
                Kind.DIR if item.is_directory else Kind.FILE,
                (address.container, start + item.name),
                address.snapshot,
            ),
            item,
        )
        for item in pages(found, target, deadline)
    )
    yield from islice((each for each in every if kind is None or each.type == kind), limit)
