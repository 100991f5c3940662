"""How many items a resource contains, at the price of one page of its listing."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from azguard.accounts.target import Target
from azguard.errors import Changed, Forbidden
from azguard.requests.calls import walk
from azguard.requests.deadline import Deadline


@dataclass(frozen=True)
class Contents:
    """How many items there are."""

    number: int
    noun: str
    #: Whether there may be more than were counted.
    more: bool = False

    def __str__(self) -> str:
        return f"{'at least ' if self.more else ''}{self.number:,} {self.noun}"


#: What counts the blobs of a container, or the entities of a table.
Count = Callable[[Target, Deadline], Contents]


def require_empty(
    count: Count,
    target: Target,
    deadline: Deadline,
    confirm: Callable[[Contents], None] | None,
    *,
    stays: bool = False,
) -> None:
    """Make sure that a resource is empty, or that its contents are meant to be deleted too.

    ``confirm`` asks a person, and raises if the answer is no; None where no person can be asked. ``stays`` says that
    only the contents are to be deleted. Not guaranteed: what is written between the count and the delete is deleted
    too.

    Raises:
        Changed: it is not empty, and no person can be asked.
    """
    found = count(target, deadline)
    if not found.number:
        return
    if confirm is None:
        raise Changed(
            f"{target} is not empty: {found} would be deleted{'' if stays else ' with it'}",
            address=str(target.address),
            facts={"contents": found.number, "contents_counted": not found.more},
        )
    confirm(found)


def count_first_page(pages: Any, target: Target, deadline: Deadline, one: str, many: str) -> Contents:
    """Count the items of a listing up to the end of the first page that has any; ``one`` and ``many`` name them.

    Raises:
        Forbidden: it may not be listed.
        NotFound: it is not there.
    """
    try:
        # A page may be empty, and still another may follow it.
        found = next(filter(None, walk(pages, _count, target, deadline)), 0)
    except Forbidden as error:
        raise error.but(
            message=f"{error.message}: so it is not known whether {target} is empty",
            reason="contents_not_listed",
        ) from error
    if not found:
        return Contents(0, many)
    return Contents(found, one if found == 1 else many, more=bool(pages.continuation_token))


def _count(page: Any) -> int:
    return sum(1 for _ in page)
