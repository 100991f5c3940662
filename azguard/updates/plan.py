"""What an update is and by which id it is known, what it uses of the world outside, and how it ended."""

import random
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from azguard.accounts import endpoints
from azguard.accounts.account import Target
from azguard.errors import AzguardError, UsageError
from azguard.frozen import frozen
from azguard.requests.lineage import fresh_op, is_op, op_of_key
from azguard.updates.local_runs import WriteJournal
from azguard.updates.resource import Applied, Change, CommittedVersion, CurrentVersion

#: What an op id of azguard's own begins with where people see it; a key of theirs does not.
RAW_OP = "op:"


@frozen
class UpdatePlan:
    """What one update is: the transform, its identity, and how far to go."""

    #: Makes the new content. It may run more than once and must depend on its input alone.
    transform: Callable[[bytes], bytes]
    #: The identity of the update: a resource with this op in its lineage is never written again for it.
    op: str
    #: Whether the op comes from a key of the caller's, who may run it again.
    is_keyed: bool = False
    #: What it changes, compared with what an earlier run of the op did; None compares nothing.
    change: Change | None = None
    #: Whether what an earlier run of the op did counts even if it was another change.
    takes_any_change: bool = False
    #: The content to start from where there is nothing; None if nothing may be created.
    create: bytes | None = None
    #: The transform for content of this type, where that depends on it; it then takes the place of ``transform``.
    typed_transform: Callable[[bytes, str | None], bytes] | None = None
    #: Called with the version that the transform is about to get.
    see: Callable[[CurrentVersion], None] = lambda state: None
    #: Refuses what the transform made, given the source, the new content and the content type, by TransformFailed.
    accept: Callable[[bytes, bytes, str | None], None] = lambda source, made, content_type: None
    #: Returns what is new in the new content that may be there by mistake, such as a counter of a mistyped name.
    list_created: Callable[[bytes, bytes], tuple[str, ...]] = lambda source, made: ()
    #: Whether to take a lease before each write, which is sound beside writers that keep no lineage.
    guard_by_lease: bool = False
    #: Whether to write the lineage. Without it a lost answer can often not be told from a lost write.
    stamps: bool = True
    #: A lease that the caller holds.
    lease_id: str | None = None
    #: The number of the lock that the caller holds.
    fence: int | None = None
    #: Whether the resource keeps the op in a ledger.
    ledger: bool = False
    #: The name of what guards each write, where it is neither If-Match nor the ledger; None says which of the others.
    guard_name: str | None = None
    #: Whether to wait for the lease of another holder until the deadline.
    wait_seconds: float | None = None
    #: How many writes may be sent; None is as many as the deadline allows.
    max_attempts: int | None = None
    #: How long, in seconds, the service may be unreachable while nothing is in doubt; None is the whole deadline.
    reach_seconds: float | None = None

    def make(self, source: bytes, content_type: str | None) -> bytes:
        """Return the transform's output for the content, once the output is accepted.

        Raises:
            TransformFailed: the transform failed, or its result is refused.
        """
        typed = self.typed_transform
        made = self.transform(source) if typed is None else typed(source, content_type)
        self.accept(source, made, content_type)
        return made

    @property
    def compared_change(self) -> Change | None:
        """Return the change that an earlier run of the op must have made; None compares nothing."""
        return None if self.takes_any_change else self.change

    @property
    def is_remembered(self) -> bool:
        """Return whether the op is recorded as done even if it changes nothing."""
        return self.is_keyed and self.leaves_trace

    @property
    def leaves_trace(self) -> bool:
        """Return whether a later run of the op can find what this one did."""
        return self.stamps or self.ledger


@frozen
class UpdateHooks:
    """What an update uses of the world outside, as parameters."""

    #: Draws the random part of pauses.
    chance: random.Random = field(default_factory=random.Random)
    new_op: Callable[[], str] = fresh_op
    new_lease_id: Callable[[], str] = lambda: str(uuid.uuid4())
    #: Waits until this writer is first in the queue of this machine's writers.
    queue: Callable[[], AbstractContextManager[Any]] = nullcontext
    #: Called with each event of the update, as a line of text.
    tell: Callable[[str], None] = lambda text: None
    #: Called with what the caller has to know although the update ended well, as a line of text.
    warn: Callable[[str], None] = lambda text: None
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    #: Called with the error that ends the update and the content that was not written, None if there is none yet;
    #: returns the error to raise.
    keep: Callable[[AzguardError, bytes | None], AzguardError] = lambda error, content: error
    #: Where the write in doubt is recorded for the next run of the same op; None records nothing.
    journal: WriteJournal | None = None


class UpdateResult(NamedTuple):
    """How an update ended."""

    #: The version that we wrote. Its ETag is None where an earlier run wrote it, or others may have written since.
    committed: CommittedVersion
    #: ``committed``, ``unchanged``, or ``applied_before`` by an earlier run of the op.
    outcome: str
    guard: str
    attempts: int = 0
    conflicts: int = 0
    doubts: int = 0
    #: The content made from the version ``base``; None if it was never computed.
    content: bytes | None = None
    lineage: str | None = None
    created: bool = False
    #: The ETag of the version that the content was made from.
    base: str | None = None
    #: The bytes of that version; None where there was none.
    base_length: int | None = None
    #: What the earlier run did.
    applied: Applied | None = None
    #: What ``UpdatePlan.list_created`` found in what was written.
    created_keys: tuple[str, ...] = ()
    #: The version of another writer that it was made from anew; None where the first one that was read stayed.
    merged: CurrentVersion | None = None


def choose_op(target: Target, key: str | None) -> str:
    """Return the op id of an update: a fresh one, or that of the caller's key for this resource.

    Raises:
        UsageError: the key looks like an id of ours and is none.
    """
    if key is None:
        return fresh_op()
    if not key.startswith(RAW_OP):
        return op_of_key(key, endpoints.plain(target.endpoint), str(target.address.folded))
    found = key.removeprefix(RAW_OP)
    if not is_op(found):
        raise UsageError(
            f"{key!r} is not an id that azguard made",
            argument="op_id",
            reason="op_id_malformed",
            values={"prefix": RAW_OP},
        )
    return found
