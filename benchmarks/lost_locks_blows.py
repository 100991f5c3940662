"""One holder of a lock, one blow, and what comes of it: who stays at work, and when the next holder begins."""

import asyncio
import enum
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import lost_locks_relay, lost_locks_work
from benchmarks.lost_locks_runners import Runner

# How long the first holder's processes are watched beside the next holder's. azguard asks for its lease every 20 s and
# gives them 5 s to end, as consul does.
WATCH_SECONDS = 30.0
# For a runner to end once it is resumed, or its command is done: long enough for a request to a server that is gone.
END_SECONDS = 15.0
_BEGIN_SECONDS = 30.0
_POLL_SECONDS = 0.05
# A process that has not written the clock for so long has ended, on a busy machine too.
_SILENCE_SECONDS = 1.0
# The processes of the first holder: the command itself, one that it started, and one more that ignores TERM.
COMMAND, STARTED, STUBBORN = _HOLDERS = "command", "started", "stubborn"
_NEXT = "next"

_Process = subprocess.Popen[bytes]


class Blow(enum.Enum):
    """What befalls the holder of a lock."""

    TAKEN = "the lock is taken away at once"
    BROKEN = "the lock is broken, as by default, when its term is over"
    GONE = "the server refuses connections"
    SILENT = "the server takes requests and does not answer"
    KILLED = "the runner is killed"
    STOPPED = "the runner is suspended"

    def can_hit(self, runner: Runner) -> bool:
        """Tell whether there is such a thing for this runner."""
        if self is Blow.BROKEN:
            return runner.gives_notice
        return self not in (Blow.GONE, Blow.SILENT) or bool(runner.port)


@dataclass(frozen=True)
class Outcome:
    """What came of a blow, in seconds from it.

    ``status`` is the runner's, None if it never ended; ``left`` is when it ended of itself (from its resumption, if it
    was suspended), None if it did so only with its command. ``ended`` is when each process of the first holder was
    last seen at work, None for those that went on until they were told to end. ``begun`` is when the next holder
    began, None if it had to wait for that.
    """

    status: int | None
    left: float | None
    ended: dict[str, float | None]
    begun: float | None

    def overlap(self, *names: str) -> float | None:
        """Return the seconds of any of these processes beside the next holder; None if they went on to the end."""
        ends = [self.ended[name] for name in names]
        known = [end for end in ends if end is not None]
        if self.begun is None:
            return 0.0
        return max(0.0, max(known) - self.begun) if len(known) == len(ends) else None


class _Desk:
    """A folder in which processes write when they worked, as long as they are permitted to."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._permission = folder / "permission"
        self._permission.touch()

    def work(self, name: str) -> str:
        """Return the shell's words for a process at work."""
        return shlex.join(
            [sys.executable, "-S", lost_locks_work.__file__, str(self._folder / name), str(self._permission)]
        )

    def beats(self, name: str) -> list[float]:
        """Return when it was at work."""
        try:
            written = (self._folder / name).read_text(encoding="ascii")
        except FileNotFoundError:
            return []
        return [float(line) for line in written.splitlines(keepends=True) if line.endswith("\n")]

    def ends(self, since: float) -> dict[str, float | None]:
        """Return when each process of the first holder ended, in seconds from a moment; None if it has not."""
        last = {name: self.beats(name)[-1] for name in _HOLDERS}
        now = time.monotonic()
        return {name: None if now - at < _SILENCE_SECONDS else max(0.0, at - since) for name, at in last.items()}

    def dismiss(self) -> None:
        """End all work."""
        self._permission.unlink(missing_ok=True)


async def endured(runner: Runner, blow: Blow, deaf: bool, number: int) -> Outcome:
    """Let one holder of a lock suffer a blow. A ``deaf`` command ignores TERM, with all that it starts."""
    lock = f"{blow.name.lower()}-{'deaf' if deaf else 'obedient'}-{number}"
    desk = _Desk(runner.folder / f"{lock}.work")
    with ExitStack() as stack:
        relay = stack.enter_context(_relay(runner.port)) if runner.port else None
        port = int(relay.stdout.readline()) if relay and relay.stdout else 0
        first = stack.enter_context(_started(runner, lock, port, _script(desk, deaf)))
        stack.callback(desk.dismiss)
        if not await _came(lambda: all(desk.beats(name) for name in _HOLDERS), _BEGIN_SECONDS):
            raise SystemExit(f"{runner.name} did not run its command; nothing was measured")
        _strike(blow, runner, lock, first, relay)
        struck = time.monotonic()
        following = stack.enter_context(_started(runner, lock, runner.port, f"exec {desk.work(_NEXT)}"))
        left = await _watched(desk, first, struck + runner.patience)
        ended, begun = desk.ends(struck), next(iter(desk.beats(_NEXT)), None)
        resumed = struck
        if blow is Blow.STOPPED:
            first.send_signal(signal.SIGCONT)
            resumed = time.monotonic()
            left = await _exit(first)
        desk.dismiss()
        await _exit(first)
        await _exit(following)
        return Outcome(first.poll(), _since(resumed, left), ended, _since(struck, begun))


async def status_of(runner: Runner, script: str) -> int:
    """Return the runner's status for a shell script that ends of itself."""
    with _started(runner, "ending", runner.port, script) as process:
        await _exit(process)
        return process.returncode


def _script(desk: _Desk, deaf: bool) -> str:
    """Return a shell script that becomes the command, with two more processes of its own at work."""
    ignoring = "trap '' TERM; "
    own = ignoring if deaf else ""
    return f"{own}({ignoring}exec {desk.work(STUBBORN)}) & {desk.work(STARTED)} & exec {desk.work(COMMAND)}"


def _strike(blow: Blow, runner: Runner, lock: str, holder: _Process, relay: _Process | None) -> None:
    if blow in (Blow.TAKEN, Blow.BROKEN):
        runner.take_away(lock, at_once=blow is Blow.TAKEN)
    elif blow in (Blow.KILLED, Blow.STOPPED):
        holder.send_signal(signal.SIGKILL if blow is Blow.KILLED else signal.SIGSTOP)
    elif relay:
        relay.send_signal(signal.SIGKILL if blow is Blow.GONE else signal.SIGSTOP)


async def _watched(desk: _Desk, first: _Process, patience_ends: float) -> float | None:
    """Watch until all is over, or long enough; return when the runner ended, None if it did not."""
    left: list[float] = []

    def over() -> bool:
        now = time.monotonic()
        if first.poll() is not None and not left:
            left.append(now)
        begun = desk.beats(_NEXT)
        if not begun:
            return now > patience_ends
        return now > begun[0] + WATCH_SECONDS or (bool(left) and None not in desk.ends(0.0).values())

    await _came(over, float("inf"))
    return left[0] if left else None


async def _exit(process: _Process) -> float | None:
    """Wait for a process to end of itself; return when it did, None if it did not."""
    return time.monotonic() if await _came(lambda: process.poll() is not None, END_SECONDS) else None


async def _came(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(_POLL_SECONDS)
    return True


def _since(struck: float, moment: float | None) -> float | None:
    return None if moment is None else max(0.0, moment - struck)


@contextmanager
def _started(runner: Runner, lock: str, port: int, script: str) -> Iterator[_Process]:
    """Run a shell script under a lock."""
    words = runner.command(lock, port, ["sh", "-c", script])
    with open(runner.folder / "runners.log", "ab") as log:
        # A session of its own: whom a runner signals is its own affair.
        process = subprocess.Popen(
            words,
            env={**os.environ, **runner.environ},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    with _ended(process):
        yield process


@contextmanager
def _relay(port: int) -> Iterator[_Process]:
    words = [sys.executable, "-S", lost_locks_relay.__file__, str(port)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process, _ended(process):
        yield process


@contextmanager
def _ended(process: _Process) -> Iterator[None]:
    try:
        yield
    finally:
        process.kill()
        process.wait()
