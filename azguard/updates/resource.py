"""What an update is and how it ended, and what the safe-update loop needs of a resource of any kind.

Read a version; write over it on the condition that it is still current; find by the lineage, which each version
carries, whether a write was committed. One small adapter per kind of resource implements this, so that the loop needs
to know no service. A version also tells whether an earlier run of the same key was applied.
"""

import hashlib
import json
import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, NamedTuple, Protocol

from azguard.accounts import endpoints
from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.errors import AzguardError, Exists, UsageError
from azguard.frozen import frozen
from azguard.requests import lineage
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import AppliedKey, Lineage, fresh_op, is_op, op_of_key
from azguard.times import iso
from azguard.updates.local_runs import WriteJournal

# The clocks of two machines that the service believes differ by less; so a version that is later by more is another.
_CLOCKS_DIFFER = timedelta(minutes=15)
#: What an op id of azguard's own begins with where people see it; a key of theirs does not.
RAW_OP = "op:"


@frozen
class CurrentVersion:
    """One version of a resource. Content, ETag and lineage come from one response."""

    content: bytes
    #: None where there is nothing.
    etag: str | None
    lineage: Lineage
    #: What else a write leaves as it is. Equal values mean that none of it changed.
    preserved: Any = None
    version_id: str | None = None
    last_modified: datetime | None = None
    #: ``fixed`` or ``infinite`` while there is a lease on it.
    lease_duration: str | None = None
    #: The fence of the holder who wrote it last, where that was asked for and there is one.
    fence: int | None = None
    #: Whether it is to be written even if the content stays, so that our fence is recorded.
    must_rewrite: bool = False
    #: The input of the transform, where that is more than the content: only the content may change.
    transform_input: bytes | None = None
    #: Whether the ledger has our op, read after everything else here; None if no ledger was asked.
    in_ledger: bool | None = None
    #: What the ledger tells of our op, where it is in it.
    ledger_key: AppliedKey | None = None
    content_type: str | None = None

    @property
    def source(self) -> bytes:
        return self.content if self.transform_input is None else self.transform_input

    def carry_on(self, lineage: Lineage | None) -> Lineage:
        """Return the lineage to send: the new one, or where none is stamped that of this version."""
        return self.lineage if lineage is None else lineage

    @property
    def label(self) -> str:
        """Return its ETag, or ``nothing`` if there is none."""
        return self.etag or "nothing"


class CommittedVersion(NamedTuple):
    """A committed version."""

    #: None where later writes hide it.
    etag: str | None
    last_modified: datetime | None = None
    version_id: str | None = None

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> "CommittedVersion":
        return cls(answer.get("etag"), answer.get("last_modified"), answer.get("version_id"))


#: Sends a write under the lease id given, or under none.
Commit = Callable[[str | None], CommittedVersion]
#: Replaces a version by the same content under a new ETag.
FencingWrite = Callable[[], CommittedVersion]


class KeptVersion(NamedTuple):
    """One entry of the history that an account with versioning keeps."""

    etag: str
    lineage: Lineage


class UpdatableResource(Protocol):
    """A resource that can be read and conditionally written."""

    target: Target

    def read(self, deadline: Deadline) -> CurrentVersion:
        """Return the current version, or a state without ETag where there is none."""

    def read_unleased(self, deadline: Deadline) -> CurrentVersion:
        """Read as ``read`` does, without the caller's lease id, whose lease may have ended."""

    def prepare(
        self, state: CurrentVersion, content: bytes, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Commit:
        """Send what must precede the commit, and return the one request that commits ``content`` over ``state``.

        ``lineage`` is stamped on the new version; None leaves what is there. ``lease_id`` is the lease held by now;
        the request takes the one to commit under, and may be sent more than once. Errors of the wire pass through it.

        Raises:
            AzguardError: what comes before failed; nothing of the new content shows.
        """

    def mark(self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline) -> Commit:
        """Return the one request that writes our op over ``state``, and changes nothing else: see ``prepare``."""
        return self.prepare(state, state.content, lineage, lease_id, deadline)

    def count_room(self, state: CurrentVersion, content: bytes) -> int:
        """Return how many characters the lineage may have beside ``content``."""

    def fence(
        self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> FencingWrite:
        """Return a request that replaces ``state`` by the same content under a new ETag.

        ``lineage`` is stamped on it; None leaves what is there. Errors of the wire pass through it.
        """

    def list_versions(self, deadline: Deadline) -> list[KeptVersion]:
        """Return the kept versions, oldest first; none where the service keeps none, or does not tell their writers."""
        return []

    @property
    def leases(self) -> "Leasable | None":
        """Return how the resource is leased; None where the service knows no lease on such a resource."""
        return None

    def canonicalize(self, content: bytes) -> bytes:
        """Return the result of the transform in canonical form, so that equal bytes mean unchanged content.

        Raises:
            TransformFailed: the service would not take it.
        """
        return content


class Leasable(Protocol):
    """A resource that can be leased."""

    #: Whether the lease has the id that is proposed; a file's has another one, whose steps are noted where it is sent.
    takes_proposed_id: ClassVar[bool]

    def acquire(self, state: CurrentVersion, lease_id: str, seconds: int, deadline: Deadline) -> None:
        """Acquire a lease with our own id, only if ``state`` is still current. Errors of the wire pass through."""

    def release(self, lease_id: str, deadline: Deadline) -> None:
        """Release a lease. Errors of the wire pass through."""

    def read_etag_under_lease(self, lease_id: str, deadline: Deadline) -> str:
        """Return the current ETag, asked with the lease id, so that the answer proves the lease is held.

        Raises:
            AzguardError: the lease is not held any more.
        """

    def is_leased(self, deadline: Deadline) -> bool:
        """Return whether a lease is held now."""


class Change(NamedTuple):
    """What an update does, told apart from other changes under the same key."""

    digest: bytes
    #: For people; without values, which may be secrets.
    text: str

    @classmethod
    def of(cls, parts: Sequence[object], text: str) -> "Change":
        """Return the change that these parts, which JSON can hold, make up.

        The parts of a change must never be spelt in another way: each key that is remembered would then be refused.
        """
        whole = hashlib.sha256(json.dumps(parts).encode()).digest()
        return cls(whole[: lineage.CHANGE_BYTES], text)


@frozen
class Applied:
    """An update that was applied."""

    #: When, by the clock of the machine that applied it, to the minute; None where that was not recorded.
    at: datetime | None
    #: The digest of its change; None where that was not recorded.
    change: bytes | None
    #: Whether another write followed. False is no proof: a program that keeps the metadata is not seen within minutes.
    written_since: bool


def find_applied(state: CurrentVersion, op: str) -> Applied | None:
    """Return the version's record of an update applied before or by it; None if the version has no such record."""
    if op not in state.lineage and not state.in_ledger:
        return None
    key = state.ledger_key or state.lineage.find_key(op)
    at = None if key is None else key.at
    return Applied(at, None if key is None else key.change, _is_written_since(state, op, at))


def _is_written_since(state: CurrentVersion, op: str, at: datetime | None) -> bool:
    if state.etag is None:
        return True
    if op in state.lineage and [newest for newest, _ in state.lineage.entries[:1]] != [op]:
        return True
    return at is not None and state.last_modified is not None and state.last_modified - at > _CLOCKS_DIFFER


def check_change(target: Target, applied: Applied, change: Change | None) -> None:
    """Refuse a key that was used for another change. What was not recorded cannot be compared."""
    if change is None or applied.change is None or applied.change == change.digest:
        return
    when = "" if applied.at is None else f", applied at {iso(applied.at)}"
    raise Exists(
        f"the key names another change of {target}: {applied.change.hex()}{when}; this one is {change.digest.hex()}, "
        f"{change.text}; nothing was written",
        address=str(target.address),
        reason="key_of_another_change",
        facts={
            "outcome": "key_of_another_change",
            "applied_at": iso(applied.at),
            "written_since": applied.written_since,
        },
    )


def count_remembered(kind: Kind) -> int:
    """Return how many keys a resource of a kind remembers, where there is room."""
    return lineage.MOST_IN_ENTITY if kind is Kind.ENTITY else lineage.MOST_IN_METADATA


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
    #: Called with what deletes that record, to be done once the end of the update is told. By default it is done now.
    once_told: Callable[[Callable[[], None]], object] = lambda forget: forget()


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
