"""Who contends for a lock in a race: real processes of ``azguard lock run``, and who kills them."""

import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL

from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME
from azguard.requests.trace import VARIABLE
from tests.faults.rules import operation
from tests.races import lock_section
from tests.races.lock_history import Ran
from tests.races.log import run_of
from tests.support.faultproxy.proxy import ProxiedAnswer, Request
from tests.support.forked_process import ForkedProcess
from tests.support.places import REPOSITORY

CONTAINER = "locks"
LOCK = f"blob:{CONTAINER}/x"
# The operations of a lock run, and the moments at which it is killed: as a request arrives at the service, and when it
# is done there and not yet heard of.
_REQUESTS = ("GET list", "PUT blob", "PUT lease:acquire", "PUT metadata", "DELETE blob", "PUT lease:release")
_MANNERS = (*((request, moment) for request in _REQUESTS for moment in ("arrives", "done")),
            *(("section", "runs"),) * 6, *(("anything", "now"),) * 3)  # fmt: skip
_LAST_WORDS = 2000
_LOOK_SECONDS = 0.02


@dataclass(frozen=True)
class Sections:
    """What the sections are like: how long they take in seconds, and which share of them ignores SIGTERM.

    ``children`` says whether they start processes of their own, which ignore it too.
    """

    shortest: float = 0.002
    longest: float = 0.02
    stubborn: float = 0.0
    children: bool = False

    def words(self, dice: random.Random) -> list[str]:
        """Return the arguments of the next section, after its name and the number of slots."""
        seconds, stubborn = dice.uniform(self.shortest, self.longest), dice.random() < self.stubborn
        return [f"{seconds:.3f}", *["child"] * self.children, *["stubborn"] * stubborn]


@dataclass(frozen=True)
class Ground:
    """Where a race takes place: the service's port, a folder, and the arguments of each ``azguard lock run``."""

    port: int
    folder: Path
    slots: int
    words: Sequence[str]
    #: How the names of its runs begin; those that read under the lock begin with ``lock_section.READER``.
    name: str = "contender"

    @property
    def trace(self) -> Path:
        """Return the file into which all contenders write their steps."""
        return self.folder / "trace.jsonl"

    def environ(self, run: str) -> dict[str, str]:
        """Return the environment of a contender, which says its name with each request."""
        endpoint = f"http://127.0.0.1:{self.port}/{EMULATOR_NAME}"
        account = f"AccountName={EMULATOR_NAME};AccountKey={EMULATOR_KEY};BlobEndpoint={endpoint}"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AZ", "COV"))}
        return {
            **kept,
            "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])]),
            "AZURE_STORAGE_CONNECTION_STRING": f"DefaultEndpointsProtocol=http;{account}",
            "AZURE_HTTP_USER_AGENT": f"race/{run}",
            "AZGUARD_CACHE_DIR": str(self.folder / "cache"),
            "AZGUARD_CONFIG_DIR": str(self.folder / "cache"),
            "AZGUARD_SCOPE": run,
            VARIABLE: str(self.trace),
        }

    def words_of(self, run: str, section: Sequence[str]) -> tuple[str, ...]:
        """Return the command line of a contender."""
        script = [sys.executable, "-I", "-S", lock_section.__file__, str(self.folder), run, str(self.slots), *section]
        return ("lock", "run", LOCK, *self.words, "--", *script)


class Contender:
    """One place from which a lock is asked for so many times, and until the race has had enough, in a thread."""

    def __init__(
        self, number: int, ground: Ground, seed: str, times: int, sections: Sections, is_enough: Callable[[], bool]
    ) -> None:
        self._number, self._ground, self._times, self._sections = number, ground, times, sections
        self._is_enough = is_enough
        self._dice = random.Random(f"{seed} contender {number}")
        self._process: ForkedProcess | None = None
        self._killed: float | None = None
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"contender {number}")
        self.run = ""
        self.ran: list[Ran] = []

    def start(self) -> None:
        """Begin to contend."""
        self._thread.start()

    def join(self, seconds: float) -> bool:
        """Wait for the end; return whether it came."""
        self._thread.join(max(0.0, seconds))
        return not self._thread.is_alive()

    def close(self) -> None:
        """End what runs, and ask no more."""
        self._over.set()
        self.kill()

    def kill(self) -> bool:
        """Kill azguard itself, from any thread, and nothing that it started; return whether it ran."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                return False
            self._killed = time.time()
            self._process.send_signal(signal.SIGKILL)
            return True

    def _work(self) -> None:
        while not self._over.is_set() and (len(self.ran) < self._times or not self._is_enough()):
            self.ran.append(self._once(f"{self._ground.name}{self._number}.{len(self.ran)}"))

    def _once(self, run: str) -> Ran:
        words, began = self._ground.folder / f"{run}.err", time.time()
        with open(words, "wb") as err, self._lock:
            line = self._ground.words_of(run, self._sections.words(self._dice))
            self.run, self._killed = run, None
            self._process = ForkedProcess(
                line, self._ground.folder, self._ground.environ(run), stdin=DEVNULL, stdout=err, stderr=err
            )
        status = self._process.wait()
        said = "" if status == 0 else words.read_text(encoding="utf-8")[-_LAST_WORDS:]
        # Killed is who died of it: the signal may have come too late.
        return Ran(run, status, said, began, time.time(), self._killed if status == -signal.SIGKILL else None)


class Killer:
    """``kill -9`` of azguard, about every so many seconds (0 is never), at moments that a seed chooses.

    Most moments are those that matter: while the section runs, as a request arrives, or when it has just been done.
    """

    def __init__(self, seed: str, every: float, log: Path) -> None:
        self._dice, self._every, self._log = random.Random(seed), every, log
        self._contenders: Sequence[Contender] = ()
        self._armed: tuple[str, str] | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="killer")
        self.counts: Counter[str] = Counter()

    def start(self, contenders: Sequence[Contender]) -> None:
        """Begin to kill."""
        self._contenders = contenders
        if self._every:
            self._thread.start()

    def end(self) -> None:
        """Kill no more."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def on_arrival(self, request: Request) -> None:
        """Strike if this is what was waited for. Called by the proxy, before it passes a request on."""
        self._strike((operation(request), "arrives"), run_of(request))

    def on_answer(self, answer: ProxiedAnswer) -> None:
        """Strike if this is what was waited for. Called by the proxy, before the client can hear of it."""
        if answer.status is not None and answer.status < 300:
            self._strike((operation(answer.request), "done"), run_of(answer.request))

    def _work(self) -> None:
        while not self._over.wait(self._every * self._dice.uniform(0.5, 1.5)):
            manner, pause = self._dice.choice(_MANNERS), self._dice.random()
            if manner == ("section", "runs"):
                self._kill_a_holder(pause)
            elif manner == ("anything", "now"):
                self._kill(self._dice.choice(self._contenders), manner)
            else:
                self._armed = manner

    def _kill_a_holder(self, pause: float) -> None:
        """Wait until one enters, then a while, and kill that one."""
        before = self._entries()
        while len(entries := self._entries()) == len(before):
            if self._over.wait(_LOOK_SECONDS):
                return
        self._over.wait(pause)
        self._strike_at(entries[-1].split()[2], ("section", "runs"))

    def _entries(self) -> list[str]:
        lines = self._log.read_text(encoding="utf-8").splitlines() if self._log.exists() else []
        return [line for line in lines if " enter " in line]

    def _strike(self, manner: tuple[str, str], run: str) -> None:
        if self._armed == manner and not self._over.is_set():
            self._armed = None
            self._strike_at(run, manner)

    def _strike_at(self, run: str, manner: tuple[str, str]) -> None:
        for contender in self._contenders:
            if contender.run == run:
                self._kill(contender, manner)

    def _kill(self, contender: Contender, manner: tuple[str, str]) -> None:
        self.counts[" ".join(manner)] += contender.kill()
