"""A container's blobs, listed page by page in constant memory."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.target import Target
from azguard.address import Address, Kind
from azguard.blobs.shown import BlobShown, from_sdk
from azguard.errors import NotFound
from azguard.requests.calls import page_timeouts, pages
from azguard.requests.deadline import Deadline

# What a listing can include that has the name of another line.
_OF_ONE_NAME = frozenset({"snapshots", "versions", "deleted"})


@dataclass(frozen=True)
class BlobPrefix:
    """A virtual folder in a listing with a delimiter."""

    COLUMNS: ClassVar = (columns.NAME, columns.ADDRESS)

    address: str
    name: str
    prefix: bool = True


def list_blobs(
    target: Target,
    deadline: Deadline,
    *,
    prefix: str | None = None,
    delimiter: str | None = None,
    include: Sequence[str] = (),
    limit: int | None = None,
) -> Iterator[BlobShown | BlobPrefix]:
    """Yield a container's blobs in order of name, page by page, in constant memory.

    What is kept of one blob is in order of time, and its current version is the last.

    Source: https://learn.microsoft.com/rest/api/storageservices/list-blobs
    """
    client = target.account.container(target.address)
    # The SDK sends the same timeouts with every page.
    repeats_names = not _OF_ONE_NAME.isdisjoint(include)
    asked: dict[str, Any] = {
        "name_starts_with": prefix,
        "include": list(include),
        # A page that ends between two lines of one name loses the rest of them in Azurite.
        "results_per_page": None if limit is None or repeats_names else min(limit, 5000),
        **page_timeouts(deadline),
    }
    found: Any = client.list_blobs(**asked) if delimiter is None else client.walk_blobs(delimiter=delimiter, **asked)
    items = pages(found, target, deadline)
    try:
        for item in islice(_sort_versions(items) if repeats_names else items, limit):
            yield _to_row(target.address.container, item)
    except NotFound as error:
        raise error.but(message=f"there is no container {target.address.container}") from error.__cause__


def _to_row(container: str, item: Any) -> BlobShown | BlobPrefix:
    if not hasattr(item, "etag"):
        return BlobPrefix(f"blob:{container}/{item.name}", item.name)
    where = Address(kind=Kind.BLOB, parts=(container, item.name), snapshot=item.snapshot, version=item.version_id)
    return from_sdk(where, item)


def order_in_time(found: Any) -> tuple[bool, str]:
    """Return the key that sorts snapshots and versions of one blob: by id, the current version last."""
    moment = getattr(found, "snapshot", None) or getattr(found, "version_id", None)
    is_current = moment is None or bool(getattr(found, "is_current_version", None))
    # A fraction of a second can have fewer digits than another.
    return is_current, (moment or "").removesuffix("Z")


def _sort_versions(items: Iterable[Any]) -> Iterator[Any]:
    """Yield the lines of each name in order of time: Azurite lists them in another order after each write."""
    for _, of_one_name in groupby(items, key=lambda item: item.name):
        yield from sorted(of_one_name, key=order_in_time)
