"""A resource in memory that keeps the truth: what every request really did, whatever its sender was told.

Requests meet faults as on a network: the answer is lost, the request is held and delivered late, nothing arrives.
Time is a counter, and writers take turns at the tap of a seeded baton, so that every run can be repeated.
"""

import math
import random
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Any, ClassVar

from azguard.accounts.account import Target, emulator
from azguard.address import Address, Kind
from azguard.errors import AzguardError, Locked, Unavailable
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import AppliedKey, Lineage
from azguard.updates.resource import CommittedVersion, CurrentVersion, KeptVersion, Leasable
from azguard.wire.failures import Broken, BrokenAnswer, NotConnected, Refusal, Stage

TARGET = Target(emulator(), Address(Kind.BLOB, ("site", "config.json")))


class Fault(Enum):
    """What happens to one state-changing request."""

    NONE = "none"
    LOST = "the answer is lost"
    LATE = "it is delivered later"
    RESET = "it never arrives, and that cannot be told"
    BUSY = "503, not executed"
    REFUSED = "no connection"
    REPLAYED = "the network sends it twice, and the second answer is heard"
    CTRL_C = "the answer is lost, and the user presses Ctrl-C"


class Clock:
    """Time that passes only when a sleep is asked for."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def deadline(self, seconds: float = 60.0) -> Deadline:
        return Deadline(seconds, self, self.sleep)


@dataclass(frozen=True)
class Commit:
    """One write that really happened; ``op`` is None for a writer that keeps no lineage."""

    op: str | None
    parent: str | None
    etag: str | None
    content: bytes


@dataclass(frozen=True)
class Current:
    """What is there."""

    content: bytes
    etag: str
    lineage: str
    rest: str = "headers"


@dataclass(frozen=True)
class Row:
    """A row of the ledger: that an op was committed, or that no attempt of it may be any more."""

    version: int
    void: bool
    #: The digest of the change.
    change: bytes | None = None


@dataclass
class Store:
    """The service. Every request is atomic."""

    clock: Clock = field(default_factory=Clock)
    keeps_versions: bool = False
    #: What it says of when any version was written.
    written_at: datetime | None = None
    current: Current | None = None
    history: list[Current] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    held: list[Callable[[], object]] = field(default_factory=list)  # requests on their way
    lease: tuple[str, float] | None = None
    rows: dict[str, "Row"] = field(default_factory=dict)  # of the ledger, by op
    _etags: int = 0

    @classmethod
    def holding(cls, content: bytes, **settings: Any) -> "Store":
        store = cls(**settings)
        store.write(None, content, None, "")
        store.commits.clear()
        return store

    @property
    def etag(self) -> str | None:
        return None if self.current is None else self.current.etag

    def put(
        self, parent: str | None, content: bytes, op: str | None, lineage: str | None, lease: str | None
    ) -> CommittedVersion:
        self._check_lease(lease)
        if parent != self.etag:
            raise Refusal(409, "BlobAlreadyExists") if parent is None else Refusal(412, "ConditionNotMet")
        kept = self.current.lineage if self.current is not None else ""
        return self.write(op, content, parent, kept if lineage is None else lineage)

    def write(
        self, op: str | None, content: bytes, parent: str | None, lineage: str, rest: str = "headers"
    ) -> CommittedVersion:
        self._etags += 1
        self.current = Current(content, f'"E{self._etags}"', lineage, rest)
        self.history.append(self.current)
        self.commits.append(Commit(op, parent, self.current.etag, content))
        return CommittedVersion(self.current.etag)

    def foreign_write(
        self, content: bytes | None = None, *, keeps_metadata: bool = False, rest: str = "headers"
    ) -> None:
        """Write as a tool that knows nothing of lineages."""
        now = self.current
        kept = now.lineage if now is not None and keeps_metadata else ""
        what = content if content is not None else b"" if now is None else now.content
        self.write(None, what, self.etag, kept, rest)

    def put_with_row(
        self, parent: str | None, content: bytes, op: str, lineage: str | None, replaced: Row | None
    ) -> CommittedVersion:
        """Write the resource and the row of an op, both or neither; the row only over the one that was seen."""
        if self.rows.get(op) != replaced:
            raise Refusal(409, "EntityAlreadyExists") if replaced is None else Refusal(412, "ConditionNotMet")
        written = self.put(parent, content, op, lineage, None)
        self.rows[op] = Row(self._etags, void=False)
        return written

    def put_void_row(self, op: str, replaced: Row | None) -> CommittedVersion:
        """Write the row alone, in the way of every attempt that saw another."""
        if self.rows.get(op) != replaced:
            raise Refusal(409, "EntityAlreadyExists") if replaced is None else Refusal(412, "ConditionNotMet")
        self._etags += 1
        self.rows[op] = Row(self._etags, void=True)
        return CommittedVersion(f'"E{self._etags}"')

    def delete(self) -> None:
        self.commits.append(Commit(None, self.etag, None, b""))
        self.current = None

    def acquire(self, parent: str | None, lease_id: str, seconds: float) -> None:
        if parent is None or parent != self.etag:
            raise Refusal(412, "ConditionNotMet")
        if self._active() not in (None, lease_id):
            raise Refusal(409, "LeaseAlreadyPresent")
        self.lease = lease_id, self.clock() + seconds

    def release(self, lease_id: str) -> None:
        if self._active() != lease_id:
            raise Refusal(409, "LeaseIdMismatchWithLeaseOperation")
        self.lease = None

    def active_lease(self) -> str | None:
        return self._active()

    def lease_duration(self) -> str | None:
        """Return what a read tells of the lease, as it is parsed from an answer."""
        if self.lease is None or self._active() is None:
            return None
        return str(b"infinite" if self.lease[1] == math.inf else b"fixed", "ascii")

    def deliver(self) -> None:
        """Let the oldest request that is on its way arrive."""
        try:
            self.held.pop(0)()
        except Refusal:
            pass  # Nothing listens any more.

    def commits_of(self, op: str) -> list[Commit]:
        return [commit for commit in self.commits if commit.op == op]

    def _active(self) -> str | None:
        return self.lease[0] if self.lease is not None and self.clock() < self.lease[1] else None

    def _check_lease(self, lease_id: str | None) -> None:
        active = self._active()
        if active is None and lease_id is not None:
            raise Refusal(412, "LeaseNotPresentWithBlobOperation")
        if active is not None and lease_id is None:
            raise Refusal(412, "LeaseIdMissing")
        if active != lease_id:
            raise Refusal(412, "LeaseIdMismatchWithBlobOperation")


@dataclass
class FakeResource:
    """One client's view of the store: the ``Versioned`` that the loop sees.

    ``faults`` decides the fate of each state-changing request; ``before`` runs before each request with its name.
    """

    store: Store
    faults: Iterator[Fault]
    before: Callable[[str], None] = lambda name: None
    lease_id: str | None = None
    takes_proposed_id: ClassVar[bool] = True
    requests: list[str] = field(default_factory=list)
    silent: bool = False  # whether reads get no answer
    room: int = 8192  # for the lineage
    target: Target = TARGET

    @property
    def leases(self) -> Leasable | None:
        return self

    def read(self, deadline: Deadline) -> CurrentVersion:
        self._request("read")
        if self.lease_id is not None and self.store.active_lease() != self.lease_id:
            raise Locked("the lease is not held any more")
        if self.silent:
            deadline.sleep(deadline.remaining)
            raise Unavailable("no answer")
        now = self.store.current
        if now is None:
            return CurrentVersion(b"", None, Lineage(), "headers")
        return CurrentVersion(
            bytes(bytearray(now.content)),  # as from a network: equal to what was sent, and not the same object
            "".join(list(now.etag)),
            Lineage.parse(now.lineage),
            now.rest,
            version_id=now.etag if self.store.keeps_versions else None,
            last_modified=self.store.written_at,
            lease_duration=self.store.lease_duration(),
        )

    def read_unleased(self, deadline: Deadline) -> CurrentVersion:
        lease_id, self.lease_id = self.lease_id, None
        try:
            return self.read(deadline)
        finally:
            self.lease_id = lease_id

    def prepare(
        self, state: CurrentVersion, content: bytes, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Callable[[str | None], CommittedVersion]:
        op = None if lineage is None else lineage.entries[0][0]
        text = None if lineage is None else str(lineage)
        return lambda held: self._send("put", lambda: self.store.put(state.etag, content, op, text, held))

    def mark(
        self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Callable[[str | None], CommittedVersion]:
        return self.prepare(state, state.content, lineage, lease_id, deadline)

    def count_room(self, state: CurrentVersion, content: bytes) -> int:
        return self.room

    def fence(
        self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Callable[[], CommittedVersion]:
        text = None if lineage is None else str(lineage)
        return lambda: self._send("fence", lambda: self.store.put(state.etag, state.content, None, text, lease_id))

    def list_versions(self, deadline: Deadline) -> list[KeptVersion]:
        self._request("versions")
        kept = self.store.history if self.store.keeps_versions else []
        return [KeptVersion(version.etag, Lineage.parse(version.lineage)) for version in kept]

    def acquire(self, state: CurrentVersion, lease_id: str, seconds: int, deadline: Deadline) -> None:
        self._send("acquire", lambda: self.store.acquire(state.etag, lease_id, seconds))

    def release(self, lease_id: str, deadline: Deadline) -> None:
        self._send("release", lambda: self.store.release(lease_id))

    def read_etag_under_lease(self, lease_id: str, deadline: Deadline) -> str:
        self._request("head")
        if self.store.active_lease() != lease_id or self.store.etag is None:
            raise Locked("the lease is not held any more")
        return self.store.etag

    def is_leased(self, deadline: Deadline) -> bool:
        self._request("head")
        return self.store.active_lease() is not None

    def canonicalize(self, content: bytes) -> bytes:
        return content

    def _request(self, name: str) -> None:
        self.before(name)
        self.requests.append(name)

    def _send(self, name: str, call: Callable[[], Any]) -> Any:
        fault = next(self.faults, Fault.NONE)
        if fault is Fault.REFUSED:
            raise NotConnected(Stage.HOST, ConnectionRefusedError("Connection refused"))
        self._request(name)
        if fault is Fault.BUSY:
            raise Refusal(503, "ServerBusy")
        if fault is Fault.LATE:
            self.store.held.append(call)
        if fault in (Fault.LATE, Fault.RESET):
            raise BrokenAnswer(Broken.TIMED_OUT)
        if fault is Fault.REPLAYED:
            _tried(call)
            return call()
        answer = call() if fault is Fault.NONE else _tried(call)
        if fault is Fault.CTRL_C:
            raise KeyboardInterrupt
        if fault is Fault.LOST:
            raise BrokenAnswer(Broken.TIMED_OUT)
        return answer


@dataclass
class LedgeredResource(FakeResource):
    """One client's view of a store that keeps a ledger. ``asks`` is whether a read asks for the row of the op too."""

    op: str = field(kw_only=True)
    asks: bool = field(default=False, kw_only=True)
    _seen: Row | None = field(default=None, init=False)

    @property
    def leases(self) -> None:
        return None

    def read(self, deadline: Deadline) -> CurrentVersion:
        state = super().read(deadline)
        if not self.asks:
            return state
        self._request("row")
        row = self.store.rows.get(self.op)
        self._seen = row if row is not None and row.void else None
        if row is None or row.void:
            return replace(state, in_ledger=False)
        return replace(state, in_ledger=True, ledger_key=AppliedKey(row.change, datetime.now(UTC)))

    def prepare(
        self, state: CurrentVersion, content: bytes, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Callable[[str | None], CommittedVersion]:
        self.asks = True
        seen, text = self._seen, None if lineage is None else str(lineage)
        return lambda _: self._send("put", lambda: self.store.put_with_row(state.etag, content, self.op, text, seen))

    def fence(
        self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Callable[[], CommittedVersion]:
        seen = self._seen
        return lambda: self._send("fence", lambda: self.store.put_void_row(self.op, seen))


def _tried(call: Callable[[], Any]) -> Any:
    """Do what is asked, and lose the answer."""
    try:
        return call()
    except Refusal:
        return None


class Abandoned(BaseException):
    """Another piece of work failed, so that this one does not go on."""


class Baton:
    """Threads of which one runs at a time, chosen at random by a seed at every step.

    Each waits at a lock of its own, which the one before it opens. So a step wakes one thread, and nothing depends on
    how fast the machine is.
    """

    #: More than any story takes that ends.
    MOST_STEPS = 1_000_000

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._turns: list[threading.Lock] = []
        self._alive: list[int] = []
        self._steps = 0
        self._over = threading.Lock()
        self._failures: list[BaseException] = []

    def run(self, works: Iterable[Callable[[Callable[[], None]], None]]) -> None:
        """Run every piece of work in a thread of its own; each calls what it is given to let others go on.

        What one raises ends them all, and is raised here.
        """
        threads = [
            threading.Thread(target=self._one, args=(index, work), daemon=True) for index, work in enumerate(works)
        ]
        self._alive = list(range(len(threads)))
        self._turns = [threading.Lock() for _ in threads]
        for turn in (*self._turns, self._over):
            turn.acquire()
        for thread in threads:
            thread.start()
        self._choose().release()
        self._over.acquire()
        for thread in threads:
            thread.join()
        if self._failures:
            raise self._failures[0]

    def _one(self, index: int, work: Callable[[Callable[[], None]], None]) -> None:
        self._turns[index].acquire()
        try:
            if not self._failures:
                work(lambda: self._step(index))
        except Abandoned:
            pass
        except BaseException as error:  # noqa: BLE001  # raised by run
            self._failures.append(error)
        self._alive.remove(index)
        self._choose().release()

    def _step(self, index: int) -> None:
        self._steps += 1
        assert self._steps < self.MOST_STEPS, "an update never ends"
        chosen = self._choose()
        if chosen is not self._turns[index]:
            chosen.release()
            self._turns[index].acquire()
        if self._failures:
            raise Abandoned

    def _choose(self) -> threading.Lock:
        return self._turns[self._chance.choice(self._alive)] if self._alive else self._over


def shown(error: AzguardError) -> dict[str, object]:
    """Return what an error says of an update, for comparing as a whole."""
    kept = ("outcome", "attempts", "conflicts", "doubts", "base_etag")
    return {"kind": error.kind, **{name: error.facts[name] for name in kept if name in error.facts}}


def forever(faults: Iterable[Fault]) -> Iterator[Fault]:
    """Return these faults again and again."""
    fixed = list(faults)
    while True:
        yield from fixed
