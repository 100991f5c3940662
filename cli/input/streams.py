"""Files and streams named on the command line: what is read from them, and whether what is written stays there.

And questions on the terminal.
"""

import os
import select
import shlex
import stat
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, BinaryIO

from azguard.atomic_files import find_descriptor, open_in_place, remove_left
from azguard.cli import signals
from azguard.cli.output import terminal
from azguard.cli.output.json_form import to_json_form
from azguard.cli.output.stream import build_output_failed
from azguard.cli.parsing.rows import flag
from azguard.cli.rules import excludes, needs
from azguard.errors import Interrupted, UsageError
from azguard.frozen import frozen

if TYPE_CHECKING:
    from azguard.cache.copies import Copy


_STDOUT = 1
# What is held in memory: patches, policies and the like are far shorter, and a device or a pipe may never end.
_MOST_BYTES = 64 * 1024 * 1024
# Names of files that are open already, as /dev/stdin is; the files behind them can be of any kind.
_OPEN_FILES = ("/dev/stdin", "/dev/fd/", "/proc/")
# Of a get into a file or a folder.
_LOCAL = (
    needs("--overwrite", "--file DIR", "it is for a local file, and stdout has none"),
    excludes("--overwrite", "--file=-", "it is for a local file, and stdout has none"),
    excludes("--overwrite", "--if-exists", "one replaces files that the other leaves alone"),
)
Overwrite = Annotated[
    bool, flag("--overwrite", "Replace a local file, too, that you changed since you got it.", rules=_LOCAL)
]


def source(
    file: str | None, *, takes_folders: bool = False, typed: str | None = None, purpose: str = "write"
) -> AbstractContextManager[BinaryIO]:
    """Return the content to read: a file, or stdin for none or ``-``.

    ``takes_folders`` is of a command that has --recursive, ``typed`` how its content can be typed instead, and
    ``purpose`` the verb for what is done with the content.

    Raises:
        UsageError: the file cannot be read, or stdin is a terminal, where no end is seen.
    """
    if file in (None, "-"):
        if file is None and sys.stdin is not None and sys.stdin.isatty():
            files = "name a file with -f FILE, or pipe the content in"
            hint = files if typed is None else f"write {typed}; or {files}"
            raise UsageError(f"nothing to {purpose}: stdin is a terminal", hint=hint)
        return _stdin()
    assert file is not None
    try:
        return open(file, "rb")
    except IsADirectoryError:
        hint = "add --recursive to write all files below it" if takes_folders else "name a file"
        raise UsageError(f"{file} is a folder", hint=hint) from None
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None


def open_text(text: str) -> AbstractContextManager[BinaryIO]:
    """Return content that was typed."""
    return nullcontext(BytesIO(text.encode()))


@contextmanager
def content(file: str | None, *, takes_folders: bool = False, text: str | None = None) -> Iterator[BinaryIO]:
    """Return the content to write, as ``source`` does; a file that is named must not change while it is read.

    ``text`` is content that was typed instead.

    Raises:
        Changed: while it is read: it was written to since it was opened, so that what was read may be a mixture.
        UsageError: as ``source``.
    """
    from azguard.resources.sources import UnchangedFile, as_stream

    typed = "--content TEXT"
    with open_text(text) if text is not None else source(file, takes_folders=takes_folders, typed=typed) as stream:
        is_named = file not in (None, "-") and size(stream) is not None
        yield as_stream(UnchangedFile(stream, Path(str(file)), lambda: None)) if is_named else stream


def _stdin() -> AbstractContextManager[BinaryIO]:
    if sys.stdin is None:
        raise UsageError("stdin is closed", hint="name a file with -f FILE, or pipe the content in")
    stream = sys.stdin.buffer
    if not _may_wait(stream):
        return nullcontext(stream)
    from azguard.processes.signals import read_interruptibly

    return read_interruptibly(stream)


def _may_wait(stream: BinaryIO) -> bool:
    """Return whether reading may wait for a writer, as of a pipe or a terminal."""
    try:
        return not stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError:
        return False  # in memory


def copy(stream: BinaryIO) -> "Copy | None":
    """Return the file that is read, which carries a version; a pipe or a device carries none."""
    if size(stream) is None:
        return None
    from azguard.cache import copies

    return copies.find_behind(stream.fileno(), None if stream is sys.stdin.buffer else Path(stream.name))


def output(file: str | None) -> Path | None:
    """Return where to write, or None for stdout (no file, or ``-``)."""
    return None if file in (None, "-") else Path(str(file))


def keeps_content(file: str | None) -> bool:
    """Return whether a file was named that keeps what is in it: no pipe, no device, no other name of stdin."""
    if file in (None, "-"):
        return False
    path = os.path.abspath(str(file))
    return os.path.isfile(path) and not path.startswith(_OPEN_FILES)


def choose_places(file: str | None, result: str | None, query: str | None) -> tuple[Path | None, Path | None]:
    """Return where content is written, None for stdout, and where its result is written beside it.

    Raises:
        UsageError: one of them cannot be written to, both are one, or the query picks from what is not printed.
    """
    path, beside = output(file), _check_result_file(result)
    if path is not None and find_descriptor(path) == _STDOUT:
        path = None
    if path is None and query is not None:
        raise UsageError(
            "--query picks from the result, and stdout has the content",
            hint="-f FILE writes the content to a file, and the result to stdout",
        )
    if path is not None and beside is not None and os.path.realpath(path) == os.path.realpath(beside):
        raise UsageError("--result and --file name the same file", hint="leave --result out: stdout has the result")
    return path, beside


def _check_result_file(file: str | None) -> Path | None:
    """Return where a result is written beside the content, once it is known that it can be."""
    if file is None:
        return None
    if file == "-" or find_descriptor(Path(str(file))) == _STDOUT:
        raise UsageError("--result names a file, not stdout", hint="with -f FILE stdout has the result")
    path = Path(str(file))
    require_writable(path, f"--result {file}")
    return path


def require_writable(path: Path, name: str) -> None:
    """Refuse a file that cannot be written, as far as can be told before it is."""
    if is_writable(path):
        return
    missing = f"make the folder first: mkdir -p {shlex.quote(str(path.parent))}"
    raise UsageError(f"{name} cannot be written", hint="name another file" if path.parent.exists() else missing)


def is_writable(path: Path) -> bool:
    """Return whether a file can be written, as far as can be told before it is."""
    try:
        return not stat.S_ISDIR(path.stat().st_mode) and os.access(path, os.W_OK)
    except FileNotFoundError:
        return os.access(path.absolute().parent, os.W_OK)
    except OSError:
        return False  # Its name is too long, say, or what it is in is no folder.


def write_json(path: Path, result: object) -> None:
    """Write a result to a file as JSON.

    Raises:
        OutputFailed: it cannot be written, as on a full disk.
    """
    import json

    text = json.dumps(to_json_form(result), indent=2, ensure_ascii=False) + "\n"
    try:
        with open_in_place(path) as stream:
            stream.write(text.encode())
    except OSError as error:
        raise build_output_failed(error) from error


def stdout() -> BinaryIO:
    """Return stdout for bytes."""
    return sys.stdout.buffer


def size(stream: BinaryIO | None) -> int | None:
    """Return the size in bytes of the regular file that is read, None of a pipe or a device, and of no stream."""
    try:
        found = None if stream is None else os.fstat(stream.fileno())
    except OSError:
        return None  # in memory
    return found.st_size if found is not None and stat.S_ISREG(found.st_mode) else None


def show_name(file: str | None) -> str:
    """Return the name of a file in an error: stdin has no name that a person can look for."""
    return "stdin" if file in (None, "-") else str(file)


def read(name: str) -> bytes:
    """Return the content of a file, or of stdin for ``-``."""
    try:
        with _stdin() if name == "-" else open(name, "rb") as stream:
            return _read_whole(stream, name)
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}") from None


def _read_whole(stream: BinaryIO, name: str | None) -> bytes:
    from azguard.resources.sources import read_up_to

    return _check_length(read_up_to(stream, _MOST_BYTES + 1), name)


def _check_length(content: bytes, name: str | None) -> bytes:
    if len(content) > _MOST_BYTES:
        raise UsageError(
            f"{show_name(name)} is longer than {_MOST_BYTES:,} bytes, the most that is read here",
            hint="name a file that ends, and no device",
        )
    return content


def read_json(file: str | None, typed: str | None = None) -> object:
    """Return the JSON value in a file, or on stdin for none or ``-``; ``typed`` is as of ``source``.

    Raises:
        UsageError: it cannot be read, or it is not JSON.
    """
    import json

    with source(file, typed=typed) as stream:
        content = _read_whole(stream, file)
        if not content.strip():
            raise UsageError(
                f"{show_name(file)} is empty, and it is to hold JSON", hint="did the command before the pipe fail?"
            )
        try:
            return json.loads(content)
        except ValueError as error:
            raise UsageError(f"{show_name(file)} is not JSON: {error}") from None
        except RecursionError:
            raise UsageError(f"{show_name(file)} is not JSON of use here: it is nested too deeply") from None


def json_lines(name: str) -> Iterator[dict[str, object]]:
    """Yield the objects of a file of JSON lines, or of stdin for ``-``.

    Raises:
        UsageError: it cannot be read, or a line is no JSON object.
    """
    import json

    with source(name) as stream:
        for number, line in enumerate(iter(lambda: stream.readline(_MOST_BYTES + 1), b""), 1):
            try:
                found = json.loads(_check_length(line, name))
            except (ValueError, RecursionError):
                found = None
            if not isinstance(found, dict):
                raise UsageError(
                    f"line {number} of {show_name(name)} is not a JSON object", hint="azguard cache export makes them"
                )
            yield found


def stdin_is_terminal() -> bool:
    """Return whether stdin is a terminal: nothing was piped in."""
    return sys.stdin is None or sys.stdin.isatty()


def on_terminal() -> bool:
    """Return whether there is a person to ask: stdin and stderr are a terminal."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def asks_to_go_on(question: str) -> bool:
    """Ask on the terminal whether to go on, which is what Enter means; the end of the input is a no."""
    sys.stderr.write(f"{terminal.printable(question)} [Y/n] ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    return bool(answer) and answer.strip().lower() in ("", "y", "yes")


def confirm(question: str, otherwise: str) -> None:
    """Ask on the terminal; only a yes is one.

    Raises:
        Interrupted: the answer is another; ``otherwise`` says that nothing was done.
    """
    sys.stderr.write(f"{terminal.printable(question)} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        signals.state.declined = True
        raise Interrupted(otherwise, reason=signals.DECLINED)


@frozen
class Delivery:
    """Where content was delivered. ``copy`` is the file that holds it and nothing else."""

    is_kept: bool
    copy: "Copy | None" = None


def to_file(path: Path, inode: tuple[int, int] | None) -> Delivery:
    """Return where content is that was written to the file, device or pipe at a path; a file had this inode then.

    What gets into that file left beside it when they were killed is deleted.
    """
    mode = path.stat().st_mode
    # What the file of a descriptor holds besides is not known.
    if stat.S_ISREG(mode) and find_descriptor(path) is None:
        real = Path(os.path.realpath(path))
        remove_left(real.parent, real.name)
        from azguard.cache import copies

        return Delivery(True, copies.find_written(path, inode))
    return Delivery(not stat.S_ISCHR(mode) or _is_terminal(path))


def to_stream(stream: IO[Any], length: int | None = None) -> Delivery:
    """Return where content is that was written to a stream and flushed.

    ``length`` is that of the content in bytes, if a file that holds it alone is a copy. Not guaranteed: a reader that
    goes away after this look, without having read all of it, is taken for one that has.
    """
    try:
        descriptor = stream.fileno()
        found = os.fstat(descriptor)
    except (OSError, ValueError):
        return Delivery(getattr(stream, "is_kept", True))  # in memory
    if stat.S_ISREG(found.st_mode):
        from azguard.cache import copies

        is_copy = length is not None and found.st_size == length == os.lseek(descriptor, 0, os.SEEK_CUR)
        return Delivery(True, copies.find_behind(descriptor) if is_copy else None)
    if stat.S_ISCHR(found.st_mode):
        return Delivery(os.isatty(descriptor))
    return Delivery(not _is_abandoned(descriptor))


def _is_terminal(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_WRONLY | getattr(os, "O_NOCTTY", 0))
    except OSError:
        return False
    try:
        return os.isatty(descriptor)
    finally:
        os.close(descriptor)


def _is_abandoned(descriptor: int) -> bool:
    """Return whether the reader of a pipe is gone already: one that wants all of it waits for the end."""
    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
