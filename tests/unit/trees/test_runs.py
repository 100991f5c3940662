"""The phases of a run: what a failure, an interruption or an outage leaves undone."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from azguard.errors import AzguardError, Changed, Forbidden, GaveUp, OutcomeUnknown, Partial, Unavailable, UsageError
from azguard.requests.deadline import Deadline
from azguard.resources import pool
from azguard.resources.pool import FAILED, UNKNOWN, Done, conclude
from azguard.trees.runs import (
    CREATED,
    UNCHANGED,
    Control,
    Headway,
    Outage,
    Reached,
    TreeItem,
    TreeSummary,
    after,
    pass_over,
    run_phases,
)
from tests.support.cases import cases


@dataclass(frozen=True)
class Job:
    """A job that ends as it is told."""

    name: str
    work: Callable[[], None] = lambda: None
    conclude: Callable[[str, Callable[[], Done]], Done] = conclude

    def run(self) -> Done:
        return self.conclude(self.name, self._run)

    def _run(self) -> Done:
        self.work()
        return TreeItem(self.name, None, "created").done()


@dataclass
class Run:
    """One run, and what it told."""

    control: Control = field(default_factory=lambda: Control(Deadline()))
    ended: list[tuple[str, str]] = field(default_factory=list)
    summaries: list[TreeSummary] = field(default_factory=list)

    def go(self, *phases: Iterator[pool.Job]) -> None:
        run_phases("blob:site/", phases, 2, self.control, self.tell, self.summaries.append)

    def tell(self, done: Done) -> None:
        self.ended.append((done.address, done.outcome))


def refuse() -> None:
    raise Changed("it changed")


def test_a_later_phase_begins_when_all_before_it_have_ended_well() -> None:
    run = Run()
    run.go(iter([Job("a"), Job("b")]), after(lambda: [Job("last")]))
    assert (set(run.ended[:2]), run.ended[2:]) == ({("a", "created"), ("b", "created")}, [("last", "created")])
    assert run.summaries == [TreeSummary("blob:site/", {"created": 3})]


def test_a_failure_leaves_the_later_phases_undone_and_the_others_of_its_own_done() -> None:
    run = Run()
    with pytest.raises(Changed) as raised:
        run.go(iter([Job("a", refuse), Job("b")]), after(lambda: [Job("last")]))
    assert dict(run.ended) == {"a": "failed", "b": "created"}
    assert (raised.value.exit_code, run.summaries[0].outcomes) == (42, {"created": 1, "failed": 1})


def test_an_unexpected_error_of_one_file_hides_no_other() -> None:
    def fail() -> None:
        raise ZeroDivisionError

    run = Run()
    with pytest.raises(Partial):
        run.go(iter([Job("a", fail), Job("b")]))
    assert dict(run.ended) == {"a": "unknown", "b": "created"}


def test_an_interruption_ends_the_run_with_the_summary_of_what_was_done() -> None:
    run = Run()

    def interrupt(done: Done) -> None:
        run.ended.append((done.address, done.outcome))
        if len(run.ended) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_phases(
            "blob:site/",
            [iter([Job("a"), Job("b"), Job("c")]), after(lambda: [Job("last")])],
            1,
            run.control,
            interrupt,
            run.summaries.append,
        )
    assert run.control.is_stopped
    assert ("last", "created") not in run.ended
    assert sum(run.summaries[0].outcomes.values()) == len({name for name, _ in run.ended})


def test_a_file_is_not_tried_after_the_service_has_gone_and_is_named_all_the_same() -> None:
    run = Run(Control(Deadline(), outage=Outage(2)))

    def lose() -> None:
        raise Unavailable("it does not answer")

    lost = [Job(name, lose, run.control.conclude) for name in ("a", "b", "c", "d", "e")]
    with pytest.raises(Partial, match="did not answer any more") as partial:
        run.go(iter(lost), iter([Job("last")]))
    told = dict(run.ended)
    assert (partial.value.reason, list(told), told["a"], told["e"]) == (
        "tree_service_gone", ["a", "b", "c", "d", "e"], "failed", "not tried",
    )  # fmt: skip


@cases(("error", "words"),
    (Unavailable("it does not answer"), "could not be listed any more"),
    (Forbidden("it has ended"), "some files of blob:site/ are done, and the rest is not: it has ended")
)  # fmt: skip
def test_a_listing_that_fails_late_does_not_say_that_nothing_was_applied(error: AzguardError, words: str) -> None:
    def jobs() -> Iterator[pool.Job]:
        yield Job("a")
        raise error

    run = Run()
    with pytest.raises(Partial, match=words):
        run.go(jobs())
    assert run.summaries == [TreeSummary("blob:site/", {"created": 1})]


def test_a_stopped_run_ends_what_does_not_show_yet() -> None:
    control = Control(Deadline())
    control.check("a")
    control.stop()
    with pytest.raises(GaveUp):
        control.check("a")


def test_bytes_of_all_files_are_counted_together() -> None:
    control = Control(Deadline())
    control.headway.move("blob:site/a", 10)
    control.headway.move("blob:site/b", 5)
    control.headway.move("blob:site/a", 30)
    assert control.headway.look() == Reached(bytes=35, name="blob:site/a")


def test_a_run_tells_how_far_it_came() -> None:
    seen: list[Reached] = []
    run = Run()

    def conclude_one(address: str, work: Callable[[], Done]) -> Done:
        return run.control.conclude(address, work, 30)

    def move() -> None:
        run.control.headway.move("a", 10)
        seen.append(run.control.headway.look())

    run.control.headway.count_all([30, 5])
    run.go(iter([Job("a", move, conclude_one), pass_over("b", None, "it is no file")]))
    assert seen == [Reached(0, 10, 2, 35, "a")]
    assert run.control.headway.look() == Reached(2, 30, 2, 35)


def test_nothing_is_counted_once_the_run_is_over_or_where_it_cannot_be() -> None:
    def fail() -> Iterator[int]:
        yield 1
        raise Unavailable("the service is gone")

    closed, failed = Headway(), Headway()
    closed.close()
    closed.count_all([1, 2])
    failed.count_all(fail())
    assert (closed.look(), failed.look()) == (Reached(), Reached())


def test_a_file_that_was_passed_over_fails_only_with_an_error() -> None:
    assert pass_over("blob:site/a", "a", "it is a symbolic link").run().outcome == "skipped"
    assert pass_over("blob:site/a", "a", "", Changed("no")).run().outcome == "failed"


LOST = Done("a", FAILED, Unavailable("it does not answer"))
ANSWERED = Done("a", FAILED, Changed("it changed", http_status=412))


def unknown(cause: AzguardError) -> Done:
    """Return the end of a write that was sent, and whose look failed for a reason."""
    error = OutcomeUnknown("it was sent")
    error.__cause__ = cause
    return Done("a", UNKNOWN, error.but(address="a"))


@cases(
    ("ends", "is_certain"),
    ([LOST, LOST], False),
    ([LOST, LOST, LOST], True),
    ([LOST, unknown(Unavailable("no answer")), LOST], True),
    ([LOST, LOST, unknown(Changed("another version")), LOST], True),
    ([LOST, LOST, Done("a", CREATED), LOST, LOST], False),
    ([LOST, LOST, ANSWERED, LOST], False),
    ([LOST, LOST, Done("a", UNCHANGED), Done("a", FAILED, UsageError("cannot be read")), LOST], True),
    ([LOST, LOST, LOST, Done("a", CREATED)], True),
)
def test_only_failures_of_the_service_in_a_row_prove_that_it_is_gone(ends: list[Done], is_certain: bool) -> None:
    outage = Outage(3)
    for each in ends:
        outage.note(each)
    assert outage.is_certain is is_certain
