"""Run the user's editor on a file, as git does: which one, on which terminal, and how it ended."""

import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from azguard.errors import CommandNotFound, Interrupted, NotExecutable, TransformFailed, UsageError
from azguard.processes import child
from azguard.processes.terminal import in_foreground

# What is run where the user names none: Debian's choice, then the one that POSIX knows.
_DEFAULTS = ("editor", "vi")
# By number: azguard replaces Python's stream of that name, and another one may stand in its place.
_STDERR = 2
# Editors that need a terminal to be of any use.
_ON_TERMINAL = frozenset(
    {"editor", "helix", "hx", "joe", "kak", "micro", "mg", "nano", "ne", "nvim", "pico", "vi", "view", "vim"}
)


@dataclass(frozen=True)
class Editor:
    """The user's editor."""

    words: Sequence[str]
    environ: Mapping[str, str]

    @classmethod
    def choose(cls, environ: Mapping[str, str]) -> "Editor":
        """Return what VISUAL or else EDITOR names, a program and its arguments; else one that is there.

        Raises:
            UsageError: there is none, it cannot be run, or it needs a terminal and there is none.
        """
        source = next((name for name in ("VISUAL", "EDITOR") if environ.get(name)), None)
        words = _split(source, environ[source]) if source else _find_default(environ)
        if os.path.basename(words[0]) in _ON_TERMINAL and not in_foreground():
            raise UsageError(f"there is no terminal, so {words[0]} was not started", reason="editor_needs_terminal")
        try:
            child.check(words, environ)
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
                end = child.run([*self.words, str(path)], self.environ, stdin=stdin, stdout=stdout)
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
