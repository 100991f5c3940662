"""The receipt of a message, which is its version: which one a write names."""

from collections.abc import Callable

from azguard.accounts.target import Target
from azguard.errors import Changed

#: Asks for the receipt that this scope has of a message.
Recall = Callable[[Target], str | None]


def choose_receipt(target: Target, given: str | None, recall: Recall) -> str:
    """Return the receipt that was given; None and ``@last`` are the one that this scope has.

    Raises:
        Changed: it has none.
    """
    if given not in (None, "@last"):
        return given or ""
    found = recall(target)
    if found is None:
        raise Changed(
            f"{target} was never received here, so there is no receipt",
            address=str(target.address),
            reason="never_received",
            values={"container": target.address.container},
        )
    return found
