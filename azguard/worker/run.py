"""``queue work``: receive messages and run a command for each, until told to stop.

It asks an empty queue again after pauses that grow, bears a service that does not answer for a while, and stops where
commands fail in a row.

Not guaranteed: a message is handled at least once, and may be handled twice. See ``claims`` for the way out.
"""

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import FrameType

from azguard.documents.open_metrics import MetricsFile
from azguard.errors import AzguardError, GaveUp, OutcomeUnknown, Partial, Unavailable
from azguard.processes import command_place
from azguard.processes.command_place import CommandPlace
from azguard.processes.signals import ENDING, handle_unless_ignored
from azguard.queues.messages import MOST_MESSAGES
from azguard.requests import trace
from azguard.times import iso, say_count
from azguard.worker.handling import MessageHandling
from azguard.worker.order import Bell, Crew, Inbox, QueueInbox, Taken, Workplace
from azguard.worker.outcomes import (
    Counts,
    Events,
    HandledMessage,
    Outcome,
    WorkCounts,
    WorkEnd,
    build_metrics,
    summarize,
)
from azguard.worker.poisoned import PoisonReasons
from azguard.worker.settings import WorkSettings

_FIRST_PAUSE_SECONDS = 0.1
# As everything in azguard waits.
_PATIENCE_SECONDS = 60.0
_FAILURES = (Outcome.RETRIED, Outcome.FAILED, Outcome.POISONED)
# Why a message is poisoned whose command has not run.
_NOT_RUN = ("received_too_often", "duplicate_differs")
# Why a message is poisoned at once, and what is at fault if that happens to all messages.
_AT_FAULT = {
    "data_error": "the command refuses everything",
    "no_key": "no message has the key that is claimed",
}
# What people are told of at once.
_TOLD = (Outcome.FAILED, Outcome.POISONED, Outcome.LOST, Outcome.UNSETTLED, Outcome.DUPLICATE_DIFFERS)
# How often counts are shown.
_TICK_SECONDS = 1.0


class Polling:
    """The pauses between receives: each empty one doubles the pause, up to a longest; a message ends it."""

    def __init__(
        self,
        longest: float,
        now: Callable[[], float],
        uniform: Callable[[float, float], float],
        patience: float | None = None,
    ) -> None:
        self._longest, self._now, self._uniform, self._patience = longest, now, uniform, patience
        self._pause = _FIRST_PAUSE_SECONDS
        self._due = float("-inf")
        self._failing_since: float | None = None
        self._has_answered = False

    @property
    def seconds_left(self) -> float:
        return max(0.0, self._due - self._now())

    def ask_soon(self) -> None:
        self._due = float("-inf")

    def note_answer(self, number: int) -> None:
        """Note how many messages a receive has brought."""
        self._has_answered, self._failing_since = True, None
        if number:
            self._pause = _FIRST_PAUSE_SECONDS
            self.ask_soon()
        else:
            self._wait()

    def note_failure(self, error: AzguardError, *, bears_all: bool, asked: float = 0.0) -> bool:
        """Note a receive that failed for now; return whether to go on.

        ``asked`` is for how many seconds the service asks to be left alone.
        ``bears_all`` is of a worker that goes on for ever once it had an answer. One that never had an answer ends
        soon, since its settings may be wrong, unless there is a patience of its own.
        """
        if self._failing_since is None:
            self._failing_since = self._now()
        self._wait(asked)
        if self._has_answered and bears_all:
            return True
        if self._patience is None and isinstance(error, Unavailable) and not self._has_answered:
            return False
        patience = _PATIENCE_SECONDS if self._patience is None else self._patience
        return self._now() + asked - self._failing_since < patience

    @property
    def is_failing(self) -> bool:
        return self._failing_since is not None

    def _wait(self, asked: float = 0.0) -> None:
        # At least half of it, at most all: workers do not ask at the same moment.
        self._due = self._now() + max(asked, self._uniform(self._pause / 2, self._pause))
        self._pause = min(self._longest, self._pause * 2)


class Breaker:
    """Counts commands in a row that did not end with 0, of several threads."""

    def __init__(self, settings: WorkSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._in_a_row = 0
        self._poisoned_in_a_row = 0
        #: Why the worker has to stop: stop_after, max_poison, strict or error; None while it goes on.
        self.tripped: str | None = None
        #: The same as an error; None too where the error of a message tells.
        self.error: GaveUp | None = None

    def note(self, settled: HandledMessage) -> None:
        """Count the outcome of a message; one whose command has not run says nothing."""
        with self._lock:
            self._count(settled)
            if self.tripped is None:
                self._trip(settled)

    def _count(self, settled: HandledMessage) -> None:
        if settled.outcome is Outcome.DONE:
            self._in_a_row = self._poisoned_in_a_row = 0
        elif settled.outcome in _FAILURES and settled.reason not in _NOT_RUN:
            self._in_a_row += 1
            if _is_poisoned_at_once(settled):
                self._poisoned_in_a_row += 1

    def _trip(self, settled: HandledMessage) -> None:
        settings = self._settings
        if settled.error is not None:
            self.tripped = "error"
        elif settled.stops:
            self._stop("strict", GaveUp(_describe_strict(settled), reason="worker_stopped"))
        elif settings.max_poison is not None and self._poisoned_in_a_row >= settings.max_poison:
            if _is_poisoned_at_once(settled):
                self._stop("max_poison", self._explain_poison(settled.reason))
        elif settings.stop_after is not None and self._in_a_row >= settings.stop_after:
            self._stop("stop_after", GaveUp(f"{self._in_a_row} commands in a row failed", reason="worker_stopped"))

    def _stop(self, by: str, why: GaveUp) -> None:
        self.tripped = by
        self.error = why.but(message=f"{why.message}; the worker stopped", address=str(self._settings.queue.address))

    def _explain_poison(self, reason: str) -> GaveUp:
        number, poison = self._poisoned_in_a_row, self._settings.poison.address.short
        return GaveUp(
            f"{_AT_FAULT[reason]}: {say_count(number, 'message', 'is')} in {poison}, and none was done in between",
            reason="messages_refused_in_a_row",
            values={"queue": self._settings.queue.address.short, "poison": poison},
        )


def _is_poisoned_at_once(settled: HandledMessage) -> bool:
    return settled.outcome is Outcome.POISONED and settled.reason in _AT_FAULT


def _describe_strict(settled: HandledMessage) -> str:
    if settled.status is None:
        return str(settled.facts.get("why", settled.reason))
    return f"exit status {settled.status} is not of the exit protocol"


def run(settings: WorkSettings, show: Callable[[WorkCounts], None]) -> WorkEnd:
    """Work until told to stop, and return the summary of the work and the exit status.

    ``show`` is told the counts every second. Call it on the main thread, before any other thread is started.

    Raises:
        UsageError: a file of the settings cannot be written.
        AzguardError: ``settings.prepare`` raised it.
    """
    places = CommandPlace.fork(settings.jobs, settings.environ)
    try:
        settings.prepare()
        inbox = QueueInbox(settings.queue, settings.poison, settings.encoding)
        # With a file of events, the table is one record more.
        warn = settings.warn if settings.events is None else lambda text: None
        kept = replace(settings, keep_reason=PoisonReasons(settings.poison, warn).keep)
        return Worker(kept, inbox, places, show=show).run()
    finally:
        command_place.close_all(places)


class Worker:
    """One run of a worker."""

    def __init__(
        self,
        settings: WorkSettings,
        inbox: Inbox,
        places: Sequence[Workplace],
        *,
        show: Callable[[WorkCounts], None] = lambda counts: None,
        now: Callable[[], float] = time.monotonic,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._settings, self._inbox, self._show, self._now = settings, inbox, show, now
        self._events = Events(settings.events, settings.warn)
        self._counts = Counts()
        queue = settings.queue.address.container
        self._metrics = MetricsFile(settings.metrics, lambda: build_metrics(queue, self._counts.take()), settings.warn)
        self._breaker = Breaker(settings)
        self._polling = Polling(settings.poll_interval, now, uniform, settings.patience)
        self._bell = Bell()
        self._crew = Crew(places, self._handle, self._bell.ring)
        self._stop_commands = threading.Event()
        self._signals: list[int] = []
        self._received = 0
        #: Why no more messages are taken; None while they are.
        self._stopped_by: str | None = None
        self._error: AzguardError | None = None

    def run(self) -> WorkEnd:
        """Work until told to stop.

        Raises:
            UsageError: the file of metrics cannot be written.
        """
        self._metrics.begin()
        try:
            with handle_unless_ignored(ENDING, self._on_signal):
                self._crew.start()
                try:
                    self._work()
                finally:
                    self._crew.stop()
                    self._metrics.write()
                    self._events.close()
                return self._end()
        finally:
            # A signal rings it until here.
            self._bell.close()

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._signals.append(number)
        if len(self._signals) > 1:
            self._stop_commands.set()
        self._bell.ring()

    def _work(self) -> None:
        while True:
            self._tell_counts()
            self._stopped_by = self._stopped_by or self._find_reason_to_stop()
            was_idle = self._crew.busy == 0
            if self._stopped_by is not None and (was_idle or self._crew.is_gone):
                return
            wanted = self._find_wanted()
            if not wanted:
                self._bell.wait(min(_TICK_SECONDS, self._polling.seconds_left or _TICK_SECONDS))
                if self._settings.drain and self._crew.busy == 0:
                    self._polling.ask_soon()
                continue
            found = self._receive(wanted)
            if not found and was_idle and self._settings.drain and not self._polling.is_failing:
                self._stopped_by = self._stopped_by or "drained"

    def _tell_counts(self) -> None:
        self._show(self._counts.take())
        self._metrics.write_if_due()

    def _find_reason_to_stop(self) -> str | None:
        if self._crew.failure is not None:
            return "error"
        if self._crew.is_gone:
            self._error = AzguardError("the processes that ran the commands were killed", reason="places_killed")
            return "error"
        if self._breaker.tripped is not None:
            return self._breaker.tripped
        if self._signals:
            self._settings.say(f"finishing what runs ({self._crew.busy}); another signal ends it")
            return "signal"
        return "max_messages" if self._received == self._settings.max_messages else None

    def _find_wanted(self) -> int:
        """Return how many messages to ask for: no more than can be handled at once, since their time runs."""
        if self._stopped_by is not None or self._polling.seconds_left:
            return 0
        most = self._settings.max_messages
        left = MOST_MESSAGES if most is None else most - self._received
        return min(MOST_MESSAGES, left, self._crew.free)

    def _receive(self, wanted: int) -> int:
        """Receive messages and have them handled; return how many."""
        try:
            received = self._inbox.receive(wanted, self._settings.visibility)
        except (OutcomeUnknown, Unavailable) as error:
            self._bear(error)
            return 0
        except AzguardError as error:
            self._error, self._stopped_by = error, "error"
            return 0
        self._polling.note_answer(len(received))
        self._received += len(received)
        self._counts.note_received(len(received))
        for taken in received:
            shown = taken.received.shown
            trace.note("received", self._settings.queue, message=taken.id, dequeue_count=taken.dequeue_count)
            self._note(taken, "received", insertion_time=iso(shown.insertion_time))
            self._crew.give(taken)
        return len(received)

    def _bear(self, error: AzguardError) -> None:
        """Go on after a receive that failed for now, unless there is no hope."""
        if isinstance(error, OutcomeUnknown):
            self._counts.note_receive_in_doubt()
        was_failing = self._polling.is_failing
        bears_all = not self._settings.drain
        if not self._polling.note_failure(error, bears_all=bears_all, asked=self._inbox.find_asked_seconds()):
            self._error, self._stopped_by = error, "error"
        elif not was_failing:
            self._settings.warn("\n  ".join([f"{error.message}; trying again", *error.detail]))

    def _handle(self, taken: Taken, place: Workplace) -> None:
        """Handle a message; called by the threads of the crew."""
        outcome, began = Outcome.UNSETTLED, self._now()
        try:
            handling = MessageHandling(
                taken,
                settings=self._settings,
                inbox=self._inbox,
                place=place,
                stop=self._stop_commands,
                on_command=self._counts.note_command,
            )
            settled = handling.handle()
            outcome = settled.outcome
            trace.note("handled", self._settings.queue, message=taken.id, outcome=outcome.value)
            self._breaker.note(settled)
            self._error = self._error or settled.error
            facts = {"reason": settled.reason, "status": settled.status, "seconds": round(self._now() - began, 3)}
            self._note(taken, outcome.value, **facts, **settled.facts)
            if outcome in _TOLD:
                self._settings.warn(_describe(taken, settled))
        finally:
            self._counts.note_end(outcome, taken.id)

    def _note(self, taken: Taken, event: str, **facts: object) -> None:
        queue = self._settings.queue.address.container
        self._events.note(event, queue=queue, id=taken.id, dequeue_count=taken.dequeue_count, **facts)

    def _end(self) -> WorkEnd:
        if self._crew.failure is not None:
            raise self._crew.failure
        counts = self._counts.take()
        self._show(counts)
        was_told_twice = len(self._signals) > 1
        reason = "second_signal" if was_told_twice else str(self._stopped_by)
        summary = summarize(str(self._settings.queue.address), counts, reason, self._events.lost)
        if was_told_twice:
            return WorkEnd(summary, 128 + self._signals[1])
        error = self._error or self._breaker.error
        if error is not None:
            return WorkEnd(summary, error.exit_code, error)
        return WorkEnd(summary, 0 if counts.are_all_handled else Partial.exit_code)


def _describe(taken: Taken, settled: HandledMessage) -> str:
    status = "" if settled.status is None else f", exit status {settled.status}"
    why = f": {settled.facts['why']}" if "why" in settled.facts else ""
    return f"message {taken.id}: {settled.outcome.value} ({settled.reason}{status}){why}"
