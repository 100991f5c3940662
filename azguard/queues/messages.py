"""Messages: put, received, looked at, changed and deleted.

A message that was received is hidden for a time, and has a receipt that ends with the next receive or update. So the
receipt is its version: with it a write is of the message as it was received, or is refused.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, TypeVar

from azguard.accounts.account import Target
from azguard.cache.reads import Reads
from azguard.errors import AzguardError, BadRequest, Changed, NotFound, OutcomeUnknown
from azguard.frozen import frozen
from azguard.guards import versions
from azguard.guards.versions import Remembered, SeenVersion
from azguard.queues.message_format import (
    MessageDone,
    MessagePeeked,
    MessagePut,
    MessageReceived,
    MessageWritten,
    QueueMessage,
    Received,
    describe,
    describe_peeked,
    locate,
    parse_messages,
)
from azguard.requests import commits
from azguard.requests.calls import read, write_timeouts
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.results import WOULD_DELETE
from azguard.requests.service_codes import find_time
from azguard.requests.settle import Finding, Settled, WriteRequest, send_until_settled
from azguard.wire import xml
from azguard.wire.answers import Answer
from azguard.wire.call import call
from azguard.wire.failures import ServiceRefusal
from azguard.wire.operations.queues import (
    QUEUE_CLEAR_MESSAGES,
    QUEUE_DELETE_MESSAGE,
    QUEUE_GET_MESSAGES,
    QUEUE_PEEK_MESSAGES,
    QUEUE_PUT_MESSAGE,
    QUEUE_UPDATE_MESSAGE,
)

T = TypeVar("T")
#: What one request receives or looks at.
MOST_MESSAGES = 32
#: What results say guarded a write: the receipt.
GUARD = "receipt"
#: The service's code for a message that is gone; Azure has it for a stale receipt too.
NOT_FOUND = "MessageNotFound"
# Azure answers a stale receipt as it answers a message that is gone; the emulator and older services tell them apart.
_MISMATCH = "PopReceiptMismatch"
_STALE = (NOT_FOUND, _MISMATCH)
# The clocks of the service's machines differ by a second in its recorded answers, and its times have no fractions.
_CLOCKS = timedelta(seconds=5)
#: Asks for what this scope knows of a message.
Recall = Callable[[Target], Remembered]


def put(queue: Target, text: str, visibility: int, time_to_live: int | None, deadline: Deadline) -> MessagePut:
    """Put a message; ``visibility`` is for how many seconds it is hidden, ``time_to_live`` how long it is kept.

    Raises:
        NotFound: there is no such queue.
        OutcomeUnknown: the answer was lost. Nothing in the service tells whether the message is there.
    Source: https://learn.microsoft.com/rest/api/storageservices/put-message
    """
    asked: dict[str, Any] = {"visibilitytimeout": visibility, "messagettl": time_to_live}
    request = WriteRequest[QueueMessage](
        operation=QUEUE_PUT_MESSAGE,
        target=queue,
        send=lambda: parse_messages(
            call(QUEUE_PUT_MESSAGE, queue, write_timeouts(deadline), body=_build_message(text), **asked)
        )[0],
        unknown=OutcomeUnknown(
            f"a message to {queue} was sent, and whether it was put cannot be known: the service keeps nothing by "
            "which a message is known again",
            address=str(queue.address),
            reason="message_put_unknown",
        ),
    )
    settled = send_until_settled(request, deadline)
    sent = settled.answer
    return MessagePut(
        address=str(locate(queue, sent.id).address),
        id=sent.id,
        pop_receipt=sent.pop_receipt or "",
        time_next_visible=sent.next_visible_on,
        guard="none",
        attempts=settled.attempts,
        insertion_time=sent.inserted_on,
        expiration_time=sent.expires_on,
    )


def receive(queue: Target, number: int, visibility: int, encoding: str, deadline: Deadline) -> list[Received]:
    """Receive up to so many messages, which are hidden for ``visibility`` seconds.

    Raises:
        NotFound: there is no such queue.
        OutcomeUnknown: the answer was lost; up to so many messages may be hidden, with receipts that no one has.
    Source: https://learn.microsoft.com/rest/api/storageservices/get-messages
    """

    def send() -> list[QueueMessage]:
        timeouts = write_timeouts(deadline)
        answer = call(QUEUE_GET_MESSAGES, queue, timeouts, numofmessages=number, visibilitytimeout=visibility)
        return parse_messages(answer)

    request = WriteRequest[list[QueueMessage]](
        operation=QUEUE_GET_MESSAGES,
        target=queue,
        send=send,
        unknown=OutcomeUnknown(
            f"messages of {queue} may have been received, and their receipts are lost: what was received is hidden for "
            f"{visibility} seconds",
            address=str(queue.address),
            reason="message_get_unknown",
        ),
    )
    return [describe(queue, each, encoding) for each in send_until_settled(request, deadline).answer]


def peek(queue: Target, number: int, deadline: Deadline) -> list[MessagePeeked]:
    """Return the next messages that can be seen, and leave them as they are.

    Raises:
        NotFound: there is no such queue.
    Source: https://learn.microsoft.com/rest/api/storageservices/peek-messages
    """
    found = read(
        lambda timeouts: parse_messages(call(QUEUE_PEEK_MESSAGES, queue, timeouts, numofmessages=number)),
        queue,
        deadline,
    )
    return [describe_peeked(queue, each) for each in found]


def update(target: Target, receipt: str, text: str | None, visibility: int, deadline: Deadline) -> MessageWritten:
    """Change when a message can be seen again and, unless it is None, its text. The receipt ends; a new one begins.

    Raises:
        Changed: the receipt is stale.
        OutcomeUnknown: the answer was lost, and with it the new receipt, if there is one.
    Source: https://learn.microsoft.com/rest/api/storageservices/update-message
    """
    body = None if text is None else _build_message(text)
    request = WriteRequest[Answer](
        operation=QUEUE_UPDATE_MESSAGE,
        target=target,
        given={
            "body": body,
            "body_type": None if body is None else "application/xml",
            "popreceipt": receipt,
            "visibilitytimeout": visibility,
        },
        judge_refusal=lambda refusal, _: Finding(Verdict.UNKNOWN),
        unknown=OutcomeUnknown(
            f"the update of {target} was sent, and whether it was applied cannot be known; if it was, its new receipt "
            "is lost",
            address=str(target.address),
            reason="message_update_unknown",
        ),
    )
    settled = _settle(request, receipt, deadline)
    return MessageWritten(
        address=str(target.address),
        id=target.address.name,
        pop_receipt=settled.answer.popreceipt,
        time_next_visible=settled.answer.time_next_visible,
        guard=GUARD,
        attempts=settled.attempts,
    )


def delete(target: Target, receipt: str, deadline: Deadline, *, hidden_until: datetime | None = None) -> MessageDone:
    """Delete a message that was received.

    After a lost answer the same request is sent again. That the message is not found then is no proof by itself: Azure
    says the same of a message that another reader has received meanwhile. ``hidden_until`` is when others could receive
    it, if the receipt is the last one that was given out: before that moment, by the time in the refusal, the message
    is gone, and not received again. The same proves that a request that was refused had been sent twice by the network.

    Raises:
        Changed: the receipt is stale.
        OutcomeUnknown: the answer was lost, and another reader may have received the message.
    Source: https://learn.microsoft.com/rest/api/storageservices/delete-message2
    """
    request = WriteRequest[object](
        operation=QUEUE_DELETE_MESSAGE,
        target=target,
        given={"popreceipt": receipt},
        judge_refusal=lambda refusal, _: Finding(_judge_delete(refusal, hidden_until)),
        unknown=OutcomeUnknown(
            f"the delete of {target} was sent, and whether it was applied cannot be known: another reader "
            "may have received it meanwhile",
            address=str(target.address),
            reason="message_delete_unknown",
        ),
    )
    try:
        attempts = _settle(request, receipt, deadline).attempts
    except Changed as error:
        # A copy of the request may have been first. While it is hidden, no other reader can delete it.
        if _judge_delete(error, hidden_until) is not Verdict.COMMITTED:
            raise
        commits.announce()
        attempts = 1
    return MessageDone(address=str(target.address), guard=GUARD, attempts=attempts)


def preview_delete(target: Target) -> MessageDone:
    """Return the result of a delete without sending it: the service tells of a receipt only by a change."""
    return MessageDone(address=str(target.address), guard=GUARD, attempts=0, outcome=WOULD_DELETE)


def clear(queue: Target, guard: str, deadline: Deadline) -> MessageDone:
    """Delete all messages of a queue, hidden ones included.

    Raises:
        NotFound: there is no such queue.
        OutcomeUnknown: the answer was lost; the request may still arrive, and delete what is put until then.
    Source: https://learn.microsoft.com/rest/api/storageservices/clear-messages
    """
    request = WriteRequest[object](
        operation=QUEUE_CLEAR_MESSAGES,
        target=queue,
        send=lambda: _clear(queue, deadline),
    )
    attempts = send_until_settled(request, deadline).attempts
    return MessageDone(address=str(queue.address), guard=guard, attempts=attempts)


def _clear(queue: Target, deadline: Deadline) -> None:
    """Delete all messages; of a large queue the service deletes some at a time, and says to ask again."""
    from azguard.requests.service_codes import service_code

    begun: Exception | None = None
    while True:
        try:
            call(QUEUE_CLEAR_MESSAGES, queue, write_timeouts(deadline))
        except Exception as error:  # any error but one ends it
            is_begun = isinstance(error, ServiceRefusal) and service_code(error) == "OperationTimedOut"
            if is_begun and not deadline.passed:
                begun = error
            elif begun is not None:
                # Whatever is said of this request, an earlier one may have deleted some.
                raise begun from error
            else:
                raise
        else:
            return


def _judge_delete(refusal: AzguardError, hidden_until: datetime | None) -> Verdict:
    """Return the verdict of a refusal on an earlier copy of the delete, by the service's own clock."""
    if refusal.service_code == _MISMATCH:
        return Verdict.NEVER  # It is there, so that nothing has deleted it.
    now = find_time(refusal)
    is_hidden = now is not None and hidden_until is not None and now + _CLOCKS <= hidden_until
    return Verdict.COMMITTED if refusal.service_code == NOT_FOUND and is_hidden else Verdict.UNKNOWN


def _settle(request: WriteRequest[T], receipt: str, deadline: Deadline) -> Settled[T]:
    try:
        return send_until_settled(request, deadline)
    except (NotFound, BadRequest) as error:
        if error.service_code not in _STALE:
            raise
        raise error.as_kind(
            Changed,
            message=f"the receipt of {request.target} is stale: it was received again, changed or deleted since",
            expected_etag=receipt,
            reason="receipt_stale",
        ) from error


def _build_message(text: str) -> bytes:
    return xml.build_document(f"<QueueMessage><MessageText>{xml.escape(text)}</MessageText></QueueMessage>")


@frozen
class Receipt:
    """A receipt, and until when no other reader could get one."""

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
            if self.deleted is None or error.service_code != NOT_FOUND:
                raise
            raise versions.deleted_here(error, target, self.deleted) from error


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


def version_of(found: MessageWritten | MessageReceived) -> SeenVersion:
    """Return the version that a scope remembers of a message: its receipt."""
    return SeenVersion(found.pop_receipt, hidden_until=found.time_next_visible)


def note_changing(reads: Reads, target: Target) -> None:
    """Note that a receipt is about to be ended: if the answer is lost, others may receive the message at once."""
    found = reads.find_last(target)
    if found is not None and found.hidden_until is not None:
        reads.record(target, SeenVersion(found.etag))
