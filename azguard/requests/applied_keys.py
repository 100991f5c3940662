"""The keys whose changes were applied to a resource, in few bytes each, as its lineage carries them.

The lineage forgets a write after fifteen more. A caller who names a change by a key may run it again much later, so the
last keyed updates are remembered apart from the other writes.
"""

import base64
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

#: How many keys are remembered in metadata, at 19 characters each, where the other metadata leave that room.
MOST_IN_METADATA = 128
#: How many in an entity, whose property may have 32,768 characters.
MOST_IN_ENTITY = 512
# The chance that a new op agrees in these with one of 512 is 512 / 2^64, or 3e-17; its update would be refused as
# another change. It would be lost, taken for one that was applied before, only if the change agreed too: 2e-24.
_OP_BYTES = 8
#: Of two other changes one in 16.8 million pairs agrees in these.
CHANGE_BYTES = 3
# Enough for the minutes until 2051.
_MINUTE_BYTES = 3
_BYTES = _OP_BYTES + CHANGE_BYTES + _MINUTE_BYTES
_FIRST = datetime(2020, 1, 1, tzinfo=UTC)


class AppliedKey(NamedTuple):
    """One key whose change was applied."""

    #: The beginning of its op.
    op: bytes
    #: The fingerprint of the change; None where it was not recorded.
    change: bytes | None
    #: When, by the clock of the machine that applied it.
    at: datetime


def shorten_op(op: str) -> bytes:
    """Return what is kept of an op id."""
    return base64.urlsafe_b64decode(op)[:_OP_BYTES]


def encode(keys: Sequence[AppliedKey]) -> str:
    """Return keys as text for a header; the times are cut to the minute."""
    packed = b"".join(key.op + (key.change or bytes(CHANGE_BYTES)) + _pack_minute(key.at) for key in keys)
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def decode(text: str) -> tuple[AppliedKey, ...] | None:
    """Return the keys in a text of ``encode``; None if it is none."""
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
    except ValueError:
        return None
    if len(packed) % _BYTES:
        return None
    return tuple(_unpack(packed[start : start + _BYTES]) for start in range(0, len(packed), _BYTES))


def _pack_minute(at: datetime) -> bytes:
    minutes = (at - _FIRST) // timedelta(minutes=1)
    return min(max(minutes, 0), (1 << 8 * _MINUTE_BYTES) - 1).to_bytes(_MINUTE_BYTES, "big")


def _unpack(packed: bytes) -> AppliedKey:
    minutes = int.from_bytes(packed[-_MINUTE_BYTES:], "big")
    change = packed[_OP_BYTES : _OP_BYTES + CHANGE_BYTES]
    return AppliedKey(packed[:_OP_BYTES], change, _FIRST + timedelta(minutes=minutes))
