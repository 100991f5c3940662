"""The last writes of a resource, kept in its own metadata: which write replaced which version, and under which keys.

Every azguard write stamps the pairs *(op id, ETag it replaced)*, newest first. An ETag has at most one successor and
ETags do not recur, so a successor recorded for someone else proves that our write on that ETag never commits.

Why an op is applied at most once, and what is said of it is true. Every attempt carries the op's id, and depends on
an ETag P that was read from a version without that id. (1) If the attempt on P commits, the version after P carries
(op, P), and so does every one after it, as long as writers copy the list and fewer than sixteen wrote since: the next
read finds it, and no further attempt is made. (2) An attempt on another ETag is made only after an entry (x, P) of
another op x was seen: P's one successor is x's write, so the attempt on P can never commit. (3) Two attempts on the
same P exclude each other. What none of this decides, because a foreign writer wiped the metadata or more than sixteen
wrote, is *unknown*.

An update that its caller named by a key is remembered longer, in few bytes each, since the caller may run it again much
later. The keys stand behind the entries, so that each writer who carries the lineage on carries them on too, and a
write is one of both or of neither.
"""

import base64
import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Self

from azguard.errors import ConfigError
from azguard.frozen import frozen
from azguard.requests.commits import Verdict

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
KEY = "azguardlineage"
# Eight writers and 25 % faults need four entries; sixteen cost 560 bytes of the 8 KiB for metadata, 128 keys 2,390.
DEPTH = 16
# What a write replaces when there was nothing: no ETag looks like it.
ABSENT = "-"
# What an unconditional write replaces: it never looked.
UNSEEN = "?"
_OP = r"[A-Za-z0-9_-]{16}"
_ENTITY_ETAG = r"""W/"datetime'([^']+)'\""""
_ENTRY = rf"({_OP})\.([!-+\--~]+)"
# Stands behind the entries of a resource whose access tier was chosen, where its writer knew.
_TIERED = "tier"
# Stands before the keys where none was left out since the resource was created.
_ALL_KEYS = "all"
_KEYS = "keys:"
# How a later azguard begins a lineage that this one cannot read: with the number of its format. This one is the first.
_NEWER = r"[0-9]+:"


@frozen
class AppliedKey:
    """What is remembered of a key whose change was applied."""

    #: The fingerprint of the change; None where it was not recorded.
    change: bytes | None
    #: When, by the clock of the machine that applied it.
    at: datetime


@frozen
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
        wanted = _shorten(op)
        return next((_unpack(each) for each in self._each() if each.startswith(wanted)), None)

    def find_oldest(self) -> datetime | None:
        return min((_unpack(each).at for each in self._each()), default=None)

    def add(self, op: str, change: bytes, at: datetime) -> "AppliedKeys":
        """Return the keys with one more, whose time is cut to the minute."""
        short = _shorten(op)
        others = b"".join(each for each in self._each() if not each.startswith(short))
        return AppliedKeys(short + change + _pack_minute(at) + others)

    def keep(self, count: int) -> "AppliedKeys":
        return AppliedKeys(self.packed[: max(0, count) * _BYTES])

    def keep_within(self, characters: int) -> "AppliedKeys":
        """Return as many of the newest as so many characters can hold."""
        return self.keep(characters * _OF_BYTES // (_CHARACTERS * _BYTES))

    def _each(self) -> Iterator[bytes]:
        return (self.packed[start : start + _BYTES] for start in range(0, len(self.packed), _BYTES))


def _shorten(op: str) -> bytes:
    return base64.urlsafe_b64decode(op)[:_OP_BYTES]


def _pack_minute(at: datetime) -> bytes:
    minutes = (at - _FIRST) // timedelta(minutes=1)
    return min(max(minutes, 0), (1 << 8 * _MINUTE_BYTES) - 1).to_bytes(_MINUTE_BYTES, "big")


def _unpack(packed: bytes) -> AppliedKey:
    minutes = int.from_bytes(packed[-_MINUTE_BYTES:], "big")
    return AppliedKey(packed[_OP_BYTES : _OP_BYTES + CHANGE_BYTES], _FIRST + timedelta(minutes=minutes))


@frozen
class Lineage:
    """The last writes of a resource."""

    #: Whether each write depends on the version that it replaces, so that one over a replaced version never commits.
    binds: ClassVar[bool] = True

    #: Pairs of op id and replaced ETag, newest first.
    entries: tuple[tuple[str, str], ...] = ()
    #: Whether the resource's tier was chosen. A write of the content has to ask which tier it is, because a read of the
    #: content does not tell. It is no part of the history.
    tiered: bool = field(default=False, compare=False)
    #: The keys of the last keyed updates. They too are no part of the history.
    keys: AppliedKeys = field(default=AppliedKeys(), compare=False)
    #: Whether these are all keys since the resource was created.
    has_all_keys: bool = field(default=False, compare=False)
    #: Whether a newer azguard wrote it, in a format that is not known here. Then it is not replaced.
    is_newer: bool = field(default=False, compare=False)

    @classmethod
    def parse(cls, text: str | None) -> Self:
        """Read the metadata value; what is not ours, or damaged, counts as no history."""
        if not text:
            return cls()
        pieces = [piece for piece in text.split(",") if piece]
        keys = AppliedKeys.parse(next((piece for piece in pieces if piece.startswith(_KEYS)), _KEYS)[len(_KEYS) :])
        rest = [piece for piece in pieces if piece not in (_TIERED, _ALL_KEYS) and not piece.startswith(_KEYS)]
        matches = [re.fullmatch(_ENTRY, piece) for piece in rest]
        if keys is None or not all(matches):
            return cls(is_newer=re.match(_NEWER, text) is not None)
        entries = tuple((match[1], match[2]) for match in matches if match)
        return cls(entries, _TIERED in pieces, keys, _ALL_KEYS in pieces)

    @classmethod
    def find(cls, metadata: Mapping[str, str] | None) -> Self:
        """Read the lineage among metadata, whatever the case of its name: a listing tells it as it was written."""
        return cls.parse(next((value for key, value in (metadata or {}).items() if key.lower() == KEY), None))

    def __str__(self) -> str:
        pieces = [f"{op}.{parent}" for op, parent in self.entries]
        pieces += [_TIERED] if self.tiered else []
        pieces += [_ALL_KEYS] if self.has_all_keys else []
        pieces += [f"{_KEYS}{self.keys}"] if self.keys else []
        return ",".join(pieces)

    def __contains__(self, op: object) -> bool:
        return any(op == entry for entry, _ in self.entries) or (isinstance(op, str) and self.find_key(op) is not None)

    def find_key(self, op: str) -> AppliedKey | None:
        """Return the remembered key of a keyed update; None if the lineage has no such key."""
        return self.keys.find(op) if self.keys else None

    def after(self, op: str, parent: str | None) -> Self:
        """Return the lineage of the version that ``op`` writes over ``parent``; None is nothing there.

        Raises:
            ConfigError: a newer azguard wrote the lineage, and what it says would be lost.
        """
        if self.is_newer:
            raise ConfigError(
                "this was written by a newer azguard, which keeps its last writes in a form that this one cannot read",
                reason="lineage_newer",
            )
        # An unconditional write may replace versions with keys that it has not seen.
        has_all_keys = self.has_all_keys and parent != UNSEEN
        begins = parent is None and not self.entries
        return replace(self, entries=((op, bare(parent)), *self.entries)[:DEPTH], has_all_keys=has_all_keys or begins)

    def with_key(self, op: str, change: bytes, at: datetime, most: int) -> Self:
        """Return the lineage with the key of an op; of more than ``most`` the oldest is left out."""
        keys = self.keys.add(op, change, at)
        return replace(self, keys=keys.keep(most), has_all_keys=self.has_all_keys and len(keys) <= most)

    def fit(self, room: int) -> Self:
        """Return the lineage in at most so many characters, if that can be, by leaving out the oldest keys."""
        if not self.keys or len(str(self)) <= room:
            return self
        rest = replace(self, keys=AppliedKeys(), has_all_keys=False)
        return replace(rest, keys=self.keys.keep_within(room - len(f"{rest},{_KEYS}")))

    def successor(self, parent: str | None) -> str | None:
        """Return the op that replaced ``parent``, if it is remembered."""
        wanted = bare(parent)
        return next((op for op, replaced in self.entries if replaced == wanted), None)

    @property
    def reaches_creation(self) -> bool:
        """Return whether the whole history since the resource was created is here."""
        return bool(self.entries) and self.entries[-1][1] == ABSENT


def with_lineage(metadata: Mapping[str, str], lineage: Lineage) -> dict[str, str]:
    """Return metadata with the lineage beside them, and as many of its keys as they leave room for."""
    others = drop_lineage(metadata)
    if lineage.keys:
        from azguard.documents.metadata import count_room  # which a write without keys need not load

        lineage = lineage.fit(count_room(others, KEY))
    text = str(lineage)
    return {**others, KEY: text} if text else others


def drop_lineage(metadata: Mapping[str, str] | None) -> dict[str, str]:
    """Return metadata without the lineage, whatever the case of its name."""
    return {key: value for key, value in (metadata or {}).items() if key.lower() != KEY}


def bare(etag: str | None) -> str:
    """Return an ETag as the lineage keeps it: without quotes, an entity's as its time; nothing there is ``-``."""
    if etag is None:
        return ABSENT
    time = re.fullmatch(_ENTITY_ETAG, etag)
    return etag.strip('"') if time is None else time[1].replace("%3A", ":")


def fresh_op() -> str:
    """Return an op id that no other write has."""
    return new_op(os.urandom(12))


def new_op(random_bytes: bytes) -> str:
    """Return a fresh op id of 96 bits from twelve random bytes."""
    return base64.urlsafe_b64encode(random_bytes[:12]).decode()


def is_op(text: str) -> bool:
    """Return whether a text is an op id; anything else in a lineage would make it unreadable."""
    return re.fullmatch(_OP, text) is not None


def op_of_key(key: str, endpoint: str, address: str) -> str:
    """Return the op id for a caller's own idempotency key.

    Endpoint and address are part of it: a copied blob carries its source's lineage, and the same key there is another
    update, in another account too. ``endpoint`` is spelt in the one way of ``endpoints.plain``.
    """
    return new_op(hashlib.sha256(f"{endpoint}\n{address}\n{key}".encode()).digest())


def verdict_from_lineage(lineage: Lineage, op: str, parent: str | None, current: str | None) -> Verdict:
    """Return the verdict on ``op`` over ``parent`` (None: no resource) from the lineage of the current version.

    Only sound if the lineage and the current ETag come from one response: see the head of this module.
    """
    if op in lineage:
        return Verdict.COMMITTED
    if bare(parent) == bare(current):
        return Verdict.NOT_YET
    # "Nothing there" can recur (created, deleted, created again), so its successor proves nothing.
    if parent is not None and lineage.successor(parent) is not None:
        return Verdict.NEVER
    return Verdict.UNKNOWN
