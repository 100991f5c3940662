"""What a worker did, as the command shows it."""

from dataclasses import dataclass
from typing import ClassVar

from azguard import columns
from azguard.errors import AzguardError
from azguard.worker.counts import WorkCounts
from azguard.worker.protocol import Outcome


@dataclass(frozen=True)
class WorkSummary:
    """What a worker did: how many messages it received, and their outcomes."""

    COLUMNS: ClassVar = (
        columns.ADDRESS,
        *(columns.Column(name=name, unit=columns.Unit.ITEMS) for name in ("received", "done", "retried", "failed")),
        columns.Column(name="poisoned", unit=columns.Unit.ITEMS),
        columns.Column(name="lost", unit=columns.Unit.ITEMS),
        columns.Column(name="stopped_by"),
    )

    address: str
    received: int
    done: int
    retried: int
    failed: int
    poisoned: int
    lost: int
    held: int
    duplicates: int
    #: Of a key that was done with another body.
    duplicate_differs: int
    released: int
    unsettled: int
    #: Receives whose answers were lost: what they received is hidden until its time is over.
    receives_in_doubt: int
    #: Lines that could not be written to the file of events.
    events_lost: int
    seconds: float
    #: Why the worker ended: drained, max_messages, signal, second_signal, stop_after,
    #: max_poison, strict or error.
    stopped_by: str


@dataclass(frozen=True)
class WorkEnd:
    """How a worker ended."""

    summary: WorkSummary
    status: int
    #: Why it could not go on; None if it ended in order.
    error: AzguardError | None = None


def summarize(address: str, counts: WorkCounts, stopped_by: str, events_lost: int) -> WorkSummary:
    """Return the summary of these counts."""
    found = counts.outcomes
    return WorkSummary(
        address=address,
        received=counts.received,
        done=found[Outcome.DONE],
        retried=found[Outcome.RETRIED],
        failed=found[Outcome.FAILED],
        poisoned=found[Outcome.POISONED],
        lost=found[Outcome.LOST],
        held=found[Outcome.HELD],
        duplicates=found[Outcome.DUPLICATE],
        duplicate_differs=found[Outcome.DUPLICATE_DIFFERS],
        released=found[Outcome.RELEASED],
        unsettled=found[Outcome.UNSETTLED],
        receives_in_doubt=counts.receives_in_doubt,
        events_lost=events_lost,
        seconds=round(counts.seconds, 3),
        stopped_by=stopped_by,
    )
