"""Content in pieces that an append blob takes, one Append Block each; lines stay whole."""

from collections.abc import Iterator, Sequence
from typing import BinaryIO, TypeVar

from azguard.blobs.append import MOST_BYTES
from azguard.errors import BadRequest
from azguard.requests.sources import read_up_to

T = TypeVar("T")
#: The length of a piece, which every service version takes.
PIECE_BYTES = 4 * 1024 * 1024


def read_pieces(source: BinaryIO) -> Iterator[bytes]:
    """Yield the content in pieces."""
    while piece := read_up_to(source, PIECE_BYTES):
        yield piece


def read_lines(source: BinaryIO) -> Iterator[bytes]:
    """Yield the content in pieces of whole lines; a last line without an end gets one.

    Raises:
        BadRequest: a line is longer than the service takes in one piece.
    """
    rest = b""
    while len(read := read_up_to(source, PIECE_BYTES)) == PIECE_BYTES:
        rest += read
        end = rest.rfind(b"\n") + 1
        if end:
            yield rest[:end]
            rest = rest[end:]
        if len(rest) >= MOST_BYTES:
            raise _build_too_long(len(rest))
    if last := rest + read:
        yield last if last.endswith(b"\n") else last + b"\n"


def join_lines(lines: Sequence[str]) -> bytes:
    """Return lines as one piece, so that they stand together or not at all.

    Raises:
        BadRequest: they are longer than the service takes in one piece.
    """
    # An argument that was not UTF-8 arrives with its bytes as surrogates, and leaves as it was typed.
    piece = b"".join(line.encode("utf-8", "surrogateescape") + b"\n" for line in lines)
    if len(piece) > MOST_BYTES:
        raise _build_too_long(len(piece))
    return piece


def mark_last(pieces: Iterator[T]) -> Iterator[tuple[T, bool]]:
    """Yield each piece with whether it is the last one; a piece is asked for while the one before it waits."""
    before = next(pieces, None)
    if before is None:
        return
    for piece in pieces:
        yield before, False
        before = piece
    yield before, True


def _build_too_long(length: int) -> BadRequest:
    return BadRequest(
        f"a line of {length:,} bytes or more cannot be appended in one piece; the service takes {MOST_BYTES:,}",
        reason="line_too_long",
    )
