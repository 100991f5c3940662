"""Messages moved from one queue to another, such as from poison back to work: each is put there, then deleted here.

A message is deleted only after the service has said that it was put, so that none is lost. The two steps are two
requests: a move that ends between them leaves the message in both queues. Readers that take a message once need
a key in its content.

The service gives a moved message a new id, a new insertion time and a dequeue count of zero.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from azguard import columns, times
from azguard.accounts.account import Target
from azguard.address import Kind, parse
from azguard.errors import AzguardError, Forbidden, OutcomeUnknown, Partial, Unavailable, UsageError
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.queues import message_format, messages, queues
from azguard.queues.message_format import Received
from azguard.requests.deadline import Deadline
from azguard.resources import properties
from azguard.resources.pool import FAILED, UNKNOWN, Done, StoppableClock, conclude, run_phases
from azguard.times import say_count

#: The queue of the messages of a queue that failed has its name and this.
POISON_SUFFIX = "-poison"
MOVED = "moved"
#: Put, and not deleted: the message may be in both queues.
DUPLICATED = "duplicated"
#: Received and not moved, because the move was ending.
LEFT = "left"
#: How long a message is hidden while it is moved.
HIDDEN_SECONDS = 300
# A move that begins later may still be under way when another reader receives the message.
_LATEST_START_SECONDS = 200.0
_JOBS = 8
# So many doubts are no accident: the network is ill, and each of them may have made a duplicate.
_MOST_DOUBTS = 10
_LAST_ANSWER_SECONDS = 5.0
_DEFAULT_LIFE_SECONDS = 7 * 86_400
_FOREVER = -1
# The service says of a message that never ends that it ends in this year.
_LAST_YEAR = 9999


@frozen
class QueueMoved:
    """How many messages of a queue were moved to another, and how many were not."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.DESTINATION, columns.MOVED)

    address: str
    destination: str
    moved: int
    #: Messages that were put and not deleted: they may be in both queues.
    duplicated: int
    #: Messages that are in the first queue alone.
    failed: int
    #: Messages that are in the first queue, and perhaps in the other too.
    unknown: int


@frozen(kw_only=True)
class Move:
    """What is moved where."""

    source: Target
    destination: Target
    #: At most so many messages.
    count: int
    #: How long the messages are kept from now on, in seconds; -1 is for ever; None is 7 days, or what was left to them
    #: if that is more.
    time_to_live: int | None
    #: As long as each request may take.
    patience: Deadline
    #: Called with each message that was not moved, as it ends.
    on_failure: Callable[[Done], None]
    #: Called with the number of messages that have ended so far.
    progress: Callable[[int], object] = lambda ended: None


def prepare(source: Target, destination: Target, deadline: Deadline, count: int | None) -> int:
    """Return how many messages are to be moved at most: so many, or about all that are there now.

    Raises:
        UsageError: both are one queue.
        NotFound: one of them is not there.
    """
    if (source.endpoint, source.address) == (destination.endpoint, destination.address):
        raise UsageError(f"{source} cannot be moved to itself", address=str(source.address), reason="moved_to_itself")
    try:
        properties.fetch(destination, Conditions(), deadline)
    except Forbidden:
        # A credential may allow puts and nothing else. If the queue is missing, the first put says so.
        pass
    if count is not None:
        return count
    try:
        return queues.show(source, Conditions(), deadline).approximate_message_count
    except Forbidden as error:
        raise error.but(
            message=f"{error.message}: so it is not known how many messages are in {source}", reason="moves_not_counted"
        ) from error


def guess_destination(source: Target) -> Target:
    """Return the queue whose failed messages are in a queue: ``jobs`` for ``jobs-poison``.

    Raises:
        UsageError: its name does not tell, or not that of a queue.
    """
    name = source.address.container
    partner = name.removesuffix(POISON_SUFFIX)
    if partner in ("", name):
        raise UsageError(
            f"no destination is named for the messages of {source}: its name does not end in {POISON_SUFFIX}",
            address=str(source.address),
            reason="move_without_destination",
        )
    return Target(source.account, parse(partner, Kind.QUEUE).address)


def run(move: Move, on_end: Callable[[QueueMoved], None]) -> None:
    """Move messages, a few at a time. Interrupted, it ends those that were begun, and makes the others visible again.

    ``on_end`` is called once with the result, also after an interruption.

    Raises:
        OutcomeUnknown: of some messages it cannot be known whether they were put.
        Partial: some were not moved, or are in both queues.
        AzguardError: no message could be moved, and why.
    """
    under_way = _Run(move)
    try:
        ended = run_phases([under_way.jobs()], _JOBS, under_way.note, under_way.stop)
    finally:
        # Signals are ignored by now, so that the messages are visible again and the result is reported.
        under_way.release()
    result = under_way.result(ended.counts)
    on_end(result)
    if ended.interruption is not None:
        raise _explain(ended.interruption, result)
    under_way.check(result)


def _explain(error: BaseException, result: QueueMoved) -> BaseException:
    """Return the error for a queue that stopped answering: a partial success if messages were moved before."""
    if isinstance(error, Unavailable) and (result.moved or result.duplicated or result.unknown):
        words = f"no more messages of {result.address} could be received: {error.message}"
        return error.as_kind(OutcomeUnknown if result.unknown else Partial, message=words, reason="some_moves_failed")
    return error


@dataclass
class _Run:
    """A move under way: which messages are received and not moved yet."""

    move: Move
    clock: StoppableClock = field(default_factory=StoppableClock)
    is_stopped: bool = False
    #: By their addresses.
    held: dict[str, Received] = field(default_factory=dict)
    doubts: set[str] = field(default_factory=set)
    ended: int = 0
    first_error: AzguardError | None = None
    #: Held while messages are received, until they are in ``held``.
    receiving: threading.Lock = field(default_factory=threading.Lock)

    def stop(self) -> None:
        self.is_stopped = True
        self.clock.stop()

    def jobs(self) -> Iterator["_Job"]:
        left = self.move.count
        while left > 0 and not self.is_stopped:
            begun = times.read_boot_clock()
            most = min(messages.MOST_MESSAGES, left)
            with self.receiving:
                batch = messages.receive(self.move.source, most, HIDDEN_SECONDS, message_format.TEXT, self._deadline())
                self.held |= {str(each.target.address): each for each in batch}
            for each in batch:
                # Received once more, after its time was over: put once more it could be there twice.
                if str(each.target.address) not in self.doubts:
                    yield _Job(self, each, begun)
            if not batch:
                return
            left -= len(batch)

    def note(self, done: Done) -> None:
        """Note how one message ended, in the main thread."""
        self.ended += 1
        self.move.progress(self.ended)
        if done.outcome in (MOVED, DUPLICATED):
            self.held.pop(done.address, None)
        if done.error is not None:
            self.first_error = self.first_error or done.error
            self.move.on_failure(done)
        if done.outcome == UNKNOWN:
            self.doubts.add(done.address)
        if done.outcome == FAILED or len(self.doubts) >= _MOST_DOUBTS:
            self.is_stopped = True

    def put_and_delete(self, message: Received, begun: float) -> Done:
        """Move one message, in a thread that no signal interrupts."""
        address = str(message.target.address)
        if self.is_stopped or times.read_boot_clock() - begun > _LATEST_START_SECONDS:
            return Done(address, LEFT)
        life = _choose_life(message, HIDDEN_SECONDS, self.move.time_to_live)
        try:
            messages.put(self.move.destination, message.body.text, 0, life, self._deadline())
        except OutcomeUnknown as error:
            raise self._explain_doubt(error, message) from error
        try:
            # By its own clock: a move that is told to end ends what it has begun.
            messages.delete(
                message.target,
                message.shown.pop_receipt,
                self.move.patience.fresh(),
                hidden_until=message.shown.time_next_visible,
            )
        except AzguardError as error:
            return Done(address, DUPLICATED, self._explain_duplicate(error, message))
        return Done(address, MOVED)

    def release(self) -> None:
        """Make the messages that were not moved visible again, where that is possible; else their time ends."""
        # An answer may be under way.
        if self.receiving.acquire(timeout=_LAST_ANSWER_SECONDS):
            self.receiving.release()
        for each in list(self.held.values()):
            try:
                messages.update(each.target, each.shown.pop_receipt, None, 0, self.move.patience.fresh())
            except AzguardError:
                continue

    def result(self, counts: Counter[str]) -> QueueMoved:
        return QueueMoved(
            address=str(self.move.source.address),
            destination=str(self.move.destination.address),
            moved=counts[MOVED],
            duplicated=counts[DUPLICATED],
            failed=counts[FAILED],
            unknown=counts[UNKNOWN],
        )

    def check(self, result: QueueMoved) -> None:
        """Refuse to call it done if a message was not moved."""
        wrong = result.duplicated + result.failed + result.unknown
        if not wrong:
            return
        is_all = not result.moved and wrong in (1, result.failed)
        if self.first_error is not None and is_all:
            raise self.first_error
        message = (
            f"{wrong} of {say_count(wrong + result.moved, 'message')} of {self.move.source} not simply moved: "
            f"{result.failed} failed, {result.unknown} unknown, {result.duplicated} perhaps in both queues"
        )
        error = Partial(message, address=result.address, reason="some_moves_failed")
        raise error.as_kind(OutcomeUnknown) if result.unknown else error

    def _deadline(self) -> Deadline:
        return self.move.patience.restart_on(self.clock)

    def _explain_doubt(self, error: OutcomeUnknown, message: Received) -> AzguardError:
        words = (
            f"was sent to {self.move.destination}, and whether it was put cannot be known: it stays in "
            f"{self.move.source}, and may be in both queues"
        )
        return self._explain(error, message, words).but(reason="message_move_unknown")

    def _explain_duplicate(self, error: AzguardError, message: Received) -> AzguardError:
        words = (
            f"was put into {self.move.destination} and could not be deleted, so it may be in both queues: "
            f"{error.message}"
        )
        return self._explain(error, message, words).but(reason="message_move_duplicated")

    def _explain(self, error: AzguardError, message: Received, words: str) -> AzguardError:
        return error.but(
            message=f"{message.target} {words}",
            address=str(message.target.address),
            values={"source": self.move.source.address.short, "destination": self.move.destination.address.short},
        )


@frozen
class _Job:
    """One message that is moved."""

    run_: _Run
    message: Received
    begun: float

    def run(self) -> Done:
        address = str(self.message.target.address)
        return conclude(address, lambda: self.run_.put_and_delete(self.message, self.begun))


def _choose_life(message: Received, hidden: int, wanted: int | None) -> int:
    """Return for how many seconds a message is kept: what is wanted, else 7 days, or what was left if that is more.

    ``hidden`` is for how many seconds it was hidden when it was received.
    """
    if wanted is not None:
        return wanted
    shown = message.shown
    if shown.expiration_time.year >= _LAST_YEAR:
        return _FOREVER
    # By the service's clock, which said when the message is visible again.
    left = (shown.expiration_time - shown.time_next_visible).total_seconds() + hidden
    return max(_DEFAULT_LIFE_SECONDS, round(left))
