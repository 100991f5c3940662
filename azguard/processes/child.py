"""Run a user's command as a shell would: its own input and output, our signals, its exit status."""

import os
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from subprocess import Popen
from types import FrameType
from typing import NamedTuple

from azguard.errors import CommandNotFound, NotExecutable
from azguard.processes.forwarded import ENDING
from azguard.processes.signals import handle_unless_ignored
from azguard.processes.terminal import in_foreground


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
