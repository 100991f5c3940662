"""Updates of many entities: whatever interrupts them, the summary tells all that was committed."""

import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from azguard.accounts.account import Target, emulator
from azguard.address import Address, Kind
from azguard.errors import AzguardError, Changed, NotFound, OutcomeUnknown, Partial, Unavailable
from azguard.requests import commits
from azguard.requests.deadline import Deadline
from azguard.resources.pool import Done, StoppableClock, Tally
from azguard.tables import update_many
from azguard.tables.update_many import ManyUpdates, NoLongerMatches, Summary, _EntityUpdate
from azguard.updates import update as updates
from azguard.updates.resource import Change, UpdatePlan

TABLE = Target(emulator(), Address(Kind.TABLE, ("orders",)))
COMMITTED = SimpleNamespace(outcome="committed", attempts=1, created_keys=("nosuch",))


@dataclass
class Orders:
    """A table of which each entity is updated once, and what is told of that; stands for ``ManyUpdates``."""

    #: How the update of each entity ends: None is committed.
    ends: list[BaseException | None]
    #: What the query ends with.
    failure: BaseException | None = None
    table: Target = TABLE
    key: str | None = None
    committed: list[str] = field(default_factory=list)
    told: list[object] = field(default_factory=list)
    #: The updates wait for it.
    go: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.go.set()

    def updates(self, _clock: StoppableClock) -> Iterator[_EntityUpdate]:
        for row, _ in enumerate(self.ends):
            target = Target(emulator(), Address(Kind.ENTITY, ("orders", "eu", str(row))))
            anything: Any = None
            resource: Any = SimpleNamespace(target=target)
            yield _EntityUpdate(resource, anything, anything, anything)
        if self.failure is not None:
            raise self.failure

    def update(self, resource: Any, *_others: object) -> object:
        self.go.wait(60)
        row = resource.target.address.parts[-1]
        if (end := self.ends[int(row)]) is not None:
            raise end
        self.committed.append(row)
        return COMMITTED

    def update_all(self) -> str | None:
        """Update them and return the kind of error it ends with."""
        many: Any = self
        try:
            with commits.listen(lambda: self.told.append("announced")):
                update_many.update_all(many, 2, self.report, self.told.append)
        except KeyboardInterrupt:
            return "interrupted"
        except AzguardError as error:
            return error.kind
        return None

    def report(self, done: Done) -> None:
        if done.error is not None:
            self.told.append((done.address.rpartition("/")[2], done.outcome))

    @property
    def summaries(self) -> list[Summary]:
        return [each for each in self.told if isinstance(each, Summary)]


@pytest.fixture
def orders(monkeypatch: pytest.MonkeyPatch) -> Orders:
    """Return a table of five entities whose updates are committed."""
    made = Orders([None] * 5)
    monkeypatch.setattr(updates, "update", made.update)
    return made


def summary(matched: int, **counts: Any) -> Summary:
    none = {"updated": 0, "unchanged": 0, "applied_before": 0, "skipped": 0, "failed": 0, "unknown": 0}
    created = COMMITTED.created_keys if counts.get("updated") else ()
    return Summary(address="table:orders", matched=matched, created_keys=created, **{**none, **counts})


def test_a_key_that_was_created_in_any_is_named_once(orders: Orders) -> None:
    assert orders.update_all() is None
    assert [each.created_keys for each in orders.summaries] == [("nosuch",)]


def test_every_end_is_counted_and_every_failure_reported(orders: Orders) -> None:
    orders.ends = [
        None, Changed("no"), OutcomeUnknown("lost"), NotFound("deleted"), NoLongerMatches("other"), ValueError("bug"),
    ]  # fmt: skip
    assert orders.update_all() == Partial.kind
    *failures, announced, told = orders.told
    assert set(failures) == {("1", "failed"), ("2", "unknown"), ("5", "unknown")}
    assert (announced, told) == ("announced", summary(6, updated=1, failed=1, unknown=2, skipped=2))


@pytest.mark.parametrize(
    ("first", "key", "reason"),
    [
        (None, None, "updates_without_key_failed"),
        (None, "run-71", "some_updates_failed"),
        (Changed("no"), None, "some_updates_failed"),
    ],
)
def test_what_was_updated_without_a_key_would_be_updated_twice(
    orders: Orders, first: BaseException | None, key: str | None, reason: str
) -> None:
    orders.ends, orders.key = [first, Changed("no")], key
    many: Any = orders
    with pytest.raises(Partial) as ended:
        update_many.update_all(many, 2, orders.report, orders.told.append)
    assert ended.value.reason == reason


def test_the_failure_of_the_query_is_raised_after_what_was_begun_is_told(orders: Orders) -> None:
    orders.failure = Unavailable("no answer")
    # Not "unavailable", which says that nothing was applied.
    assert (orders.update_all(), orders.told) == ("partial", ["announced", summary(5, updated=5)])


def test_a_query_that_fails_at_once_has_no_summary(orders: Orders) -> None:
    orders.ends, orders.failure = [], Unavailable("no answer")
    assert (orders.update_all(), orders.summaries) == ("unavailable", [])


def test_an_interruption_on_the_way_begins_no_other_update(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Semaphore(0)
    update, close = orders.update, Tally.close

    def begin(*arguments: Any) -> object:
        begun.release()
        return update(*arguments)

    def wait(_tally: Tally) -> None:
        for _ in range(2):
            begun.acquire(timeout=60)
        raise KeyboardInterrupt

    def stop_then_close(tally: Tally) -> None:
        threading.Timer(0.05, orders.go.set).start()
        close(tally)

    monkeypatch.setattr(updates, "update", begin)
    monkeypatch.setattr(Tally, "wait", wait)
    monkeypatch.setattr(Tally, "close", stop_then_close)
    orders.go.clear()
    assert (orders.update_all(), orders.summaries) == ("interrupted", [summary(2, updated=2)])


def test_an_interruption_after_the_last_update_is_none(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    announcements = iter([KeyboardInterrupt()])

    def announce() -> None:
        for interruption in announcements:
            raise interruption

    monkeypatch.setattr(commits, "announce", announce)
    assert (orders.update_all(), orders.summaries) == (None, [summary(5, updated=5)])


def test_a_second_interruption_leaves_a_write_unknown(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Event()
    update = orders.update

    def begin(*arguments: Any) -> object:
        begun.set()
        return update(*arguments)

    def wait(tally: Tally) -> None:
        begun.wait(60)
        monkeypatch.setattr(tally, "_idle", SimpleNamespace(get=_interrupt, put=lambda item: None))
        raise KeyboardInterrupt

    monkeypatch.setattr(updates, "update", begin)
    monkeypatch.setattr(Tally, "wait", wait)
    orders.ends = [None]
    orders.go.clear()
    assert (orders.update_all(), orders.summaries) == ("interrupted", [summary(1, unknown=1)])
    orders.go.set()


def _interrupt(**_: float) -> None:
    raise KeyboardInterrupt


def test_an_interrupted_report_of_a_failure_is_made_again(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    interruptions, report = iter([KeyboardInterrupt()]), orders.report

    def interrupted(done: Done) -> None:
        for interruption in interruptions:
            raise interruption
        report(done)

    monkeypatch.setattr(orders, "report", interrupted)
    orders.ends = [Changed("no")]
    # It was the last update, so the interruption may have come too late to be one.
    assert orders.update_all() in ("interrupted", Partial.kind)
    assert orders.told == [("0", "failed"), "announced", summary(1, failed=1)]


def test_a_failure_that_comes_with_the_end_is_reported(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    finish, report = threading.Event(), Tally.report_ended

    def report_late(tally: Tally, on_end: Any) -> None:
        report(tally, on_end)
        if not finish.is_set():
            # The last update fails, and all is over, between this report and the next look whether all is over.
            finish.set()
            while not tally.is_over:
                threading.Event().wait(0.001)

    orders.ends = [None, Changed("no")]
    update = orders.update

    def first_then_wait(resource: Any, *others: object) -> object:
        if resource.target.address.parts[-1] == "1":
            finish.wait(60)
        return update(resource, *others)

    monkeypatch.setattr(updates, "update", first_then_wait)
    monkeypatch.setattr(Tally, "report_ended", report_late)
    assert orders.update_all() == Partial.kind
    assert ("1", "failed") in orders.told


def strike(orders: Orders, moment: int) -> int:
    """Interrupt the main thread at so many calls of functions, unless signals are ignored by then; return how many."""
    calls, has_begun = 0, False

    def count(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls, has_begun
        if event == "call" and has_begun and "announced" not in orders.told:
            calls += 1
            if calls == moment:
                raise KeyboardInterrupt
        has_begun = has_begun or frame.f_code is update_many.update_all.__code__

    sys.setprofile(count)
    try:
        end = orders.update_all()
    finally:
        sys.setprofile(None)
    assert end in (None, "interrupted")
    assert end == "interrupted" or len(orders.committed) == len(orders.ends)
    return calls


def test_an_interruption_at_any_moment_loses_no_count(orders: Orders) -> None:
    # The count depends on how the threads take turns; beyond the last moment nothing is interrupted.
    for moment in range(1, strike(orders, 0) + 20):
        orders.committed.clear()
        orders.told.clear()
        strike(orders, moment)
        updated = len(orders.committed)
        assert (moment, orders.summaries) == (moment, [summary(updated, updated=updated)] if updated else [])


def test_a_timeout_bounds_the_questions_after_each_update(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found: Any = SimpleNamespace()
    monkeypatch.setattr(update_many, "find_matches", lambda *_: iter([(TABLE, found)]))
    patience = Deadline.strict(3)
    many = ManyUpdates(
        table=TABLE,
        where="",
        change=lambda target, deadline, content: content,
        key=None,
        plan=UpdatePlan(transform=bytes, op="", change=Change(b"abc", "--increment n")),
        query_deadline=patience,
        patience=patience,
        journals=tmp_path,
    )
    assert [each.deadline.settle_seconds for each in many.updates(StoppableClock())] == [patience.settle_seconds]
