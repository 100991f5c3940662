"""The counts of a worker in one line."""

from azguard.commands.queue.work import describe
from azguard.worker.outcomes import Counts, Outcome


def test_counts_are_one_line_without_those_that_are_zero() -> None:
    clock = [0.0]
    counts = Counts(lambda: clock[0])
    counts.note_received(4)
    for outcome in (Outcome.DONE, Outcome.DONE, Outcome.LOST):
        counts.note_end(outcome, "m1")
    clock[0] = 4.0
    assert describe("jobs", counts.take()) == "jobs: 2 done, 1 lost; 1 running; 0.5/s"
