"""Which lock to acquire, and how; the blobs that locks are: their names, how they are made, and what is written on them
under the lease.

A lock can be a share or a file as well: that has to be there, and has neither slots nor a queue.
"""

import io
from collections.abc import Callable, Mapping
from dataclasses import replace

from azguard import times
from azguard.accounts.account import Target
from azguard.address import Address, Kind, parse
from azguard.errors import Changed, Exists, Locked, NotFound, OutcomeUnknown, UsageError
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.leases import owner_records, owners
from azguard.leases import state as lease_state
from azguard.leases.owner_records import Moved
from azguard.leases.owners import FENCE, SEQUENCE, SHARED, SLOTS, HeldSequence, Owner
from azguard.leases.process_leases import ProcessLeases
from azguard.leases.recorded import LeaseRecords
from azguard.leases.state import Version
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import fresh_op
from azguard.times import say_count
from azguard.wire.client import Limits

# How long one request may go unanswered: several fit into the shortest term.
ANSWER_SECONDS = 3.0
# Connecting takes milliseconds; a connection that takes longer is better opened anew.
_CONNECT_SECONDS = 2.0
# How much longer than the wait the requests may take: the wait is for other holders, and a service that is far away
# needs some round trips all the same.
_ALLOWANCE_SECONDS = 2.0
# No request is given less.
LEAST_SECONDS = 0.5
# Where the locks of tables and of bare names are kept, unless another container is named.
CONTAINER = "locks"
# It names another container.
CONTAINER_VARIABLE = "AZGUARD_LOCK_CONTAINER"
_NEW = Conditions({"If-None-Match": "*"}, "if-none-match")


@frozen
class LockRequest:
    """A lock to acquire."""

    target: Target
    #: How many may hold it at the same time.
    slots: int = 1
    #: The number of this run: it is refused once a run with a higher one has held the lock. None is no number.
    sequence: int | None = None
    #: Whether to read beside others under it, where no writer holds it.
    is_shared: bool = False


@frozen
class AcquireSettings:
    """How to acquire a lock."""

    #: What to write on the lock about its holder.
    owner: Owner
    #: The term of the lease.
    seconds: int
    #: Whether to create a lock blob that is missing.
    create: bool
    #: How long the service may fail or be silent; it begins anew with each step.
    patience: Deadline
    #: Where the lease is written down before it is asked for.
    records: LeaseRecords
    #: Called with each line that people must see.
    say: Callable[[str], None]
    #: Called with each line for ``--verbose``.
    tell: Callable[[str], None]
    #: Draws a random number between two others.
    uniform: Callable[[float, float], float]
    #: Whether to be served in the order of arrival, and to wait behind those who came before.
    is_fair: bool = True
    #: Whether to add the holder to the history of the lock.
    keeps_log: bool = False
    #: The notes of leases without a term, by which the next azguard ends them if this process is killed.
    processes: ProcessLeases | None = None
    #: Refuses a lock that this job holds already, unless that ends within so many seconds: it would wait for itself.
    refuse_own: Callable[[LockRequest, float], None] = lambda request, wait: None
    #: Returns the time on the clock by which leases end.
    now: Callable[[], float] = times.read_boot_clock

    def patience_now(self) -> Deadline:
        return self.patience.fresh()


class RequestTime:
    """The time for the requests of one acquisition, which waits for others until ``deadline``."""

    def __init__(self, deadline: Deadline, patience: float) -> None:
        self.deadline = deadline
        self._patience = patience
        self._without_wait = deadline.restart(seconds=patience + _ALLOWANCE_SECONDS)

    @property
    def left(self) -> float:
        """Return how many seconds requests may still take."""
        if not self.deadline.seconds:
            return self._without_wait.remaining
        return max(0.0, self.deadline.seconds + _ALLOWANCE_SECONDS - self.deadline.elapsed)

    def start(self, seconds: float | None = None) -> Deadline:
        """Return how long a step of several requests may take from now on; None is the patience with the service."""
        left = max(LEAST_SECONDS, min(self._patience if seconds is None else seconds, self.left))
        answer_seconds = min(ANSWER_SECONDS, left)
        return replace(self.deadline, seconds=left, answer_seconds=answer_seconds, settle_seconds=left)

    def start_in_any_case(self, seconds: float) -> Deadline:
        """Return a deadline of so many seconds, even if the time for waiting is over."""
        return replace(self.deadline, seconds=seconds, answer_seconds=ANSWER_SECONDS)

    def timeouts(self) -> Limits:
        """Return the timeouts for one request that is made now, in seconds."""
        left = max(LEAST_SECONDS, self.left)
        return Limits(min(_CONNECT_SECONDS, left), min(ANSWER_SECONDS, left))


@frozen
class LockRecord:
    """What an acquisition wrote on the lock under its lease."""

    fence: int
    #: Who holds it, since when by the service's clock.
    owner: Owner
    #: Who held it before, with which fence; None if no record says so.
    before: Owner | None
    fence_before: int | None
    #: The version that it replaced, and the one that took its place, with the same content.
    moved: Moved
    #: Whether readers have ever held it beside each other.
    is_shared: bool = False


def choose_container(named: str | None, environ: Mapping[str, str]) -> str:
    """Return the container of locks: the one that is named, else that of the environment, else the usual one.

    Raises:
        UsageError: it is no name of a container.
    """
    return parse(named or environ.get(CONTAINER_VARIABLE) or CONTAINER, Kind.CONTAINER).address.container


def choose_lock_blob(table: Target, container: str) -> Target:
    """Return the blob that stands for a table, which has no lease of its own: one for all spellings of its name.

    Source: https://learn.microsoft.com/azure/storage/blobs/concurrency-manage
    """
    return Target(table.account, Address(Kind.BLOB, (container, f"table/{table.address.folded.name}")))


def list_slots(target: Target, count: int) -> list[Target]:
    """Return the blobs of a lock with so many slots; the first is the lock's own blob, which every holder checks."""
    container = target.address.container
    name = target.address.name
    more = [Address(Kind.BLOB, (container, f"{name}.slot{number}")) for number in range(2, count + 1)]
    return [target, *(Target(target.account, each) for each in more)]


def agree_on_slots(target: Target, count: int, deadline: Deadline, *, create: bool) -> Moved | None:
    """Make sure that a lock has ``count`` slots, creating it if there is none yet; return the change, if it took one.

    Raises:
        UsageError: it is a lock of another number of slots.
        NotFound: there is none, and none may be made.
    """
    while True:
        try:
            found = lease_state.look(target, deadline).version
        except NotFound:
            if not create:
                raise
            create_lock_blob(target, deadline, {SLOTS: str(count)})
            continue
        check_slots(target, found.metadata, count)
        if owners.read_number(found.metadata, SLOTS) is not None:
            return None
        try:
            return owner_records.change_metadata(
                target, found, {SLOTS: str(count)}, Conditions({"If-Match": found.etag}), deadline
            )
        except Changed:
            continue


def check_slots(target: Target, metadata: Mapping[str, str], count: int) -> None:
    """Refuse a lock that others hold with another number of slots."""
    theirs = owners.read_number(metadata, SLOTS)
    if not theirs:
        # A lock without this record was held with one slot, if it was ever held.
        theirs = count if owners.read_number(metadata, FENCE) is None else 1
    if theirs != count:
        raise UsageError(
            f"{target} is a lock of {say_count(theirs, 'slot')}, not of {count}",
            address=str(target.address),
            values={"slots": theirs},
            reason="lock_slots_differ",
        )


def create_lock_blob(target: Target, deadline: Deadline, metadata: Mapping[str, str] | None = None) -> Version | None:
    """Create a lock blob, or its container if that is missing; return the new blob, None if there is none of ours."""
    from azguard.blobs.content import put_blob  # Imported late: a lock is created once and acquired often.
    from azguard.blobs.content.upload import Settings, Upload
    from azguard.resources import lifecycles

    settings = Settings(content_type="application/octet-stream", metadata=dict(metadata or {}))
    upload = Upload(target, settings, _NEW, deadline, fresh_op()).add_lineage()
    try:
        made = put_blob.put(upload, io.BytesIO(), lambda done: None)
    except Exists:
        return None
    except NotFound:
        container = Target(target.account, Address(Kind.CONTAINER, (target.address.container,)))
        try:
            lifecycles.create(container, {}, deadline, fresh_op())
        except (Exists, OutcomeUnknown):
            return None  # Others make the lock, too, or the next request says that there is no container.
        # A run that does not wait has no other try.
        return create_lock_blob(target, deadline, metadata)
    if made.etag is None:
        return None
    # Nothing has been written since it was created, just now.
    return Version(made.etag, upload.metadata, made.last_modified)


def check_sequence(target: Target, metadata: Mapping[str, str], sequence: int | None) -> None:
    """Refuse a run whose number is lower than that of a run that has held the lock."""
    highest = owners.read_sequence(metadata)
    if sequence is None or highest is None or highest.number <= sequence:
        return
    raise Changed(
        f"run {sequence} is superseded: run {highest} has held {target}",
        address=str(target.address),
        facts={
            "reason": "superseded",
            "sequence": sequence,
            "highest_sequence": highest.number,
            "highest_run": highest.run or highest.who,
        },
        reason="lock_superseded",
    )


def write_owner_and_fence(
    request: LockRequest, target: Target, lease_id: str, owner: Owner, known: Version | None, deadline: Deadline
) -> LockRecord:
    """Write the owner's record and the next fence under the lease; return the record and the version it replaced.

    ``target`` is the slot that is leased, ``known`` the current version, if that is known. Other metadata stays,
    and the content is not touched.

    Raises:
        Locked: the lease is not held any more.
    """
    replaced: list[Version] = []

    def choose(version: Version) -> dict[str, str]:
        _check(request, target, version)
        replaced.append(version)
        fence = owners.read_number(version.metadata, FENCE) or 0
        return _as_metadata(request, owner_records.set_service_time(owner, version), fence + 1)

    moved = owner_records.change_under_lease(target, lease_id, choose, deadline, known)
    assert moved is not None
    before = replaced[-1]
    fence_before = owners.read_number(before.metadata, FENCE)
    ours = owner_records.set_service_time(owner, before)
    ours, moved = owner_records.correct_time(target, lease_id, ours, moved, deadline)
    if moved.after is None:
        # Our write was found by a look, and a later one too: our lease was over by then.
        raise Locked(f"the lease of {target} was lost before the lock was held", str(target.address))
    return LockRecord(
        fence=(fence_before or 0) + 1,
        owner=ours,
        before=owners.read_owner(before.metadata),
        fence_before=fence_before,
        moved=moved,
        is_shared=bool(owners.find_value(before.metadata, SHARED)),
    )


def leave_sequence(request: LockRequest, target: Target, lease_id: str, settings: AcquireSettings) -> None:
    """Write the number of a run on a lock that is held around it, under the lease of that lock."""
    number = request.sequence
    if number is None:
        return

    def choose(version: Version) -> dict[str, str]:
        _check(request, target, version)
        highest = owners.read_sequence(version.metadata)
        is_there = highest is not None and highest.number == number
        return {} if is_there else _describe_sequence(number, settings.owner)

    moved = owner_records.change_under_lease(target, lease_id, choose, settings.patience_now())
    if moved is not None:
        settings.records.record_move(target, moved)


def _check(request: LockRequest, target: Target, version: Version) -> None:
    check_slots(target, version.metadata, request.slots)
    check_sequence(target, version.metadata, request.sequence)


def _describe_sequence(number: int, owner: Owner) -> dict[str, str]:
    return {SEQUENCE: HeldSequence(number, owner.name, owner.run).as_metadata()}


def _as_metadata(request: LockRequest, owner: Owner, fence: int) -> dict[str, str]:
    added = {owners.OWNER: owner.as_metadata(), FENCE: str(fence)}
    if request.slots > 1:
        added[SLOTS] = str(request.slots)
    if request.sequence is not None:
        added.update(_describe_sequence(request.sequence, owner))
    return added
