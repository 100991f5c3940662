"""What a message holds: text or base64, and how much of it."""

import base64
import re
from dataclasses import dataclass

from azguard.errors import UsageError

TEXT, BASE64, RAW = "text", "base64", "raw"
#: The most that a message holds, after encoding.
MOST_BYTES = 64 * 1024
# What no XML 1.0 document can hold, not even as a reference.
_FORBIDDEN = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Body:
    """The text of a message, and what it is as base64."""

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
    if found := _FORBIDDEN.search(text):
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
