"""Sealing an append blob: nothing can be appended to it any more."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.target import Target
from azguard.blobs import properties, types
from azguard.blobs.append import APPEND_BLOB
from azguard.blobs.headers import ContentHeaders
from azguard.conditions.operations import Condition
from azguard.conditions.resolve import Conditions
from azguard.errors import BadRequest, Changed, NotFound
from azguard.requests.calls import write_timeouts
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.settle import NOTHING_THERE, Finding, WriteRequest, send_until_settled


@dataclass(frozen=True)
class BlobSealed:
    """What sealing a blob did."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.CONTENT_LENGTH, columns.ETAG)

    address: str
    etag: str | None
    last_modified: datetime | None
    blob_type: str
    content_length: int
    sealed: bool
    guard: str
    attempts: int
    conflicts: int
    outcome: str


def seal(target: Target, conditions: Conditions, deadline: Deadline) -> BlobSealed:
    """Seal an append blob. There is no way back; sealing it again changes nothing.

    Raises:
        BadRequest: it is no append blob.
        Changed: it is not the version, or does not end at the place, that the condition names.
        OutcomeUnknown: the answer was lost, and whether the blob is sealed cannot be known.
    Source: https://learn.microsoft.com/rest/api/storageservices/append-blob-seal
    """
    before = properties.fetch(target, Conditions(lease_id=conditions.lease_id), deadline)
    _check_type(target, properties.type_of(before))
    client = target.account.blob(target.address)
    request = WriteRequest(
        target=target,
        send=lambda: client.seal_append_blob(headers=conditions.request_headers, **write_timeouts(deadline)),
        look=lambda patience: _find_outcome(target, conditions, before, patience),
        expected_etag=conditions.expected_etag,
        is_idempotent=True,
    )
    try:
        settled = send_until_settled(request, deadline)
    except Changed as error:
        raise properties.describe_conflict(error, target, deadline) from error
    answer: Any = settled.answer or {}
    return BlobSealed(
        address=str(target.address),
        etag=answer.get("etag"),
        last_modified=answer.get("last_modified"),
        blob_type=APPEND_BLOB,
        content_length=before.size,
        sealed=True,
        guard=conditions.guard,
        attempts=settled.attempts,
        conflicts=0,
        outcome="committed",
    )


def _check_type(target: Target, kind: str | None) -> None:
    if kind != APPEND_BLOB:
        raise BadRequest(
            f"{target} is {types.describe(kind)}, which cannot be sealed",
            address=str(target.address),
            reason="no_append_blob_to_seal",
        )


def _find_outcome(target: Target, conditions: Conditions, before: Any, patience: Deadline) -> Finding[Any]:
    """Return whether the blob is sealed with the content that the caller meant; ``before`` is what was there first.

    The service keeps the ETag when it seals, and the emulator gives a new one; a blob that is sealed does not grow, so
    its length tells whether another writer appended to it before.
    """
    expected, position = conditions.expected_etag, conditions.headers.get(Condition.APPEND_POSITION.header)
    try:
        found = properties.fetch(target, Conditions(), patience)
    except NotFound:
        return Finding(Verdict.UNKNOWN, seen=NOTHING_THERE)
    meant = found.size if expected is None else before.size
    if position is not None:
        meant = int(position)
    is_meant = expected is None or (expected, found.creation_time) == (before.etag, before.creation_time)
    if found.is_append_blob_sealed and is_meant and found.size == meant:
        # Another writer may have changed headers or metadata since.
        kept = [(ContentHeaders.of(each), each.metadata or {}) for each in (before, found)]
        answer = {"etag": found.etag, "last_modified": found.last_modified} if kept[0] == kept[1] else {"etag": None}
        return Finding(Verdict.COMMITTED, answer)
    is_replaced = expected is not None and found.etag != expected
    is_over = found.is_append_blob_sealed or is_replaced or found.size > meant
    return Finding(Verdict.NEVER if is_over else Verdict.NOT_YET, seen=found)
