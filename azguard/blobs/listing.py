"""A container's blobs, listed page by page in constant memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.target import Target
from azguard.address import Address, Kind
from azguard.blobs.shown import BlobShown, from_sdk
from azguard.errors import NotFound
from azguard.requests.calls import page_timeouts, pages
from azguard.requests.deadline import Deadline


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

    Source: https://learn.microsoft.com/rest/api/storageservices/list-blobs
    """
    client = target.account.container(target.address)
    # The SDK sends the same timeouts with every page.
    asked: dict[str, Any] = {
        "name_starts_with": prefix,
        "include": list(include),
        "results_per_page": None if limit is None else min(limit, 5000),
        **page_timeouts(deadline),
    }
    found: Any = client.list_blobs(**asked) if delimiter is None else client.walk_blobs(delimiter=delimiter, **asked)
    try:
        for item in islice(pages(found, target, deadline), limit):
            if hasattr(item, "etag"):
                where = Address(
                    kind=Kind.BLOB,
                    parts=(target.address.container, item.name),
                    snapshot=item.snapshot,
                    version=item.version_id,
                )
                yield from_sdk(where, item)
            else:
                yield BlobPrefix(f"blob:{target.address.container}/{item.name}", item.name)
    except NotFound as error:
        raise error.but(message=f"there is no container {target.address.container}") from error.__cause__
