"""What the safe-update loop needs of a resource, whatever its kind.

Read a version; write over it on the condition that it is still current; find by the lineage, which each version
carries, whether a write was committed. One small adapter per kind of resource implements this, so that the loop needs
to know no service.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from azguard.accounts.target import Target
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import AppliedKey, Lineage


@dataclass(frozen=True)
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
        """Return the input of the transform."""
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
        """Read the service's answer to a write."""
        return cls(answer.get("etag"), answer.get("last_modified"), answer.get("version_id"))


class KeptVersion(NamedTuple):
    """One entry of the history that an account with versioning keeps."""

    etag: str
    lineage: Lineage


class UpdatableResource(Protocol):
    """A resource that can be read and conditionally written."""

    @property
    def target(self) -> Target:
        """Return what it is and in which account."""

    def read(self, deadline: Deadline) -> CurrentVersion:
        """Return the current version, or a state without ETag where there is none."""

    def read_unleased(self, deadline: Deadline) -> CurrentVersion:
        """Read as ``read`` does, without the caller's lease id, whose lease may have ended."""

    def prepare(
        self, state: CurrentVersion, content: bytes, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Callable[[str | None], CommittedVersion]:
        """Send what must precede the commit, and return the one request that commits ``content`` over ``state``.

        ``lineage`` is stamped on the new version; None leaves what is there. ``lease_id`` is the lease held by now;
        the request takes the one to commit under, and may be sent more than once. The SDK's errors pass through it.

        Raises:
            AzguardError: what comes before failed; nothing of the new content shows.
        """

    def mark(
        self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Callable[[str | None], CommittedVersion]:
        """Return the one request that writes our op over ``state``, and changes nothing else: see ``prepare``."""

    def count_room(self, state: CurrentVersion, content: bytes) -> int:
        """Return how many characters the lineage may have beside ``content``."""

    def fence(
        self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Callable[[], CommittedVersion]:
        """Return a request that replaces ``state`` by the same content under a new ETag.

        ``lineage`` is stamped on it; None leaves what is there. The SDK's errors pass through it.
        """

    def list_versions(self, deadline: Deadline) -> list[KeptVersion]:
        """Return the kept versions, oldest first; empty where the account keeps none."""

    @property
    def leases(self) -> "Leasable | None":
        """Return how it is leased; None where the service knows no lease on such a resource."""

    def canonicalize(self, content: bytes) -> bytes:
        """Return the result of the transform in canonical form, so that equal bytes mean unchanged content.

        Raises:
            TransformFailed: the service would not take it.
        """


class Leasable(Protocol):
    """A resource that can be leased."""

    def acquire(self, state: CurrentVersion, lease_id: str, seconds: int, deadline: Deadline) -> None:
        """Acquire a lease with our own id, only if ``state`` is still current. The SDK's errors pass through."""

    def release(self, lease_id: str, deadline: Deadline) -> None:
        """Release a lease. The SDK's errors pass through."""

    def read_etag_under_lease(self, lease_id: str, deadline: Deadline) -> str:
        """Return the current ETag, asked with the lease id, so that the answer proves the lease is held.

        Raises:
            AzguardError: the lease is not held any more.
        """

    def is_leased(self, deadline: Deadline) -> bool:
        """Return whether a lease is held now."""
