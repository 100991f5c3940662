"""The receipt of a message, which is its version: which one a write names."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from azguard.accounts.target import Target
from azguard.conditions.seen import SeenVersion
from azguard.errors import Changed

#: Asks for the receipt that this scope has of a message.
Recall = Callable[[Target], SeenVersion | None]


@dataclass(frozen=True)
class Receipt:
    """A receipt, and until when no one else could get another one."""

    text: str
    #: By the service's clock; None where that is not known, or where this scope has a later receipt.
    hidden_until: datetime | None = None


def choose_receipt(target: Target, given: str | None, recall: Recall) -> Receipt:
    """Return the receipt that was given; None and ``@last`` are the one that this scope has.

    Raises:
        Changed: it has none.
    """
    found = recall(target)
    if given not in (None, "@last"):
        is_last = found is not None and found.etag == given
        return Receipt(given or "", found.hidden_until if found is not None and is_last else None)
    if found is None:
        raise Changed(
            f"{target} was never received here, so there is no receipt",
            address=str(target.address),
            reason="never_received",
            values={"container": target.address.container},
        )
    return Receipt(found.etag, found.hidden_until)
