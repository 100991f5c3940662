"""One append to an append blob: what it is tied to, what proves that it is ours, and what it did."""

import random
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.target import Target
from azguard.blobs.upload import Settings
from azguard.conditions.operations import DATES, Condition
from azguard.conditions.resolve import Conditions
from azguard.requests.deadline import Deadline

APPEND_BLOB = "AppendBlob"
#: The most that one Append Block takes, since service version 2022-11-02.
MOST_BYTES = 100 * 1024 * 1024
#: The most blocks that one append blob has.
MOST_BLOCKS = 50_000
# What ties an append to one version or one place, so that it is not made at another one.
_PINS = {Condition.IF_MATCH, Condition.IF_NONE_MATCH, Condition.APPEND_POSITION, *DATES}


class Proof(StrEnum):
    """What proves after a lost answer that the bytes that stand where ours belong are ours."""

    NONE = "position"  # nothing: other bytes are not ours, and equal bytes may be another writer's
    CONTENT = "content"  # the caller, who says that no other writer writes equal bytes
    LEASE = "lease"  # a lease of our own, under which no other writer could write


@dataclass(frozen=True)
class AppendDone:
    """What an append wrote."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.POSITION, columns.APPENDED_BYTES, columns.ETAG)

    address: str
    #: None where a lost answer was settled: another writer may have written since.
    etag: str | None
    last_modified: datetime | None
    blob_type: str
    #: Where the first byte stands.
    position: int | None
    appended_bytes: int
    #: The length of the blob behind the last byte that was appended.
    content_length: int | None
    #: How many blocks the blob has; None where that was not told.
    block_count: int | None
    guard: str
    attempts: int
    conflicts: int
    outcome: str
    #: Whether the blob was created for it.
    created: bool
    #: The version that was found there before; None where it was not looked up.
    found_etag: str | None = field(default=None, metadata=columns.UNPRINTED)


@dataclass(frozen=True, kw_only=True)
class Append:
    """One append that is not sent yet."""

    target: Target
    conditions: Conditions
    #: How long one piece is tried for.
    deadline: Deadline
    proof: Proof = Proof.NONE
    #: Whether other writers' bytes may come between the pieces, because each piece is whole lines.
    is_lines: bool = False
    #: Whether the end of the blob is not even looked up, so that a lost answer stays unknown.
    is_anywhere: bool = False
    #: The settings of the blob to create where there is none; None creates none.
    create: Settings | None = None
    #: How long other writers are given way to, in seconds.
    contention_seconds: float = 60.0
    #: Joins the queue of the writers on this machine.
    queue: Callable[[], AbstractContextManager[Any]] = nullcontext
    #: Makes the one piece for the end that was found; None where the pieces are known before.
    build: "Callable[[End], bytes] | None" = None
    chance: random.Random = field(default_factory=random.Random)

    def knows_content(self, done: AppendDone, known_etag: str | None) -> bool:
        """Return whether the caller knows all content of the version that was written, so that it may guard a write.

        ``known_etag`` is the version that the caller knew before. Nothing but our bytes came behind it if our first
        piece is tied to its end, and the last one to ours.
        """
        if done.outcome != "committed" or done.position is None:
            return False
        is_in_one_piece = done.content_length == done.position + done.appended_bytes
        is_behind_known = done.found_etag is not None and done.found_etag == known_etag
        return is_in_one_piece and (done.position == 0 or is_behind_known or self.conditions.expected_etag is not None)

    @property
    def is_pinned(self) -> bool:
        """Return whether it is for one version or one place, so that another end is no place for it."""
        return any(each.header in self.conditions.headers for each in _PINS)

    @property
    def guard(self) -> str:
        """Return the name of what guards it, as results show it."""
        if self.proof is Proof.LEASE:
            return "lease"
        if self.is_anywhere or self.is_pinned or self.conditions.guard == "conditions":
            return self.conditions.guard
        return str(Proof.NONE)

    def build_headers(self, position: int | None, *, is_first: bool) -> dict[str, str]:
        """Return the condition headers of one piece; a piece behind our own one is tied to its place alone."""
        headers: Mapping[str, str] = self.conditions.without_source().headers
        if not is_first:
            pins = {each.header for each in _PINS}
            headers = {name: value for name, value in headers.items() if name not in pins}
        place = {} if position is None else {Condition.APPEND_POSITION.header: str(position)}
        return {**headers, **place}


@dataclass(frozen=True)
class End:
    """The end of an append blob, as it was found or made."""

    #: None where it was not looked up.
    position: int | None
    #: Of the blob itself: another one of the same name has another time. None where that was not told.
    created: datetime | None = None
    #: How many blocks the blob had at least.
    blocks: int = 0
    #: Of the version that was found; None where it was made.
    etag: str | None = None
