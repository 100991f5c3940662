"""What an update is, what it may use of the world outside, and how it ended."""

import os
import random
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from azguard.errors import AzguardError
from azguard.requests.lineage import new_op
from azguard.updates.journal import WriteJournal
from azguard.updates.resource import CommittedVersion


@dataclass(frozen=True)
class UpdatePlan:
    """What one update is: the transform, its identity, and how far to go.

    ``transform`` may run more than once and must depend on its input alone. ``op`` is the update's identity: what
    carries it in its lineage is never written again for it. ``create`` is the content to start from where nothing
    is. ``lease_id`` is a lease the caller holds, ``fence`` the number of the lock it holds. ``stamps`` is off where the
    metadata must stay clean; a lost answer can then often not be told from a lost write. ``ledger`` says that the
    resource keeps the op in a ledger. ``accept`` refuses what the transform made: it is given the source, the new
    content and the content type, and raises TransformFailed.
    """

    transform: Callable[[bytes], bytes]
    op: str
    create: bytes | None = None
    accept: Callable[[bytes, bytes, str | None], None] = lambda source, made, content_type: None
    guard_by_lease: bool = False
    stamps: bool = True
    lease_id: str | None = None
    fence: int | None = None
    ledger: bool = False
    wait_lease: bool = False
    max_attempts: int | None = None
    # How long, in seconds, the service may be unreachable while nothing is in doubt; None is the whole deadline.
    reach_seconds: float | None = None

    @property
    def leaves_trace(self) -> bool:
        """Return whether a later run of the op can find what this one did."""
        return self.stamps or self.ledger


@dataclass(frozen=True)
class UpdateHooks:
    """The world outside, as parameters: randomness, a queue of writers, someone to tell the story to.

    ``attempts`` remembers what is under way, for the next run of the same op; None is nobody who does.

    ``keep`` is given the error an update ends with, to add what to do next, and the content that could not be
    written: None if there was none yet.
    """

    chance: random.Random = field(default_factory=random.Random)
    new_op: Callable[[], str] = lambda: new_op(os.urandom(12))
    new_lease_id: Callable[[], str] = lambda: str(uuid.uuid4())
    turn: Callable[[], AbstractContextManager[Any]] = nullcontext
    tell: Callable[[str], None] = lambda text: None
    keep: Callable[[AzguardError, bytes | None], None] = lambda error, content: None
    attempts: WriteJournal | None = None


@dataclass(frozen=True)
class UpdateResult:
    """How an update ended.

    ``outcome`` is committed or unchanged. ``landed.etag`` is the version we wrote; None where an earlier run wrote
    it, or where others may have written since. ``content`` is what we made of the version with the ETag ``base``;
    None if that was never computed.
    """

    landed: CommittedVersion
    outcome: str
    guard: str
    attempts: int
    conflicts: int
    doubts: int
    content: bytes | None
    lineage: str | None
    created: bool
    base: str | None
