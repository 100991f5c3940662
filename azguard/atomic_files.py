"""Files that are replaced whole or not at all: written beside their place, and renamed into it."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

# A name may have 255 bytes; a character may take four of them.
_NAME_CHARACTERS = 40
_RANDOM_BYTES = 6
_UNFINISHED = re.compile(rf"\..*\.azguard-[0-9a-f]{{{2 * _RANDOM_BYTES}}}", re.DOTALL)


def is_unfinished(name: str) -> bool:
    """Return whether a file of this name is one that a killed process left, and not what its user made."""
    return _UNFINISHED.fullmatch(name) is not None


def write_atomically(path: Path, content: bytes, mode: int = 0o666, *, durable: bool = True) -> None:
    """Write a file: a reader finds what was there before or all of the content, never a part.

    Raises:
        OSError: the file is as it was.
    """
    with replacing(path, mode, durable=durable) as stream:
        stream.write(content)


@contextmanager
def replacing(path: Path, mode: int = 0o666, *, exact: bool = False, durable: bool = True) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of ``path`` when the block ends; if the block fails, it is removed.

    A symbolic link is followed. ``mode`` is the permissions of the new file, less the umask unless they are ``exact``.
    ``durable`` waits until the content and the rename are on the disk.

    Not guaranteed: if the process is killed, the new file stays, under a hidden name beside ``path``.

    Raises:
        OSError: the file cannot be made, written or renamed; ``path`` is as it was.
    """
    real = Path(os.path.realpath(path))
    # Hidden, and unlike any other that is written at the same time.
    beside = real.with_name(f".{real.name[:_NAME_CHARACTERS]}.azguard-{os.urandom(_RANDOM_BYTES).hex()}")
    stream = open(beside, "x+b", opener=lambda name, flags: os.open(name, flags, mode))  # noqa: SIM115  # closed below
    try:
        with stream:
            yield stream
            stream.flush()
            if durable:
                os.fsync(stream.fileno())
        if exact:
            os.chmod(beside, mode)
        os.replace(beside, real)
    except BaseException:
        with suppress(OSError):  # Its folder is gone, or it was renamed already.
            os.unlink(beside)
        raise
    if durable:
        _sync_folder(real.parent)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable, where folders can be synced."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass  # Some file systems cannot sync a folder; the file itself is synced.
    finally:
        os.close(handle)
