"""What the adapters of safe-update for a share and a file have in common: the lease under which each write happens.

The service compares no version of these. azguard acquires a lease, sees that the version that was read is still there,
and writes. The lease of a file has no term: before it is asked for it is noted on this machine (``process_leases``),
and before anything is written on the file itself, for an operator on another machine.

A request that comes late is refused, because its lease has ended, and no lease id is used again.
"""

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from http import HTTPStatus

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.errors import AzguardError
from azguard.files import guarding
from azguard.files.entries import drop_own
from azguard.files.guarding import Guarding
from azguard.files.properties import find_setter
from azguard.guards.resolve import Conditions
from azguard.guards.versions import quote_etag
from azguard.leases import actions, owner_records
from azguard.leases import state as lease_state
from azguard.leases.owner_records import ProcessLease, Version, set_service_time
from azguard.leases.owners import OWNER
from azguard.leases.state import LeaseState
from azguard.requests import commits
from azguard.requests.calls import CallOutcome, outcome_of, send_once, write_timeouts
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage, fresh_op, with_lineage
from azguard.requests.service_errors import service_code
from azguard.updates.compared import RefusedHere, SingleWrite
from azguard.updates.resource import CommittedVersion, CurrentVersion, KeptVersion, Leasable

_INFINITE = -1
# A lease without a term is not left behind because of one lost answer.
_RELEASE_SECONDS = 5.0
# Bounded: a record that stays behind says that the lease is held, which anyone can see is not so.
_REMOVE_SECONDS = 3.0


@dataclass
class _Held:
    """A lease of ours, or one that we ask for."""

    lease_id: str
    note: ProcessLease | None
    #: Whether a request under it may still arrive that must not: then it is released, and another acquired.
    is_spoilt: bool = False
    is_asked: bool = False


@dataclass
class LeasedUpdate(ABC):
    """What is read, and written under a lease."""

    target: Target
    guarding: Guarding
    #: The lease that the caller holds.
    lease_id: str | None = None
    #: Our own lease. Its id is ours to choose: see ``is_spoilt``.
    _held: _Held | None = field(default=None, init=False)
    #: The notes of leases that were given up: the file that was written beside the target may be named after one. They
    #: stay until this write has ended.
    _former: list[ProcessLease] = field(default_factory=list, init=False)
    #: Of versions that differ from the one before in the record of our lease alone: what they were before.
    _noted: dict[str, tuple[str, Lineage]] = field(default_factory=dict, init=False)
    _has_looked: bool = field(default=False, init=False)
    #: The op of the record of our lease, which may be on the file, and what the file was before it.
    _record: tuple[str, tuple[str, Lineage]] | None = field(default=None, init=False)
    #: For a write of metadata under the caller's lease, which does not end with the update.
    _single: SingleWrite = field(default_factory=SingleWrite, init=False)

    @property
    def leases(self) -> Leasable:
        """Return how it is leased."""
        return self

    def acquire(self, state: CurrentVersion, lease_id: str, seconds: int, deadline: Deadline) -> None:
        """Acquire a lease, and see that the version read is still there."""
        held = self._choose_lease(deadline)
        if not held.is_asked:
            self.guarding.records.add(self.target, held.lease_id, None if self._is_endless else seconds)
            held.is_asked = True
        try:
            self._ask(held, seconds, deadline)
        except Exception as error:
            if service_code(error) != "LeaseAlreadyPresent" or not self._take_over(deadline):
                raise
            self._ask(held, seconds, deadline)
        self.guarding.records.confirm(self.target, held.lease_id)
        found = lease_state.look(self.target, deadline, held.lease_id)
        if self._before_note(found.etag) != state.etag:
            raise RefusedHere.as_changed()
        if self._is_endless and quote_etag(found.etag) not in self._noted:
            self._leave_note(held, found, deadline)

    def release(self, lease_id: str, deadline: Deadline) -> None:
        """Release our lease; one without a term is asked for longer."""
        held = self._held
        if held is None:
            return
        self._remove_record(held, deadline)
        seconds = _RELEASE_SECONDS if self._is_endless else deadline.remaining
        is_free = not held.is_asked or actions.give_back(self.target, held.lease_id, deadline, seconds)
        self._forget(held, is_free=is_free)
        if not is_free:
            if self._is_endless:
                self.guarding.records.note_left(self.target)
            raise RefusedHere(HTTPStatus.SERVICE_UNAVAILABLE, "LeaseNotReleased")

    def read_etag_under_lease(self, lease_id: str, deadline: Deadline) -> str:
        """Return the current version, asked with the lease id."""
        return self._before_note(lease_state.look(self.target, deadline, self._in_use(lease_id)).etag)

    def is_leased(self, deadline: Deadline) -> bool:
        """Return whether a lease is held; that of a process on this machine which has ended is released first."""
        return not lease_state.look(self.target, deadline).free and not self._take_over(deadline)

    def fence(
        self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Callable[[], CommittedVersion]:
        """Return a function that makes a write in doubt impossible: it frees the lease and checks the version."""

        def give_up_lease() -> CommittedVersion:
            if self.lease_id is not None:
                raise RefusedHere(HTTPStatus.BAD_REQUEST, "LeaseOfCaller")
            self.release("", deadline)
            if self.read(deadline).etag != state.etag:
                raise RefusedHere.as_changed()
            return CommittedVersion(state.etag)

        return give_up_lease

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

    def set_metadata(
        self, state: CurrentVersion, stamped: Mapping[str, str], deadline: Deadline
    ) -> Callable[[str | None], CommittedVersion]:
        """Return the request that replaces all metadata of the version read."""
        send = find_setter(self.target)

        def commit(held: str | None) -> CommittedVersion:
            self.check_under_callers_lease(state, deadline)
            headers = Conditions(lease_id=self._in_use(held)).request_headers

            def send_metadata() -> CommittedVersion:
                return CommittedVersion.of(send(dict(stamped), headers=dict(headers), **write_timeouts(deadline)))

            try:
                done = send_metadata() if self.lease_id is None else self._single.send(send_metadata)
            except Exception as error:
                self.note_failure(error)
                raise
            self.note_written()
            return done

        return commit

    def note_written(self) -> None:
        """Note that a write of ours has taken the place of the version that has the record of our lease."""
        self._record = None

    def forget_unasked(self) -> None:
        """Delete the note of a lease that was not needed."""
        if self._held is not None and not self._held.is_asked:
            self._forget(self._held, is_free=True)

    def note_failure(self, error: Exception) -> None:
        """Where a write is in doubt, have its lease acquired under another id, should it be lost meanwhile."""
        if self._held is not None and outcome_of(error) is CallOutcome.IN_DOUBT:
            self._held.is_spoilt = True

    def _in_use(self, lease_id: str | None) -> str | None:
        return lease_id if self._held is None or lease_id in (None, self.lease_id) else self._held.lease_id

    @property
    def _is_endless(self) -> bool:
        return self.target.kind is Kind.FILE

    def _before_note(self, etag: str) -> str:
        return self.version_of(etag, None)[0]

    def _choose_lease(self, deadline: Deadline) -> _Held:
        """Return our lease, noted on this machine before anything is asked for."""
        held = self._held
        if held is not None and held.is_spoilt:
            if not actions.give_back(self.target, held.lease_id, deadline):
                raise RefusedHere(HTTPStatus.SERVICE_UNAVAILABLE, "LeaseNotReleased")
            if held.note is not None:
                self._former.append(held.note)
            self.guarding.records.remove(self.target, held.lease_id)
            held = self._held = None
        if held is None:
            lease_id = str(uuid.uuid4())
            processes = self.guarding.processes
            held = self._held = _Held(lease_id, None if processes is None else processes.open(self.target, lease_id))
        return held

    def _ask(self, held: _Held, seconds: int, deadline: Deadline) -> None:
        term = _INFINITE if self._is_endless else seconds
        try:
            lease_state.client(self.target, held.lease_id).acquire(term, **write_timeouts(deadline))
        except BaseException as error:
            if held.note is not None and outcome_of(error) is CallOutcome.IN_DOUBT:
                held.note.may_come_late()
            raise

    def _forget(self, held: _Held, *, is_free: bool) -> None:
        for note in (*self._former, *filter(None, [held.note])):
            note.close(is_released=is_free)
        self._former.clear()
        if is_free and held.is_asked:
            self.guarding.records.remove(self.target, held.lease_id)
        self._held = None

    def _take_over(self, deadline: Deadline) -> bool:
        """Release the lease of a process on this machine that has ended; return whether there was one."""
        return guarding.end_abandoned(self.target, self.guarding, deadline).leases > 0

    def _leave_note(self, held: _Held, found: LeaseState, deadline: Deadline) -> None:
        """Write on the file who holds it, for an operator on another machine. The content stays."""
        owner = self.guarding.owner
        if owner is None:
            return
        text = found.metadata.get(KEY)
        before = self.version_of(found.etag, text)
        kept = {key: value for key, value in found.metadata.items() if key.lower() not in (OWNER, KEY)}
        version = Version(found.etag, found.metadata, found.answered_at)
        record = set_service_time(owner, version).tie_to_lease(held.lease_id, None).as_metadata()
        op = fresh_op()
        history = Lineage.parse(text).after(op, found.etag)
        client = self.target.account.file(self.target.address)
        self._record = op, before
        sent = send_once(
            lambda: client.set_file_metadata(
                with_lineage({**kept, OWNER: record}, history),
                headers={"x-ms-lease-id": held.lease_id},
                **write_timeouts(deadline),
            )
        )
        if sent.error is None and sent.answer is not None:
            self._noted[quote_etag(sent.answer["etag"])] = before
            if held.note is not None:
                held.note.add_record(before[0], quote_etag(sent.answer["etag"]))
        elif service_code(sent.error or RefusedHere.as_changed()) not in ("ReadOnlyAttribute", guarding.NO_ROOM):
            # A copy that comes late must not undo what is written next under this lease.
            held.is_spoilt = sent.outcome is CallOutcome.IN_DOUBT
            raise sent.error or RefusedHere.as_changed()

    def _remove_record(self, held: _Held, deadline: Deadline) -> None:
        """Remove the record of our lease from a version that was not replaced; raise no error."""
        if self._record is None:
            return
        op, before = self._record
        self._record = None
        patience = deadline.afterwards(_REMOVE_SECONDS)
        under = Conditions(lease_id=held.lease_id)
        try:
            version = owner_records.read_version(self.target, patience, held.lease_id)
            if [each for each, _ in Lineage.parse(version.metadata.get(KEY)).entries[:1]] != [op]:
                return  # A write of ours has replaced it, or it never came.
            with commits.suppress():
                moved = owner_records.change_metadata(self.target, version, {OWNER: None}, under, patience)
        except AzguardError:
            return
        if moved.after is not None:
            self._noted[quote_etag(moved.after)] = before
            self.guarding.records.record_move(self.target, replace(moved, before=before[0]))
