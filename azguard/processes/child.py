"""Processes that we start: a user's command, run as a shell would; and forks that do one piece of work.

The command has its own input and output, our signals, and its exit status is ours.

A fork has in memory what its parent had: no credential is written anywhere. It is told what to do, and tells, over a
channel, a pair of sockets with one JSON object per line; that its parent has gone it notices by the end of that. It
ends when it is let go.

What outlives its command has a session of its own, and no terminal. Of the files of its parent it keeps the error
stream alone, until ``leave_errors``: a reader that reads the output of the command to its end does not wait for this
process. The environment stays as it is. CI runners find by it what a job left behind, and end that with the job.
"""

import json
import os
import shutil
import signal
import socket
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from types import FrameType
from typing import Any, NamedTuple, NoReturn

from azguard.errors import CommandNotFound, NotExecutable
from azguard.processes import tree
from azguard.processes.signals import ENDING, handle_unless_ignored, in_foreground

_POLL_SECONDS = 0.01
_FIRST_OTHER_FILE = 3
_LAST_FILE = 1 << 20
# What goes with an open file, since a file alone cannot be sent. No reader sees it.
_HANDED_OVER = {"handed": "over"}
_MOST_FILES = 8


def check(command: Sequence[str], environ: Mapping[str, str]) -> None:
    """See that a command is there before anything is started for it.

    Raises:
        CommandNotFound: it is not.
        NotExecutable: it is, but not as a program.
    """
    if shutil.which(command[0], path=environ.get("PATH", os.defpath)) is not None:
        return
    if os.path.dirname(command[0]) and os.path.exists(command[0]):
        raise NotExecutable(
            f"{command[0]} is not executable",
            reason="command_not_executable",
            values={"program": command[0]},
        )
    raise CommandNotFound(
        f"{command[0]}: command not found",
        reason="command_needs_shell" if needs_shell(command) else "command_not_found",
    )


def needs_shell(command: Sequence[str]) -> bool:
    """Return whether a command that is not there looks like a line of shell, given as one word."""
    return len(command) == 1 and " " in command[0]


class ChildEnd(NamedTuple):
    """How a command ended."""

    #: Its exit status; 128 + N if signal N ended it.
    status: int
    #: The first signal that asked us to end meanwhile; None if there was none.
    signal: int | None


def run(
    command: Sequence[str], environ: Mapping[str, str], *, stdin: int | None = None, stdout: int | None = None
) -> ChildEnd:
    """Run a command to its end and return how it ended.

    Its input and output are ours, or these file descriptors. SIGINT, SIGTERM, SIGHUP and SIGQUIT to us are passed on,
    and we go on waiting. Call it on the main thread.

    Raises:
        CommandNotFound, NotExecutable: it could not be started.
    """
    with _forward() as children:
        try:
            child = Popen(list(command), env=dict(environ), stdin=stdin, stdout=stdout)
        except FileNotFoundError as error:
            raise CommandNotFound(f"{command[0]}: {error.strerror}") from error
        except OSError as error:
            raise NotExecutable(f"{command[0]}: {error.strerror}") from error
        children.attach(child)
        status = child.wait()
    return ChildEnd(128 - status if status < 0 else status, children.asked)


class _Child:
    """The one to pass signals on to; those that come before it is there are kept for it."""

    def __init__(self) -> None:
        #: The first signal that asked us to end. Ctrl-C in a terminal is the command's own.
        self.asked: int | None = None
        self._child: Popen[bytes] | None = None
        self._early: list[int] = []

    def attach(self, child: Popen[bytes]) -> None:
        self._child = child
        for number in self._early:
            child.send_signal(number)

    def pass_on(self, number: int, frame: FrameType | None) -> None:
        is_typed = number != signal.SIGTERM and in_foreground()
        # A terminal that goes away sends SIGHUP to the same group, and no user types that.
        if number in ENDING and (not is_typed or number != signal.SIGINT):
            self.asked = self.asked or number
        # What is typed in a terminal reaches its whole foreground group; a second Ctrl-C would mean more.
        if is_typed:
            return
        if self._child is None:
            self._early.append(number)
        else:
            self._child.send_signal(number)


@contextmanager
def _forward() -> Iterator[_Child]:
    child = _Child()
    with handle_unless_ignored((*ENDING, signal.SIGQUIT), child.pass_on):
        yield child


class Channel:
    """One end. Sending is safe from several threads, and from signal handlers; receiving is for one thread."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._outgoing: deque[bytes] = deque()
        self._sending = threading.Lock()
        self._rest = b""
        #: Open files that the other side has handed over.
        self.received: list[int] = []

    def fileno(self) -> int:
        return self._end.fileno()

    def send(self, **message: Any) -> None:
        """Send a message. That the other side is gone is no error here: the receiver notices it."""
        self._outgoing.append(json.dumps(message).encode() + b"\n")
        # A sender sends the messages of the others too, so none waits: a signal handler would for what it interrupted.
        while self._outgoing and self._sending.acquire(blocking=False):
            try:
                self._end.sendall(self._outgoing.popleft())
            except (OSError, IndexError):
                pass  # an IndexError: the one before us has sent it
            finally:
                self._sending.release()

    def hand_over(self, descriptor: int) -> None:
        """Send an open file, which the receiver keeps open in ``received``. To be called while no other sends."""
        try:
            socket.send_fds(self._end, [json.dumps(_HANDED_OVER).encode() + b"\n"], [descriptor])
        except OSError:
            pass  # the other side is gone, which the receiver of its messages notices

    def receive(self) -> list[dict[str, Any]] | None:
        """Wait for something to arrive and return the messages that are whole by then; None is the other's end."""
        try:
            arrived, descriptors, _, _ = socket.recv_fds(self._end, 65536, _MOST_FILES)
        except OSError:
            return None
        for each in descriptors:
            os.set_inheritable(each, False)  # noqa: FBT003  # it takes no keyword
            self.received.append(each)
        if not arrived:
            return None
        *lines, self._rest = (self._rest + arrived).split(b"\n")
        return [message for message in map(json.loads, lines) if message != _HANDED_OVER]

    def close(self) -> None:
        """Close this end, which the other notices."""
        self._end.close()


def pair() -> tuple[Channel, Channel]:
    """Return two ends that are connected."""
    ours, theirs = socket.socketpair()
    return Channel(ours), Channel(theirs)


@dataclass
class Forked:
    """The parent's side of a forked process."""

    pid: int
    channel: Channel
    _is_reaped: bool = False

    def reap(self) -> bool:
        """Collect it if it has ended; return whether it has."""
        if not self._is_reaped:
            self._is_reaped = os.waitpid(self.pid, os.WNOHANG)[0] != 0
        return self._is_reaped

    def reap_all(self) -> bool:
        """Collect every child that has ended; return whether it is one of them, or was before."""
        with suppress(ChildProcessError):
            while pid := os.waitpid(-1, os.WNOHANG)[0]:
                self._is_reaped = self._is_reaped or pid == self.pid
        return self._is_reaped

    def resume(self) -> None:
        """Let it go on if it was stopped."""
        if not self.reap():
            os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        if not self.reap():
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self._is_reaped = True

    def let_go(self, seconds: float) -> bool:
        """Close the channel, which it notices, and wait at most so long for its end; return whether it has ended."""
        self.channel.close()
        until = time.monotonic() + seconds
        while not self.reap():
            if time.monotonic() > until:
                return False
            self.resume()
            time.sleep(_POLL_SECONDS)  # a lost child is told by no signal
        return True


def fork(work: Callable[[Channel], None]) -> Forked:
    """Fork a process that does a piece of work at the other end of a channel, and ends.

    Call it before any thread is started, and while few modules are loaded.
    """
    ours, theirs = pair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        _work(work, theirs)
    theirs.close()
    return Forked(pid, ours)


def _work(work: Callable[[Channel], None], theirs: Channel) -> NoReturn:
    status = 1
    try:
        work(theirs)
        status = 0
    except BaseException:  # noqa: BLE001  # nothing of azguard's own stack may run in this process
        traceback.print_exc(file=sys.stderr)
    finally:
        os._exit(status)


def fork_to_background(name: str, work: Callable[[Channel], None]) -> Forked:
    """Fork a process of this name that may outlive this one; see ``fork``."""

    def work_alone(theirs: Channel) -> None:
        os.setsid()
        tree.rename(name)
        _leave_streams(theirs.fileno())
        work(theirs)

    return fork(work_alone)


def redirect(path: str | Path, stream: int = 0, flags: int = os.O_RDONLY) -> None:
    """Use a file from now on instead of what the stream is; by default it is what this process reads."""
    opened = os.open(path, flags, 0o600)
    os.dup2(opened, stream)
    os.close(opened)


def leave_errors(log: Path) -> None:
    """Print from now on into a file instead of the parent's error stream.

    Raises:
        OSError: it cannot be made.
    """
    redirect(log, 2, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW)


def _leave_streams(kept: int) -> None:
    """Close the parent's open files, except its error stream and one other file."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(nothing, number)
    os.closerange(_FIRST_OTHER_FILE, kept)
    os.closerange(kept + 1, _LAST_FILE)
