"""Exactly once, held against the truth: many writers, a quarter of their requests faulty, in any order a seed gives."""

import random
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from azguard.errors import AzguardError, GaveUp, Locked, OutcomeUnknown, Unavailable
from azguard.requests.lineage import new_op
from azguard.updates.leases import SHORT_LEASE_SECONDS
from azguard.updates.local_runs import WriteJournal
from azguard.updates.resource import UpdateHooks, UpdatePlan, UpdateResult
from azguard.updates.update import update
from tests.support.fake_resource import Baton, FakeResource, Fault, LedgeredResource, Store

WRITERS, UPDATES = 5, 4
_FAULTY = (Fault.LOST, Fault.LATE, Fault.LATE, Fault.RESET, Fault.BUSY, Fault.REFUSED, Fault.REPLAYED, Fault.CTRL_C)


class Killed(BaseException):
    """The process is no more: it can neither ask nor send anything."""


@dataclass
class World:
    """One run: its store, its luck, and how every update ended."""

    seed: int
    by_lease: bool = False
    versions: bool = False
    wiper: bool = False
    ledger: bool = False
    stamps: bool = True
    timeout: float = 60.0
    max_attempts: int | None = None
    writers: int = WRITERS
    reruns: float = 0.0  # the share of the unknown ends that are run again under the same key
    kills: float = 0.0  # the share of the runs that are killed; each update is run again until one is not
    mixes: bool = False  # whether only some runs of an op keep a ledger
    folder: Path | None = None  # where a run leaves word for its successor
    killed: set[str] = field(default_factory=set)
    ended: dict[str, UpdateResult | BaseException] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.store = Store.holding(b"", keeps_versions=self.versions)
        self.writing = self.writers
        self.leased_since: dict[str, float] = {}
        self.leased_long = False  # whether a lease was in the way for longer than an update waits unasked

    def play(self) -> "World":
        works = [self._writer(number) for number in range(self.writers)]
        Baton(self.chance).run([*works, *([self._wiper] if self.wiper else [])])
        while self.store.held:
            self.store.deliver()
        return self

    def _writer(self, number: int) -> Callable[[Callable[[], None]], None]:
        def work(step: Callable[[], None]) -> None:
            for _ in range(UPDATES):
                self._one_update(step)
            self.writing -= 1

        return work

    def _one_update(self, step: Callable[[], None]) -> None:
        op = new_op(self.chance.randbytes(12))
        while True:
            try:
                self._one_run(op, step)
            except Killed:
                self.killed.add(op)  # A successor runs it again, under the same key.
                continue
            if not isinstance(self.ended[op], OutcomeUnknown) or self.chance.random() >= self.reruns:
                return
            self.killed.add(op)

    def _one_run(self, op: str, step: Callable[[], None]) -> None:
        lives = self.chance.randrange(1, 6) if self.chance.random() < self.kills else None
        ledger = self.ledger and not (self.mixes and self.chance.random() < 0.5)
        made: list[str] = []

        def before(name: str) -> None:
            made.append(name)
            if lives is not None and len(made) > lives:
                raise Killed
            self._before(step)

        resource = (
            LedgeredResource(self.store, self._faults(), before, op=op, asks=op in self.killed)
            if ledger
            else FakeResource(self.store, self._faults(), before)
        )
        plan = UpdatePlan(
            lambda content: content + op.encode() + b"\n",
            op,
            guard_by_lease=self.by_lease,
            stamps=self.stamps,
            ledger=ledger,
            max_attempts=self.max_attempts,
        )
        attempts = None if self.folder is None else WriteJournal(self.folder, op, keyed=True)
        tools = UpdateHooks(
            self.chance, lambda: new_op(self.chance.randbytes(12)), lambda: f"lease {op}", journal=attempts
        )
        try:
            self.ended[op] = update(resource, plan, self.store.clock.deadline(self.timeout), tools)
        except (AzguardError, KeyboardInterrupt) as error:
            self.ended[op] = error

    def _wiper(self, step: Callable[[], None]) -> None:
        while self.writing:
            if self.chance.random() < 0.1 and self.store.active_lease() is None:
                self.store.foreign_write()
            step()

    def _before(self, step: Callable[[], None]) -> None:
        self.store.clock.sleep(0.01)
        step()
        self._watch_lease()
        while self.store.held and self.chance.random() < 0.3:
            self.store.deliver()

    def _watch_lease(self) -> None:
        active = self.store.active_lease()
        if active is not None:
            since = self.leased_since.setdefault(active, self.store.clock())
            self.leased_long |= self.store.clock() - since > 0.5 * SHORT_LEASE_SECONDS

    def _faults(self) -> Iterator[Fault]:
        faulty = list(_FAULTY)
        by_ledger = self.ledger and not self.mixes
        if not (by_ledger or self.by_lease or (self.stamps and (self.versions or not self.wiper))):
            faulty.remove(Fault.REPLAYED)  # That a refusal was of a second copy is then beyond finding out.
        while True:
            fault = self.chance.choice(faulty) if self.chance.random() < 0.25 else Fault.NONE
            if fault is Fault.CTRL_C:
                faulty.remove(fault)  # A second one says: never mind settling.
            yield fault

    # What is true, and what was said.

    def count(self, op: str) -> int:
        assert self.store.current is not None
        return self.store.current.content.split(b"\n").count(op.encode())

    def wrong(self) -> list[str]:
        """Return every answer that is not the truth."""
        found = []
        for op, end in self.ended.items():
            times = self.count(op)
            if isinstance(end, UpdateResult):
                etags = [commit.etag for commit in self.store.commits if commit.content.endswith(op.encode() + b"\n")]
                if times != 1:
                    found.append(f"{op} committed, applied {times} times")
                if end.committed.etag is not None and end.committed.etag not in etags:
                    found.append(f"{op} says {end.committed.etag}, which is not its version")
            # That nothing was applied is said of one run: what a killed one sent may still have landed.
            elif times > (isinstance(end, OutcomeUnknown) or op in self.killed):
                found.append(f"{op} {type(end).__name__}, applied {times} times")
        return found

    def others(self, *allowed: type) -> set[type]:
        """Return how updates ended, other than well, by Ctrl-C, or as is allowed.

        A lease whose holder has trouble, or whose release got lost, is in the way of all until it ends.
        """
        usual = {UpdateResult, KeyboardInterrupt, *allowed, *((Locked, OutcomeUnknown) if self.leased_long else ())}
        return {type(end) for end in self.ended.values()} - usual


seeds = st.integers(0, 2**32)


FEW, MODES = st.integers(1, 3), st.booleans()
STOPPED = (GaveUp, Unavailable)
#: What is promised, what the world is like, and how updates may end besides.
PROMISES: dict[str, tuple[dict[str, Any], tuple[type, ...]]] = {
    "every update is applied exactly once, and none is unknown": ({}, ()),
    "a guard lease is exactly once, too": ({"by_lease": True, "timeout": 600}, ()),
    "a writer that wipes the lineage leads to unknown, never to a wrong answer": ({"wiper": True}, (OutcomeUnknown,)),
    "kept versions leave nothing unknown beside a wiper": ({"wiper": True, "versions": True}, ()),
    "without a lineage there is no wrong answer": ({"stamps": False, "versions": MODES}, (OutcomeUnknown,)),
    "a ledger leaves nothing unknown beside a wiper and without a lineage": (
        {"wiper": True, "ledger": True, "stamps": MODES, "kills": 0.2}, (),
    ),
    "what a ledger gave up never lands": ({"wiper": True, "ledger": True, "max_attempts": FEW}, STOPPED),
    "giving up means that it never lands": ({"by_lease": MODES, "max_attempts": FEW}, STOPPED),
    "a lone writer that gives up in doubt has applied nothing": (
        {"stamps": MODES, "max_attempts": 1, "writers": 1}, (*STOPPED, OutcomeUnknown),
    ),
    "a deadline in the middle means that it never lands": ({"timeout": st.floats(0.02, 1.0)}, STOPPED),
    "what was killed and is run again under the same key is applied once": ({"kills": 0.5}, ()),
    "what was killed beside a wiper is not applied again where its attempts are remembered": (
        {"kills": 0.5, "reruns": 0.5, "wiper": True, "remembers": True}, (OutcomeUnknown,),
    ),
    "a ledger tells nothing of what an earlier run sent without one": (
        {"kills": 0.3, "reruns": 0.7, "wiper": True, "ledger": True, "mixes": True, "max_attempts": 2,
         "remembers": True}, (*STOPPED, OutcomeUnknown),
    ),
}  # fmt: skip


@pytest.mark.parametrize("promise", PROMISES)
@given(seeds, st.data())
def test_a_promise_is_kept_whatever_the_order_and_the_faults(promise: str, seed: int, data: st.DataObject) -> None:
    likes, allowed = PROMISES[promise]
    drawn = {name: data.draw(each) if isinstance(each, st.SearchStrategy) else each for name, each in likes.items()}
    with tempfile.TemporaryDirectory() as folder:
        left = Path(folder) if drawn.pop("remembers", False) else None
        world = World(seed, folder=left, **drawn).play()
    assert (world.wrong(), world.others(*allowed)) == ([], set())


@example(287)  # The second copy of a write is refused, and the lease has ended before it could prove the first.
@given(seeds)
def test_a_guard_lease_needs_no_lineage(seed: int) -> None:
    world = World(seed, by_lease=True, stamps=False, timeout=600).play()
    assert (world.wrong(), world.others()) == ([], set())


def test_what_one_writer_raises_ends_the_story_and_leaves_no_other_waiting() -> None:
    def write_forever(step: Callable[[], None]) -> None:
        while True:
            step()

    def fail(step: Callable[[], None]) -> None:
        step()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Baton(random.Random(1)).run([write_forever, fail, write_forever])
