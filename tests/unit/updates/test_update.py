"""An update: what it sends, what it answers, and what it leaves as it is."""

from contextlib import AbstractContextManager

import pytest

from azguard.errors import NotFound
from azguard.updates.plan import UpdatePlan, UpdateResult
from azguard.updates.resource import CommittedVersion
from azguard.updates.update import Preview, preview
from tests.support.fake_resource import Store
from tests.support.update_case import OP, OTHER, Case, others_update, plus_one, stored


def test_an_update_is_one_read_and_one_write() -> None:
    case = Case(stored())
    assert case.end() == UpdateResult(
        committed=CommittedVersion('"E2"'),
        outcome="committed",
        guard="if-match",
        attempts=1,
        conflicts=0,
        doubts=0,
        content=b"2",
        lineage=f"{OP}.E1",
        created=False,
        base='"E1"',
        base_length=1,
    )
    assert case.resource.requests == ["read", "put"]


def test_the_end_tells_which_version_of_another_it_is_merged_with() -> None:
    store = stored()
    ended = Case(store, others={2: others_update(store)}).end()
    assert ended.merged is not None
    assert (ended.outcome, ended.conflicts, ended.merged.etag) == ("committed", 1, '"E2"')


def test_what_comes_to_nothing_after_a_conflict_is_merged_with_nothing() -> None:
    store = stored()
    made: dict[bytes, bytes] = {b"1": b"2"}
    ended = Case(store, others={2: others_update(store)}).end(lambda content: made.get(content, content))
    assert (ended.outcome, ended.merged) == ("unchanged", None)


def test_a_guard_lease_costs_two_requests_more() -> None:
    case = Case(stored())
    ended = case.end(guard_by_lease=True)
    assert (ended.guard, case.resource.requests) == ("lease", ["read", "acquire", "put", "release"])


def test_content_that_does_not_change_is_not_written() -> None:
    case = Case(stored(b"41"))
    made_anew = case.outcome(lambda content: bytes(bytearray(content)))
    assert (made_anew, case.resource.requests) == (("unchanged", '"E1"'), ["read"])


def test_what_stays_as_it_is_is_told_with_the_version_and_the_lineage_that_are_there() -> None:
    store = stored()
    others_update(store)()
    ended = Case(store).end(lambda content: content)
    assert (ended.committed.etag, ended.lineage, ended.created) == ('"E2"', f"{OTHER}.E1", False)


def test_what_is_not_there_is_not_found() -> None:
    with pytest.raises(NotFound) as caught:
        Case(Store()).end()
    assert caught.value.http_status == 404


def test_what_is_there_is_changed_and_not_made_anew_though_it_might_have_been_created() -> None:
    ended = Case(stored()).end(create=b"41")
    assert (ended.content, ended.created, ended.guard) == (b"2", False, "if-match")


def test_what_is_not_there_is_created_if_asked_for() -> None:
    case = Case(Store())
    ended = case.end(create=b"41")
    assert (ended.created, ended.guard, ended.lineage, case.truth()) == (
        True,
        "if-none-match",
        f"{OP}.-,all",
        (b"42", 1),
    )


def test_an_op_that_is_in_the_lineage_is_not_applied_again() -> None:
    store = stored()
    Case(store).end()
    again = Case(store)
    assert (again.outcome(), again.resource.requests, again.truth()) == (("applied_before", None), ["read"], (b"2", 1))


def test_the_users_lease_is_written_under() -> None:
    store = stored()
    store.acquire('"E1"', "theirs", 60)
    ended = Case(store).end(lease_id="theirs")
    assert (ended.guard, store.active_lease()) == ("if-match", "theirs")


def test_a_writer_waits_for_its_turn_and_gives_it_back() -> None:
    events: list[str] = []

    class Queue(AbstractContextManager[None]):
        def __enter__(self) -> None:
            events.append("enter")

        def __exit__(self, *args: object) -> None:
            events.append("leave")

    case = Case(stored(), queue=Queue)
    case.resource.before = events.append
    case.end()
    assert events == ["enter", "read", "put", "leave"]


def test_a_failure_of_ours_is_not_hidden() -> None:
    def broken(content: bytes) -> bytes:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Case(stored()).end(broken)


def test_a_preview_writes_nothing() -> None:
    case = Case(stored())
    found = preview(case.resource, UpdatePlan(plus_one, OP), case.store.clock.deadline())
    assert (found, case.resource.requests) == (Preview('"E1"', b"1", b"2"), ["read"])


def test_a_preview_of_a_create_starts_from_its_content() -> None:
    case = Case(Store())
    found = preview(case.resource, UpdatePlan(plus_one, OP, create=b"7"), case.store.clock.deadline())
    assert found == Preview(None, None, b"8")
