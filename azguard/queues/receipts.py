"""The receipt of a message, which is its version: which one a write names."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from azguard.accounts.target import Target
from azguard.conditions import seen
from azguard.conditions.seen import Remembered
from azguard.errors import Changed
from azguard.queues import messages

#: Asks for what this scope knows of a message.
Recall = Callable[[Target], Remembered]


@dataclass(frozen=True)
class Receipt:
    """A receipt, and until when no one else could get another one."""

    text: str
    #: By the service's clock; None where that is not known, or where this scope has a later receipt.
    hidden_until: datetime | None = None
    #: When this scope deleted the message with this receipt; None where it did not.
    deleted: str | None = None

    @contextmanager
    def explain_deleted(self, target: Target) -> Iterator[None]:
        """Say of a message that is not found that this scope deleted it, if it did. No message gets its id again.

        Raises:
            NotFound: in the place of the error that says that the receipt is stale.
        """
        try:
            yield
        except Changed as error:
            if self.deleted is None or error.service_code != messages.NOT_FOUND:
                raise
            raise seen.deleted_here(error, target, self.deleted) from error


def choose_receipt(target: Target, given: str | None, recall: Recall) -> Receipt:
    """Return the receipt that was given; None and ``@last`` are the one that this scope has, or deleted it with.

    Raises:
        Changed: it has none.
    """
    known = recall(target)
    found = known.last or known.deleted
    if found is not None and given in (None, "@last", found.etag):
        return Receipt(found.etag, found.hidden_until, found.deleted)
    if given is not None and given != "@last":
        return Receipt(given)
    raise Changed(
        f"{target} was never received here, so there is no receipt",
        address=str(target.address),
        reason="never_received",
        values={"container": target.address.container},
    )
