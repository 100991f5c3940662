"""A place where guarded commands run, one after another: azguard's side of it, and the process behind it.

Guardians have to be forked before any thread is started. So a program of many threads has processes of one thread and
few modules, forked early, which fork guardians. A guardian is kept for the next command only if nothing that it has
started is left: it can never take a process of one command for one of another. If azguard is gone, the command is
ended; if this process is gone, the guardian ends the command. A command reads what it is given on stdin. What it prints
goes to stderr, because stdout carries azguard's result.
"""

import base64
import os
import signal
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Self

from azguard.errors import AzguardError, CommandNotFound, GaveUp, LockLost, NotExecutable
from azguard.frozen import frozen
from azguard.processes import tree
from azguard.processes.child import Channel, Forked, fork, redirect
from azguard.processes.guardian import Guardian
from azguard.processes.signals import FORWARDED, wait_readable

_STARTING = {126: NotExecutable, 127: CommandNotFound, LockLost.exit_code: LockLost}
#: The reason of the error that a place is gone.
PLACE_KILLED = "command_place_killed"
#: The reason of the error that the guardian of a command is gone, and the command with it.
GUARDIAN_KILLED = "guardian_killed"
# How often the place is asked whether it still watches; silence is counted in these, as by the guardian.
_ASKING_SECONDS = 1.0
_CONTINUED_AFTER = 2
_GIVEN_UP_AFTER = 20
# How long a place may take to end what it runs, beyond the grace of the command.
_ENDING_SECONDS = 12.0
#: The name of the process, unlike the guardian's, so that one ``pkill`` does not hit both.
NAME = "command-place"
#: The status of a command that could not be started because the machine has no room for it or for its files.
NO_ROOM = GaveUp.exit_code


@frozen
class CommandOrder:
    """What to run."""

    command: Sequence[str]
    #: What the command reads.
    stdin: bytes
    #: Variables beside those that all commands of the place have.
    environ: Mapping[str, str] = field(default_factory=dict)
    #: The text of files, by the variable that names each of them.
    files: Mapping[str, str] = field(default_factory=dict)
    #: When the command has to have ended unless that is extended, on ``times.read_boot_clock``.
    ends: float = float("inf")
    #: How many seconds the command has between TERM and KILL.
    grace: float = 5.0


@frozen
class CommandEnd:
    """How a command ended."""

    #: Its exit status, 128 + N if signal N ended it; None if that is not known, because the place was killed.
    status: int | None
    #: Whether it was ended because its time was over.
    was_late: bool = False
    #: Whether it was ended because its guardian was killed or stopped.
    was_unguarded: bool = False
    #: What it left running, for people.
    left: tuple[str, ...] = ()


class CommandPlace:
    """A place where commands run, one after another. For one thread at a time; ``end`` is for any thread."""

    def __init__(self, process: Forked) -> None:
        self.process = process
        self._channel = process.channel
        self._incoming = self._messages()
        self._seen: set[str] = set()
        self._grace = 0.0
        # For how long what is being read may be waited for.
        self._patience = _ASKING_SECONDS
        #: Whether it was killed, or given up, so that it runs nothing more.
        self.is_gone = False

    @classmethod
    def fork(cls, count: int, environ: Mapping[str, str]) -> list[Self]:
        """Start so many places. Call it before any thread is started, and while few modules are loaded."""
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        # What is left of a place that is killed is seen by azguard, and not by another's init.
        tree.adopt_orphans()
        made: list[Self] = []

        def work(theirs: Channel) -> None:
            # Held open here, the others would not notice that azguard is gone.
            for each in made:
                each.process.channel.close()
            _serve(theirs, environ)

        while len(made) < count:
            made.append(cls(fork(work)))
        return made

    def start(self, order: CommandOrder) -> None:
        """Run a command.

        Raises:
            CommandNotFound, NotExecutable: it could not be started.
            LockLost: its time was over before it was started.
            GaveUp: the machine has no room for it or for its files.
            AzguardError: the place is gone, or its guardian.
        """
        self._seen, self._grace, self._patience = set(), order.grace, _ASKING_SECONDS
        self._channel.send(
            do="run", command=list(order.command), environ=dict(order.environ), files=dict(order.files),
            stdin=base64.b64encode(order.stdin).decode(), ends=order.ends, grace=order.grace,
        )  # fmt: skip
        for message in self._incoming:
            if message is None:
                continue
            if message["is"] == "started":
                return
            if message["is"] == "failed" and message["status"] == NO_ROOM:
                raise GaveUp(message["why"], reason="command_without_room")
            if message["is"] == "failed":
                if message["status"] not in _STARTING:
                    raise AzguardError(message["why"], reason=GUARDIAN_KILLED)
                raise _STARTING[message["status"]](message["why"])
        raise AzguardError("the process that was to run the command was killed", reason=PLACE_KILLED)

    def wait(self, seconds: float) -> CommandEnd | None:
        """Wait for the end of the command, at most so long; None is not yet."""
        until = time.monotonic() + seconds
        self._patience = max(0.0, seconds)
        for message in self._incoming:
            if message is not None and message["is"] == "ended":
                unguarded = bool(self._seen & {"killed", "silent"})
                return CommandEnd(message["status"], "late" in self._seen, unguarded, tuple(message["left"]))
            if message is not None and message["is"] == "noted":
                self._seen.add(message["what"])
            self._patience = max(0.0, until - time.monotonic())
            if not self._patience:
                return None
        return CommandEnd(None, was_unguarded=True)

    def extend(self, ends: float) -> None:
        self._channel.send(do="extend", ends=ends)

    def end(self) -> None:
        """End the command with all that it started: TERM, and KILL after its grace."""
        self._channel.send(do="end")

    def close(self) -> None:
        """Let the place go; a command that still runs is ended."""
        if not self.process.let_go(self._grace + _ENDING_SECONDS):
            self.process.kill()

    def _messages(self) -> Iterator[dict[str, Any] | None]:
        """Yield the messages of the place, and None whenever none came for as long as the caller has time."""
        unanswered, silence = 0, 0.0
        while True:
            patience = min(self._patience, _ASKING_SECONDS)
            if wait_readable([self._channel], patience):
                unanswered, silence = 0, 0.0
                messages = self._channel.receive()
                if messages is None:
                    self.is_gone = True
                    return
                yield from (each for each in messages if each["is"] != "here")
                continue
            silence += patience
            if silence >= _ASKING_SECONDS:
                silence = 0.0
                unanswered += 1
                self._ask(unanswered)
            yield None

    def _ask(self, unanswered: int) -> None:
        self._channel.send(do="ping")
        if unanswered > _CONTINUED_AFTER:
            self.process.resume()
        if unanswered == _GIVEN_UP_AFTER:
            # Its guardian notices, and ends the command; then the channel ends for us.
            self.process.kill()


def close_all(places: Iterable[CommandPlace]) -> None:
    """Let all places go. Their channels are closed first, so that all end what they run at once."""
    every = list(places)
    for each in every:
        each.process.channel.close()
    for each in every:
        each.close()


def _serve(channel: Channel, environ: Mapping[str, str]) -> None:
    """Be the place, until azguard lets it go or has gone."""
    # A session of its own: what is typed in the terminal is for azguard alone.
    os.setsid()
    tree.rename(NAME)
    for number in FORWARDED:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave_to_azguard)
    redirect(os.devnull)
    os.dup2(2, 1)
    _Place(channel, environ).run()


def _leave_to_azguard(number: int, frame: object) -> None:
    """Do nothing. Ignored instead, the signal would be ignored by the command too."""


class _Place:
    def __init__(self, channel: Channel, environ: Mapping[str, str]) -> None:
        self._channel, self._environ = channel, environ
        self._guardian: Guardian | None = None

    def run(self) -> None:
        while (messages := self._channel.receive()) is not None:
            for message in messages:
                if message["do"] == "run":
                    self._run(message)
                else:
                    self._obey(message)
        if self._guardian is not None:
            self._guardian.close()

    def _obey(self, message: Mapping[str, Any]) -> None:
        if message["do"] == "ping":
            self._channel.send(**{"is": "here"})
        elif self._guardian is None or self._guardian.stays:
            return  # about a command that has ended meanwhile
        elif message["do"] == "extend":
            self._guardian.extend(message["ends"])
        elif message["do"] == "end":
            self._guardian.lost()

    def _hear(self) -> bool:
        """Hear what azguard says while a command runs; return whether there is more to come."""
        messages = self._channel.receive()
        if messages is None:
            self._obey({"do": "end"})
            return False
        for message in messages:
            self._obey(message)
        return True

    def _run(self, order: Mapping[str, Any]) -> None:
        """Run a command; once its files are gone, say how it ended."""
        try:
            with tempfile.TemporaryDirectory(prefix="azguard-", ignore_cleanup_errors=True) as name:
                stdin = Path(name, "stdin")
                environ = self._prepare(order, stdin)
                told = self._guard(order, environ, stdin)
        except OSError as error:
            why = f"the files of the command cannot be written in {tempfile.tempdir or 'any folder'}: {error.strerror}"
            told = {"is": "failed", "status": NO_ROOM, "why": why}
        self._channel.send(**told)

    def _prepare(self, order: Mapping[str, Any], stdin: Path) -> dict[str, str]:
        environ = {**self._environ, **order["environ"]}
        for variable, text in order["files"].items():
            environ[variable] = str(stdin.parent / variable.lower())
            # What is no UTF-8, such as half of a pair, is written as JSON and Python escape it.
            Path(environ[variable]).write_text(text, encoding="utf-8", errors="backslashreplace")
        stdin.write_bytes(base64.b64decode(order["stdin"]))
        return environ

    def _guard(self, order: Mapping[str, Any], environ: Mapping[str, str], stdin: Path) -> dict[str, Any]:
        """Run a command under a guardian, and return the message about the command's end."""
        try:
            guardian = self._find_guardian()
        except OSError as error:
            return {"is": "failed", "status": NO_ROOM, "why": f"the command cannot be started: {error.strerror}"}
        try:
            guardian.start(
                order["command"], environ, ends=order["ends"], grace=order["grace"], on_lost="term", stdin=str(stdin)
            )
            self._channel.send(**{"is": "started"})
            ended = guardian.wait(lambda message: self._channel.send(**{"is": "noted", "what": message["is"]}))
        except AzguardError as error:
            return {"is": "failed", "status": error.exit_code, "why": error.message}
        finally:
            if not guardian.stays:
                guardian.close()
        left = [] if guardian.stays else [*ended.left, *guardian.find_left_running()]
        return {"is": "ended", "status": ended.status, "signal": ended.signal, "left": left}

    def _find_guardian(self) -> Guardian:
        """Return the guardian of the command before, if nothing is left of that one, else a new one."""
        if self._guardian is not None:
            if self._guardian.awaits_command():
                return self._guardian
            self._guardian.close()
        self._guardian = Guardian.fork(stays=True)
        self._guardian.hear_also(self._channel, self._hear)
        return self._guardian
