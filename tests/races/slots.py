"""The places at which azguard works in a race: long-lived workers, and command lines of one update each.

A slot outlives its processes: if one is killed, its update goes to the slot that is free first, under the same key,
and the slot starts the next process.
"""

import json
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME, plain
from azguard.requests.lineage import op_of_key
from azguard.requests.trace import VARIABLE
from tests.races.history import End, Told
from tests.races.job import Job, Jobs
from tests.races.worker import READY
from tests.support.forked_process import ForkedProcess
from tests.support.places import REPOSITORY

_UNKNOWN = 74
# The last errors that a process wrote, for a report of its crash.
_LAST_WORDS = 2000


@dataclass
class Board:
    """What all slots of one race share: what was told, what has to be run again, and when to stop.

    ``issued`` are the ops asked for.
    """

    orphans: deque[Job] = field(default_factory=deque)
    told: list[Told] = field(default_factory=list)
    #: What those were told who only read.
    reads: list[Told] = field(default_factory=list)
    issued: set[str] = field(default_factory=set)
    closing: threading.Event = field(default_factory=threading.Event)

    def next(self, own: Jobs) -> Job | None:
        """Return what to do next: what a killed process left first. None is the end."""
        with suppress(IndexError):
            return self.orphans.popleft()
        # What is killed before the end comes to its own slot, if to no other.
        return None if self.closing.is_set() else own.next()


@dataclass(frozen=True)
class Place:
    """Where a slot works: the number of the slot, the service's port, the cache folder of its host."""

    number: int
    port: int
    cache: Path

    @property
    def trace(self) -> Path:
        """Return the file into which all processes of a race write their steps."""
        return self.cache.parent / "trace.jsonl"

    @property
    def endpoint(self) -> str:
        """Return the endpoint of the service."""
        return f"http://127.0.0.1:{self.port}/{EMULATOR_NAME}"


class Slot:
    """One place at work, in a thread. A subclass knows how to do one job in a process."""

    def __init__(self, place: Place, board: Board, jobs: Jobs) -> None:
        self.place, self._board, self._jobs = place, board, jobs
        self._generation = 0
        self._process: ForkedProcess | None = None
        self._lock = threading.Lock()
        self._killed = False
        self._thread = threading.Thread(target=self._work, name=f"slot {place.number}")

    @property
    def run(self) -> str:
        """Return the name of the process at work now."""
        return f"{type(self).__name__.lower()}{self.place.number}.{self._generation}"

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def join(self, seconds: float) -> bool:
        """Wait for the end; return whether it came."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal to the process at work, from any thread; return whether there is one."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                return False
            self._killed |= number is signal.SIGKILL
            self._process.send_signal(number)
            return True

    def close(self) -> None:
        """End the process, whatever it does."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGKILL)

    # For subclasses.

    def _do(self, job: Job, op: str) -> dict[str, Any] | None:
        """Return what the caller is told, or None if the process ended without a word."""
        raise NotImplementedError

    def _started(self, *words: str, **settings: Any) -> ForkedProcess:
        """Start the slot's next process."""
        self._generation += 1
        process = ForkedProcess(words, self.place.cache, self._environ(), **settings)
        with self._lock:
            self._process, self._killed = process, False
        return process

    def _environ(self) -> Mapping[str, str]:
        endpoint = self.place.endpoint
        account = f"AccountName={EMULATOR_NAME};AccountKey={EMULATOR_KEY};BlobEndpoint={endpoint}"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AZ", "COV"))}
        return {
            **kept,
            "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])]),
            "AZURE_STORAGE_CONNECTION_STRING": f"DefaultEndpointsProtocol=http;{account}",
            "AZURE_HTTP_USER_AGENT": f"race/{self.run}",
            "AZGUARD_CACHE_DIR": str(self.place.cache),
            "AZGUARD_CONFIG_DIR": str(self.place.cache),
            VARIABLE: str(self.place.trace),
            "AZGUARD_SCOPE": f"slot-{self.place.number}",
        }

    def _work(self) -> None:
        while (job := self._board.next(self._jobs)) is not None:
            op = op_of_key(job.key, plain(self.place.endpoint), job.address)
            if not job.how.reads:
                self._board.issued.add(op)
            began = time.time()
            said = self._do(job, op)
            told = _told(job, op, said, self._killed, (self.run, began, time.time()))
            if job.how.reads:
                # A read without an answer says nothing.
                self._board.reads += [told] if told.end is End.COMMITTED else []
                continue
            self._board.told.append(told)
            if told.end is End.KILLED:
                self._board.orphans.append(job)
        self._end()

    def _end(self) -> None:
        self.close()
        if self._process is not None:
            self._process.wait()


class Worker(Slot):
    """A process that stays and is given one job after the other."""

    def _do(self, job: Job, op: str) -> dict[str, Any] | None:
        process = self._process
        if process is None or process.poll() is not None:
            process = self._started(module="tests.races.worker", stdin=PIPE, stdout=PIPE, stderr=None)
            if process.stdout.readline().strip() != READY:  # type: ignore[union-attr]  # it has pipes
                process.wait()
                return None
        with suppress(BrokenPipeError):
            # Nothing is left in a buffer that a killed process has not read.
            os.write(process.stdin.fileno(), job.line(self.place.port))  # type: ignore[union-attr]  # it has pipes
        line = process.stdout.readline()  # type: ignore[union-attr]  # it has pipes
        if not line.endswith(b"\n"):
            process.wait()
            return None
        answer: dict[str, Any] = json.loads(line)
        return answer


class Command(Slot):
    """Real command lines, a process for each update."""

    def _do(self, job: Job, op: str) -> dict[str, Any] | None:
        words = ["--op-id", job.key, "--timeout", f"{job.timeout}s", "-o", "json", *job.words(op)]
        process = self._started("safe-update", *words, stdin=DEVNULL, stdout=PIPE, stderr=PIPE)
        out, said = process.communicate()
        status, err = process.wait(), said.decode()
        if status == 0:
            return {**json.loads(out), "code": 0}
        if status < 0 or '{"error"' not in err.replace("\n", "").replace(" ", ""):
            return None if self._killed else {"code": status, "message": err[-_LAST_WORDS:]}
        error = json.loads(err[err.index("{") :])["error"]
        return {**error, "code": status}

    def _environ(self) -> Mapping[str, str]:
        return {**super()._environ(), "AZGUARD_WRITE_TIMEOUT": f"{self._jobs.answer}s"}


def _told(job: Job, op: str, said: dict[str, Any] | None, killed: bool, when: tuple[str, float, float]) -> Told:
    run, began, ended = when
    if said is None:
        end = End.KILLED if killed else End.CRASHED
        return Told(op, job.blob, run, end, how=job.how, began=began, ended=ended)
    outcome = {0: End.UNCHANGED if said.get("outcome") == "unchanged" else End.COMMITTED, _UNKNOWN: End.UNKNOWN}
    return Told(
        op=op,
        blob=job.blob,
        run=run,
        end=outcome.get(said["code"], End.REFUSED),
        code=said["code"],
        message=said.get("message") or "",
        etag=(said.get("etag") or "").strip('"') or None,
        how=job.how,
        began=began,
        ended=ended,
        doubts=said.get("doubts", 0),
        conflicts=said.get("conflicts", 0),
        value=said.get("value"),
    )


def queues_in(folder: Path, hosts: int) -> list[Path]:
    """Make a cache folder for each host and return them."""
    made = [folder / f"host{number}" for number in range(hosts)]
    for host in made:
        host.mkdir()
    return made


Made = Callable[[Place, Board, Jobs], Slot]
