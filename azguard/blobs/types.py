"""The type of a blob. A Put Blob replaces an append or page blob by a block blob without an error.

A version keeps its type. So a write that is guarded by a version needs no request to learn its type; any other write
needs one.
"""

from azguard.accounts.target import Target
from azguard.blobs import properties
from azguard.conditions.resolve import Conditions
from azguard.conditions.seen import BLOCK_BLOB
from azguard.errors import BadRequest, Forbidden, NotFound
from azguard.requests.deadline import Deadline

_WORDS = {BLOCK_BLOB: "a block blob", "AppendBlob": "an append blob", "PageBlob": "a page blob"}


def describe(found: str | None) -> str:
    """Return a type of blob in words."""
    return _WORDS.get(str(found), str(found))


def check(target: Target, conditions: Conditions, deadline: Deadline) -> None:
    """Refuse to put a block blob in the place of a blob of another type.

    Not guaranteed: where the write is for no version, another may change the type between the look and the write.

    Raises:
        BadRequest: it is of another type.
        Forbidden: it is not known, and may not be asked.
    """
    if conditions.creates_only:
        return
    refuse(target, conditions.blob_type or _fetch_type(target, deadline))


def refuse(target: Target, found: str | None) -> None:
    """Refuse a type that is not a block blob's; None is nothing there.

    Raises:
        BadRequest: it is another.
    """
    if found in (None, BLOCK_BLOB):
        return
    raise BadRequest(
        f"{target} is {describe(found)}, and a put would make it a block blob; nothing was written",
        address=str(target.address),
        reason="other_blob_type",
    )


def _fetch_type(target: Target, deadline: Deadline) -> str | None:
    """Return the type of what is there now, None if nothing is."""
    try:
        found = properties.fetch(target, Conditions(), deadline)
    except NotFound:
        return None
    except Forbidden as error:
        raise error.but(
            message=f"{error.message}: so it is not known whether {target} is a block blob",
            reason="blob_type_unknown",
        ) from error
    return properties.type_of(found)
