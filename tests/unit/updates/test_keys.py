"""A key names one change: recorded once, whatever it found, compared with what is asked for, and remembered long."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from azguard.address import Kind
from azguard.errors import AzguardError, Exists, OutcomeUnknown, UsageError
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import DEPTH, MOST_IN_METADATA, Lineage, is_op, new_op
from azguard.updates.compared import UnboundLineage
from azguard.updates.doubt import find_status
from azguard.updates.local_runs import WriteJournal
from azguard.updates.resource import (
    Applied,
    Change,
    CommittedVersion,
    CurrentVersion,
    UpdateHooks,
    UpdatePlan,
    UpdateResult,
    choose_op,
    count_remembered,
    find_applied,
)
from azguard.updates.update import preview, update
from azguard.wire.failures import Refusal
from tests.support.cases import cases
from tests.support.fake_resource import TARGET, Baton, FakeResource, Fault, LedgeredResource, Row, Store
from tests.support.update_case import OP, OTHER, Case, others_update, plus_one, stored

ONE, ANOTHER = Change.of(["one"], "--increment n"), Change.of(["another"], "--increment n=…")
NOON = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)


def same(content: bytes) -> bytes:
    return content


def keyed(change: Change = ONE, **plan: Any) -> dict[str, Any]:
    return {"is_keyed": True, "change": change, **plan}


def crowd(store: Store, writes: int) -> None:
    for number in range(writes):
        others_update(store, new_op(bytes([number % 200 + 1]) * 12))()


def test_a_key_makes_the_same_op_each_time_and_an_op_that_azguard_names_is_taken_as_it_is() -> None:
    fresh, again = (choose_op(TARGET, None) for _ in range(2))
    keyed_ops = [choose_op(TARGET, key) for key in ("run-71", "run-71", "run-72")]
    assert (is_op(fresh), fresh == again, choose_op(TARGET, f"op:{OP}")) == (True, False, OP)
    assert (keyed_ops[0] == keyed_ops[1], keyed_ops[0] == keyed_ops[2]) == (True, False)
    with pytest.raises(UsageError) as caught:
        choose_op(TARGET, f"op:{OP[1:]}")
    assert (caught.value.reason, caught.value.argument) == ("op_id_malformed", "op_id")


def test_an_entity_remembers_more_keys_than_metadata_can() -> None:
    counts = {kind: count_remembered(kind) for kind in (Kind.BLOB, Kind.ENTITY, Kind.FILE, Kind.QUEUE)}
    assert counts == {Kind.BLOB: 128, Kind.ENTITY: 512, Kind.FILE: 128, Kind.QUEUE: 128}


@cases("faults", (), (Fault.LOST,), (Fault.RESET,), (Fault.LATE,), (Fault.BUSY,), (Fault.REPLAYED,))
def test_a_change_that_was_there_already_is_recorded_once_so_that_a_second_run_turns_nothing_back(
    faults: tuple[Fault, ...],
) -> None:
    store = stored(b"1")
    first = Case(store, faults).outcome(same, **keyed())
    others_update(store)()
    again = Case(store).outcome(lambda content: b"1", **keyed())
    assert (first[0], again, Case(store).truth()) == ("unchanged", ("applied_before", None), (b"2", 1))  # type: ignore[index]  # it ended well


def test_the_version_of_a_recorded_op_has_the_same_content_and_is_reported() -> None:
    case = Case(stored(b"1"))
    ended = case.end(same, **keyed())
    assert (ended.committed.etag, ended.base, ended.attempts, case.truth()) == ('"E2"', '"E1"', 1, (b"1", 1))


@cases("plan", {}, {"is_keyed": True, "stamps": False})
def test_without_a_key_or_a_place_for_it_an_unchanged_update_writes_nothing(plan: dict[str, Any]) -> None:
    case = Case(stored(b"1"))
    assert (case.outcome(same, **plan), case.truth()) == (("unchanged", '"E1"'), (b"1", 0))


def test_what_was_unchanged_when_another_wrote_first_is_changed_after_all() -> None:
    store = stored(b"1")
    case = Case(store, others={2: others_update(store)})
    assert (case.outcome(lambda content: b"1", **keyed()), case.truth()) == (("committed", '"E3"'), (b"1", 1))


def test_an_earlier_write_in_doubt_of_the_key_excludes_the_record_or_is_excluded_by_it(tmp_path: Path) -> None:
    store = stored(b"1")

    def run(*faults: Fault, change: Callable[[bytes], bytes] = same) -> str:
        tools = UpdateHooks(journal=WriteJournal(tmp_path, OP, keyed=True))
        plan = UpdatePlan(change, OP, **keyed(max_attempts=1))
        return update(FakeResource(store, iter(faults)), plan, store.clock.deadline(), tools).outcome

    WriteJournal(tmp_path, OP, keyed=True).record_sending('"E1"', ONE.digest)
    late = Lineage().after(OP, '"E1"')
    store.held.append(lambda: store.put('"E1"', b"late", OP, str(late), None))
    assert (run(), Case(store).truth()) == ("unchanged", (b"1", 1))


def test_a_run_that_is_killed_as_it_releases_its_lease_leaves_its_write_for_the_next_run(tmp_path: Path) -> None:
    class Killed(BaseException):
        """Nothing of the run goes on."""

    def kill(request: str) -> None:
        if request == "release":
            raise Killed

    def run(before: Callable[[str], None] = lambda request: None) -> str:
        tools = UpdateHooks(journal=WriteJournal(tmp_path, OP, keyed=True))
        plan = UpdatePlan(plus_one, OP, **keyed(guard_by_lease=True))
        return update(FakeResource(store, iter(()), before), plan, store.clock.deadline(), tools).outcome

    store = stored(b"1")
    with pytest.raises(Killed):
        run(kill)
    store.lease = None
    store.foreign_write(b"3")  # which wipes the lineage
    with pytest.raises(OutcomeUnknown):
        run()
    assert len(store.commits_of(OP)) == 1


@cases("in_ledger", False, True)
def test_the_key_of_another_change_is_refused_and_told_with_both(in_ledger: bool) -> None:
    store = stored()
    Case(store).end(**keyed())
    resource = FakeResource(store, iter(()))
    if in_ledger:
        resource = LedgeredResource(store, iter(()), op=OP, asks=True)
        store.rows[OP] = Row(1, void=False, change=ONE.digest)
        store.foreign_write(b"2")
    for run in (update, preview):
        with pytest.raises(Exists) as caught:
            run(resource, UpdatePlan(same, OP, **keyed(ANOTHER)), store.clock.deadline())
        assert caught.value.reason == "key_of_another_change"
        said = (f"{ONE.digest.hex()}, applied at ", ANOTHER.digest.hex(), ANOTHER.text)
        assert all(each in caught.value.message for each in said)
    assert len(store.commits_of(OP)) == 1


def test_the_key_of_another_change_may_be_taken_as_done() -> None:
    store = stored()
    Case(store).end(**keyed())
    again = Case(store)
    assert again.outcome(**keyed(ANOTHER, takes_any_change=True)) == ("applied_before", None)
    assert (again.warned, again.truth()) == ([], (b"2", 1))


def test_what_was_recorded_without_its_change_counts_and_is_told() -> None:
    store = stored()
    Case(store).end()
    again = Case(store)
    assert again.outcome(**keyed()) == ("applied_before", None)
    assert [each.partition(",")[0] for each in again.warned] == ["the change of this key was not recorded"]


@cases(("recorded", "again"), (keyed(), keyed()), ({}, keyed(takes_any_change=True)))
def test_what_was_recorded_or_is_not_compared_is_told_nothing_of(
    recorded: dict[str, Any], again: dict[str, Any]
) -> None:
    store = stored()
    Case(store).end(**recorded)
    case = Case(store)
    assert (case.outcome(**again), case.warned) == (("applied_before", None), [])


def test_of_an_own_write_that_is_found_without_a_key_nothing_is_told() -> None:
    case = Case(stored(), (Fault.LOST,))
    assert (case.outcome(change=ONE)[0], case.warned) == ("committed", [])  # type: ignore[index]  # it ended well


def test_a_key_whose_other_change_is_in_doubt_is_refused_before_any_request(tmp_path: Path) -> None:
    store = stored()
    WriteJournal(tmp_path, OP, keyed=True).record_sending('"E0"', ONE.digest)
    resource = FakeResource(store, iter(()))
    tools = UpdateHooks(journal=WriteJournal(tmp_path, OP, keyed=True))
    with pytest.raises(UsageError) as caught:
        update(resource, UpdatePlan(same, OP, **keyed(ANOTHER)), store.clock.deadline(), tools)
    assert (caught.value.reason, resource.requests) == ("key_of_another_change", [])
    assert WriteJournal(tmp_path, OP, keyed=True).read_pending() == "E0"


def test_a_change_that_was_applied_and_not_told_yet_is_no_doubt_to_the_next_one(tmp_path: Path) -> None:
    store = stored(b"1")
    journals = [WriteJournal(tmp_path, OP, keyed=True) for _ in range(2)]
    tools = [UpdateHooks(journal=each, once_told=lambda forget: None) for each in journals]
    update(FakeResource(store, iter(())), UpdatePlan(plus_one, OP, **keyed()), store.clock.deadline(), tools[0])
    with pytest.raises(Exists, match="applied at"):
        update(FakeResource(store, iter(())), UpdatePlan(same, OP, **keyed(ANOTHER)), store.clock.deadline(), tools[1])


def test_of_two_runs_at_once_with_two_changes_one_is_applied_and_the_other_refused() -> None:
    store = stored(b"1")

    def rival() -> None:
        Case(store).end(lambda content: b"rival", **keyed(ANOTHER))

    for faults in ((), (Fault.RESET,)):
        case = Case(stored(b"1"), faults)
        store = case.store
        case.others = {2: rival} if not faults else {3: rival}
        assert (case.outcome(**keyed()), case.truth()) == ("exists", (b"rival", 1))


def test_who_is_interrupted_while_the_key_is_used_for_another_change_is_told_that_nothing_was_written() -> None:
    store = stored(b"1")

    def interrupt() -> None:
        Case(store).end(lambda content: b"rival", **keyed(ANOTHER))
        raise KeyboardInterrupt

    case = Case(store, (Fault.RESET,), {3: interrupt})
    assert (case.outcome(**keyed()), case.truth()) == ("exists", (b"rival", 1))


def test_what_was_made_and_never_sent_is_no_content_of_an_earlier_run() -> None:
    store = stored(b"1")
    case = Case(store, (Fault.REFUSED,), {2: lambda: Case(store).end(**keyed())})
    ended = case.end(**keyed())
    assert (ended.outcome, ended.content, ended.base) == ("applied_before", None, None)


def test_an_op_without_a_key_is_not_remembered_as_one() -> None:
    store = stored(b"1")
    Case(store).end(change=ONE)
    assert store.current is not None
    assert store.current.lineage == f"{OP}.E1"


def test_to_create_what_is_empty_is_a_change() -> None:
    case = Case(Store())
    ended = case.end(same, **keyed(create=b""))
    assert (ended.outcome, ended.created, case.truth()) == ("committed", True, (b"", 1))


def test_a_key_that_stands_alone_in_a_damaged_lineage_is_believed() -> None:
    damaged = Lineage().with_key(OP, ONE.digest, NOON, 1)
    assert find_applied(CurrentVersion(b"", '"E1"', damaged), OP) == Applied(NOON, ONE.digest, written_since=True)


def test_of_what_is_gone_the_ledger_tells_that_another_wrote_since() -> None:
    gone = CurrentVersion(b"", None, Lineage(), in_ledger=True)
    assert find_applied(gone, OP) == Applied(None, None, written_since=True)


class Unbound(FakeResource):
    """What is only compared: no lineage proves that a write cannot come any more, and nothing fences it off."""

    def read(self, deadline: Deadline) -> CurrentVersion:
        state = super().read(deadline)
        return replace(state, lineage=UnboundLineage.parse(str(state.lineage)))

    def fence(self, *_: Any) -> Callable[[], CommittedVersion]:
        def refuse() -> CommittedVersion:
            raise Refusal(400, "NothingComparesVersions")

        return refuse


def test_where_an_own_write_may_still_come_the_key_of_another_change_is_unknown() -> None:
    store = stored(b"1")
    rivals = [lambda: Case(store).end(lambda content: b"rival", **keyed(ANOTHER))]

    def before(name: str) -> None:
        if store.held and rivals:
            rivals.pop()()

    resource = Unbound(store, iter([Fault.LATE]), before)
    with pytest.raises(OutcomeUnknown):
        update(resource, UpdatePlan(plus_one, OP, **keyed()), store.clock.deadline())


@cases(("others", "since"), (0, False), (1, True), (3 * DEPTH, True))
def test_it_is_told_when_a_key_was_applied_and_whether_another_wrote_since(others: int, since: bool) -> None:
    store = stored()
    update(
        FakeResource(store, iter(())),
        UpdatePlan(same, OP, **keyed()),
        store.clock.deadline(),
        UpdateHooks(now=lambda: NOON),
    )
    crowd(store, others)
    ended = Case(store).end(**keyed())
    assert (ended.outcome, ended.applied) == ("applied_before", Applied(NOON, ONE.digest, since))


@cases(("later", "since"), (timedelta(minutes=14), False), (timedelta(minutes=16), True))
def test_a_version_much_later_than_the_key_is_anothers_without_a_lineage(later: timedelta, since: bool) -> None:
    store = stored()
    case = Case(store)
    tools = UpdateHooks(now=lambda: NOON)
    update(case.resource, UpdatePlan(same, OP, **keyed()), store.clock.deadline(), tools)
    state = replace(case.resource.read(store.clock.deadline()), last_modified=NOON + later)
    assert find_applied(state, OP) == Applied(NOON, ONE.digest, since)


# How many keys are remembered.


def op_of(number: int) -> str:
    return new_op(b"%06d" % number * 2)


def use_keys(store: Store, *numbers: int, room: int = 8192) -> list[str]:
    """Apply these keys, that of a number so many minutes after noon, and return the warnings."""
    warned: list[str] = []
    for number in numbers:
        plan = UpdatePlan(plus_one, op_of(number), **keyed())
        at = NOON + timedelta(minutes=number)
        tools = UpdateHooks(now=lambda at=at: at, warn=warned.append)  # type: ignore[misc]  # bound now
        update(FakeResource(store, iter(()), room=room), plan, store.clock.deadline(), tools)
    return warned


def find(store: Store, number: int) -> tuple[str, datetime | None]:
    resource = FakeResource(store, iter(()))
    found = find_status(resource, op_of(number), store.clock.deadline(), is_keyed=True)
    return found.outcome, found.oldest_key


def test_the_last_128_keys_are_remembered_and_of_older_ones_it_is_told_that_they_can_be_forgotten() -> None:
    store = Store()
    store.put(None, b"", OTHER, str(Lineage().after(OTHER, None)), None)
    use_keys(store, *range(MOST_IN_METADATA), 0)
    crowd(store, 30)
    all_known = [("committed", None), ("committed", None), ("not_committed", None)]
    assert [find(store, number) for number in (0, 127, 200)] == all_known
    raw = find_status(FakeResource(store, iter(())), OP, store.clock.deadline())
    assert (raw.outcome, raw.oldest_key) == ("unknown", NOON)
    use_keys(store, 128)
    oldest = NOON + timedelta(minutes=1)
    assert [find(store, number) for number in (0, 1, 200)] == [
        ("unknown", oldest),
        ("committed", None),
        ("unknown", oldest),
    ]


def test_fewer_keys_are_remembered_where_there_is_no_room_and_that_is_told() -> None:
    store = stored(b"")
    assert use_keys(store, *range(10)) == []
    warned = use_keys(store, *range(10, 20), room=400)
    assert (warned[-1], len(store.current.lineage if store.current else "") <= 400) == (
        "site/config.json remembers the last 3 keys only: there is no room for more",
        True,
    )
    assert [find(store, number)[0] for number in (16, 17)] == ["committed", "committed"]


def test_metadata_that_no_version_guards_prove_no_key_unused() -> None:
    lineage = UnboundLineage().after(OTHER, None)
    for number in range(DEPTH):
        lineage = lineage.after(OTHER, f'"E{number}"')
    state = CurrentVersion(b"", '"E9"', lineage)
    resource = FakeResource(stored(), iter(()))
    resource.read = lambda deadline: state  # type: ignore[method-assign]  # as the service tells it
    found = find_status(resource, OP, resource.store.clock.deadline(), is_keyed=True)
    assert (found.outcome, found.oldest_key) == ("unknown", None)


# Held against the truth.


@dataclass
class Jobs:
    """Jobs that use few keys for two changes each, again and again, while requests and answers get lost."""

    seed: int
    told: list[tuple[str, bytes, UpdateResult | AzguardError]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.store = Store.holding(b"a")
        self.keys = [op_of(number) for number in range(6)]

    def play(self) -> "Jobs":
        Baton(self.chance).run([self._work] * 3)
        while self.store.held:
            self.store.deliver()
        return self

    @property
    def done(self) -> dict[str, bytes | None]:
        lineage = Lineage.parse(None if self.store.current is None else self.store.current.lineage)
        return {op: key.change for op in self.keys if (key := lineage.find_key(op)) is not None}

    def _work(self, step: Callable[[], None]) -> None:
        for _ in range(12):
            op, letter = self.chance.choice(self.keys), self.chance.choice((b"a", b"b"))
            change = Change.of([letter.decode()], "")
            self.told.append((op, change.digest, self._run(op, letter, change, step)))

    def _run(self, op: str, letter: bytes, change: Change, step: Callable[[], None]) -> UpdateResult | AzguardError:
        def before(name: str) -> None:
            step()
            while self.store.held and self.chance.random() < 0.3:
                self.store.deliver()

        plan = UpdatePlan(lambda content: letter, op, **keyed(change))
        resource = FakeResource(self.store, self._faults(), before)
        try:
            return update(resource, plan, self.store.clock.deadline(600), UpdateHooks(self.chance))
        except AzguardError as error:
            return error

    def _faults(self) -> Iterator[Fault]:
        kinds = (Fault.LOST, Fault.LATE, Fault.RESET, Fault.BUSY, Fault.REPLAYED)
        while True:
            yield self.chance.choice(kinds) if self.chance.random() < 0.25 else Fault.NONE


@given(st.integers(0, 2**32))
def test_whatever_is_lost_a_key_is_done_once_and_only_with_the_change_that_is_told(seed: int) -> None:
    jobs = Jobs(seed).play()
    assert [op for op in jobs.keys if len(jobs.store.commits_of(op)) != (op in jobs.done)] == []
    wrong = [end for op, change, end in jobs.told if (jobs.done.get(op) == change) is not isinstance(end, UpdateResult)]
    assert (wrong, {type(end) for *_, end in jobs.told} - {UpdateResult, Exists}) == ([], set())
