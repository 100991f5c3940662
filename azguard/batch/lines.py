"""Lines of a batch: as they stand in a file, as words of a shell or JSON; what they say; and how they ended."""

import json
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Any, BinaryIO, NamedTuple

from azguard import columns
from azguard.errors import OutcomeUnknown, UsageError
from azguard.frozen import frozen
from azguard.requests.pool import FAILED, UNKNOWN

DONE = "done"

# Far more than a command line, with its stdin, is meant to have.
_LONGEST_LINE = 16 * 1024 * 1024
_KEYS = ("args", "stdin", "id")


class TextLine(NamedTuple):
    """A line as it stands in the file."""

    #: Counted from 1, with those that say nothing.
    number: int
    content: bytes


@frozen
class Line:
    """What a line says."""

    number: int
    words: tuple[str, ...]
    #: What its command reads from stdin.
    stdin: str = ""
    #: The name that its writer gave it.
    id: str | None = None


@frozen
class LineEnd:
    """How a line ended."""

    #: The name that its writer gave it.
    id: str | None
    #: Its number in the file.
    line: int
    exit_code: int
    #: What its command showed; text where that is no JSON, and None where it showed nothing.
    result: Any = None
    #: The error object of its command; None where there was none.
    error: Mapping[str, Any] | None = None
    #: What its command told on stderr besides.
    messages: str = field(default="", metadata=columns.UNPRINTED)
    #: Its place among the lines that say something.
    position: int = field(default=0, metadata=columns.UNPRINTED)

    @property
    def outcome(self) -> str:
        """Return how it counts."""
        if self.exit_code == OutcomeUnknown.exit_code:
            return UNKNOWN
        return FAILED if self.exit_code else DONE

    @property
    def reason(self) -> str:
        """Return why it failed, in one line."""
        why = "" if self.error is None else f": {self.error['message']}"
        return f"line {self.line} ({self.exit_code}){why}"


@contextmanager
def keep(stream: BinaryIO) -> Iterator[BinaryIO]:
    """Yield what can be read twice: the stream, or a temporary file with all that a pipe has."""
    if stream.seekable():
        yield stream
        return
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(stream, copy)
        copy.seek(0)
        yield copy


def read(stream: BinaryIO) -> Iterator[TextLine]:
    """Yield the lines from here to the end that say something: no empty ones, and none that begin with ``#``.

    Raises:
        UsageError: a line is too long.
    """
    for number, content in enumerate(iter(lambda: stream.readline(_LONGEST_LINE + 1), b""), 1):
        if len(content) > _LONGEST_LINE:
            raise UsageError(f"longer than {_LONGEST_LINE:,} bytes").at_line(number)
        if content.strip() and not content.lstrip().startswith(b"#"):
            yield TextLine(number, content)


def parse(line: TextLine) -> Line:
    """Parse a line: shell words, a JSON array or a JSON object.

    Raises:
        UsageError: it is none of the forms.
    """
    try:
        text = line.content.decode("utf-8-sig" if line.number == 1 else "utf-8").strip()
    except UnicodeDecodeError as error:
        raise UsageError(f"no UTF-8: {error.reason} at byte {error.start + 1}", reason="batch_line") from None
    try:
        said = json.loads(text) if text.startswith(("[", "{")) else shlex.split(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"no JSON: {error.msg} at character {error.pos + 1}", reason="batch_line") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"no command line: {error}", reason="batch_line") from None
    said = said if isinstance(said, dict) else {"args": said}
    _check(said)
    words = said["args"][1:] if said["args"][:1] == ["azguard"] else said["args"]
    return Line(line.number, tuple(words), said.get("stdin") or "", said.get("id"))


def _check(said: dict[str, object]) -> None:
    unknown = next((key for key in said if key not in _KEYS), None)
    if unknown is not None:
        raise UsageError(f"the key {unknown!r} means nothing here", reason="batch_line")
    args = said.get("args")
    if not isinstance(args, list) or not args or not all(isinstance(word, str) for word in args):
        raise UsageError('"args" is not a list of texts', reason="batch_line")
    for key in ("stdin", "id"):
        if not isinstance(said.get(key), str | None):
            raise UsageError(f'"{key}" is not a text', reason="batch_line")
