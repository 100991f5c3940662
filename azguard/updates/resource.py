"""What the safe-update loop needs of a resource of any kind.

Read a version; write over it on the condition that it is still current; find by the lineage, which each version
carries, whether a write was committed. One small adapter per kind of resource implements this, so that the loop needs
to know no service. A version also tells whether an earlier run of the same key was applied.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar, NamedTuple, Protocol

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.errors import Exists
from azguard.frozen import frozen
from azguard.requests import lineage
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import AppliedKey, Lineage
from azguard.times import iso

# The clocks of two machines that the service believes differ by less; so a version that is later by more is another.
_CLOCKS_DIFFER = timedelta(minutes=15)


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
