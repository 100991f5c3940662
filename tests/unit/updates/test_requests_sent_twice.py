"""Requests that the network sends twice: a refusal of the second copy says nothing of the first."""

from azguard.errors import TransformFailed
from tests.support.cases import cases
from tests.support.fake_resource import Fault, Store
from tests.support.update_case import Case, others_update, plus_one, stored


def test_a_refusal_of_a_second_copy_is_settled_by_the_read_that_comes_anyway() -> None:
    case = Case(stored(), (Fault.REPLAYED,))
    assert (case.outcome(), case.truth()) == (("committed", '"E2"'), (b"2", 1))
    assert case.resource.requests == ["read", "put", "read"]


def test_ctrl_c_after_the_refusal_of_a_second_copy_does_not_hide_the_first() -> None:
    def press() -> None:
        raise KeyboardInterrupt

    case = Case(stored(), (Fault.REPLAYED,), {3: press})
    assert (case.outcome(), case.truth()) == (("committed", '"E2"'), (b"2", 1))


def test_ctrl_c_after_another_writer_came_first_applies_nothing() -> None:
    def press() -> None:
        raise KeyboardInterrupt

    store = stored()
    case = Case(store, others={2: others_update(store), 3: press})
    assert (case.outcome(), case.truth()) == ("interrupted", (b"2", 0))


def test_a_refusal_after_which_nothing_can_be_read_is_unknown() -> None:
    case = Case(stored(), (Fault.REPLAYED,), silent_from=3)
    assert (case.outcome(), case.truth()) == ("unknown", (b"2", 1))


def test_a_second_copy_that_meets_a_lease_is_settled_before_that_is_told() -> None:
    store = stored()
    case = Case(store, (Fault.REPLAYED,), {3: lambda: store.acquire('"E2"', "theirs", 60)})
    assert (case.outcome(), case.truth()) == (("committed", '"E2"'), (b"2", 1))


def test_a_second_copy_of_a_create_finds_the_first() -> None:
    case = Case(Store(), (Fault.REPLAYED,))
    assert (case.outcome(create=b"0"), case.truth()) == (("committed", '"E1"'), (b"1", 1))


def test_without_a_lineage_what_equals_ours_is_not_written_again() -> None:
    case = Case(stored(b"41"), (Fault.REPLAYED,))
    assert (case.outcome(stamps=False), case.truth()[0]) == ("unknown", b"42")
    assert case.resource.requests == ["read", "put", "read"]


@cases("theirs", [b"7", b"0"])
def test_without_a_lineage_what_is_not_ours_is_a_conflict(theirs: bytes) -> None:
    store = stored()
    case = Case(store, others={2: lambda: store.foreign_write(theirs)})
    assert (case.outcome(stamps=False), case.truth()[0]) == (("committed", '"E3"'), plus_one(theirs))


def test_with_a_lineage_what_equals_ours_is_a_conflict_as_any_other() -> None:
    store = stored()
    case = Case(store, others={2: lambda: store.foreign_write(b"2")})
    assert (case.outcome(), case.truth()) == (("committed", '"E3"'), (b"3", 1))


def test_without_a_lineage_ctrl_c_over_what_equals_ours_is_unknown() -> None:
    def press() -> None:
        raise KeyboardInterrupt

    case = Case(stored(), (Fault.REPLAYED,), {3: press})
    assert (case.outcome(stamps=False), case.truth()[0]) == ("unknown", b"2")


def test_without_a_lineage_what_a_lease_did_not_prove_in_time_is_not_written_again() -> None:
    # The first copy is committed, the lease lapses, and a foreign writer covers what would have told.
    store = stored()

    def lapse() -> None:
        store.clock.sleep(40)
        store.foreign_write(b"7")

    case = Case(store, (Fault.NONE, Fault.REPLAYED), {4: lapse})
    assert (case.outcome(guard_by_lease=True, stamps=False), case.truth()[0]) == ("unknown", b"7")


@cases("failure", [TransformFailed("no"), KeyboardInterrupt()])
def test_a_lease_on_a_later_version_proves_nothing_of_the_write_that_was_refused(failure: BaseException) -> None:
    store = stored()

    def take_over() -> None:
        store.lease = None
        store.foreign_write(b"7")

    def fails_later(content: bytes) -> bytes:
        if content == b"7":
            raise failure
        return plus_one(content)

    case = Case(store, others={3: take_over})
    assert case.outcome(fails_later, guard_by_lease=True, stamps=False) == "unknown"
    assert case.resource.requests[:5] == ["read", "acquire", "put", "head", "read"]
    assert (case.resource.requests[5], case.truth()[0]) == ("acquire", b"7")


def test_a_create_that_another_came_before_is_a_conflict_though_a_lease_was_asked_for() -> None:
    store = Store()
    case = Case(store, others={2: lambda: store.foreign_write(b"7")})
    assert (case.outcome(create=b"1", guard_by_lease=True, stamps=False), case.truth()[0]) == (
        ("committed", '"E2"'),
        b"8",
    )


def test_without_a_lineage_what_needs_no_change_is_unchanged_by_whomever() -> None:
    case = Case(stored(), (Fault.REPLAYED,))
    assert (case.outcome(lambda content: b"2", stamps=False), case.truth()[0]) == (("unchanged", '"E2"'), b"2")


def test_under_our_own_lease_the_first_copy_is_proved_by_it() -> None:
    case = Case(stored(), (Fault.NONE, Fault.REPLAYED))
    ended = case.end(guard_by_lease=True, stamps=False)
    assert (ended.outcome, ended.committed.etag, ended.lineage) == ("committed", '"E2"', None)
    assert case.resource.requests == ["read", "acquire", "put", "head", "release"]
