"""A copy that the service makes in its own time: how far it is, how it ended, and how to stop it.

Source: https://learn.microsoft.com/rest/api/storageservices/abort-copy-blob
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from azguard.accounts.target import Target
from azguard.blobs import properties
from azguard.blobs.copies import BlobCopied
from azguard.conditions.resolve import Conditions
from azguard.errors import Changed, GaveUp, NotFound
from azguard.requests.deadline import Deadline
from azguard.resources import copies
from azguard.resources.copies import PENDING, SUCCESS, CopyAborted, CopyDestination


def wait(begun: BlobCopied, target: Target, deadline: Deadline, tell: Callable[[int, int | None], None]) -> BlobCopied:
    """Return a copy once it has ended well; ``tell`` is given the bytes that are copied, and how many there are.

    Raises:
        Changed: another write has replaced it, it was stopped, or its source was changed meanwhile.
        NotFound, Forbidden, Unavailable: it failed, by what the service says.
        GaveUp: it is still pending at the deadline.
    """
    for pause in copies.pauses():
        found = _fetch(target, begun, deadline)
        if found.copy.status != PENDING:
            break
        tell(*copies.read_progress(found.copy.progress))
        if deadline.remaining <= pause:
            raise _to_gave_up(begun, target, found)
        deadline.pause(pause)
    if found.copy.status != SUCCESS:
        failure = copies.build_failure(target, found, f"{target} is now an empty blob")
        raise failure.but(current_etag=found.etag)
    return replace(
        begun,
        etag=found.etag,
        last_modified=found.last_modified,
        version_id=found.version_id,
        content_length=found.size,
        copy_status=SUCCESS,
    )


def abort(target: Target, copy_id: str | None, conditions: Conditions, deadline: Deadline) -> CopyAborted:
    """Stop a pending copy: the one with this id, or the one that the blob shows. It leaves an empty blob.

    Raises:
        Changed: the copy has ended, or the blob is the destination of another copy.
        NotFound: there is no blob, or it is not the destination of a copy.
        Locked: the blob is leased, and its lease id was not given.
    """
    destination = CopyDestination(
        target,
        fetch=lambda patience: properties.fetch(target, Conditions(), patience),
        client=target.account.blob(target.address),
        headers=conditions.request_headers,
        guard=conditions.guard,
    )
    return copies.abort(destination, copy_id, deadline)


def _fetch(target: Target, begun: BlobCopied, deadline: Deadline) -> Any:
    """Return the properties of the destination.

    Raises:
        Changed: it has another copy's id, or none, or it is gone. Where ours was never learnt, another write hid it.
    """
    try:
        found = properties.fetch(target, Conditions(), deadline)
    except NotFound as error:
        raise properties.to_gone(target, begun.etag or "", error).but(
            reason="copy_replaced", facts={"copy_id": begun.copy_id}
        ) from error
    if begun.copy_id is not None and found.copy.id == begun.copy_id:
        return found
    raise Changed(
        f"another writer replaced {target} before its copy was seen to end",
        address=str(target.address),
        current_etag=found.etag,
        reason="copy_replaced",
        facts={"copy_id": begun.copy_id, "current_copy_id": found.copy.id},
    )


def _to_gave_up(begun: BlobCopied, target: Target, found: Any) -> GaveUp:
    done, total = copies.read_progress(found.copy.progress)
    return GaveUp(
        f"the copy to {target} is still pending, with {done:,} of {total or 0:,} bytes; it goes on",
        address=str(target.address),
        reason="copy_pending",
        values={"copy_id": begun.copy_id},
        facts={"copy_id": begun.copy_id, "copy_status": PENDING, "copy_progress": found.copy.progress},
    )
