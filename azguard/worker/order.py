"""A message on its way through a worker: what is asked of the queue (receive, hide for longer, delete, send to the
poison queue), what the command is told of it, and the threads that handle it, one for each place of a command.
"""

import hashlib
import json
import os
import queue
import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from math import ceil
from typing import Protocol

from azguard import times
from azguard.accounts.account import Target
from azguard.errors import Exists, NotFound
from azguard.frozen import frozen
from azguard.processes.command_place import CommandEnd, CommandOrder
from azguard.processes.signals import wait_readable
from azguard.queues import messages
from azguard.queues.message_format import Received
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import fresh_op
from azguard.resources import lifecycles
from azguard.times import iso
from azguard.wire import client
from azguard.worker.settings import MessageFacts, WorkSettings

# An answer that takes longer is better asked for anew, before a message is visible again.
_ANSWER_SECONDS = 10.0
_SEND_SECONDS = 20.0
# A message that was handled and cannot be deleted is handled again: worth more patience.
_DELETE_SECONDS = 60.0
_RECEIVE_SECONDS = 4.0
# So often a message whose key another has is received again as soon as the claim may be over.
_SOON = 2
# What a worker leaves behind must be found, however late.
_FOR_EVER = -1
#: The variable that names the file with all of it.
FILE = "AZGUARD_MESSAGE_FILE"
_SCOPE = "AZGUARD_SCOPE"
# 128 bits: no two bodies that a sender makes have the same ones.
_DIGITS = 32
_MANY = 4096


@frozen
class MessageReceipt:
    """The receipt of a message."""

    text: str
    #: When others can receive the message, by the service's clock; None if a later receipt may have been given out.
    hidden_until: datetime | None


@frozen
class Taken:
    """A message that was received, and its times on our own clock: that of this machine may be wrong."""

    received: Received
    #: When it was asked for, on ``times.read_boot_clock``.
    at: float
    #: When the service deletes it, on ``times.read_boot_clock``.
    expires: float

    @property
    def id(self) -> str:
        return self.received.shown.id

    @property
    def receipt(self) -> MessageReceipt:
        shown = self.received.shown
        return MessageReceipt(shown.pop_receipt, shown.time_next_visible)

    @property
    def dequeue_count(self) -> int:
        return self.received.shown.dequeue_count

    def find_held_seconds(self, until: datetime, hidden: int, retry_seconds: int, now: float) -> int:
        """Return for how many seconds to leave the message alone, as another has its key until some moment.

        ``until`` is by the service's clock, ``now`` on ``times.read_boot_clock``. After a worker that was killed the
        key is free then. Of one that lives the claim goes on, so that later it is waited for longer.
        """
        asked_at = self.received.shown.time_next_visible - timedelta(seconds=hidden)
        left = max(1, ceil((until - asked_at).total_seconds() - (now - self.at)))
        return left if self.dequeue_count <= _SOON else max(left, retry_seconds)


class Inbox(Protocol):
    """The messages of a queue. Every write raises ``Changed`` if the receipt is stale, or what its request raises."""

    def receive(self, number: int, seconds: int) -> list[Taken]:
        """Receive up to so many messages, which are hidden for so many seconds."""
        ...

    def find_asked_seconds(self) -> float:
        """Return for how many seconds the service asks to be left alone."""
        ...

    def hide(self, message: Taken, receipt: MessageReceipt, seconds: int) -> MessageReceipt:
        """Hide a message for so many seconds from now, and return its new receipt."""
        ...

    def delete(self, message: Taken, receipt: MessageReceipt) -> None: ...

    def send_to_poison(self, message: Taken) -> str:
        """Put a copy of a message into the poison queue, which is made if it is missing; return the id of the copy."""
        ...


class QueueInbox:
    """The messages of a queue of the service."""

    def __init__(
        self, queue: Target, poison: Target, encoding: str, now: Callable[[], float] = times.read_boot_clock
    ) -> None:
        self._queue, self._poison, self._encoding, self._now = queue, poison, encoding, now

    def receive(self, number: int, seconds: int) -> list[Taken]:
        at = self._now()
        received = messages.receive(self._queue, number, seconds, self._encoding, _patience(_RECEIVE_SECONDS))
        return [Taken(each, at, at + _find_life_seconds(each, seconds)) for each in received]

    def find_asked_seconds(self) -> float:
        return client.find_pause_seconds(self._queue.endpoint)

    def hide(self, message: Taken, receipt: MessageReceipt, seconds: int) -> MessageReceipt:
        # The service refuses to hide a message beyond its end.
        left = min(seconds, max(1, int(message.expires - self._now() - 1)))
        updated = messages.update(message.received.target, receipt.text, None, left, _patience(_SEND_SECONDS))
        return MessageReceipt(updated.pop_receipt, updated.time_next_visible)

    def delete(self, message: Taken, receipt: MessageReceipt) -> None:
        target, patience = message.received.target, _patience(_DELETE_SECONDS)
        messages.delete(target, receipt.text, patience, hidden_until=receipt.hidden_until)

    def send_to_poison(self, message: Taken) -> str:
        try:
            return self._send(message)
        except NotFound:
            try:
                lifecycles.create(self._poison, {}, _patience(_SEND_SECONDS), fresh_op())
            except Exists:
                pass  # another worker has made it
            return self._send(message)

    def _send(self, message: Taken) -> str:
        return messages.put(self._poison, message.received.body.text, 0, _FOR_EVER, _patience(_SEND_SECONDS)).id


def _patience(seconds: float) -> Deadline:
    return Deadline(seconds, answer_seconds=_ANSWER_SECONDS)


def _find_life_seconds(received: Received, hidden: int) -> float:
    shown = received.shown
    return (shown.expiration_time - shown.time_next_visible).total_seconds() + hidden


def find_facts(taken: Taken, settings: WorkSettings) -> MessageFacts:
    """Return the known facts of a message."""
    shown = taken.received.shown
    return MessageFacts(
        queue=settings.queue.address.container,
        id=shown.id,
        dequeue_count=shown.dequeue_count,
        insertion_time=shown.insertion_time,
        expiration_time=shown.expiration_time,
        digest=_digest(taken, settings) if settings.key_in_body else None,
    )


def build_order(taken: Taken, settings: WorkSettings, key: str | None, ends: float) -> CommandOrder:
    """Return the order of the command that is to run for a message.

    ``key`` is the key claimed for the message; ``ends`` is when the claim ends, on ``times.read_boot_clock``.
    """
    facts, shown = find_facts(taken, settings), taken.received.shown
    known = {
        "queue": facts.queue,
        "id": facts.id,
        "dequeue_count": facts.dequeue_count,
        "insertion_time": iso(facts.insertion_time),
        "expiration_time": iso(facts.expiration_time),
    }
    environ = {f"AZGUARD_MESSAGE_{name.upper()}": str(value) for name, value in known.items() if name != "queue"}
    if key is not None:
        known["key"] = key
        if _fits_variable(key):
            environ["AZGUARD_MESSAGE_KEY"] = key
    environ["AZGUARD_QUEUE"] = facts.queue
    if _SCOPE not in settings.environ:
        # What one command has read shall not guard what another writes.
        environ[_SCOPE] = f"{facts.queue}/{facts.id}/{facts.dequeue_count}"
    # Without the receipt: with it the command could take the message away from the worker.
    described = {**known, "content": shown.content, "encoding": shown.encoding, "is_base64": shown.is_base64}
    return CommandOrder(
        command=settings.command,
        stdin=taken.received.body.read(settings.encoding),
        environ=environ,
        files={FILE: json.dumps(described, ensure_ascii=False)},
        ends=ends,
        grace=settings.grace,
    )


def _digest(taken: Taken, settings: WorkSettings) -> str:
    return hashlib.sha256(taken.received.body.read(settings.encoding)).hexdigest()[:_DIGITS]


def _fits_variable(text: str) -> bool:
    """Return whether an environment variable can hold a text, which a sender may have chosen freely."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


class Workplace(Protocol):
    """Where a command runs: ``CommandPlace``."""

    #: Whether it cannot be used any more.
    is_gone: bool

    def start(self, order: CommandOrder) -> None: ...

    def wait(self, seconds: float) -> CommandEnd | None:
        """Wait for its end, at most so long."""
        ...

    def extend(self, ends: float) -> None:
        """Say until when it may run."""
        ...

    def end(self) -> None: ...


#: Handles a message at a place.
Handle = Callable[[Taken, Workplace], None]


class Crew:
    """Threads that handle messages; ``on_end`` is called by them when one is through."""

    def __init__(self, places: Sequence[Workplace], handle: Handle, on_end: Callable[[], None]) -> None:
        self._handle, self._on_end = handle, on_end
        self._given: queue.SimpleQueue[Taken | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._busy = 0
        self._alive = len(places)
        #: What no one foresaw in one of them; None if there was nothing.
        self.failure: BaseException | None = None
        self._threads = [threading.Thread(target=self._work, args=(each,), daemon=True) for each in places]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    @property
    def busy(self) -> int:
        with self._lock:
            return self._busy

    @property
    def free(self) -> int:
        with self._lock:
            return max(0, self._alive - self._busy)

    @property
    def is_gone(self) -> bool:
        with self._lock:
            return self._alive == 0

    def give(self, taken: Taken) -> None:
        with self._lock:
            self._busy += 1
        self._given.put(taken)

    def stop(self) -> None:
        """Wait until all that was given is handled."""
        for _ in self._threads:
            self._given.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self, place: Workplace) -> None:
        while not place.is_gone and (taken := self._given.get()) is not None:
            try:
                self._handle(taken, place)
            except BaseException as failure:  # noqa: BLE001  # raised by the thread that waits for all of them
                self.failure = self.failure or failure
            finally:
                with self._lock:
                    self._busy -= 1
                    if place.is_gone:
                        self._alive -= 1
                self._on_end()


class Bell:
    """Wakes the one thread that waits for it. Ringing takes no lock, so that a signal handler may do it."""

    def __init__(self) -> None:
        self._heard, self._rung = os.pipe()
        os.set_blocking(self._heard, False)
        os.set_blocking(self._rung, False)

    def ring(self) -> None:
        """Wake the waiting thread, or let its next wait end at once."""
        try:
            os.write(self._rung, b".")
        except BlockingIOError:
            return  # it was rung many times already

    def wait(self, seconds: float) -> None:
        """Wait until it is rung, at most so long."""
        if wait_readable([self._heard], max(0.0, seconds)):
            os.read(self._heard, _MANY)

    def close(self) -> None:
        os.close(self._heard)
        os.close(self._rung)
