"""How much is in a container or a table, at the price of one page of its listing."""

from dataclasses import dataclass, replace
from typing import Any

from azguard.accounts.target import Target
from azguard.address import Kind
from azguard.errors import Forbidden
from azguard.requests.calls import page_timeouts, read
from azguard.requests.deadline import Deadline

# The most that one page holds.
_BLOBS, _ENTITIES = 5000, 1000


@dataclass(frozen=True)
class Contents:
    """How many blobs or entities there are; ``more`` says that there may be more than were counted."""

    number: int
    noun: str
    more: bool = False

    def __str__(self) -> str:
        return f"{'at least ' if self.more else ''}{self.number:,} {self.noun}"


def count(target: Target, deadline: Deadline) -> Contents:
    """Count the blobs of a container or the entities of a table, up to the end of the first page that has any.

    Blobs that are being uploaded count. Snapshots do not: each has its blob. Versions and soft-deleted blobs do not
    either: to delete them was an act of its own.

    Raises:
        Forbidden: it may not be listed.
        NotFound: it is not there.
    Source: https://learn.microsoft.com/rest/api/storageservices/list-blobs and /query-entities
    """
    pages, nouns = _entities(target, deadline) if target.kind is Kind.TABLE else _blobs(target, deadline)
    try:
        # A page may be empty, and still another may follow it.
        while (found := read(lambda _: _page(pages), target, deadline.fresh())) == 0:
            pass
    except Forbidden as error:
        raise replace(
            error,
            message=f"{error.message}: so it is not known whether {target} is empty",
            hint="--with-contents deletes it without looking",
        ) from error
    if found is None:
        return Contents(0, nouns[1])
    return Contents(found, nouns[found > 1], more=bool(pages.continuation_token))


def _blobs(target: Target, deadline: Deadline) -> tuple[Any, tuple[str, str]]:
    client = target.account.container(target.address)
    asked = {"include": ["uncommittedblobs"], "results_per_page": _BLOBS, **page_timeouts(deadline)}
    return client.list_blobs(**asked).by_page(), ("blob", "blobs")


def _entities(target: Target, deadline: Deadline) -> tuple[Any, tuple[str, str]]:
    client = target.account.table(target.address)
    asked = {"select": "PartitionKey", "results_per_page": _ENTITIES, **page_timeouts(deadline)}
    return client.list_entities(**asked).by_page(), ("entity", "entities")


def _page(pages: Any) -> int | None:
    """Return how many the next page has, None if there is none."""
    page = next(pages, None)
    return None if page is None else sum(1 for _ in page)
