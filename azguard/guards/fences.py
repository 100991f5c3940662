"""The fence of a lock's holder: a number that each new holder has one higher, left on what it writes.

A lease ends without its holder noticing: the machine sleeps, the process is stopped. What such a holder writes
afterwards must be refused, and only the storage can do that. So every write under a fence leaves its number in one
index tag of the blob, and is refused, by the service and on the very request that writes, where a higher one is.

It protects a blob for as long as every writer of it names a fence: a put without one replaces the tags, and
deleting the blob deletes its tag.

Source: https://learn.microsoft.com/azure/storage/blobs/storage-manage-find-blobs
"""

import json
from collections.abc import Mapping

from azguard.accounts.account import Target
from azguard.errors import BadRequest, LockLost, TransformFailed, UsageError

TAG = "fence"
# A signed 64-bit number, which a counter raised every microsecond reaches in 292,000 years.
MOST = 2**63 - 1
# The service compares tags as text, which for numbers of one width is comparing the numbers.
_WIDTH = len(str(MOST))
# The service takes no more on one blob.
_MOST_TAGS = 10


def parse(text: str) -> int:
    """Return the fence that a text names.

    Raises:
        UsageError: it is empty, or not a whole number from 0 to ``MOST``.
    """
    if not text.strip():
        raise UsageError("fence is empty", argument="fence", reason="fence_empty")
    if not (text.isascii() and text.isdigit() and len(text) <= _WIDTH and int(text) <= MOST):
        raise UsageError(f"{text!r} is not a whole number from 0 to {MOST}", argument="fence", reason="fence_malformed")
    return int(text)


def condition(fence: int) -> dict[str, str]:
    """Return the request header by which the service refuses a write where a higher fence is, or none at all."""
    return {"x-ms-if-tags": f"\"{TAG}\" <= '{_format(fence)}'"}


def with_fence_tag(tags: Mapping[str, str], fence: int) -> dict[str, str]:
    """Return index tags with this fence among them."""
    return {**tags, TAG: _format(fence)}


def check_tags(tags: Mapping[str, str]) -> None:
    """Refuse tags of the caller's own that leave no place for the fence.

    Raises:
        UsageError: one of them is the fence's, or there are as many as the service takes.
    """
    if TAG in tags:
        raise UsageError(
            f"fence and the tag {TAG}=… do not go together: the tag is the fence's",
            argument="tags",
            reason="tag_of_fence_given",
        )
    if len(tags) >= _MOST_TAGS:
        raise UsageError(
            f"fence and {len(tags)} tags do not go together: the service takes {_MOST_TAGS}, and the fence is one",
            argument="tags",
            reason="tags_leave_no_place_for_fence",
            values={"tags": len(tags), "most": _MOST_TAGS},
        )


def refuse_changed_tag(source: bytes, made: bytes, _type: str | None = None) -> None:
    """Refuse tags, as JSON, of which the fence's was changed: the fence itself sets it.

    Raises:
        TransformFailed: it was.
    """
    before, after = _find_tag(source), _find_tag(made)
    if before != after:
        raise TransformFailed(
            f"the tag {TAG} was changed, which a write under a fence sets itself; nothing was written",
            reason="tag_of_fence_changed",
        )


def _find_tag(tags: bytes) -> object:
    try:
        found = json.loads(tags)
    except ValueError:
        return None  # It is refused for that.
    return found.get(TAG) if isinstance(found, dict) else None


def read_fence(tags: Mapping[str, str], target: Target) -> int | None:
    """Return the fence among a blob's tags, None where there is none.

    Raises:
        BadRequest: what is there was not written by azguard, so it cannot be known whether it is higher.
    """
    text = tags.get(TAG)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) == _WIDTH):
        raise BadRequest(
            f"the index tag {TAG} of {target} is {text!r}, which is no fence that azguard wrote; nothing was written",
            address=str(target.address),
            reason="fence_tag_malformed",
            values={"digits": _WIDTH},
        )
    return int(text)


def refuse_higher(target: Target, mine: int, theirs: int | None) -> None:
    """Refuse to write what a holder with a higher fence has written.

    Raises:
        LockLost: ``theirs`` is higher.
    """
    if theirs is not None and theirs > mine:
        raise LockLost(
            f"{target} was written under fence {theirs}, so that yours, {mine}, is overtaken; nothing was changed",
            address=str(target.address),
            reason="fence_overtaken",
            facts={"fence": mine, "current_fence": theirs},
        )


def _format(fence: int) -> str:
    return f"{fence:0{_WIDTH}d}"
