"""Run a user's command as a shell would: its own input and output, our signals, its exit status. And the editor."""

import os
import shlex
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from types import FrameType
from typing import NamedTuple

from azguard.errors import CommandNotFound, Interrupted, NotExecutable, TransformFailed, UsageError
from azguard.frozen import frozen
from azguard.processes.signals import ENDING, handle_unless_ignored, in_foreground

# What is run where the user names none: Debian's choice, then the one that POSIX knows.
_DEFAULTS = ("editor", "vi")
# By number: azguard replaces Python's stream of that name, and another one may stand in its place.
_STDERR = 2
# Editors that need a terminal to be of any use.
_ON_TERMINAL = frozenset(
    {"editor", "helix", "hx", "joe", "kak", "micro", "mg", "nano", "ne", "nvim", "pico", "vi", "view", "vim"}
)


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


@frozen
class Editor:
    """The user's editor."""

    words: Sequence[str]
    environ: Mapping[str, str]

    @classmethod
    def choose(cls, environ: Mapping[str, str]) -> "Editor":
        """Return the editor that VISUAL or else EDITOR names, a program and its arguments; else an installed editor.

        Raises:
            UsageError: there is no editor, it cannot be run, or it needs a terminal and there is no terminal.
        """
        source = next((name for name in ("VISUAL", "EDITOR") if environ.get(name)), None)
        words = _split(source, environ[source]) if source else _find_default(environ)
        if os.path.basename(words[0]) in _ON_TERMINAL and not in_foreground():
            raise UsageError(f"there is no terminal, so {words[0]} was not started", reason="editor_needs_terminal")
        try:
            check(words, environ)
        except (CommandNotFound, NotExecutable) as error:
            named = f"${source} names {words[0]}, which" if source else words[0]
            why = "is not executable" if isinstance(error, NotExecutable) else "is not there"
            raise UsageError(f"{named} {why}", reason="editor_missing") from None
        return cls(words, environ)

    def run(self, path: Path) -> None:
        """Run the editor on a file to its end. Ctrl-C and Ctrl-Z in it are the editor's own.

        Its input and output are the terminal, even where ours are not: ours carries the result.

        Raises:
            Interrupted: a signal asked us to end meanwhile, whatever the editor made of it.
            TransformFailed: it ended with another status than 0, or could not be started.
        """
        try:
            with _terminal() as (stdin, stdout):
                end = run([*self.words, str(path)], self.environ, stdin=stdin, stdout=stdout)
        except (CommandNotFound, NotExecutable) as error:
            raise TransformFailed(f"the editor {self.words[0]} cannot be run", detail=(error.message,)) from None
        if end.signal is not None:
            raise Interrupted(
                "interrupted while the editor was open; nothing was written", exit_status=128 + end.signal
            )
        if end.status:
            raise TransformFailed(f"the editor {self.words[0]} ended with status {end.status}; nothing was written")


def _split(source: str, text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"${source} cannot be read as a command: {error}", reason="editor_missing") from None
    if not words:
        raise UsageError(f"${source} is empty", reason="editor_missing")
    return [os.path.expanduser(words[0]), *words[1:]]


def _find_default(environ: Mapping[str, str]) -> list[str]:
    path = environ.get("PATH", os.defpath)
    found = next((name for name in _DEFAULTS if shutil.which(name, path=path)), None)
    if found is None:
        raise UsageError("no editor is known", reason="editor_missing")
    return [found]


@contextmanager
def _terminal() -> Iterator[tuple[int | None, int | None]]:
    """Yield what the editor gets for stdin and stdout; None is what we have."""
    has_input, has_output = os.isatty(0), os.isatty(1)
    if has_input and has_output:
        yield None, None
        return
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        yield None, None if has_output else _STDERR
        return
    try:
        yield None if has_input else terminal, None if has_output else terminal
    finally:
        os.close(terminal)
