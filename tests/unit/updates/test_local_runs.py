"""What a run leaves for the next run with the same key, and what that makes of it."""

import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from azguard.errors import OutcomeUnknown, Unavailable
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import DEPTH, Lineage, new_op
from azguard.updates.local_runs import WriteJournal
from azguard.updates.resource import UpdateHooks, UpdatePlan, UpdateResult
from azguard.updates.update import update
from tests.support.fake_resource import FakeResource, Fault, Store

OP = new_op(b"the key of it")


class Killed(BaseException):
    """The process is no more."""


def attempts(folder: Path, *, keyed: bool = True) -> WriteJournal:
    return WriteJournal(folder, OP, keyed=keyed)


def test_what_is_under_way_is_known_to_the_next_run_until_it_is_settled(tmp_path: Path) -> None:
    mine = attempts(tmp_path / "new")
    found = [attempts(tmp_path / "new").read_pending()]
    for etag in (None, '"E1"', '"E2"'):
        mine.record_sending(etag)
        found.append(attempts(tmp_path / "new").read_pending())
    mine.forget()
    found.append(attempts(tmp_path / "new").read_pending())
    assert (found, list((tmp_path / "new").iterdir())) == ([None, "-", "E1", "E2", None], [])


def test_what_is_under_way_is_kept_where_only_its_owner_looks(tmp_path: Path) -> None:
    attempts(tmp_path / "deep" / "new").record_sending('"E1"')
    assert stat.S_IMODE((tmp_path / "deep" / "new").stat().st_mode) == 0o700


def test_what_cannot_be_forgotten_is_left_to_the_next_run(tmp_path: Path) -> None:
    mine = attempts(tmp_path)
    mine.record_sending('"E1"')
    (tmp_path / OP).unlink()
    (tmp_path / OP).mkdir()
    mine.forget()
    assert attempts(tmp_path).read_pending() is None


def test_without_a_key_only_an_unknown_end_is_kept(tmp_path: Path) -> None:
    mine = attempts(tmp_path, keyed=False)
    mine.record_sending('"E1"')
    before = attempts(tmp_path).read_pending()
    mine.record_unknown('"E1"')
    assert (before, attempts(tmp_path).read_pending(), mine.is_in_ledger) == (None, "E1", False)


def test_a_run_that_has_recorded_nothing_forgets_nothing_of_another(tmp_path: Path) -> None:
    attempts(tmp_path).record_sending('"E1"')
    attempts(tmp_path).forget()
    assert attempts(tmp_path).read_pending() == "E1"


def test_a_shorter_line_over_a_longer_one_and_a_line_of_an_earlier_azguard_are_read_alone(tmp_path: Path) -> None:
    mine = attempts(tmp_path)
    mine.record_sending('"0x1234"', b"digest", in_ledger=True)
    mine.record_sending(None)
    (found := attempts(tmp_path)).read_pending()
    assert (found.read_pending(), found.is_in_ledger, found.change) == ("-", False, None)
    (tmp_path / OP).write_text("0x1 ledger change:0a")
    assert (found.read_pending(), found.is_in_ledger, found.change) == ("0x1", True, b"\n")


def test_a_run_whose_file_another_run_or_a_user_deleted_begins_another(tmp_path: Path) -> None:
    mine, other = attempts(tmp_path), attempts(tmp_path)
    for each in (mine, other):
        each.record_sending('"E1"')
    other.forget()
    deleted = attempts(tmp_path).read_pending()
    mine.record_sending('"E1"')
    assert (deleted, attempts(tmp_path).read_pending()) == (None, "E1")


def test_where_nothing_can_be_kept_an_update_goes_on(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    mine = attempts(tmp_path / "file")
    mine.record_sending('"E1"')
    mine.forget()
    assert mine.read_pending() is None


# The update itself: a run is killed at a request, and another follows.


def run(
    store: Store,
    folder: Path,
    *faults: Fault,
    killed_at: int | None = None,
    text: bytes = b"x",
    create: bytes | None = None,
) -> UpdateResult:
    made: list[str] = []

    def before(name: str) -> None:
        made.append(name)
        if killed_at is not None and len(made) >= killed_at:
            raise Killed

    resource = FakeResource(store, _of(faults), before)
    plan = UpdatePlan(lambda content: content + text, OP, create=create)
    return update(resource, plan, deadline(store), UpdateHooks(journal=attempts(folder)))


def _of(faults: tuple[Fault, ...]) -> Iterator[Fault]:
    yield from faults
    while True:
        yield Fault.NONE


def deadline(store: Store) -> Deadline:
    return store.clock.deadline(5.0)


def test_a_write_of_a_killed_run_that_a_foreign_writer_covered_is_unknown_and_not_done_again(tmp_path: Path) -> None:
    store = Store.holding(b"")
    with pytest.raises(Killed):
        run(store, tmp_path, Fault.LOST, killed_at=3)
    store.foreign_write(b"x")
    for _ in range(2):
        with pytest.raises(OutcomeUnknown):
            run(store, tmp_path)
    assert (store.current is not None and store.current.content, len(store.commits_of(OP))) == (b"x", 1)


def test_a_write_of_a_killed_run_that_sixteen_others_covered_is_unknown_and_not_done_again(tmp_path: Path) -> None:
    store = Store.holding(b"")
    with pytest.raises(Killed):
        run(store, tmp_path, Fault.LOST, killed_at=3)
    for number in range(DEPTH):
        update(
            FakeResource(store, _of(())),
            UpdatePlan(lambda content: content + b"y", new_op(bytes([number] * 12))),
            deadline(store),
        )
    with pytest.raises(OutcomeUnknown):
        run(store, tmp_path)
    assert len(store.commits_of(OP)) == 1


def test_a_run_that_is_killed_before_it_has_told_its_end_leaves_its_write_to_the_next_one(tmp_path: Path) -> None:
    store = Store.holding(b"")
    plan = UpdatePlan(lambda content: content + b"x", OP)
    once_told: list[Callable[[], None]] = []
    tools = UpdateHooks(journal=attempts(tmp_path), once_told=once_told.append)
    update(FakeResource(store, _of(())), plan, deadline(store), tools)
    store.foreign_write(b"y")
    with pytest.raises(OutcomeUnknown):
        run(store, tmp_path)
    (delete,) = once_told
    delete()
    assert list(tmp_path.iterdir()) == []


def test_a_write_of_a_killed_run_that_is_there_was_applied_before(tmp_path: Path) -> None:
    store = Store.holding(b"")
    with pytest.raises(Killed):
        run(store, tmp_path, Fault.LOST, killed_at=3)
    assert (run(store, tmp_path).outcome, len(store.commits_of(OP)), list(tmp_path.iterdir())) == (
        "applied_before",
        1,
        [],
    )


def test_a_write_of_a_killed_run_that_arrives_later_is_done_once(tmp_path: Path) -> None:
    store = Store.holding(b"")
    with pytest.raises(Killed):
        run(store, tmp_path, Fault.LATE, killed_at=3)
    assert run(store, tmp_path).outcome == "committed"
    store.deliver()
    assert (len(store.commits_of(OP)), list(tmp_path.iterdir())) == (1, [])


def test_a_next_run_that_changes_nothing_fences_off_what_may_still_arrive(tmp_path: Path) -> None:
    store = Store.holding(b"")
    with pytest.raises(Killed):
        run(store, tmp_path, Fault.LATE, killed_at=3)
    assert run(store, tmp_path, text=b"").outcome == "unchanged"
    store.deliver()
    assert (store.commits_of(OP), list(tmp_path.iterdir())) == ([], [])


def test_a_create_of_a_killed_run_does_not_make_a_later_update_create(tmp_path: Path) -> None:
    store = Store()
    plan = UpdatePlan(lambda content: content + b"x", OP, create=b"")
    tools = UpdateHooks(journal=attempts(tmp_path))
    tools.journal.record_sending(None)  # type: ignore[union-attr]  # just made
    with pytest.raises(Exception, match="there is no blob"):
        update(FakeResource(store, _of(())), replace(plan, create=None), deadline(store), tools)
    assert store.current is None


def test_a_create_of_a_killed_run_that_another_create_covered_is_unknown_as_absence_recurs(
    tmp_path: Path,
) -> None:
    store, other = Store(), new_op(b"another's op")
    with pytest.raises(Killed):
        run(store, tmp_path, Fault.LOST, killed_at=3, create=b"")
    store.delete()
    store.put(None, b"y", other, str(Lineage().after(other, None)), None)
    with pytest.raises(OutcomeUnknown):
        run(store, tmp_path, create=b"")
    assert (store.current is not None and store.current.content, len(store.commits_of(OP))) == (b"y", 1)


def test_an_unknown_end_is_left_to_the_next_run_even_without_a_key(tmp_path: Path) -> None:
    store = Store.holding(b"")

    def cover(name: str) -> None:
        if len(resource.requests) == 2:
            store.foreign_write()

    resource = FakeResource(store, iter([Fault.LOST]), cover)
    with pytest.raises(OutcomeUnknown):
        update(
            resource,
            UpdatePlan(lambda content: content + b"x", OP),
            deadline(store),
            UpdateHooks(journal=attempts(tmp_path, keyed=False)),
        )
    assert attempts(tmp_path).read_pending() == "E1"


def test_an_end_that_is_known_leaves_nothing_behind(tmp_path: Path) -> None:
    store = Store.holding(b"")
    resource = FakeResource(store, iter([Fault.RESET] * 3))
    plan = UpdatePlan(lambda content: content + b"x", OP, max_attempts=1)
    with pytest.raises(Unavailable):
        update(resource, plan, deadline(store), UpdateHooks(journal=attempts(tmp_path)))
    assert list(tmp_path.iterdir()) == []
