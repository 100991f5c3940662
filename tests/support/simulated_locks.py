"""Runs that contend for a lock in a simulation: the real code, a service in memory, a clock that jumps.

One thread runs at a time, and a seed decides what happens when: so a seed plays the same story again. Requests take
time, get lost before or after the service has done them, come late, and runs are killed.
"""

import heapq
import itertools
import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from azguard.accounts.account import Account, Auth, Target
from azguard.address import Address, Kind
from azguard.errors import AzguardError
from azguard.leases import actions
from azguard.leases.owners import TICKET, Owner
from azguard.locks import queue, readers
from azguard.locks.acquire import LockAcquisition
from azguard.locks.held_lock import HeldLock
from azguard.locks.lock_blobs import AcquireSettings, LockRequest
from azguard.requests.deadline import Deadline
from azguard.wire.connections import Reply
from azguard.wire.failures import Broken, BrokenAnswer
from tests.support.answering_client import AnsweringClient, reply
from tests.support.answering_client import Asked as Sent
from tests.support.no_records import NoRecords
from tests.support.simulated_service import Asked, Service

LOCK = "x"
TERM = 30
# As long as a request waits for its answer.
_ANSWER_SECONDS = 3.0
# The share of the requests of a run that is killed which arrive all the same.
_ARRIVES = 0.5
_LONGEST_WAIT = 300.0


class Killed(BaseException):
    """The run was killed: from now on it does nothing."""


@dataclass(frozen=True)
class Storm:
    """What goes wrong: the share of requests that are lost before or after they are done, or are done late."""

    lost: float = 0.0
    late: float = 0.0


@dataclass
class Contender:
    """A run: when it comes, how long it holds the lock, when it is killed, and what became of it; in seconds."""

    name: str
    comes: float
    holds: float = 1.0
    killed: float | None = None
    is_fair: bool = True
    is_shared: bool = False
    #: Whether none of its requests for the lock arrives.
    is_mute: bool = False
    #: When its first look was done at the service; its tickets, and when each came to be.
    looked: float | None = None
    tickets: dict[str, float] = field(default_factory=dict)
    #: When its last sign of life in the queue was done at the service.
    signed: float = 0.0
    #: Whether another waiter deleted its ticket, or it was silent for long, so that it lost its place.
    lost_place: bool = False
    #: Whether it was ever granted the lease on the lock.
    granted: bool = False
    entered: float | None = None
    left: float | None = None
    fence: int = 0
    error: AzguardError | None = None


class Simulation:
    """The clock, what happens next, and the service."""

    def __init__(self, seed: str, storm: Storm = Storm()) -> None:
        self.dice = random.Random(seed)
        self.now = 0.0
        self.service = Service(lambda: self.now, self._note)
        self._storm = storm
        #: When, in which order, what, and whether another thread runs then.
        self._events: list[tuple[float, int, Callable[[], object], bool]] = []
        self._order = itertools.count()
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self.contenders: list[Contender] = []
        self.requests = 0

    def run(self, contenders: Sequence[Contender]) -> None:
        """Play the story to its end."""
        self.contenders += contenders
        for each in contenders:
            self._at(each.comes, self._starter(each), is_thread=True)
        self._next()
        self._over.wait()
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        self._over.clear()

    def sleep(self, contender: Contender, seconds: float) -> None:
        """Let others run for so long."""
        wake = threading.Semaphore(0)
        self._check_alive(contender)
        self._at(self.now + seconds, wake.release, is_thread=True)
        self._next()
        wake.acquire()
        self._check_alive(contender)

    def _check_alive(self, contender: Contender) -> None:
        if contender.killed is not None and self.now >= contender.killed:
            raise Killed

    def send(self, contender: Contender, request: Sent) -> Reply:
        """Bring a request to the service, and its answer back, or not."""
        self.requests += 1
        asked = Asked.parse(request.method, request.url, request.headers)
        self._check_alive(contender)
        try:
            self.sleep(contender, self.dice.uniform(0.002, 0.05))
        except Killed:
            # What was sent may still arrive.
            if self.dice.random() < _ARRIVES:
                self._answer(asked, contender)
            raise
        if contender.is_mute and asked.name == LOCK and asked.what == "PUT lease:acquire":
            self.sleep(contender, _ANSWER_SECONDS)
            raise BrokenAnswer(Broken.TIMED_OUT)
        luck = self.dice.random()
        if luck < self._storm.late:
            self._at(self.now + self.dice.uniform(1, 25), lambda: self._answer(asked, contender))
        if luck < self._storm.late + self._storm.lost / 2:
            self.sleep(contender, _ANSWER_SECONDS)
            raise BrokenAnswer(Broken.TIMED_OUT)
        status, headers, body = self._answer(asked, contender)
        self.sleep(contender, self.dice.uniform(0.002, 0.05))
        if luck > 1 - self._storm.lost / 2:
            self.sleep(contender, _ANSWER_SECONDS)
            raise BrokenAnswer(Broken.TIMED_OUT)
        return reply(status, headers, body)

    def _answer(self, asked: Asked, contender: Contender) -> Any:
        self._sender = contender
        return self.service.answer(asked)

    def _note(self, asked: Asked, service: Service) -> None:
        """Note what a request that was done says about places in the queue."""
        sender = self._sender
        if asked.what == "GET list" and sender.looked is None:
            sender.looked = self.now
        elif asked.what == "PUT blob" and f"x-ms-meta-{TICKET}" in asked.headers:
            sender.tickets[asked.name] = sender.signed = self.now
        elif asked.what == "PUT properties":
            # One that looked just before may pass it over just after.
            sender.lost_place |= not sender.granted and self._is_silent(sender)
            sender.signed = self.now
        elif asked.what == "DELETE blob":
            for each in self.contenders:
                each.lost_place |= asked.name in list(each.tickets)[-1:] and each is not sender and not each.entered
        elif asked.what == "PUT lease:acquire" and asked.name == LOCK:
            sender.granted = True
            for each in self.contenders:
                # The names of tickets are given again.
                each.lost_place |= not each.granted and self._is_silent(each)

    def _is_silent(self, contender: Contender) -> bool:
        """Return whether it has given no sign of life for so long that others rightly pass it over."""
        # The service tells times in whole seconds.
        return bool(contender.tickets) and self.now - contender.signed >= queue.SILENT_SECONDS - 1

    def _starter(self, contender: Contender) -> Callable[[], None]:
        thread = threading.Thread(target=self._work, args=[contender], daemon=True, name=contender.name)
        self._threads.append(thread)
        return thread.start

    def _work(self, contender: Contender) -> None:
        try:
            self._contend(contender)
        except Killed:
            pass
        except AzguardError as error:
            contender.error = error
        finally:
            self._next()

    def _contend(self, contender: Contender) -> None:
        endpoints = {"blob": "https://acc.blob.core.windows.net"}
        account = Account("acc", endpoints, Auth.ANONYMOUS, None, {"client": _Client(self, contender)})
        target = Target(account, Address(Kind.BLOB, ("locks", LOCK)))
        settings = AcquireSettings(
            owner=Owner(contender.name, "host", 1, "sh", None),
            seconds=TERM,
            create=True,
            patience=Deadline(60.0, lambda: self.now, lambda seconds: self.sleep(contender, seconds)),
            records=NoRecords(),
            say=lambda text: None,
            tell=lambda text: None,
            uniform=self.dice.uniform,
            is_fair=contender.is_fair,
            now=lambda: self.now,
        )
        deadline = Deadline(_LONGEST_WAIT, lambda: self.now, lambda seconds: self.sleep(contender, seconds))
        request = LockRequest(target, is_shared=contender.is_shared)
        held = LockAcquisition(request, settings, deadline).run()
        contender.fence = held.fence
        contender.entered = self.now
        self._hold(contender, held, deadline)

    def _hold(self, contender: Contender, held: HeldLock, deadline: Deadline) -> None:
        self.sleep(contender, contender.holds)
        assert self.now < held.ends
        contender.left = self.now
        if actions.give_back(held.target, held.lease_id, deadline, 20.0) and held.is_shared:
            readers.delete(held.target)

    def _at(self, moment: float, call: Callable[[], object], *, is_thread: bool = False) -> None:
        heapq.heappush(self._events, (moment, next(self._order), call, is_thread))

    def _next(self) -> None:
        """Let happen what comes next, until another thread runs."""
        while self._events:
            self.now, _, call, is_thread = heapq.heappop(self._events)
            call()
            if is_thread:
                return
        self._over.set()


class _Client(AnsweringClient):
    """Brings the requests of one contender to the simulated service."""

    def __init__(self, simulation: Simulation, contender: Contender) -> None:
        self._simulation = simulation
        self._contender = contender

    def answer(self, asked: Sent) -> Reply:
        return self._simulation.send(self._contender, asked)
