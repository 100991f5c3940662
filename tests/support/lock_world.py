"""A world for tests of ``lock run``: real processes under real leases, and what is true about them."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import BlobClient, BlobLeaseClient

from azguard import address, times
from azguard.accounts import account
from azguard.address import Kind
from tests.support import locked_command, sdk_clients
from tests.support.cli_world import CliWorld, Ran
from tests.support.emulator_world import until

if TYPE_CHECKING:
    from tests.support.forked_process import ForkedProcess

# What marks the processes of a world, so that none is overlooked.
_MARK = "LOCK_WORLD"
_SECONDS = 60.0
# What a run leaves behind: see ``Locks.left``.
NOTHING: tuple[str, list[str], list[Any]] = ("available", [], [])


@dataclass(frozen=True)
class Process:
    """A process as /proc tells of it."""

    pid: int
    parent: int
    group: int
    words: tuple[str, ...]


@dataclass
class Locks:
    """A container of locks, and runs under them."""

    cli: CliWorld
    container: str
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    #: What runs a command under a lock.
    verb: tuple[str, ...] = ("lock", "run")
    #: Whether what is begun is started as a user does, and not forked.
    starts: bool = False

    def new(self) -> str:
        """Return the address of a lock of no other test's, whose blob is not there yet."""
        return f"blob:{self.container}/{uuid.uuid4().hex[:12]}"

    def blob(self, lock: str) -> BlobClient:
        """Return a client of the lock's blob, past whatever proxy the runs go through."""
        found: BlobClient = sdk_clients.blob(
            account.emulator({"blob": self.cli.port}), address.parse(lock, Kind.BLOB).address
        )
        return found

    def state(self, lock: str) -> str:
        """Return the state of the lock's lease, ``absent`` if there is no blob."""
        try:
            return str(self.blob(lock).get_blob_properties().lease.state)
        except ResourceNotFoundError:
            return "absent"

    def metadata(self, lock: str) -> dict[str, str]:
        """Return the metadata of the lock's blob, with the names in lower case."""
        return {name.lower(): value for name, value in self.blob(lock).get_blob_properties().metadata.items()}

    def fence(self, lock: str) -> int:
        """Return the fence of who acquired last."""
        return int(self.metadata(lock)["azguardfence"])

    def held(self) -> list[str]:
        """Return the addresses of the leases that the cache has as held by these runs."""
        return [each["address"] for each in self.cli.call("lease", "list", "--mine").json]

    @contextmanager
    def taken(self, lock: str, lease_id: str | None = None) -> Iterator[BlobLeaseClient]:
        """Hold a lock as another does, for the length of a ``with`` block."""
        blob = self.blob(lock)
        if self.state(lock) == "absent":
            blob.upload_blob(b"")
        lease = BlobLeaseClient(blob, lease_id)
        lease.acquire(60)
        try:
            yield lease
        finally:
            lease.release()

    def run(self, *words: str, env: Mapping[str, str] | None = None, stdin: bytes = b"") -> Ran:
        """Run ``azguard lock run`` to its end."""
        return self.cli.fork(*self.verb, *words, env=self.marked(env), stdin=stdin)

    def begin(self, *words: str, env: Mapping[str, str] | None = None, **settings: Any) -> "Running":
        """Begin an ``azguard lock run``, reading what it prints from files rather than pipes.

        It is forked, but for settings that only a start can have, or where ``starts`` says so.
        """
        log = self.cli.root / uuid.uuid4().hex
        starts = self.starts or settings.keys() - {"stdin", "stdout", "stderr"}
        begin = self.cli.begin if starts else self.cli.begin_fork
        with open(f"{log}.out", "wb") as out, open(f"{log}.err", "wb") as err:
            streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err}
            begun = begin(*self.verb, *words, env=self.marked(env), **(streams | settings))
        return Running(begun, log)

    def begin_working(self, lock: str, *words: str, traits: str = "", **settings: Any) -> "Working":
        """Begin a run of ``locked_command`` under a lock, and wait until it works."""
        working = self.start_working(lock, *words, traits=traits, **settings)
        working.wait_until_it_works()
        return working

    def start_working(self, lock: str, *words: str, traits: str = "", **settings: Any) -> "Working":
        """Begin a run of ``locked_command`` under a lock."""
        folder = self.cli.root / uuid.uuid4().hex
        running = self.begin(lock, *words, "--", *worker(folder, traits), **settings)
        return Working(running, folder, traits, self.mark)

    def left(self, lock: str) -> tuple[str, list[str], list[Process]]:
        """Return the state of the lease, the leases in the cache, and the processes: what a run may leave behind."""
        return self.state(lock), self.held(), self.processes()

    def processes(self) -> list[Process]:
        """Return what runs of this world, zombies left out."""
        return processes(self.mark)

    def end(self) -> None:
        """End whatever still runs."""
        for each in self.processes():
            with suppress(ProcessLookupError):
                os.kill(each.pid, signal.SIGKILL)

    def marked(self, env: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return variables by which the processes of this world are known."""
        return {_MARK: self.mark, **(env or {})}


@dataclass
class Running:
    """An ``azguard lock run`` that was begun."""

    process: "subprocess.Popen[bytes] | ForkedProcess"
    log: Path

    @property
    def pid(self) -> int:
        """Return azguard's pid."""
        return self.process.pid

    @property
    def err(self) -> str:
        """Return what it has printed on stderr so far."""
        return Path(f"{self.log}.err").read_text()

    def send(self, number: int) -> None:
        """Send azguard a signal."""
        self.process.send_signal(number)

    def ended(self, seconds: float = _SECONDS) -> Ran:
        """Wait for its end and return what it left."""
        code = self.process.wait(seconds)
        return Ran(code, Path(f"{self.log}.out").read_bytes(), self.err)


@dataclass
class Working:
    """A run of ``locked_command``: azguard, the guardian, the command and perhaps its child."""

    running: Running
    folder: Path
    traits: str
    mark: str

    def wait_until_it_works(self) -> None:
        """Wait for the command's first sign of life."""
        until(lambda: self.works() or self.running.process.poll() is not None)
        assert self.works(), self.running.err

    def works(self) -> bool:
        """Return whether the command has begun, and its child if it has one."""
        family = "family" not in self.traits or (self.folder / "child" / "beats").exists()
        return family and (self.folder / "beats").exists()

    @property
    def pid(self) -> int:
        """Return the command's pid."""
        return int((self.folder / "pid").read_text())

    @property
    def guardian(self) -> int:
        """Return the guardian's pid."""
        (found,) = (each.pid for each in processes(self.mark) if each.parent == self.running.pid)
        return found

    def finish(self, status: int) -> None:
        """Let the command end by itself."""
        (self.folder / "end.new").write_text(str(status))
        (self.folder / "end.new").rename(self.folder / "end")

    def ended(self, seconds: float = _SECONDS) -> Ran:
        """Wait for azguard's end and return what it left."""
        return self.running.ended(seconds)

    def signals(self) -> list[str]:
        """Return the names of the signals the command and its child got, without those that let a process go on."""
        return [name for _, name in self._signals() if name != "SIGCONT"]

    def signalled_at(self, name: str) -> float:
        """Return when the command first got a signal, on ``clock.now``."""
        return next(at for at, found in self._signals() if found == name)

    def last_life(self) -> float:
        """Return the last sign of life of the command and its child, on ``clock.now``."""
        beats = [self.folder / "beats", self.folder / "child" / "beats"]
        return max(float(each.read_text().splitlines()[-1]) for each in beats if each.exists())

    def _signals(self) -> list[tuple[float, str]]:
        files = [self.folder / "signals", self.folder / "child" / "signals"]
        lines = [line.split() for each in files if each.exists() for line in each.read_text().splitlines()]
        return sorted((float(at), name) for at, name in lines)


def worker(folder: Path, traits: str = "") -> list[str]:
    """Return the command line of a ``locked_command``."""
    folder.mkdir()
    return [sys.executable, "-I", "-S", locked_command.__file__, str(folder), *traits.split()]


def processes(mark: str) -> list[Process]:
    """Return the processes that a world's runs consist of, zombies left out."""
    wanted = f"{_MARK}={mark}\0".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if not entry.name.isdigit() or wanted not in (entry / "environ").read_bytes():
                continue
            state, parent, group = (entry / "stat").read_bytes().rpartition(b")")[2].split()[:3]
            words = (entry / "cmdline").read_bytes().rstrip(b"\0").decode().split("\0")
        except OSError:
            continue  # ended meanwhile
        if state not in (b"Z", b"X"):
            found.append(Process(int(entry.name), int(parent), int(group), tuple(words)))
    return found


def hold(world: Locks, lock: str, *words: str, env: dict[str, str] | None = None) -> Any:
    """Hold a lock and return what was printed."""
    ran = world.cli.fork("lock", "hold", lock, *words, env=world.marked(env))
    assert (ran.code, ran.err) == (0, "")
    return ran.json


def call(world: Locks, *words: str, env: dict[str, str] | None = None) -> Ran:
    """Run a verb of ``azguard lock`` and return what it left, in JSON."""
    return world.cli.call("lock", *words, "-o", "json", env=env)


@contextmanager
def locks(cli: CliWorld) -> Iterator[Locks]:
    """Yield a world of locks, of whose runs nothing is left afterwards."""
    made = Locks(cli, cli.container())
    try:
        yield made
    finally:
        made.end()


@dataclass
class Contender:
    """One who asks for a lock all the time, and notes when it was granted, on ``clock.now``."""

    blob: BlobClient
    granted_at: float | None = None

    def ask(self) -> None:
        """Ask once, unless it is granted already."""
        from azure.core.exceptions import HttpResponseError

        if self.granted_at is not None:
            return
        try:
            self.blob.acquire_lease(60, timeout=5)
        except HttpResponseError:
            return
        self.granted_at = times.read_boot_clock()


def wait_for_file(path: Path, seconds: float = _SECONDS) -> str:
    """Wait until a file is there, and return its text."""
    until(path.exists, seconds)
    return path.read_text()


def break_now(world: Locks, lock: str) -> None:
    """Break the lease on a lock at once, as an operator does."""
    BlobLeaseClient(world.blob(lock)).break_lease(0)


def is_gone(pid: int) -> bool:
    """Return whether a process has ended with all its threads, reaped or not."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return fields[0] in (b"Z", b"X") and int(fields[17]) <= 1


def now() -> float:
    """Return the time that leases are counted on."""
    return times.read_boot_clock()
