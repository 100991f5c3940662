"""An interactive shell under a terminal of its own, driven as a person would: by typing, and by reading."""

import fcntl
import os
import shlex
import signal
import subprocess
import termios
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support.cli_world import CliWorld, command
from tests.support.emulator_world import until
from tests.support.lock_world import Locks, worker
from tests.support.terminals import open_terminal

CTRL_C, CTRL_Z = "\x03", "\x1a"
_SECONDS = 60.0


_BASH = ("bash", "--norc", "--noprofile", "-i")


class Shell:
    """A shell with job control; by default bash."""

    def __init__(self, folder: Path, environ: Mapping[str, str], words: Sequence[str] = _BASH) -> None:
        self._ours, theirs = open_terminal()

        def own_terminal() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self._process = subprocess.Popen(
            words, cwd=folder, env={**environ, "PS1": "$ ", "HISTFILE": ""},
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, preexec_fn=own_terminal,
        )  # fmt: skip
        os.close(theirs)
        self.shown = ""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def type(self, text: str) -> None:
        """Type, a new line or a control character included."""
        os.write(self._ours, text.encode())

    def wait_for(self, text: str) -> None:
        """Wait until something is shown."""
        until(lambda: text in self.shown)

    def forget(self) -> None:
        """Begin with an empty screen."""
        self.shown = ""

    def hang_up(self) -> None:
        """Tell all in the foreground that the terminal is gone, as when its window is closed."""
        os.killpg(os.tcgetpgrp(self._ours), signal.SIGHUP)

    def end(self) -> None:
        """End the shell; what it has left running is ended by who started it."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(_SECONDS)
        self._reader.join(_SECONDS)
        os.close(self._ours)

    def _read(self) -> None:
        # The end of a terminal that no process holds open any more is an error.
        with suppress(OSError):
            while piece := os.read(self._ours, 65536):
                self.shown += piece.decode(errors="replace")


@contextmanager
def shell(folder: Path, environ: Mapping[str, str], words: Sequence[str] = _BASH) -> Iterator[Shell]:
    """Yield a shell that ends with the ``with`` block."""
    made = Shell(folder, environ, words)
    try:
        yield made
    finally:
        made.end()


def answer(cli: CliWorld, typed: str, *words: str) -> tuple[int, str]:
    """Run a command line that asks on a terminal, answer, and return its exit status and what it said."""
    ours, theirs = open_terminal()
    running = cli.begin_fork(*words, stdin=theirs, stderr=theirs)
    os.close(theirs)
    said = b""
    while b"[y/N] " not in said:
        said += os.read(ours, 4096)
    os.write(ours, f"{typed}\n".encode())
    running.communicate(timeout=_SECONDS)
    # Linux tells by an error that nothing has the terminal open any more.
    with suppress(OSError):
        while piece := os.read(ours, 4096):
            said += piece
    os.close(ours)
    return running.wait(), said.decode()


@dataclass
class Seat:
    """A shell, and a world of locks."""

    world: Locks
    shell: Shell

    def line(self, *words: str) -> str:
        """Return a command line that runs ``azguard lock run``."""
        return shlex.join(command("lock", "run", *words))

    def work(self, lock: str, *options: str) -> "Seen":
        """Type a run of ``locked_command``, and wait until it works."""
        folder = self.world.cli.root / f"work{len(list(self.world.cli.root.iterdir()))}"
        heartbeat = folder.with_suffix(".heartbeat")
        words = [lock, "--heartbeat-file", str(heartbeat), *options, "--", *worker(folder)]
        self.shell.type(f"{self.line(*words)}; echo status=$?\n")
        until((folder / "beats").exists)
        return Seen(folder, heartbeat)


@dataclass
class Seen:
    """What a typed command leaves in files."""

    folder: Path
    heartbeat: Path

    @property
    def pid(self) -> int:
        """Return the command's pid."""
        return int((self.folder / "pid").read_text())

    def beats(self) -> str:
        """Return the last sign of life."""
        return (self.folder / "beats").read_text().splitlines()[-1]

    def went_on(self) -> bool:
        """Return whether the command was let go on."""
        file = self.folder / "signals"
        return file.exists() and "SIGCONT" in file.read_text()

    def finish(self, status: int) -> None:
        """Let the command end by itself."""
        (self.folder / "end.new").write_text(str(status))
        (self.folder / "end.new").rename(self.folder / "end")


def is_stopped(pid: int) -> bool:
    """Return whether a process is stopped."""
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"T"


@contextmanager
def seated(world: Locks) -> Iterator[Seat]:
    """Yield a shell to run things under locks in."""
    with shell(world.cli.root, world.cli.environ(env=world.marked())) as found:
        yield Seat(world, found)
