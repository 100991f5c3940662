"""The outcome of one Append Block whose answer was lost, from the bytes that stand where ours belong.

A block is tied to its position. While the blob ends there, the block is not committed, and two transmissions of it
exclude each other. Once something else stands there, it never can be, because an append blob only grows. Equal bytes
prove nothing by themselves: two writers may append equal lines.
"""

from collections.abc import Mapping
from typing import Any

from azguard.accounts.target import Target
from azguard.blobs import properties
from azguard.blobs.append import APPEND_BLOB, End, Proof
from azguard.blobs.source_pieces import SourcePiece
from azguard.conditions.resolve import Conditions
from azguard.errors import AzguardError, Changed, NotFound
from azguard.requests.calls import read
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.settle import NOTHING_THERE, Finding

Answer = Mapping[str, Any]


def find_outcome(
    target: Target, end: End, piece: bytes | SourcePiece, proof: Proof, lease_id: str | None, patience: Deadline
) -> Finding[Answer]:
    """Return what is known about a piece that was to be appended at ``end``; ``lease_id`` is our own lease."""
    if end.position is None:
        return Finding(Verdict.UNKNOWN)
    try:
        found = properties.fetch(target, Conditions(), patience)
        if _is_another(found, end):
            return Finding(Verdict.UNKNOWN, seen=found)
        if found.size == end.position:
            return Finding(Verdict.NOT_YET, seen=found)
        theirs = _read_theirs(target, end.position, piece, found.size, patience)
    except NotFound:
        return Finding(Verdict.UNKNOWN, seen=NOTHING_THERE)
    except Changed:
        return Finding(Verdict.UNKNOWN)  # It was replaced between the two reads.
    if theirs != piece:
        return Finding(Verdict.NEVER, seen=found)
    if proof is Proof.CONTENT or (proof is Proof.LEASE and _is_held(target, lease_id, patience)):
        return Finding(Verdict.COMMITTED, {"blob_append_offset": str(end.position)})
    return Finding(Verdict.UNKNOWN, seen=found, same=True)


def _read_theirs(
    target: Target, position: int, piece: bytes | SourcePiece, size: int, patience: Deadline
) -> bytes | SourcePiece:
    """Return the bytes that stand where a piece belongs; those of a source are not known here, and taken for equal."""
    if isinstance(piece, SourcePiece):
        return piece
    return read_range(target, position, min(len(piece), size - position), patience)


def _is_another(found: Any, end: End) -> bool:
    """Return whether the blob was replaced by another of its name; the time of its creation tells whole seconds."""
    is_same = properties.type_of(found) == APPEND_BLOB and found.creation_time == end.created
    return (
        not is_same or found.size < (end.position or 0) or (found.append_blob_committed_block_count or 0) < end.blocks
    )


def read_range(target: Target, offset: int, length: int, deadline: Deadline) -> bytes:
    """Return so many bytes of a blob from ``offset`` on, fewer if it ends before."""
    client = target.account.blob(target.address)

    def call(timeouts: Mapping[str, Any]) -> bytes:
        stream = client.download_blob(offset=offset, length=length, decompress=False, **timeouts)
        content: bytes = stream.readall()
        return content

    return read(call, target, deadline)


def _is_held(target: Target, lease_id: str | None, patience: Deadline) -> bool:
    """Return whether our own lease is held: the service answers under its id only then."""
    try:
        properties.fetch(target, Conditions(lease_id=lease_id), patience)
    except AzguardError:
        return False
    return lease_id is not None
