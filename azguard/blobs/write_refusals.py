"""Why a blob was not written, with what is there now."""

from collections.abc import Iterator
from contextlib import contextmanager

from azguard.accounts.target import Target
from azguard.blobs import properties
from azguard.conditions.resolve import Conditions
from azguard.errors import Changed, Exists, GaveUp, Locked
from azguard.requests.deadline import Deadline


@contextmanager
def explain(target: Target, conditions: Conditions, deadline: Deadline) -> Iterator[None]:
    """Add to the refusal of a write what is there now, or that this scope never read it.

    Raises:
        Changed, Exists, Locked: the refusal.
    """
    try:
        yield
    except Changed as error:
        raise properties.describe_conflict(error, target, deadline) from error
    except Exists as error:
        raise _explain_unread(error, target, conditions) from error
    except Locked as error:
        # The live service looks at the lease before it looks whether the blob exists.
        if not conditions.never_read:
            raise
        raise error.but(detail=(*error.detail, "and it was never read here: read it before you write")) from error


def _explain_unread(error: Exists, target: Target, conditions: Conditions) -> Exists:
    if not conditions.never_read:
        return error
    message = f"{target} exists, and this scope never read it"
    return error.but(message=message, reason="put_never_read", address=str(target.address))


def to_gave_up(target: Target, refused: int) -> GaveUp:
    """Return the error of a write that named no version, and met another one at each of ``refused`` attempts."""
    return GaveUp(
        f"{target} was written by others between each look at it and the request after it, {refused} times; "
        "nothing was applied",
        address=str(target.address),
        reason="written_in_between",
    )
