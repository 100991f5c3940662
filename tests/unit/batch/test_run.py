"""Which line may begin, and in which order lines are told."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from azguard.batch import order, run
from azguard.batch.lines import LineEnd
from azguard.batch.order import Address
from azguard.batch.run import BatchSettings
from azguard.requests.pool import Done, PoolEnd
from tests.support.cases import cases

A, B, SITE = ("blob", "site", "a"), ("blob", "site", "b"), ("blob", "site")
_LONGEST_SECONDS = 30.0


@dataclass
class Traced:
    """Lines that note their begin and their end."""

    steps: list[str] = field(default_factory=list)
    told: list[int] = field(default_factory=list)

    def run(self, works: Any, **settings: Any) -> PoolEnd:
        def tell(done: Done) -> None:
            self.told.append(done.result.line)

        return run.run(works, BatchSettings(**settings), tell, lambda: None)


@dataclass
class Step:
    """A line, which may wait for a moment to come, and may fail."""

    traced: Traced
    line: int
    addresses: tuple[Address, ...] = ()
    until: threading.Event | None = None
    exit_code: int = 0
    then: threading.Event | None = None

    def run(self) -> LineEnd:
        self.traced.steps.append(f"+{self.line}")
        if self.until is not None:
            assert self.until.wait(_LONGEST_SECONDS)
        self.traced.steps.append(f"-{self.line}")
        if self.then is not None:
            self.then.set()
        return LineEnd(None, self.line, self.exit_code)


@cases(
    "first, second, follow",
    [
        ([A], [A], True),
        ([SITE], [A], True),
        ([A], [SITE], True),
        ([A, B], [B], True),
        ([B], [A, B], True),
        ([A, SITE], [SITE, A], True),
        ([A], [B], False),
        ([A], [("file", "site", "a")], False),
        ([], [A], False),
        ([A], [], False),
        ([("blob", "site", "ab")], [A], False),
    ],
)
def test_lines_that_meet_at_an_address_follow_each_other(
    first: list[Address], second: list[Address], follow: bool
) -> None:
    traced, gate = Traced(), threading.Event()
    # The second opens the gate for the first if it need not wait; else the third does, once the first has begun.
    works = [
        Step(traced, 1, tuple(first), until=gate),
        Step(traced, 2, tuple(second), then=None if follow else gate),
        Step(traced, 3, then=gate if follow else None),
    ]
    traced.run(works, jobs=3)
    ends = [step for step in traced.steps if step in ("-1", "+2")]
    assert ends == (["-1", "+2"] if follow else ["+2", "-1"])


def test_many_lines_of_one_address_keep_their_order_and_the_places_are_left() -> None:
    traced = Traced()
    works = [Step(traced, number, ((A, SITE, B)[number % 3],)) for number in range(300)]
    with patch.object(order, "MOST_AHEAD", 20):
        ended = traced.run(works, jobs=8)
    of_site = [step for step in traced.steps if int(step[1:]) % 3 == 1]
    assert of_site == [f"{sign}{number}" for number in range(1, 300, 3) for sign in "+-"]
    assert ended.counts == {"done": 300}


def test_one_job_at_a_time_is_enough() -> None:
    traced = Traced()
    traced.run([Step(traced, number, (A,)) for number in range(10)], jobs=1)
    assert traced.told == list(range(10))


def test_ordered_ends_are_told_in_the_order_of_their_lines() -> None:
    traced, gate = Traced(), threading.Event()
    works = [Step(traced, 1, until=gate), *(Step(traced, number) for number in range(2, 9)), Step(traced, 9, then=gate)]
    traced.run(works, jobs=2, is_ordered=True)
    assert (traced.told, traced.steps[-1]) == (list(range(1, 10)), "-1")


def test_no_line_begins_after_one_that_failed() -> None:
    traced = Traced()
    works = [Step(traced, number, exit_code=42 * (number == 3)) for number in range(10)]
    ended = traced.run(works, jobs=1, stops_on_error=True)
    assert (traced.told, ended.counts) == ([0, 1, 2, 3], {"done": 3, "failed": 1})


def test_no_line_is_read_far_ahead_of_one_that_has_not_ended() -> None:
    traced, gate, too_early = Traced(), threading.Event(), []

    def supply() -> Iterator[Step]:
        yield Step(traced, 0, until=gate)
        for number in range(1, 100):
            if number > 5 and "-0" not in traced.steps:
                too_early.append(number)
            yield Step(traced, number, then=gate if number == 5 else None)

    with patch.object(order, "MOST_AHEAD", 5):
        waiting = threading.Thread(target=lambda: traced.run(supply(), jobs=2))
        waiting.start()
        waiting.join(_LONGEST_SECONDS)
    assert (len(traced.told), too_early) == (100, [])


def test_an_error_of_the_supply_ends_all_and_is_told() -> None:
    traced = Traced()

    def supply() -> Iterator[Step]:
        yield Step(traced, 1, (A,))
        yield Step(traced, 2, (A,))
        raise OSError("gone")

    ended = traced.run(supply(), jobs=4, is_ordered=True)
    assert isinstance(ended.interruption, OSError)


@cases("code, outcome", [(0, "done"), (42, "failed"), (74, "unknown")])
def test_an_end_counts_by_its_status(code: int, outcome: str) -> None:
    assert LineEnd(None, 1, code).outcome == outcome
