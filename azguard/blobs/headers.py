"""The content headers, the metadata and the tier of a blob, and all writes that replace what is kept together.

Set Blob Metadata replaces all metadata, Set Blob Properties all content headers. They read first what is to stay, and
the write is guarded by the ETag of that very read. Only one condition can be sent: where the caller has another one, a
lease keeps other writers out between the read and the write.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, ClassVar

from azguard import columns
from azguard.accounts.account import Target
from azguard.blobs import refusals
from azguard.errors import BadRequest, Changed, NotFound
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.guards.versions import require_version
from azguard.leases.owners import OF_LOCK
from azguard.requests.calls import write_timeouts
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage, fresh_op, verdict_from_lineage
from azguard.requests.results import MetadataShown, Written
from azguard.requests.settle import NOTHING_THERE, Finding, WriteRequest, send_until_settled
from azguard.resources import parts, properties
from azguard.resources.parts import Rewritten
from azguard.resources.properties import ContentHeaders, has_metadata
from azguard.wire.call import call
from azguard.wire.operations.blobs import BLOB_SET_METADATA, BLOB_SET_PROPERTIES, BLOB_SET_TIER
from azguard.wire.rows import Condition

if TYPE_CHECKING:
    from azguard.leases.recorded import LeaseRecords

TIERS = ("Hot", "Cool", "Cold", "Archive", *(f"P{size}" for size in (4, 6, 10, 15, 20, 30, 40, 50, 60, 70, 80)))


#: Returns the request for the version that was read, under these conditions, whose headers are not in it yet.
Plan = Callable[[Any, Conditions], WriteRequest[Mapping[str, Any]]]


def rewrite(
    target: Target,
    conditions: Conditions,
    open_records: Callable[[], "LeaseRecords"],
    deadline: Deadline,
    plan: Plan,
    *,
    is_proved: bool = False,
) -> Rewritten:
    """Read the properties of a blob and write over the version that was read.

    ``is_proved`` holds a lease meanwhile in any case, which proves whose a write is that leaves no trace.
    """
    with refusals.explain_refusal(target, conditions, deadline):
        if is_proved or (conditions.headers and conditions.expected_etag is None):
            return _rewrite_under_lease(target, conditions, open_records(), deadline, plan)
        return _rewrite_version(target, conditions, deadline, plan)


def _send(
    conditions: Conditions,
    under: Conditions,
    found: Any,
    planned: WriteRequest[Mapping[str, Any]],
    deadline: Deadline,
    refused: int = 0,
) -> Rewritten:
    request = replace(
        planned,
        given={"headers": under.request_headers, **planned.given},
        expected_etag=under.expected_etag,
        # A copy that comes late is refused, by its version or with our own lease. Under the caller's lease it could
        # undo what the caller writes next.
        resend=under.expected_etag is not None or conditions.lease_id is None,
    )
    settled = send_until_settled(request, deadline)
    # Metadata that are not sent stay.
    lineage = request.given.get("metadata", found.metadata).get(KEY)
    made = Rewritten.of(request.target, conditions.guard, settled, found.etag, lineage)
    return replace(made, written=replace(made.written, attempts=settled.attempts + refused, conflicts=refused))


def find_outcome(
    found: Any, target: Target, lease_id: str | None, patience: Deadline, equals: Callable[[Any], bool]
) -> Finding[Any]:
    """Return the finding on a write over the version ``found``, where the write has no place for a lineage.

    ``equals`` says whether a version has the sent settings. Only a lease tells whether our write made the version.
    """
    try:
        current, is_held = properties.fetch_whatever_lease(target, lease_id, patience)
    except NotFound:
        return Finding(Verdict.UNKNOWN, seen=NOTHING_THERE)
    if current.etag == found.etag:
        return Finding(Verdict.NOT_YET, seen=current)
    if Lineage.find(current.metadata).successor(found.etag) is not None:
        return Finding(Verdict.NEVER, seen=current)
    if equals(current) and is_held:
        return Finding(Verdict.COMMITTED, {"etag": current.etag, "last_modified": current.last_modified})
    return Finding(Verdict.UNKNOWN, seen=current, may_be_ours=equals(current))


def _rewrite_version(target: Target, conditions: Conditions, deadline: Deadline, plan: Plan) -> Rewritten:
    """Write over the version that is expected; where none is, over that which is there, until none comes between."""
    refused = 0
    while True:
        found = _read(target, conditions, deadline)
        require_version(target, conditions.expected_etag, found.etag)
        under = _tie(conditions, found.etag)
        try:
            return _send(conditions, under, found, plan(found, under), deadline, refused)
        except Changed as error:
            if conditions.expected_etag is not None:
                raise
            refused += 1
            if deadline.passed:
                raise refusals.to_gave_up(target, refused) from error


def _tie(conditions: Conditions, etag: str) -> Conditions:
    return replace(conditions, headers={Condition.IF_MATCH.header: etag}, expected_etag=etag)


def _rewrite_under_lease(
    target: Target, conditions: Conditions, records: "LeaseRecords", deadline: Deadline, plan: Plan
) -> Rewritten:
    from azguard.leases import guard  # which a write over a version does not need

    with guard.hold(target, conditions.lease_id, records, deadline) as held:
        under = replace(conditions, lease_id=held.lease_id)
        found = _read(target, under, deadline)
        require_version(target, conditions.expected_etag, found.etag)
        under = under if conditions.headers else _tie(under, found.etag)
        return _send(conditions, under, found, plan(found, under), deadline)


def _read(target: Target, conditions: Conditions, deadline: Deadline) -> Any:
    with refusals.explain_gone(target, conditions.expected_etag):
        return properties.fetch(target, Conditions(lease_id=conditions.lease_id), deadline)


def change_headers(
    target: Target,
    headers: ContentHeaders,
    conditions: Conditions,
    open_records: Callable[[], "LeaseRecords"],
    deadline: Deadline,
    *,
    clear_others: bool = False,
) -> Rewritten:
    """Change the content headers that are given; the others stay, or are cleared.

    Raises:
        Changed: it is not the version that the conditions name, or they do not hold.
        OutcomeUnknown: the answer was lost. Nothing in these headers tells whose they are; only a lease does.
    Source: https://learn.microsoft.com/rest/api/storageservices/set-blob-properties
    """

    def plan(found: Any, under: Conditions) -> WriteRequest[Mapping[str, Any]]:
        wanted = headers if clear_others else headers.over(found)
        return WriteRequest(
            operation=BLOB_SET_PROPERTIES,
            target=target,
            given=wanted.given,
            look=lambda patience: find_outcome(
                found, target, under.lease_id, patience, lambda current: ContentHeaders.of(current) == wanted
            ),
        )

    return rewrite(target, conditions, open_records, deadline, plan)


@frozen(kw_only=True)
class TierSet(Written):
    """A change of the access tier; the ETag is the blob's, which the change does not move."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.ETAG)

    tier: str
    #: Whether the blob is on its way out of the archive, which takes hours; until then it cannot be read.
    rehydrating: bool


@frozen
class TierChange:
    """A change to make."""

    target: Target
    tier: str
    #: How fast it is to come out of the archive; None is the service's choice.
    priority: str | None
    conditions: Conditions
    deadline: Deadline

    def make(self, records: "LeaseRecords") -> TierSet:
        """Change the tier.

        Raises:
            Changed: it is not the version that the conditions name.
            Locked: it is leased, and the lease id is missing or wrong.
            OutcomeUnknown: the answer was lost. A tier does not tell who chose it; only a lease does.
        Source: https://learn.microsoft.com/rest/api/storageservices/set-blob-tier
        """
        with (
            refusals.explain_gone(self.target, self.conditions.expected_etag),
            refusals.explain_refusal(self.target, self.conditions, self.deadline),
        ):
            return self._make(records)

    def _make(self, records: "LeaseRecords") -> TierSet:
        from azguard.leases import guard

        if self.conditions.expected_etag is None or self.target.address.snapshot or self.target.address.version:
            return self._write(self.conditions, self.deadline, is_own=False)
        try:
            with guard.hold(self.target, self.conditions.lease_id, records, self.deadline) as held:
                under = replace(self.conditions, lease_id=held.lease_id)
                return self._write(under, held.patience, is_own=held.is_own)
        except BadRequest as error:
            if error.service_code != "BlobArchived":
                raise
            raise error.but(
                message=f"{self.target} is archived and could not be leased, so that its version cannot be kept",
                reason="archived_not_leasable",
            ) from error

    def _write(self, under: Conditions, deadline: Deadline, *, is_own: bool) -> TierSet:
        """Compare, then write; ``is_own`` says that the lease was acquired for this write alone."""
        before = properties.fetch(self.target, Conditions(lease_id=under.lease_id), deadline)
        require_version(self.target, under.expected_etag, before.etag)
        request = WriteRequest(
            operation=BLOB_SET_TIER,
            target=self.target,
            send=lambda: self._send(under, deadline),
            look=lambda patience: self._find_outcome(under, patience),
            # A tier that was there before the request proves nothing.
            look_after_refusal=(lambda _: Finding(Verdict.NEVER)) if self._is_reached(before) else None,
            # Under the caller's lease a copy that the network delivers late could undo what the caller writes next.
            resend=is_own,
        )
        settled = send_until_settled(request, deadline)
        return TierSet(
            address=str(self.target.address),
            etag=before.etag,
            last_modified=before.last_modified,
            tier=self.tier,
            rehydrating=settled.answer["rehydrating"],
            guard=under.guard,
            attempts=settled.attempts,
        )

    def _send(self, under: Conditions, deadline: Deadline) -> Mapping[str, Any]:
        answer = call(
            BLOB_SET_TIER,
            self.target,
            write_timeouts(deadline),
            headers=under.request_headers,
            access_tier=self.tier,
            rehydrate_priority=self.priority,
        )
        return {"rehydrating": answer.status == HTTPStatus.ACCEPTED}

    def _find_outcome(self, under: Conditions, patience: Deadline) -> Finding[Any]:
        try:
            found, is_held = properties.fetch_whatever_lease(self.target, under.lease_id, patience)
        except NotFound:
            return Finding(Verdict.UNKNOWN, seen=NOTHING_THERE)
        if not is_held:
            return Finding(Verdict.UNKNOWN, seen=found, may_be_ours=self._is_reached(found))
        if not self._is_reached(found):
            return Finding(Verdict.NOT_YET, seen=found)
        return Finding(Verdict.COMMITTED, {"rehydrating": bool(found.archive_status)}, seen=found)

    def _is_reached(self, found: Any) -> bool:
        pending = f"rehydrate-pending-to-{self.tier.lower()}"
        return refusals.find_chosen_tier(found) == self.tier or found.archive_status == pending


def get_metadata(target: Target, conditions: Conditions, deadline: Deadline) -> tuple[MetadataShown, str | None]:
    """Return the metadata of a blob, a snapshot or a version, and its lineage.

    Raises:
        NotModified: a conditional read found nothing newer.
    Source: https://learn.microsoft.com/rest/api/storageservices/get-blob-properties
    """
    with refusals.explain_stale_read(target, conditions, deadline):
        return parts.get_metadata(target, conditions, deadline)


def replace_metadata(
    target: Target,
    metadata: Mapping[str, str],
    conditions: Conditions,
    open_records: Callable[[], "LeaseRecords"],
    deadline: Deadline,
) -> Rewritten:
    """Replace the metadata of a blob.

    Raises:
        Changed: it is not the version that the conditions name, or they do not hold.
        UsageError: they are too large together with azguard's own.
        OutcomeUnknown: the answer was lost, and a writer without a lineage came after it.
    Source: https://learn.microsoft.com/rest/api/storageservices/set-blob-metadata
    """

    def plan(found: Any, _under: Conditions) -> WriteRequest[Mapping[str, Any]]:
        op = fresh_op()
        stamped = parts.stamp(metadata, found.metadata, op, found.etag, OF_LOCK)
        return WriteRequest(
            operation=BLOB_SET_METADATA,
            target=target,
            given={"metadata": stamped},
            look=lambda patience: _find_write(target, op, found, stamped, patience),
            op=op,
        )

    return rewrite(target, conditions, open_records, deadline, plan)


def _find_write(target: Target, op: str, before: Any, stamped: Mapping[str, str], patience: Deadline) -> Finding[Any]:
    found = properties.find(target, patience)
    if found is None:
        return Finding(Verdict.UNKNOWN, seen=NOTHING_THERE)
    history = Lineage.find(found.metadata)
    verdict = verdict_from_lineage(history, op, before.etag, found.etag)
    # Another tool may have written content, headers or metadata since, and have kept the lineage.
    is_same = (found.size, ContentHeaders.of(found)) == (before.size, ContentHeaders.of(before))
    is_ours = is_same and has_metadata(found, stamped)
    answer = {"etag": found.etag, "last_modified": found.last_modified} if is_ours else {"etag": None}
    return Finding(verdict, answer if verdict is Verdict.COMMITTED else None, seen=found)
