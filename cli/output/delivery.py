"""Where content goes that a command delivers: whether it stays there to be used, and in which file it is a copy."""

import os
import select
import stat
from pathlib import Path
from typing import IO, Annotated, Any, NamedTuple

from azguard.atomic_files import find_descriptor, remove_left
from azguard.cache import copies
from azguard.cache.copies import Copy
from azguard.cli.parsing.rows import flag
from azguard.cli.rules.engine import checked
from azguard.errors import UsageError

#: Of a get into a file or a folder.
_LOCAL = checked("--overwrite", "content that goes to a file or folder", "delivery.check_overwrite")
Overwrite = Annotated[
    bool, flag("--overwrite", "Replace a local file, too, that you changed since you got it.", rules=(_LOCAL,))
]


class Delivery(NamedTuple):
    """Where content was delivered. ``copy`` is the file that holds it and nothing else."""

    is_kept: bool
    copy: Copy | None = None


def check_overwrite(file: str | None, if_exists: str | None = None, *, overwrite: bool) -> None:
    """Refuse --overwrite where no local file could be replaced.

    Raises:
        UsageError: the content goes to stdout, or what is in the folder is left alone.
    """
    if overwrite and file in (None, "-"):
        raise UsageError("--overwrite is for a local file, and stdout has none", hint="name the file with -f FILE")
    if overwrite and if_exists is not None:
        raise UsageError("--if-exists skip leaves a file alone that --overwrite replaces", hint="leave one of them out")


def to_file(path: Path, inode: tuple[int, int] | None) -> Delivery:
    """Return where content is that was written to the file, device or pipe at a path; a file had this inode then.

    What gets into that file left beside it when they were killed is deleted.
    """
    mode = path.stat().st_mode
    # What the file of a descriptor holds besides is not known.
    if stat.S_ISREG(mode) and find_descriptor(path) is None:
        real = Path(os.path.realpath(path))
        remove_left(real.parent, real.name)
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
        return Delivery(True)  # in memory
    if stat.S_ISREG(found.st_mode):
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
