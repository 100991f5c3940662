"""What the adapters of safe-update for a share and a file have in common: the lease under which each write happens.

The service compares no version of these. azguard acquires a lease as every guarded write does (``guarding``), sees that
the version that was read is still there, and writes.

A request that comes late is refused, because its lease has ended, and no lease id is used again.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import ClassVar

from azguard.accounts.account import Target
from azguard.errors import AzguardError
from azguard.files import guarding
from azguard.files.entries import drop_own
from azguard.files.guarding import Guarding
from azguard.files.writes import Held
from azguard.guards.resolve import Conditions
from azguard.guards.versions import quote_etag
from azguard.leases import state as lease_state
from azguard.leases.guard import Term
from azguard.leases.owners import OWNER
from azguard.requests import commits
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import Lineage
from azguard.resources import parts
from azguard.updates.compared import RefusedHere, SingleWrite, fence_by_release
from azguard.updates.resource import Commit, CommittedVersion, CurrentVersion, FencingWrite, KeptVersion, Leasable


@dataclass
class LeasedUpdate(ABC):
    """What is read, and written under a lease."""

    target: Target
    guarding: Guarding
    #: The lease that the caller holds.
    lease_id: str | None = None
    takes_proposed_id: ClassVar[bool] = False
    #: The version that is there under our own lease. Its id is another one than the loop proposes.
    _held: Held | None = field(default=None, init=False)
    #: Ends our own lease.
    _until: ExitStack = field(default_factory=ExitStack, init=False)
    #: What the version was before the record of our lease was written; None if a write of ours has replaced it.
    _before: tuple[str, Lineage] | None = field(default=None, init=False)
    #: Of versions that differ from the one before in the record of our lease alone: what they were before.
    _noted: dict[str, tuple[str, Lineage]] = field(default_factory=dict, init=False)
    _has_looked: bool = field(default=False, init=False)
    #: For a write of metadata under the caller's lease, which does not end with the update.
    _single: SingleWrite = field(default_factory=SingleWrite, init=False)

    @property
    def leases(self) -> Leasable:
        """Return how it is leased."""
        return self

    def acquire(self, state: CurrentVersion, lease_id: str, seconds: int, deadline: Deadline) -> None:
        """Acquire a lease of our own, and see that the version read is still there; one from before is released."""
        self._give_back(deadline)
        try:
            self._hold(state, seconds, deadline)
        except AzguardError as error:
            raise _to_refusal(error) from error

    def _hold(self, state: CurrentVersion, seconds: int, deadline: Deadline) -> None:
        current = [after for after, (before, _) in self._noted.items() if before == state.etag]
        conditions = Conditions(expected_etag=current[-1] if current else state.etag)
        # The loop itself waits for the leases of others.
        lease = guarding.hold(self.target, conditions, self.guarding, deadline, Term(seconds, others_seconds=0))
        held = self._until.enter_context(lease)
        self._held, self._before = held, (state.etag or "", state.lineage)
        if held.has_note:
            self._noted[held.etag] = self._before

    def release(self, lease_id: str, deadline: Deadline) -> None:
        """Release our lease; the record of it is removed first, if no write of ours has replaced it."""
        self._give_back(deadline)

    def _give_back(self, deadline: Deadline) -> None:
        held, self._held = self._held, None
        if held is None:
            return
        if held.has_note and self._before is not None:
            moved = guarding.withdraw(self.target, held, self._before[0], self.guarding, deadline)
            if moved is not None and moved.after is not None:
                self._noted[quote_etag(moved.after)] = self._before
        self._until.close()
        if not held.lease.is_gone:
            raise RefusedHere(HTTPStatus.SERVICE_UNAVAILABLE, "LeaseNotReleased")

    def read_etag_under_lease(self, lease_id: str, deadline: Deadline) -> str:
        """Return the current version, asked with the lease id."""
        return self.version_of(lease_state.look(self.target, deadline, self._in_use(lease_id)).etag, None)[0]

    def is_leased(self, deadline: Deadline) -> bool:
        """Return whether a lease is held; that of a process on this machine which has ended is released first."""
        return not lease_state.look(self.target, deadline).free and not self._take_over(deadline)

    def fence(
        self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> FencingWrite:
        """Return a function that makes a write in doubt impossible: it frees the lease and checks the version."""
        return fence_by_release(self, self.read, state, lease_id or "" if self.lease_id is None else None, deadline)

    def list_versions(self, deadline: Deadline) -> list[KeptVersion]:
        """Return none: the service keeps no versions."""
        return []

    @abstractmethod
    def read(self, deadline: Deadline) -> CurrentVersion:
        """Return the current version."""

    def read_unleased(self, deadline: Deadline) -> CurrentVersion:
        """Read as ``read`` does, without the caller's lease id, whose lease may have ended."""
        unleased = copy(self)
        unleased.lease_id = None
        return unleased.read(deadline)

    def clear_once(self, deadline: Deadline) -> None:
        """Before the first read, end what a process on this machine has left that was killed: its writes too."""
        if not self._has_looked:
            self._take_over(deadline)
            self._has_looked = True

    def version_of(self, etag: str, text: str | None) -> tuple[str, Lineage]:
        """Return the ETag and the lineage, as they were before the record of our own lease was written."""
        return self._noted.get(quote_etag(etag)) or (quote_etag(etag), Lineage.parse(text))

    def check_under_callers_lease(self, state: CurrentVersion, deadline: Deadline) -> None:
        """See that a version is still there, where the lease is the caller's and was not acquired on it."""
        if self.lease_id is None:
            return
        with commits.look_first():
            current = lease_state.look(self.target, deadline, self.lease_id).etag
        if quote_etag(current) != state.etag:
            raise RefusedHere.as_changed()

    def callers_record(self, metadata: Mapping[str, str] | None) -> dict[str, str]:
        """Return the record of who holds the lease, where that is the caller and goes on."""
        held = {} if self.lease_id is None else metadata or {}
        return {key: value for key, value in held.items() if key.lower() == OWNER}

    def kept_metadata(self, metadata: Mapping[str, str] | None) -> dict[str, str]:
        """Return the metadata that new content leaves as they are."""
        return {**drop_own(metadata), **self.callers_record(metadata)}

    def set_metadata(self, state: CurrentVersion, stamped: Mapping[str, str], deadline: Deadline) -> Commit:
        """Return the request that replaces all metadata of the version read."""

        def commit(held: str | None) -> CommittedVersion:
            self.check_under_callers_lease(state, deadline)
            under = Conditions(lease_id=self._in_use(held))

            def send_metadata() -> CommittedVersion:
                return CommittedVersion.of(parts.send_metadata(self.target, stamped, under, deadline))

            done = send_metadata() if self.lease_id is None else self._single.send(send_metadata)
            self.note_written()
            return done

        return commit

    def note_written(self, *, is_replaced: bool = False) -> None:
        """Note that a write of ours has taken the place of the version that has the record of our lease.

        With ``is_replaced`` it is another file, by a rename, and our lease went with the one that was there.
        """
        self._before = None
        if self._held is not None and is_replaced:
            self._held.lease.is_gone = True

    def _in_use(self, lease_id: str | None) -> str | None:
        return lease_id if self._held is None or lease_id in (None, self.lease_id) else self._held.lease.lease_id

    def _take_over(self, deadline: Deadline) -> bool:
        """Release the lease of a process on this machine that has ended; return whether there was one."""
        return guarding.end_abandoned(self.target, self.guarding, deadline).leases > 0


def _to_refusal(error: AzguardError) -> Exception:
    """Return the refusal of the service that the loop knows by its status; another error says that there was none."""
    if error.reason == "share_or_file_changed":
        return RefusedHere.as_changed()
    return error if error.http_status is None else RefusedHere(error.http_status, error.service_code or "")
