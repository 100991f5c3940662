"""What an update tells of its end."""

from azguard.requests.lineage import Lineage, is_op, new_op
from azguard.updates.doubt import find_status
from azguard.updates.plan import UpdateHooks, UpdatePlan
from azguard.updates.recording import UpdateReport
from azguard.updates.update import update
from tests.support.cases import cases
from tests.support.fake_resource import TARGET, FakeResource, Store

OP, OTHER = new_op(b"a" * 12), new_op(b"b" * 12)


def test_an_op_of_our_own_making_can_be_read_in_a_lineage_and_is_never_the_same() -> None:
    ops = {UpdateHooks().new_op() for _ in range(100)}
    assert (len(ops), all(is_op(op) for op in ops)) == (100, True)


@cases(("has_length", "length"), [(True, 4), (False, None)])
def test_a_length_is_told_only_of_content_that_has_one(*, has_length: bool, length: int | None) -> None:
    store = Store.holding(b"old")
    plan = UpdatePlan(lambda content: content + b"x", OP)
    ended = update(FakeResource(store, iter(())), plan, store.clock.deadline())
    report = UpdateReport.of(TARGET, OP, ended, has_length=has_length)
    assert (report.content_length, report.etag, report.op_id) == (length, '"E2"', f"op:{OP}")


def test_no_length_is_told_of_content_that_an_earlier_run_wrote() -> None:
    store, plan = Store.holding(b"old"), UpdatePlan(lambda content: content + b"x", OP)
    for _ in range(2):
        ended = update(FakeResource(store, iter(())), plan, store.clock.deadline())
    report = UpdateReport.of(TARGET, OP, ended, has_length=True)
    assert (report.content_length, report.etag, report.outcome) == (None, None, "applied_before")


def test_the_outcome_of_an_op_is_committed_or_not_or_unknown_without_its_whole_history() -> None:
    store = Store()
    store.put(None, b"1", OTHER, str(Lineage().after(OTHER, None)), None)
    resource = FakeResource(store, iter(()))
    whole = [find_status(resource, op, store.clock.deadline()).outcome for op in (OTHER, OP)]
    store.foreign_write()
    wiped = [find_status(resource, op, store.clock.deadline()).outcome for op in (OTHER, OP)]
    assert (whole, wiped) == (["committed", "not_committed"], ["unknown", "unknown"])
