"""stdout as a stream for results: where it cannot be written, the operation is done all the same.

In a job of GitHub Actions or Azure Pipelines both streams let no name be a command to the runner: a blob may be called
``##vso[task.setvariable variable=PATH]/tmp``. In JSON the escape reads as the same name; elsewhere it is seen. Content,
which is written as bytes, stays as it is.
"""

import io
import os
import sys
from typing import Any, NoReturn, TextIO

from azguard.errors import OutputFailed

UNDELIVERED = "the operation is done, but its result cannot be written"
HINT = "do not repeat a write because of this: it is applied; look with the show command"
_HINT_OF_READ = "nothing was changed; type it again where its output can be written"


# A runner sets one of these in each job, and reads what its steps print.
_RUNNERS = ("GITHUB_ACTIONS", "TF_BUILD")


class ResultStream(io.TextIOWrapper):
    """A text stream whose failures are ``OutputFailed``, whichever library writes to it."""

    def write(self, text: str, /) -> int:
        try:
            return super().write(_escape_commands(text))
        except OSError as error:
            _fail(error)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            _fail(error)


class MessageStream(io.TextIOWrapper):
    """A text stream for messages."""

    def write(self, text: str, /) -> int:
        return super().write(_escape_commands(text))

    def write_command(self, text: str) -> None:
        """Write a command that is meant for the runner."""
        super().write(text)


def write_command(text: str) -> None:
    """Write a command for the runner to stderr: not to stdout, which a script may read.

    --quiet does not silence it, since it is no message.
    """
    send = sys.stderr.write_command if isinstance(sys.stderr, MessageStream) else sys.stderr.write
    send(text)
    sys.stderr.flush()


def _has_runner() -> bool:
    return any(os.environ.get(name) for name in _RUNNERS)


def _escape_commands(text: str) -> str:
    """Return text with the first letter of each mark of a command spelled as JSON may spell it, for a runner."""
    if ("##" not in text and "::" not in text) or not _has_runner():
        return text
    from azguard.leases.owners import RUNNER_COMMAND

    return RUNNER_COMMAND.sub(lambda found: f"{found[0][:-2]}\\u{ord(found[0][-1]):04x}{found[0][-1]}", text)


def _fail(error: OSError) -> NoReturn:
    # A reader that has gone is no failure; how that ends is decided elsewhere.
    raise error if isinstance(error, BrokenPipeError) else build_output_failed(error)


def build_output_failed(error: OSError) -> OutputFailed:
    """Return the error for a result that cannot be written."""
    return OutputFailed(f"{UNDELIVERED}: {error.strerror}", hint=HINT)


def tell_of_read(error: OutputFailed) -> OutputFailed:
    """Word the failure for a command that only reads: there is no write that could be repeated."""
    return error.but(
        message=error.message.replace("the operation is done, but", "it was read, but"), hint=_HINT_OF_READ
    )


def open_streams() -> None:
    """Put a ``ResultStream`` and a ``MessageStream`` in place, and stand in for a stream that is closed (``>&-``)."""
    _occupy_closed()
    if sys.stdout is None:
        # A write must fail instead of going nowhere.
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    # A name that this terminal's encoding cannot show is shown by its code, instead of failing.
    if isinstance(sys.stdout, io.TextIOWrapper):
        settings: dict[str, Any] = {
            "encoding": sys.stdout.encoding,
            "line_buffering": sys.stdout.line_buffering or sys.stdout.write_through,
        }
        sys.stdout = ResultStream(_write_all(sys.stdout.detach()), errors="backslashreplace", **settings)
    if isinstance(sys.stderr, io.TextIOWrapper):
        settings = {
            "encoding": sys.stderr.encoding,
            "line_buffering": sys.stderr.line_buffering,
            "write_through": sys.stderr.write_through,
        }
        sys.stderr = MessageStream(sys.stderr.detach(), errors="backslashreplace", **settings)


def _occupy_closed() -> None:
    """Let no file or connection of ours have the number of a closed stream, which a command would read or write."""
    # Reading stdin and writing stdout must fail, instead of finding nothing or going nowhere.
    for number, flags in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)  # gets the lowest number that is free


def _write_all(binary: Any) -> Any:
    """Return a stream of bytes that writes all it is given, or fails.

    With PYTHONUNBUFFERED, stdout is a file that may write a part, as on a disk that is nearly full, and returns the
    count. Nothing looks at that count.
    """
    return io.BufferedWriter(binary) if isinstance(binary, io.RawIOBase) else binary


def flush_messages() -> None:
    """Flush stderr; if it cannot be written, the exit status tells all the same."""
    try:
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Point a broken stream at nothing, so that the interpreter's own flush at exit stays quiet."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):
        pass  # The stream is in memory, or closed.
