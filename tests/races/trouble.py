"""What happens to the processes of a race: kill -9 and SIGSTOP at moments that a seed chooses.

Half of the kills strike in the very moment when a write of the victim arrives at the service, or has just been done
there: the moments that matter most, which chance alone would seldom meet.
"""

import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from tests.races.slots import Slot

_NOW, _ON_ARRIVAL, _ON_ANSWER = "now", "as its write arrives", "as its write is done"
_MANNERS = (_NOW, _NOW, _ON_ARRIVAL, _ON_ANSWER)
_LONGEST_STOP_SECONDS = 3.0


class Trouble:
    """Kills and stops, each about every so many seconds; 0 is never."""

    def __init__(self, seed: str, kill_every: float, stop_every: float) -> None:
        self._kill_every, self._stop_every = kill_every, stop_every
        self._seed = seed
        self._slots: Sequence[Slot] = ()
        self._armed: dict[int, str] = {}  # the slot's number, and how it is to be killed
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self.counts: Counter[str] = Counter()

    def start(self, slots: Sequence[Slot]) -> None:
        """Begin to trouble these slots."""
        self._slots = slots
        for every, work in ((self._kill_every, self._kill), (self._stop_every, self._stop)):
            if every:
                thread = threading.Thread(target=self._again, args=(every, work), name=work.__name__)
                self._threads.append(thread)
                thread.start()

    def end(self) -> None:
        """Trouble no more; what is stopped goes on."""
        self._over.set()
        for thread in self._threads:
            thread.join()
        self._armed.clear()

    def on_arrival(self, run: str) -> None:
        """Strike if this is what was waited for. Called by the proxy, before it passes a write on."""
        self._strike(run, _ON_ARRIVAL)

    def on_answer(self, run: str) -> None:
        """Strike if this is what was waited for. Called by the proxy, before the client can hear of its write."""
        self._strike(run, _ON_ANSWER)

    def summary(self) -> Mapping[str, int]:
        """Return how many were killed and stopped."""
        return {"kills": sum(self.counts[manner] for manner in set(_MANNERS)), "stops": self.counts["stopped"]}

    def _again(self, every: float, work: Callable[[random.Random], None]) -> None:
        dice = random.Random(f"{self._seed} {work.__name__}")
        while not self._over.wait(every * dice.uniform(0.5, 1.5)):
            work(dice)

    def _kill(self, dice: random.Random) -> None:
        slot, manner = dice.choice(self._slots), dice.choice(_MANNERS)
        if manner is _NOW:
            self.counts[manner] += slot.signal(signal.SIGKILL)
        else:
            self._armed[slot.place.number] = manner

    def _strike(self, run: str, manner: str) -> None:
        for slot in self._slots:
            if slot.run == run and self._armed.get(slot.place.number) == manner:
                del self._armed[slot.place.number]
                self.counts[manner] += slot.signal(signal.SIGKILL)

    def _stop(self, dice: random.Random) -> None:
        slot, seconds = dice.choice(self._slots), dice.uniform(0.05, _LONGEST_STOP_SECONDS)
        if slot.signal(signal.SIGSTOP):
            self.counts["stopped"] += 1
            self._over.wait(seconds)
            with suppress(ProcessLookupError):
                slot.signal(signal.SIGCONT)
