"""The ids of blocks. The service and this command line have them in base64; the SDK takes the text that is in it."""

import base64
import binascii
from collections.abc import Sequence

from azguard.errors import UsageError

_MOST_BYTES = 64


def encode(text: str) -> str:
    """Return an id as the service has it."""
    return base64.b64encode(text.encode()).decode()


def decode(block: str) -> str:
    """Return an id as the SDK takes it.

    Raises:
        UsageError: it is no base64 of 1 to 64 bytes, or of other bytes than text, which the SDK could not send.
    """
    try:
        content = base64.b64decode(block, validate=True)
        text = content.decode()
    except (binascii.Error, ValueError):
        content, text = b"", ""
    if not 0 < len(content) <= _MOST_BYTES:
        raise UsageError(
            f"{block!r} is no block id: base64 of a text of 1 to {_MOST_BYTES} bytes", reason="block_id_malformed"
        )
    return text


def check_lengths(blocks: Sequence[str]) -> None:
    """Refuse ids of more than one length: the service takes one length for a blob.

    Raises:
        UsageError: two differ.
    """
    odd = next((block for block in blocks if len(block) != len(blocks[0])), None)
    if odd is not None:
        raise UsageError(
            f"the block ids {blocks[0]!r} and {odd!r} differ in length, and those of one blob must not",
            reason="block_ids_differ_in_length",
        )
