"""A place where commands run, one after another: a process of one thread and without an SDK.

Guardians have to be forked before any thread is started. So a program of many threads has processes like this one,
forked early, which fork a guardian for each command. If azguard is gone, the command is ended; if this process is
gone, the guardian ends the command.

A command reads what it is given on stdin. What it prints goes to stderr, because stdout carries azguard's result.
"""

import base64
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from azguard.errors import AzguardError, GaveUp
from azguard.processes import tree
from azguard.processes.channel import Channel
from azguard.processes.forwarded import FORWARDED
from azguard.processes.guardian import Guardian

#: The name of the process, unlike the guardian's, so that one ``pkill`` does not hit both.
NAME = "command-place"
#: The status of a command that could not be started because the machine has no room for it or for its files.
NO_ROOM = GaveUp.exit_code


def serve(channel: Channel, environ: Mapping[str, str]) -> NoReturn:
    """Be the place, until azguard lets it go or has gone."""
    status = 1
    try:
        # A session of its own: what is typed in the terminal is for azguard alone.
        os.setsid()
        tree.rename(NAME)
        for number in FORWARDED:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _leave_to_azguard)
        _redirect(os.devnull)
        os.dup2(2, 1)
        _Place(channel, environ).run()
        status = 0
    except BaseException:  # noqa: BLE001  # nothing of azguard's own stack may run in this process
        traceback.print_exc(file=sys.stderr)
    finally:
        os._exit(status)


def _leave_to_azguard(number: int, frame: object) -> None:
    """Do nothing. Ignored instead, the signal would be ignored by the command too."""


def _reap() -> None:
    """Collect what an earlier command has left running and what has ended since: it has become a child of ours."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _redirect(path: str) -> None:
    """Read stdin from a file."""
    opened = os.open(path, os.O_RDONLY)
    os.dup2(opened, 0)
    os.close(opened)


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

    def _obey(self, message: Mapping[str, Any]) -> None:
        if message["do"] == "ping":
            self._channel.send(**{"is": "here"})
        elif self._guardian is None:
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
        """Run a command; once its files are gone and what it left is collected, say how it ended."""
        try:
            with tempfile.TemporaryDirectory(prefix="azguard-", ignore_cleanup_errors=True) as name:
                environ = self._prepare(order, Path(name))
                told = self._guard(order, environ)
        except OSError as error:
            why = f"the files of the command cannot be written in {tempfile.gettempdir()}: {error.strerror}"
            told = {"is": "failed", "status": NO_ROOM, "why": why}
        finally:
            _redirect(os.devnull)
            _reap()
        self._channel.send(**told)

    def _prepare(self, order: Mapping[str, Any], folder: Path) -> dict[str, str]:
        """Write the files of a command, and return its environment."""
        environ = {**self._environ, **order["environ"]}
        for variable, text in order["files"].items():
            environ[variable] = str(folder / variable.lower())
            # What is no UTF-8, such as half of a pair, is written as JSON and Python escape it.
            Path(environ[variable]).write_text(text, encoding="utf-8", errors="backslashreplace")
        stdin = folder / "stdin"
        stdin.write_bytes(base64.b64decode(order["stdin"]))
        _redirect(str(stdin))
        return environ

    def _guard(self, order: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
        """Run a command under a guardian, and return what is to be said of its end."""
        try:
            guardian = Guardian.fork()
        except OSError as error:
            return {"is": "failed", "status": NO_ROOM, "why": f"the command cannot be started: {error.strerror}"}
        try:
            guardian.hear_also(self._channel, self._hear)
            self._guardian = guardian
            guardian.start(order["command"], environ, ends=order["ends"], grace=order["grace"], on_lost="term")
            self._channel.send(**{"is": "started"})
            ended = guardian.wait(lambda message: self._channel.send(**{"is": "noted", "what": message["is"]}))
        except AzguardError as error:
            return {"is": "failed", "status": error.exit_code, "why": error.message}
        finally:
            self._guardian = None
            guardian.close()
        left = [*ended.left, *guardian.find_left_running()]
        return {"is": "ended", "status": ended.status, "signal": ended.signal, "left": left}
