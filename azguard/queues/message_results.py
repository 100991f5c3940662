"""Messages as commands show them: what was put, received, looked at, changed or deleted."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.target import Target
from azguard.address import Address, Kind
from azguard.queues.encodings import BASE64, TEXT, Body


@dataclass(frozen=True)
class MessageWritten:
    """A message that was put or changed."""

    address: str
    id: str
    pop_receipt: str
    time_next_visible: datetime
    guard: str
    attempts: int
    conflicts: int = 0
    outcome: str = "committed"
    #: None: a message has no version but its receipt.
    etag: None = None
    last_modified: None = None


@dataclass(frozen=True)
class MessagePut(MessageWritten):
    """A message that was put."""

    insertion_time: datetime | None = None
    expiration_time: datetime | None = None


@dataclass(frozen=True)
class MessageDeleted:
    """A message that was deleted, or all of a queue."""

    address: str
    guard: str
    attempts: int
    conflicts: int = 0
    outcome: str = "committed"
    #: None: a message has no version but its receipt.
    etag: None = None
    last_modified: None = None


@dataclass(frozen=True)
class MessageReceived:
    """A message that was received, with its receipt."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.NEXT_VISIBLE, columns.DEQUEUES, columns.CONTENT)

    address: str
    id: str
    pop_receipt: str
    content: str
    #: ``base64`` where the content was decoded; ``text`` where it is as the service keeps it.
    encoding: str
    is_base64: bool
    insertion_time: datetime
    expiration_time: datetime
    #: When it can be received again, unless it is deleted or changed before.
    time_next_visible: datetime
    dequeue_count: int


@dataclass(frozen=True)
class MessagePeeked:
    """A message that was looked at, in both readings."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.DEQUEUES, columns.TEXT, columns.DECODED)

    address: str
    id: str
    text: str
    #: The text of which it is the base64; None if it is none, or of bytes that are no text.
    decoded: str | None
    is_base64: bool
    insertion_time: datetime
    expiration_time: datetime
    dequeue_count: int


@dataclass(frozen=True)
class Received:
    """A message as it was received, with its body in both readings."""

    target: Target
    body: Body
    shown: MessageReceived


def locate(queue: Target, message_id: str) -> Target:
    """Return a message of a queue."""
    return Target(queue.account, Address(Kind.MESSAGE, (queue.address.container, message_id)))


def _facts(found: Any) -> Mapping[str, Any]:
    return {
        "insertion_time": found.inserted_on,
        "expiration_time": found.expires_on,
        "dequeue_count": found.dequeue_count,
    }


def describe(queue: Target, found: Any, encoding: str) -> Received:
    """Return a message that the SDK has received, with its content as ``encoding`` reads it."""
    target, body = locate(queue, found.id), Body.of(found.content or "")
    # Bytes that are no text stay in base64.
    decoded = body.decoded_text if encoding == BASE64 else None
    shown = MessageReceived(
        address=str(target.address),
        id=found.id,
        pop_receipt=found.pop_receipt,
        content=body.text if decoded is None else decoded,
        encoding=TEXT if decoded is None else BASE64,
        is_base64=body.decoded is not None,
        time_next_visible=found.next_visible_on,
        **_facts(found),
    )
    return Received(target, body, shown)


def describe_peeked(queue: Target, found: Any) -> MessagePeeked:
    """Return a message that the SDK has looked at."""
    body = Body.of(found.content or "")
    return MessagePeeked(
        address=str(locate(queue, found.id).address),
        id=found.id,
        text=body.text,
        decoded=body.decoded_text,
        is_base64=body.decoded is not None,
        **_facts(found),
    )
