"""An update that only adds text: to a block blob by reading and writing it, to an append blob by appending alone.

Which of them it is, the blob tells. An append keeps no lineage, so it is tied to its place instead: see ``appends``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from azguard.blobs import append_outcome, appends
from azguard.blobs.append import APPEND_BLOB, Append, AppendDone, End, Proof
from azguard.cache.reads import Reads
from azguard.conditions.resolve import POSITION, Conditions
from azguard.documents import edits
from azguard.documents.edits import Edit
from azguard.errors import BadRequest
from azguard.leases.kept import LeaseRecords
from azguard.updates import recording
from azguard.updates.op_ids import RAW_OP
from azguard.updates.recording import LocalRecords, UpdateRequest
from azguard.updates.result import UpdateReport

# An end of a line has at most two bytes.
_END_OF_LINE = 2


@dataclass(frozen=True)
class TextEdits:
    """Edits that only add text at the end."""

    edits: Sequence[Edit]
    leases: LeaseRecords
    #: Where the version that was made is recorded.
    reads: Reads


def update(request: UpdateRequest, records: LocalRecords, text: TextEdits) -> UpdateReport:
    """Apply the edits exactly once, whatever the type of the blob.

    Raises:
        AzguardError: as ``recording.update_and_record`` and ``appends.append`` say.
    """
    try:
        return recording.update_and_record(request, records)
    except BadRequest as error:
        if error.values.get("blob_type") != APPEND_BLOB:
            raise
    return _report(request, _append(request, records, text))


def _append(request: UpdateRequest, records: LocalRecords, text: TextEdits) -> AppendDone:
    target, plan = request.target, request.plan

    def build(end: End) -> bytes:
        before = min(_END_OF_LINE, end.position or 0)
        tail = b""
        if before:
            tail = append_outcome.read_range(target, (end.position or 0) - before, before, request.deadline.fresh())
        return edits.apply(text.edits, tail)[len(tail) :]

    given = Append(
        target=target,
        conditions=Conditions({}, POSITION, lease_id=plan.lease_id),
        deadline=request.deadline,
        proof=Proof.LEASE if plan.guard_by_lease else Proof.NONE,
        is_lines=True,
        contention_seconds=request.deadline.seconds,
        queue=lambda: recording.join_queue(request, records),
        build=build,
    )
    done = appends.append(given, iter([edits.apply(text.edits, b"")]), text.leases)
    appends.remember(given, done, text.reads)
    return done


def _report(request: UpdateRequest, done: AppendDone) -> UpdateReport:
    return UpdateReport(
        address=done.address,
        etag=done.etag,
        last_modified=done.last_modified,
        version_id=None,
        content_length=done.content_length,
        guard=done.guard,
        attempts=done.attempts,
        conflicts=done.conflicts,
        doubts=0,
        outcome=done.outcome,
        created=False,
        op_id=f"{RAW_OP}{request.plan.op}",
    )
