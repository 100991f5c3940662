"""Run a command of the user that edits a file, or the user's editor: the content in a private copy, read back after.

The copy stands where the command has ``{}``: as an argument of its own, or behind the ``=`` of an option such as
``--file={}``. Everything else is left alone, so that ``jq '.labels = {}'`` means what it says, and so that no name of a
file gets into a line of shell. The command's standard input is empty, and its output is not the content.
"""

import os
import re
import shlex
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from azguard.errors import CommandNotFound, GaveUp, Interrupted, NotExecutable, TransformFailed, UsageError
from azguard.frozen import frozen
from azguard.processes import child, filter_command
from azguard.processes.signals import hold_back_interruptions, in_foreground

#: What stands for the file.
PLACE = "{}"
_OPTION = re.compile(r"(--[A-Za-z][A-Za-z0-9_.-]*=)\{\}")
# A name may have 255 bytes; a character may take four of them.
_NAME_CHARACTERS = 60
_MODE = 0o600
# What is run where the user names none: Debian's choice, then the one that POSIX knows.
_DEFAULTS = ("editor", "vi")
# By number: azguard replaces Python's stream of that name, and another one may stand in its place.
_STDERR = 2
# Editors that need a terminal to be of any use.
_ON_TERMINAL = frozenset(
    {"editor", "helix", "hx", "joe", "kak", "micro", "mg", "nano", "ne", "nvim", "pico", "vi", "view", "vim"}
)


@frozen
class Edited:
    """What a command left."""

    content: bytes
    #: Whether it wrote the file at all.
    is_touched: bool


def names_file(command: Sequence[str]) -> bool:
    """Return whether a command edits a file in place, instead of printing the new content."""
    return any(word == PLACE or _OPTION.fullmatch(word) for word in command[1:])


def run(
    command: Sequence[str],
    content: bytes,
    name: str,
    *,
    environ: Mapping[str, str],
    deadline: float | None,
    clock: Callable[[], float],
    relay: Callable[[bytes], None],
) -> Edited:
    """Return the content that the command leaves in the private copy, whose file is called as the end of ``name``.

    The command's output is passed on to ``relay``. ``deadline`` is in seconds of ``clock``, or None.

    Not guaranteed: if azguard itself is killed, the copy stays in the temporary folder, where only its owner reads it.

    Raises:
        TransformFailed: the command does not start, fails or is ended by a signal; or the file is gone or not regular.
        GaveUp: the deadline passed; the command was stopped.
    """
    scratch = None
    try:
        with hold_back_interruptions():
            scratch = ScratchFile.make(name, content)
        path, before = str(scratch.path), scratch.stamp()
        words = [command[0], *(_put_in(word, path) for word in command[1:])]
        try:
            filter_command.run(words, b"", environ=environ, deadline=deadline, clock=clock, relay=relay)
        except (TransformFailed, GaveUp) as error:
            # A person knows what was typed, and not where the copy was.
            raise error.but(message=error.message.replace(path, PLACE)) from None
        return Edited(scratch.read(filter_command.MOST_BYTES), scratch.stamp() != before)
    finally:
        with hold_back_interruptions():
            if scratch is not None:
                scratch.remove()


def _put_in(word: str, path: str) -> str:
    if word == PLACE:
        return path
    found = _OPTION.fullmatch(word)
    return word if found is None else found[1] + path


@frozen
class ScratchFile:
    """A file in a private folder."""

    path: Path

    @classmethod
    def make(cls, name: str, content: bytes, folder: Path | None = None) -> "ScratchFile":
        """Write content to a new file in a new folder inside ``folder``, by default the temporary one.

        ``name`` is for people and for programs that look at its end; any text will do.

        Raises:
            TransformFailed: it cannot be written.
        """
        made = None
        try:
            made = Path(tempfile.mkdtemp(prefix="azguard-", dir=folder))
            path = made / choose_name(name)
            path.touch(_MODE)
            path.write_bytes(content)
        except OSError as error:
            if made is not None:
                shutil.rmtree(made, ignore_errors=True)
            raise TransformFailed(
                f"the private copy of the content cannot be written: {error.strerror}", reason="scratch_not_written"
            ) from None
        return cls(path)

    def read(self, most_bytes: int) -> bytes:
        """Return the current content of the file.

        Raises:
            TransformFailed: the file is gone, is not a regular file, cannot be read, or is too large.
        """
        try:
            # Neither a link out of the folder nor a pipe without a writer.
            handle = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            raise TransformFailed("the file is gone; nothing was written", reason="scratch_gone") from None
        except OSError as error:
            what = "is a symbolic link now" if self.path.is_symlink() else f"cannot be read: {error.strerror}"
            raise TransformFailed(f"the file {what}; nothing was written", reason="scratch_not_readable") from None
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_size > most_bytes:
            os.close(handle)
            what = "is no regular file any more" if found.st_size <= most_bytes else f"has more than {most_bytes} bytes"
            raise TransformFailed(f"the file {what}; nothing was written", reason="scratch_not_readable")
        with open(handle, "rb") as stream:
            return stream.read()

    def stamp(self) -> tuple[int, int]:
        """Return the stamp that a write of the file changes, in place or anew; 0 and 0 if there is no file."""
        try:
            found = os.lstat(self.path)
        except OSError:
            return 0, 0
        return found.st_ino, found.st_mtime_ns

    def write(self, content: bytes) -> None:
        """Put other content into the file.

        Raises:
            TransformFailed: it cannot be written.
        """
        try:
            self.path.write_bytes(content)
        except OSError as error:
            raise TransformFailed(f"{self.path} cannot be written: {error.strerror}") from None

    def remove(self) -> None:
        shutil.rmtree(self.path.parent, ignore_errors=True)


def choose_name(text: str) -> str:
    """Return the last part of a name as the name of a file, with the suffix by which programs know its format."""
    base = re.sub(r"[^\w.+=@%,~ -]", "_", text.rpartition("/")[2])
    if len(base) > _NAME_CHARACTERS:
        suffix = os.path.splitext(base)[1][-_NAME_CHARACTERS // 2 :]
        base = base[: _NAME_CHARACTERS - len(suffix)] + suffix
    # Neither hidden, nor taken for an option where it is typed without its folder.
    return base if base.strip(". ") and not base.startswith("-") else f"content{base.strip('. ')}"


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
    """Yield stdin and stdout of the editor; None stands for our own."""
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
