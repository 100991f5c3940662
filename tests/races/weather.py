"""What the network does to each request of a race, and which requests it still holds.

Each process has dice of its own: what happens to its n-th request depends on the seed, on its name and on n, and not
on the others. The same seed so makes the same decisions; which of them meet is up to the schedule.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from tests.faults.rules import operation
from tests.races.log import FOREIGN, makes_version, run_of
from tests.support.faultproxy.proxy import Chosen, Fault, ProxiedAnswer, Request

# Half of the faults of writes leave them committed, and unheard of.
_OF_WRITES = (Fault.DROP, Fault.FAIL_AFTER, Fault.LATE, Fault.HALF, Fault.ZOMBIE, Fault.ZOMBIE, Fault.RESET,
              Fault.FAIL_BEFORE, Fault.STORED_AFTER, Fault.STORED_BEFORE, Fault.SLOW)  # fmt: skip
# Where a foreign writer wipes the lineage, nothing tells a refusal of a second copy from one of the first.
_OF_WRITES_THAT_TELL = (*_OF_WRITES, Fault.REPLAYED, Fault.REPLAYED)
_OF_READS = (Fault.DROP, Fault.FAIL_BEFORE, Fault.RESET, Fault.HALF, Fault.LATE, Fault.STORED_BEFORE)
# A late request is held this long after its sender gave up, in seconds: long enough for many others to come between.
_HELD_SECONDS = 2.5
# Without any fault some requests are slow to arrive, so that the order of sending is not that of arriving.
_SLOW_SHARE, _SLOW_SECONDS = 0.05, 0.15


class Weather:
    """A rule for the proxy, with its record. Its methods run in the proxy's thread, except where they say otherwise.

    ``wiped`` says that a writer wipes the lineage now and then. ``on_arrival`` and ``on_answer`` are told of each
    request that makes a version, before and after it happens.
    """

    def __init__(
        self,
        seed: str,
        share: float,
        on_arrival: Callable[[str], None] = lambda run: None,
        on_answer: Callable[[str], None] = lambda run: None,
        *,
        wiped: bool = False,
    ) -> None:
        self._of_writes = _OF_WRITES if wiped else _OF_WRITES_THAT_TELL
        self._seed, self._share = seed, share
        self._on_arrival, self._on_answer = on_arrival, on_answer
        self._dice: dict[str, random.Random] = {}
        self._pending: dict[int, Request] = {}
        #: The last answer to each kind of request, as it is on the wire.
        self._kept: dict[str, bytes] = {}
        self._lock = threading.Lock()
        self.log: list[ProxiedAnswer] = []
        self.faults: Counter[str] = Counter()
        self.writes_sent = 0

    def decide(self, request: Request) -> Chosen:
        """Choose what happens to a request."""
        run = run_of(request)
        chosen = self._chosen(run, request)
        with self._lock:
            self._pending[id(request)] = request
        self.faults[chosen.fault.value] += 1
        # Every write that arrives costs the emulator, refused ones too.
        self.writes_sent += request.writes and chosen.fault.reaches
        if makes_version(request) is not None:
            self._on_arrival(run)
        return chosen

    def record(self, answer: ProxiedAnswer) -> None:
        """Note what really happened."""
        if answer.raw:
            self._kept[operation(answer.request)] = answer.raw
        self.log.append(replace(answer, raw=b""))
        with self._lock:
            self._pending.pop(id(answer.request), None)
        if answer.committed and makes_version(answer.request) is not None:
            self._on_answer(run_of(answer.request))

    def settled(self, seconds: float) -> bool:
        """Wait until no request is held any more, from any thread; return False if some still are.

        A process that is killed while it sends leaves a request that is never whole, and so never passed on.
        """
        until = time.monotonic() + seconds
        while self._pending:
            if time.monotonic() > until:
                return False
            time.sleep(0.05)  # another process makes it so
        return True

    @property
    def held(self) -> tuple[str, ...]:
        """Return what is still under way, for a report."""
        with self._lock:
            return tuple(f"{request.method} {request.path} by {run_of(request)}" for request in self._pending.values())

    def _chosen(self, run: str, request: Request) -> Chosen:
        dice = self._dice.get(run)
        if dice is None:
            dice = self._dice[run] = random.Random(f"{self._seed} {run}")
        # Always the same number of throws, so that one decision does not change the next.
        fate, which, length = dice.random(), dice.random(), dice.random()
        share = 0.0 if run.startswith(FOREIGN) else self._share if request.writes else self._share / 2
        if fate < share:
            faults = self._of_writes if request.writes else _OF_READS
            fault = faults[int(which * len(faults))]
            return self._spoil(request, fault, length)
        until = _after(length * _SLOW_SECONDS) if fate > 1 - _SLOW_SHARE * (share > 0) else None
        return Chosen(until=until, keeps=True, echoes=True)

    def _spoil(self, request: Request, fault: Fault, length: float) -> Chosen:
        if fault is Fault.ZOMBIE:
            return Chosen(fault, _after(length * _HELD_SECONDS))
        stored = self._kept.get(operation(request), b"")
        if fault in (Fault.STORED_AFTER, Fault.STORED_BEFORE) and not stored:
            return Chosen(Fault.DROP)
        return Chosen(fault, stored=stored)


def _after(seconds: float) -> Callable[[], bool]:
    moment = time.monotonic() + seconds
    return lambda: time.monotonic() >= moment
