"""What a message holds, text or base64; what an answer of the service tells of it; and how commands show it."""

import base64
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

from azguard import columns
from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import UsageError
from azguard.frozen import frozen
from azguard.requests.results import Written
from azguard.wire.answers import Answer, parse_date
from azguard.wire.failures import Unreadable

TEXT, BASE64, RAW = "text", "base64", "raw"
#: The most that a message holds, after encoding.
MOST_BYTES = 64 * 1024
# What no XML 1.0 document can hold, not even as a reference.
_FORBIDDEN = r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]"


@frozen
class Body:
    """The text of a message, and the bytes of which the text is the base64."""

    text: str
    #: The bytes of which it is the base64; None if it is none.
    decoded: bytes | None

    @classmethod
    def of(cls, text: str) -> "Body":
        """Return the text of a message with its second reading."""
        return cls(text, _decode(text))

    @property
    def decoded_text(self) -> str | None:
        """Return the text of which it is the base64; None if it is none, or of other bytes."""
        if self.decoded is None:
            return None
        try:
            return self.decoded.decode()
        except UnicodeDecodeError:
            return None

    def read(self, encoding: str) -> bytes:
        """Return the content as ``encoding`` reads it; what is not base64 stays what it is."""
        return self.decoded if encoding == BASE64 and self.decoded is not None else self.text.encode()


def encode(content: bytes, encoding: str) -> str:
    """Return the text of a message with this content.

    Raises:
        UsageError: it cannot be sent like this, or is too large.
    """
    text = base64.b64encode(content).decode() if encoding == BASE64 else _to_text(content)
    if (size := len(text.encode())) > MOST_BYTES:
        raise UsageError(
            f"the message would have {size:,} bytes, and the service takes {MOST_BYTES:,}", reason="message_too_large"
        )
    return text


def _to_text(content: bytes) -> str:
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise UsageError(
            f"the content is not UTF-8 text: byte {error.start:,} is {content[error.start]:#04x}",
            reason="message_not_text",
        ) from None
    if found := re.search(_FORBIDDEN, text):
        raise UsageError(
            f"the content holds U+{ord(found[0]):04X}, which the service cannot keep in a message",
            reason="message_not_text",
        )
    return text


def _decode(text: str) -> bytes | None:
    try:
        # Readers of base64 pass over blanks and line ends.
        return base64.b64decode(re.sub(r"[ \t\r\n]", "", text), validate=True)
    except ValueError:
        return None


@frozen(kw_only=True)
class MessageDone(Written):
    """A message, or all of a queue, that was written or deleted; a message has no version but its receipt."""

    FIRST: ClassVar = ("address",)
    LAST: ClassVar = (
        *("guard", "attempts", "conflicts", "outcome", "etag", "last_modified"),
        *("insertion_time", "expiration_time"),
    )

    etag: None = None
    last_modified: None = None


@frozen(kw_only=True)
class MessageWritten(MessageDone):
    """A message that was put or changed."""

    id: str
    pop_receipt: str
    time_next_visible: datetime


@frozen(kw_only=True)
class MessagePut(MessageWritten):
    """A message that was put."""

    insertion_time: datetime | None = None
    expiration_time: datetime | None = None


@frozen(kw_only=True)
class MessageShown:
    """A message of a queue."""

    FIRST: ClassVar = ("address", "id")
    LAST: ClassVar = ("is_base64", "insertion_time", "expiration_time", "time_next_visible", "dequeue_count")

    address: str
    id: str
    is_base64: bool
    insertion_time: datetime
    expiration_time: datetime
    dequeue_count: int


@frozen(kw_only=True)
class MessageReceived(MessageShown):
    """A message that was received, with its receipt."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.NEXT_VISIBLE, columns.DEQUEUES, columns.CONTENT)

    pop_receipt: str
    content: str
    #: ``base64`` where the content was decoded; ``text`` where it is as the service keeps it.
    encoding: str
    #: When it can be received again, unless it is deleted or changed before.
    time_next_visible: datetime


@frozen(kw_only=True)
class MessagePeeked(MessageShown):
    """A message that was looked at, in both readings."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.DEQUEUES, columns.TEXT, columns.DECODED)

    text: str
    #: The text of which it is the base64; None if it is none, or of bytes that are no text.
    decoded: str | None


@frozen
class Received:
    """A message as it was received, with its body in both readings."""

    target: Target
    body: Body
    shown: MessageReceived


class QueueMessage(NamedTuple):
    """A message of an answer; what was only looked at has no receipt, and what was put has no content."""

    id: str
    inserted_on: datetime
    expires_on: datetime
    pop_receipt: str
    next_visible_on: datetime
    dequeue_count: int
    content: str


def parse_messages(answer: Answer) -> list[QueueMessage]:
    """Return the messages of an answer.

    Raises:
        Unreadable: it is no list of messages.
    """
    from xml.etree import ElementTree as ET

    try:
        root = ET.fromstring(answer.content)  # noqa: S314  # an answer of the service
        return [_parse_message({each.tag: each.text or "" for each in found}) for found in root.iter("QueueMessage")]
    except (ET.ParseError, ValueError, KeyError) as error:
        raise Unreadable("the answer is no list of messages") from error


def _parse_message(told: Mapping[str, str]) -> QueueMessage:
    return QueueMessage(
        id=told["MessageId"],
        inserted_on=parse_date(told["InsertionTime"]),
        expires_on=parse_date(told["ExpirationTime"]),
        pop_receipt=told.get("PopReceipt", ""),
        next_visible_on=parse_date(told.get("TimeNextVisible") or told["InsertionTime"]),
        dequeue_count=int(told.get("DequeueCount") or 0),
        content=told.get("MessageText", ""),
    )


def locate(queue: Target, message_id: str) -> Target:
    """Return a message of a queue."""
    return Target(queue.account, Address(Kind.MESSAGE, (queue.address.container, message_id)))


def describe(queue: Target, found: QueueMessage, encoding: str) -> Received:
    """Return a message that was received, with its content as ``encoding`` reads it."""
    target, body = locate(queue, found.id), Body.of(found.content)
    # Bytes that are no text stay in base64.
    decoded = body.decoded_text if encoding == BASE64 else None
    shown = MessageReceived(
        **_list_facts(target, found, body),
        pop_receipt=found.pop_receipt,
        content=body.text if decoded is None else decoded,
        encoding=TEXT if decoded is None else BASE64,
        time_next_visible=found.next_visible_on,
    )
    return Received(target, body, shown)


def describe_peeked(queue: Target, found: QueueMessage) -> MessagePeeked:
    """Return a message that was looked at."""
    target, body = locate(queue, found.id), Body.of(found.content)
    return MessagePeeked(**_list_facts(target, found, body), text=body.text, decoded=body.decoded_text)


def _list_facts(target: Target, found: QueueMessage, body: Body) -> Mapping[str, Any]:
    return {
        "address": str(target.address),
        "id": found.id,
        "is_base64": body.decoded is not None,
        "insertion_time": found.inserted_on,
        "expiration_time": found.expires_on,
        "dequeue_count": found.dequeue_count,
    }
