"""A copy that the service makes in its own time: how far it is, how it ended, and how to stop it.

The id of a copy tells it from every other. Where the blob has another id, or none, another write has replaced it.

Source: https://learn.microsoft.com/rest/api/storageservices/abort-copy-blob
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.target import Target
from azguard.blobs import properties
from azguard.blobs.copies import PENDING, SUCCESS, BlobCopied
from azguard.conditions.resolve import Conditions
from azguard.errors import AzguardError, BadRequest, Changed, Forbidden, GaveUp, NotFound, Unauthenticated, Unavailable
from azguard.requests.calls import write_timeouts
from azguard.requests.deadline import Deadline
from azguard.requests.settle import NOTHING_THERE, Finding, WriteRequest, send_until_settled
from azguard.requests.verdicts import Verdict

_ABORTED = "aborted"
# Between two questions: small copies end at once, large ones take hours.
_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 10.0
_PAUSE_GROWTH = 1.5
# The status of a copy that failed begins with the HTTP status of what the service met.
_KINDS: dict[str, type[AzguardError]] = {
    "401": Unauthenticated, "403": Forbidden, "404": NotFound, "412": Changed,
}  # fmt: skip


@dataclass(frozen=True)
class CopyAborted:
    """What a request to stop a copy did."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.COPY_STATUS, columns.OUTCOME)

    address: str
    etag: str | None
    last_modified: datetime | None
    copy_id: str
    copy_status: str
    guard: str
    attempts: int
    conflicts: int
    #: ``committed``, or ``unchanged`` where it had been stopped before.
    outcome: str


def wait(begun: BlobCopied, target: Target, deadline: Deadline, tell: Callable[[int, int | None], None]) -> BlobCopied:
    """Return a copy once it has ended well; ``tell`` is given the bytes that are copied, and how many there are.

    Raises:
        Changed: another write has replaced it, it was stopped, or its source was changed meanwhile.
        NotFound, Forbidden, Unavailable: it failed, by what the service says.
        GaveUp: it is still pending at the deadline.
    """
    pause = _FIRST_PAUSE_SECONDS
    while True:
        found = _fetch(target, begun, deadline)
        status = found.copy.status
        if status == SUCCESS:
            return replace(
                begun,
                etag=found.etag,
                last_modified=found.last_modified,
                version_id=found.version_id,
                content_length=found.size,
                copy_status=status,
            )
        if status != PENDING:
            raise _to_failure(begun, target, found)
        done, total = _read_progress(found.copy.progress)
        tell(done, total)
        if deadline.remaining <= pause:
            raise _to_gave_up(begun, target, found)
        deadline.pause(pause)
        pause = min(_LONGEST_PAUSE_SECONDS, pause * _PAUSE_GROWTH)


def abort(target: Target, copy_id: str | None, conditions: Conditions, deadline: Deadline) -> CopyAborted:
    """Stop a pending copy: the one with this id, or the one that the blob shows. It leaves an empty blob.

    Raises:
        Changed: the copy has ended, or the blob is the destination of another copy.
        NotFound: there is no blob, or it is not the destination of a copy.
        Locked: the blob is leased, and its lease id was not given.
    """
    shown = properties.fetch(target, Conditions(), deadline)
    copy_id = copy_id or shown.copy.id
    if copy_id is None:
        raise NotFound(f"{target} is not the destination of a copy", address=str(target.address), reason="no_copy")
    if shown.copy.id == copy_id and shown.copy.status == _ABORTED:
        return _to_aborted(target, shown, copy_id, conditions, attempts=0, outcome="unchanged")
    if shown.copy.id != copy_id or shown.copy.status != PENDING:
        raise _to_ended(target, shown, copy_id)
    client = target.account.blob(target.address)
    request: WriteRequest[Any] = WriteRequest(
        target=target,
        send=lambda: client.abort_copy(copy_id, headers=conditions.request_headers, **write_timeouts(deadline)),
        look=lambda patience: _find_outcome(target, copy_id, patience),
    )
    try:
        settled = send_until_settled(request, deadline)
    except (Changed, BadRequest) as error:
        # Changed is the verdict of the look; the service says NoPendingCopyOperation or CopyIdMismatch.
        raise _to_ended(target, properties.fetch(target, Conditions(), deadline.fresh()), copy_id, error) from error
    found = settled.answer or properties.fetch(target, Conditions(), deadline.fresh())
    return _to_aborted(target, found, copy_id, conditions, attempts=settled.attempts, outcome="committed")


def _fetch(target: Target, begun: BlobCopied, deadline: Deadline) -> Any:
    """Return the properties of the destination.

    Raises:
        Changed: it has another copy's id, or none, or it is gone.
    """
    try:
        found = properties.fetch(target, Conditions(), deadline)
    except NotFound as error:
        raise properties.to_gone(target, begun.etag or "", error).but(
            reason="copy_replaced", facts={"copy_id": begun.copy_id}
        ) from error
    if found.copy.id == begun.copy_id:
        return found
    raise Changed(
        f"another writer replaced {target} before its copy was seen to end",
        address=str(target.address),
        current_etag=found.etag,
        reason="copy_replaced",
        facts={"copy_id": begun.copy_id, "current_copy_id": found.copy.id},
    )


def _to_failure(begun: BlobCopied, target: Target, found: Any) -> AzguardError:
    """Return the error for a copy that ended without success: aborted or failed. It leaves an empty blob."""
    facts = {"copy_id": begun.copy_id, "copy_status": found.copy.status}
    left = f"; {target} is now an empty blob"
    if found.copy.status == _ABORTED:
        return Changed(
            f"the copy to {target} was aborted{left}",
            address=str(target.address),
            current_etag=found.etag,
            reason="copy_was_aborted",
            facts=facts,
        )
    why = found.copy.status_description or ""
    kind = _KINDS.get(why[:3], Unavailable)
    failure = Unavailable(
        f"the copy to {target} failed{left}",
        address=str(target.address),
        detail=(why,) if why else (),
        current_etag=found.etag,
        reason="copy_failed",
        facts={**facts, "copy_status_description": why or None},
    )
    return failure.as_kind(kind)


def _to_gave_up(begun: BlobCopied, target: Target, found: Any) -> GaveUp:
    done, total = _read_progress(found.copy.progress)
    return GaveUp(
        f"the copy to {target} is still pending, with {done:,} of {total or 0:,} bytes; it goes on",
        address=str(target.address),
        reason="copy_pending",
        values={"copy_id": begun.copy_id},
        facts={"copy_id": begun.copy_id, "copy_status": PENDING, "copy_progress": found.copy.progress},
    )


def _find_outcome(target: Target, copy_id: str, patience: Deadline) -> Finding[Any]:
    try:
        found = properties.fetch(target, Conditions(), patience)
    except NotFound:
        return Finding(Verdict.NEVER, seen=NOTHING_THERE)
    if found.copy.id != copy_id:
        return Finding(Verdict.NEVER, seen=found)
    by_status = {_ABORTED: Verdict.COMMITTED, PENDING: Verdict.NOT_YET}
    return Finding(by_status.get(found.copy.status, Verdict.NEVER), found, seen=found)


def _to_ended(target: Target, found: Any, copy_id: str, error: AzguardError | None = None) -> Changed:
    """Return the error for a copy that cannot be stopped any more."""
    if found.copy.id == copy_id:
        message = f"the copy to {target} had ended before it could be stopped: {found.copy.status}"
    else:
        message = f"{target} is not the destination of the copy {copy_id}"
    return Changed(
        message,
        address=str(target.address),
        http_status=None if error is None else error.http_status,
        service_code=None if error is None else error.service_code,
        request_id=None if error is None else error.request_id,
        current_etag=found.etag,
        reason="copy_ended" if found.copy.id == copy_id else "copy_is_another",
        facts={"copy_id": copy_id, "current_copy_id": found.copy.id, "copy_status": found.copy.status},
    )


def _to_aborted(
    target: Target, found: Any, copy_id: str, conditions: Conditions, *, attempts: int, outcome: str
) -> CopyAborted:
    return CopyAborted(
        address=str(target.address),
        etag=found.etag,
        last_modified=found.last_modified,
        copy_id=copy_id,
        copy_status=_ABORTED,
        guard=conditions.guard,
        attempts=attempts,
        conflicts=0,
        outcome=outcome,
    )


def _read_progress(text: str | None) -> tuple[int, int | None]:
    """Return the bytes that are copied, and how many there are, of ``12/40``."""
    done, _, total = (text or "").partition("/")
    return (int(done), int(total)) if done.isdigit() and total.isdigit() else (0, None)
