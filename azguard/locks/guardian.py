"""azguard's side of the guardian: fork it, tell it what to run and until when, hear how it ended."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from azguard import process_groups
from azguard.errors import AzguardError, CommandNotFound, LockLost, NotExecutable
from azguard.locks import channel, guardian_process
from azguard.locks.channel import Channel
from azguard.terminals import Terminal

_STARTING = {126: NotExecutable, 127: CommandNotFound}
# What the system does not let us kill, such as a set-user-id command, is not waited for longer.
_UNKILLABLE_SECONDS = 5.0


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit status, 128 + N if signal N ended it.

    ``signal`` is that N; ``typed`` says that it had the terminal, where Ctrl-C reaches nobody else.
    """

    status: int
    signal: int | None = None
    typed: bool = False


class Guardian:
    """The process that runs the command. Fork it before any thread is started and any SDK imported."""

    def __init__(self, pid: int, ours: Channel) -> None:
        self._pid, self._channel = pid, ours
        # One for all who read: the command may have ended by the time we hear that it was started.
        self._incoming = self._messages()
        self.command: int | None = None

    @classmethod
    def fork(cls) -> "Guardian":
        """Start the process; it waits for what to run, and ends if we do."""
        ours, theirs = channel.pair()
        terminal = Terminal.of_this_process()
        before = guardian_process.ignored_signals()
        pid = os.fork()
        if pid == 0:
            ours.close()
            guardian_process.serve(theirs, terminal, before)
        theirs.close()
        return cls(pid, ours)

    def start(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        *,
        ends: float,
        grace: float,
        on_lost: str,
        nested: bool = False,
    ) -> None:
        """Run a command, an argument vector without a shell, in a process group of its own.

        ``ends`` is when the lock ends unless it is renewed, on ``clock.now``; ``grace`` is in seconds; ``on_lost`` is
        ``term``, ``kill`` or ``continue``. ``nested`` says that we run under a lock ourselves: if we are killed, it is
        because that one was lost, and the command has no grace left.

        Raises:
            CommandNotFound, NotExecutable: it could not be started.
            LockLost: the lock is about to end already, as after azguard was stopped for long.
        """
        self._channel.send(
            do="start", command=list(command), environ=dict(environ), ends=ends, grace=grace, on_lost=on_lost,
            nested=nested,
        )  # fmt: skip
        for message in self._incoming:
            if message["is"] == "failed":
                raise _STARTING[message["status"]](message["why"])
            if message["is"] == "late":
                raise LockLost("the lock could not be renewed in time", hint="the command was not run")
            if message["is"] == "started":
                self.command = message["pid"]
                return
        raise AzguardError("the process that was to run the command was killed")

    def extend(self, ends: float) -> None:
        """Say until when the lock is held now."""
        self._channel.send(do="extend", ends=ends)

    def pass_on(self, number: int) -> None:
        """Send a signal to the command and all that is in its group."""
        self._channel.send(do="signal", number=number)

    def continue_(self) -> None:
        """Let a command that was stopped go on, in the foreground if we are."""
        self._channel.send(do="continue")

    def lost(self) -> None:
        """Say that the lock is lost: the command is to be ended."""
        self._channel.send(do="lost")

    def wait(self, tell: Callable[[dict[str, Any]], None]) -> Ended:
        """Wait for the end of the command; whatever else the guardian reports goes to ``tell``."""
        for message in self._incoming:
            if message["is"] == "ended":
                return Ended(message["status"], message["signal"], message["typed"])
            tell(message)
        # Somebody killed it, and with it, on Linux, the command; what that had started is in its group still.
        if self.command is not None:
            process_groups.kill(self.command, _UNKILLABLE_SECONDS)
        return Ended(128 + signal.SIGKILL, signal.SIGKILL)

    def close(self) -> None:
        """Let it go; a command that still runs is ended."""
        self._channel.close()
        try:
            os.waitpid(self._pid, 0)
        except ChildProcessError:
            pass  # SIGCHLD is ignored, as whoever started us had it: the system has collected it by now

    def _messages(self) -> Iterator[dict[str, Any]]:
        while (messages := self._channel.receive()) is not None:
            yield from messages
