"""A lost answer, and an op that is asked about later: what the lineage or the kept versions tell."""

import pytest

from azguard.errors import AzguardError, NotFound, TransformFailed
from azguard.requests.commits import Verdict
from azguard.requests.lineage import Lineage, new_op
from azguard.updates.doubt import find_status, judge_by_versions
from azguard.updates.resource import KeptVersion
from tests.support.cases import cases
from tests.support.fake_resource import FakeResource, Fault, Store, forever, shown
from tests.support.update_case import OP, OTHER, Case, others_update, plus_one, stored


@cases("fault", Fault.LOST, Fault.RESET, Fault.BUSY, Fault.LATE)
def test_a_lost_answer_is_settled_by_the_lineage(fault: Fault) -> None:
    case = Case(stored(), (fault,))
    ended = case.end()
    assert (ended.outcome, ended.doubts, ended.committed.etag, case.truth()) == ("committed", 1, '"E2"', (b"2", 1))


def test_a_lost_answer_hidden_by_another_update_is_committed_without_an_etag() -> None:
    store = stored()
    case = Case(store, (Fault.LOST,), {3: others_update(store)})
    assert (case.outcome(), case.truth()) == (("committed", None), (b"3", 1))


@cases(("content", "rest"), (b"3", "headers"), (b"1", "headers"), (b"2", "other headers"), (b"2", "few headers"))
def test_an_etag_is_only_told_if_nothing_tells_that_it_is_not_ours(content: bytes, rest: str) -> None:
    store = stored()
    case = Case(store, (Fault.LOST,), {3: lambda: store.foreign_write(content, keeps_metadata=True, rest=rest)})
    assert case.outcome() == ("committed", None)


def test_the_etag_of_another_update_that_left_our_content_is_not_told_as_ours() -> None:
    store = stored()

    def touch() -> None:
        now = store.current
        assert now is not None
        lineage = Lineage.parse(now.lineage).after(OTHER, now.etag)
        store.put(now.etag, now.content, OTHER, str(lineage), None)

    assert Case(store, (Fault.LOST,), {3: touch}).outcome() == ("committed", None)


def test_a_write_in_doubt_that_another_replaced_is_sent_anew() -> None:
    store = stored()
    case = Case(store, (Fault.RESET,), {3: others_update(store)})
    assert (case.outcome(), case.truth()) == (("committed", '"E3"'), (b"3", 1))


def test_a_refusal_after_doubt_does_not_settle_it() -> None:
    # The first attempt arrives just before the second, which it causes to be refused.
    store = stored()
    case = Case(store, (Fault.LATE,), {4: store.deliver})
    assert (case.outcome(), case.truth()) == (("committed", '"E2"'), (b"2", 1))


def test_no_connection_after_doubt_does_not_settle_it() -> None:
    store = stored()
    case = Case(store, (Fault.LATE, Fault.REFUSED), {4: store.deliver})
    assert (case.outcome(), case.truth()) == (("committed", '"E2"'), (b"2", 1))


def test_a_refusal_after_doubt_does_not_settle_it_beside_a_foreign_writer() -> None:
    # The first attempt arrives, a foreign writer covers it, and so the second is refused.
    store = stored()

    def deliver_and_cover() -> None:
        store.deliver()
        store.foreign_write()

    case = Case(store, (Fault.LATE,), {4: deliver_and_cover})
    assert (case.outcome(), case.truth()) == ("unknown", (b"2", 1))


def test_a_foreign_write_over_a_write_in_doubt_is_unknown() -> None:
    store = stored()
    case = Case(store, (Fault.RESET,), {3: store.foreign_write})
    with pytest.raises(AzguardError) as caught:
        case.end()
    assert shown(caught.value) == {
        "kind": "unknown",
        "outcome": "unknown",
        "attempts": 1,
        "conflicts": 0,
        "doubts": 1,
        "base_etag": '"E1"',
    }
    assert (caught.value.detail, case.kept) == (
        ('a writer that keeps no lineage replaced "E1", or our write on it',),
        [("unknown", b"2")],
    )


def test_a_lineage_cut_at_its_depth_is_unknown() -> None:
    store = stored()

    def many() -> None:
        for number in range(16):
            others_update(store, new_op(bytes([100 + number]) * 12))()

    assert (Case(store, (Fault.LOST,), {3: many}).outcome(), store.commits_of(OP)[0].etag) == ("unknown", '"E2"')


def test_a_lineage_that_is_just_deep_enough_tells() -> None:
    store = stored()

    def many() -> None:
        for number in range(15):
            others_update(store, new_op(bytes([100 + number]) * 12))()

    assert Case(store, (Fault.LOST,), {3: many}).outcome() == ("committed", None)


def test_a_blob_deleted_over_a_write_in_doubt_is_unknown() -> None:
    store = stored()
    assert Case(store, (Fault.LOST,), {3: store.delete}).outcome() == "unknown"


@cases(("fault", "answer"), (Fault.LOST, ("committed", None)), (Fault.RESET, ("committed", '"E3"')))
def test_kept_versions_settle_what_a_foreign_writer_hides(fault: Fault, answer: object) -> None:
    store = stored(keeps_versions=True)
    case = Case(store, (fault,), {3: store.foreign_write})
    assert (case.outcome(), case.truth()[1]) == (answer, 1)


def test_kept_versions_tell_of_a_first_copy_that_a_foreign_writer_hides() -> None:
    store = stored(keeps_versions=True)
    case = Case(store, (Fault.REPLAYED,), {3: store.foreign_write})
    assert (case.outcome(), case.truth()) == (("committed", None), (b"2", 1))
    assert case.resource.requests == ["read", "put", "read", "versions"]


@cases("fault", Fault.LOST, Fault.REPLAYED)
def test_kept_versions_without_a_lineage_tell_nothing_of_our_own_write(fault: Fault) -> None:
    case = Case(stored(keeps_versions=True), (fault,))
    assert (case.outcome(stamps=False), case.truth()[0]) == ("unknown", b"2")


@cases(("fault", "rest"), (Fault.LOST, []), (Fault.RESET, ["put"]))
def test_kept_versions_are_not_asked_where_the_lineage_tells(fault: Fault, rest: list[str]) -> None:
    case = Case(stored(keeps_versions=True), (fault,))
    assert (case.outcome(), case.resource.requests) == (("committed", '"E2"'), ["read", "put", "read", *rest])


def test_kept_versions_are_not_asked_where_the_lineage_tells_who_came_first() -> None:
    store = stored(keeps_versions=True)
    case = Case(store, others={2: others_update(store)})
    assert (case.outcome(), case.resource.requests) == (("committed", '"E3"'), ["read", "put", "read", "put"])


def test_of_the_newest_of_many_kept_versions_nothing_is_known() -> None:
    history = [KeptVersion(f'"E{number}"', Lineage()) for number in range(400)]
    found = [judge_by_versions(history, OP, f'"E{number}"') for number in (0, 398, 399)]
    assert found == [Verdict.NEVER, Verdict.NEVER, Verdict.UNKNOWN]


def test_kept_versions_tell_of_a_blob_that_was_deleted() -> None:
    store = stored(keeps_versions=True)
    assert Case(store, (Fault.LOST,), {3: store.delete}).outcome() == ("committed", None)


def test_versions_without_the_one_in_doubt_tell_nothing() -> None:
    history = [KeptVersion('"E1"', Lineage()), KeptVersion('"E2"', Lineage())]
    found = [judge_by_versions(history, OP, parent) for parent in ('"E1"', '"E2"', '"E9"', None)]
    assert found == [Verdict.NEVER, Verdict.UNKNOWN, Verdict.UNKNOWN, Verdict.UNKNOWN]


def test_a_transform_that_fails_after_a_doubt_leaves_nothing_that_can_land() -> None:
    store = stored()

    def fails_later(content: bytes) -> bytes:
        if content == b"2":
            raise TransformFailed("no")
        return plus_one(content)

    case = Case(store, (Fault.LATE, Fault.LATE), {3: others_update(store)})
    assert (case.outcome(fails_later), case.truth()) == ("transform_failed", (b"2", 0))


def asked(store: Store) -> str:
    return find_status(FakeResource(store, forever([Fault.NONE])), OP, store.clock.deadline()).outcome


def test_an_op_in_the_lineage_is_committed() -> None:
    store = stored()
    Case(store).end()
    others_update(store)()
    assert asked(store) == "committed"


def test_an_op_that_is_not_in_the_whole_history_is_not_committed() -> None:
    store = Store()
    store.put(None, b"1", OTHER, str(Lineage().after(OTHER, None)), None)
    assert asked(store) == "not_committed"


def test_an_op_is_unknown_where_the_history_has_no_beginning() -> None:
    assert asked(stored()) == "unknown"


def test_an_op_is_found_among_the_kept_versions() -> None:
    store = stored(keeps_versions=True)
    Case(store).end()
    store.foreign_write()
    found = find_status(FakeResource(store, forever([Fault.NONE])), OP, store.clock.deadline())
    assert (found.outcome, found.written_since) == ("committed", True)
    store.delete()
    assert asked(store) == "committed"


def test_of_an_op_on_what_is_not_there_nothing_is_claimed() -> None:
    with pytest.raises(NotFound) as caught:
        asked(Store())
    assert caught.value.http_status == 404
