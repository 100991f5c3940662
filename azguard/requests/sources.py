"""The source of a write: a file or a pipe, read in pieces."""

from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Callable


def read_up_to(source: BinaryIO, size: int) -> bytes:
    """Read ``size`` bytes, or fewer at the end of the source; a pipe gives 64 KiB at a time."""
    # One system call at a time: read() makes several, and a signal between two of them waits until more content comes.
    once: Callable[[int], bytes] = getattr(source, "read1", source.read)
    pieces: list[bytes] = []
    missing = size
    while missing and (piece := once(missing)):
        pieces.append(piece)
        missing -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
