"""The keys whose changes were applied to a resource, in few bytes each, as its lineage carries them.

The lineage forgets a write after fifteen more. A caller who names a change by a key may run it again much later, so the
last keyed updates are remembered apart from the other writes.
"""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
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
# Base64 makes four characters of three bytes.
_CHARACTERS, _OF_BYTES = 4, 3


class AppliedKey(NamedTuple):
    """What is remembered of a key whose change was applied."""

    #: The fingerprint of the change; None where it was not recorded.
    change: bytes | None
    #: When, by the clock of the machine that applied it.
    at: datetime


@dataclass(frozen=True, slots=True)
class AppliedKeys:
    """Keys, newest first. They stay packed, because most readers only carry them on."""

    packed: bytes = b""

    @classmethod
    def parse(cls, text: str) -> "AppliedKeys | None":
        """Read keys from a header; None if the text is damaged."""
        try:
            packed = base64.b64decode(text + "=" * (-len(text) % _CHARACTERS), b"-_", validate=True)
        except ValueError:
            return None
        return None if len(packed) % _BYTES else cls(packed)

    def __str__(self) -> str:
        return base64.urlsafe_b64encode(self.packed).decode().rstrip("=")

    def __len__(self) -> int:
        return len(self.packed) // _BYTES

    def find(self, op: str) -> AppliedKey | None:
        """Return what is remembered of an op."""
        wanted = _shorten(op)
        return next((_unpack(each) for each in self._each() if each.startswith(wanted)), None)

    def find_oldest(self) -> datetime | None:
        """Return when the oldest of them was applied."""
        return min((_unpack(each).at for each in self._each()), default=None)

    def add(self, op: str, change: bytes, at: datetime) -> "AppliedKeys":
        """Return the keys with one more, whose time is cut to the minute."""
        short = _shorten(op)
        others = b"".join(each for each in self._each() if not each.startswith(short))
        return AppliedKeys(short + change + _pack_minute(at) + others)

    def keep(self, count: int) -> "AppliedKeys":
        """Return the newest so many."""
        return AppliedKeys(self.packed[: max(0, count) * _BYTES])

    def keep_within(self, characters: int) -> "AppliedKeys":
        """Return as many of the newest as so many characters can hold."""
        return self.keep(characters * _OF_BYTES // (_CHARACTERS * _BYTES))

    def _each(self) -> Iterator[bytes]:
        return (self.packed[start : start + _BYTES] for start in range(0, len(self.packed), _BYTES))


def _shorten(op: str) -> bytes:
    """Return what is kept of an op id."""
    return base64.urlsafe_b64decode(op)[:_OP_BYTES]


def _pack_minute(at: datetime) -> bytes:
    minutes = (at - _FIRST) // timedelta(minutes=1)
    return min(max(minutes, 0), (1 << 8 * _MINUTE_BYTES) - 1).to_bytes(_MINUTE_BYTES, "big")


def _unpack(packed: bytes) -> AppliedKey:
    minutes = int.from_bytes(packed[-_MINUTE_BYTES:], "big")
    return AppliedKey(packed[_OP_BYTES : _OP_BYTES + CHANGE_BYTES], _FIRST + timedelta(minutes=minutes))
