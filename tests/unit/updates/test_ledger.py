"""A ledger of updates: a row of the op, written in one transaction with the resource, tells the other writers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from azguard.errors import AzguardError
from azguard.requests.commits import Verdict
from azguard.requests.lineage import Lineage, new_op
from azguard.updates.doubt import find_status, judge_by_ledger
from azguard.updates.local_runs import WriteJournal
from azguard.updates.resource import CurrentVersion, UpdateHooks, UpdatePlan, UpdateResult
from azguard.updates.update import update
from tests.support.cases import cases
from tests.support.fake_resource import Fault, LedgeredResource, Store

OP, OTHER = new_op(b"a" * 12), new_op(b"b" * 12)


class Run:
    """One run of an update whose op is kept in a ledger."""

    def __init__(
        self,
        store: Store,
        *faults: Fault,
        others: dict[int, Callable[[], object]] | None = None,
        again: bool = False,
        op: str = OP,
        journal: WriteJournal | None = None,
    ) -> None:
        self.journal = journal
        self.store, self.others, self.op = store, others or {}, op
        self.told: list[str] = []
        self.resource = LedgeredResource(store, iter(faults), self._before, op=op, asks=again)

    def _before(self, name: str) -> None:
        self.others.get(len(self.resource.requests) + 1, lambda: None)()

    def end(self, **plan: Any) -> UpdateResult:
        made = UpdatePlan(lambda content: content + b"x", self.op, ledger=True, **plan)
        return update(
            self.resource, made, self.store.clock.deadline(60), UpdateHooks(tell=self.told.append, journal=self.journal)
        )

    def outcome(self, **plan: Any) -> str:
        try:
            return self.end(**plan).outcome
        except AzguardError as error:
            return error.kind

    def truth(self) -> tuple[bytes | None, int]:
        """Return what is there once everything has arrived, and how many times our op was applied."""
        while self.store.held:
            self.store.deliver()
        return self.store.current.content if self.store.current else None, len(self.store.commits_of(self.op))


@pytest.fixture
def store() -> Store:
    return Store.holding(b"old")


def test_a_ledger_costs_no_request_while_nothing_goes_wrong(store: Store) -> None:
    run = Run(store)
    assert (run.end().guard, run.resource.requests, run.truth()) == ("ledger", ["read", "put"], (b"oldx", 1))


@pytest.mark.parametrize("stamps", [True, False])
@pytest.mark.parametrize("fault", [Fault.LOST, Fault.REPLAYED])
def test_a_write_that_another_tool_covered_is_in_the_ledger(store: Store, fault: Fault, *, stamps: bool) -> None:
    run = Run(store, fault, others={3: lambda: store.foreign_write(b"theirs")})
    ended = run.end(stamps=stamps)
    assert (ended.outcome, ended.committed.etag, run.truth()) == ("committed", None, (b"theirs", 1))
    assert run.told[-2] == "settled: our write is in the ledger"


@pytest.mark.parametrize("stamps", [True, False])
def test_a_write_in_doubt_that_a_foreign_writer_replaced_is_sent_anew(store: Store, *, stamps: bool) -> None:
    run = Run(store, Fault.LATE, others={3: lambda: store.foreign_write(b"theirs")})
    assert (run.outcome(stamps=stamps), run.truth()) == ("committed", (b"theirsx", 1))


@pytest.mark.parametrize("stamps", [True, False])
def test_a_write_in_doubt_over_the_version_that_is_still_there_is_sent_again(store: Store, *, stamps: bool) -> None:
    run = Run(store, Fault.LATE, others={5: store.deliver})
    assert (run.outcome(stamps=stamps), run.truth()) == ("committed", (b"oldx", 1))


@pytest.mark.parametrize("covered", [True, False])
def test_what_an_earlier_run_sent_without_it_is_unknown(store: Store, tmp_path: Path, *, covered: bool) -> None:
    WriteJournal(tmp_path, OP, keyed=True).record_sending(store.etag)
    if covered:
        store.foreign_write(b"theirs")
    run = Run(store, Fault.LATE, again=True, journal=WriteJournal(tmp_path, OP, keyed=True))
    told = [run.outcome(max_attempts=1)]
    # Its own write is the only one that the ledger tells of.
    again = Run(store, again=True, journal=WriteJournal(tmp_path, OP, keyed=True))
    told.append(again.outcome())
    assert (told, run.truth()[1]) == (["unknown", "unknown" if covered else "committed"], 0 if covered else 1)


def test_what_was_given_up_is_void_and_can_never_land(store: Store) -> None:
    run = Run(store, Fault.LATE)
    assert (run.outcome(max_attempts=1), run.truth()) == ("unavailable", (b"old", 0))
    assert store.rows[OP].void


def test_a_create_that_was_given_up_can_never_land_either() -> None:
    run = Run(Store(), Fault.LATE)
    assert (run.outcome(max_attempts=1, create=b""), run.truth()) == ("unavailable", (None, 0))


def test_a_create_in_doubt_stays_in_doubt_behind_a_write_that_can_never_land() -> None:
    # The create is late, another makes it, our second write is lost over that, and another deletes it.
    store = Store()
    others: dict[int, Callable[[], object]] = {3: lambda: store.foreign_write(b"theirs"), 6: store.delete}
    run = Run(store, Fault.LATE, Fault.RESET, others=others)
    assert (run.outcome(max_attempts=2, create=b""), run.truth()) == ("unavailable", (None, 0))


def test_a_create_in_doubt_is_sent_again_though_another_made_and_deleted_it() -> None:
    store = Store()

    def make_and_delete() -> None:
        store.foreign_write(b"theirs")
        store.delete()

    run = Run(store, Fault.LATE, others={3: make_and_delete})
    assert (run.outcome(create=b""), run.truth()) == ("committed", (b"x", 1))


def test_a_create_in_doubt_lands_once_though_another_makes_it_first() -> None:
    store = Store()
    run = Run(store, Fault.LATE, others={3: lambda: store.foreign_write(b"theirs")})
    assert (run.outcome(create=b""), run.truth()) == ("committed", (b"theirsx", 1))


def test_an_op_in_the_ledger_is_not_applied_again_though_a_foreign_writer_wiped_the_lineage(store: Store) -> None:
    Run(store).end()
    store.foreign_write()
    run = Run(store, again=True)
    assert (run.outcome(), run.resource.requests, run.truth()) == ("applied_before", ["read", "row"], (b"oldx", 1))
    assert run.told[-2] == "the ledger has this op: it was done before"


def test_an_op_that_was_given_up_can_be_tried_again(store: Store) -> None:
    Run(store, Fault.LATE).outcome(max_attempts=1)
    run = Run(store, again=True)
    assert (run.outcome(), run.truth(), store.rows[OP].void) == ("committed", (b"oldx", 1), False)


def test_of_an_op_the_ledger_tells_committed_or_not_committed_and_never_unknown(store: Store) -> None:
    Run(store).end()
    Run(store, Fault.LATE, op=OTHER).outcome(max_attempts=1)
    store.foreign_write()

    def became(op: str) -> str:
        resource = LedgeredResource(store, iter(()), op=op, asks=True)
        return find_status(resource, op, store.clock.deadline()).outcome

    never = "not_committed"
    assert [became(op) for op in (OP, OTHER, new_op(b"c" * 12))] == ["committed", never, never]


@cases(
    ("parent", "current", "verdict"),
    ('"1"', '"1"', Verdict.NOT_YET),
    ('"1"', '"2"', Verdict.NEVER),
    ('"2"', '"1"', Verdict.NEVER),
    ('"1"', None, Verdict.NEVER),
    # What is not there can come and go: a create may land each time that nothing is there.
    (None, '"1"', Verdict.NOT_YET),
    (None, None, Verdict.NOT_YET),
)
def test_what_the_ledger_does_not_have_can_land_only_while_its_version_is_there(
    parent: str | None, current: str | None, verdict: Verdict
) -> None:
    assert judge_by_ledger(parent, CurrentVersion(b"", current, Lineage(), in_ledger=False)) is verdict
