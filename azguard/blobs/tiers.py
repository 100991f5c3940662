"""The access tier of a blob. A change of it moves no ETag, and no condition on an ETag is honoured: a lease keeps one.

The content of a snapshot or a version never changes, so that its address says which content is meant.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from http import HTTPStatus
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.target import Target
from azguard.blobs import properties
from azguard.conditions.etags import quote
from azguard.conditions.resolve import Conditions
from azguard.errors import BadRequest, Changed, NotFound
from azguard.leases import guard
from azguard.leases.recorded import LeaseRecords
from azguard.requests.calls import write_timeouts
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.settle import NOTHING_THERE, Finding, WriteRequest, send_until_settled

TIERS = ("Hot", "Cool", "Cold", "Archive", *(f"P{size}" for size in (4, 6, 10, 15, 20, 30, 40, 50, 60, 70, 80)))
PRIORITIES = ("Standard", "High")


@dataclass(frozen=True)
class TierSet:
    """A change of the access tier."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.ETAG)

    address: str
    #: The blob's, which a change of the tier does not move.
    etag: str
    last_modified: datetime
    tier: str
    #: Whether the blob is on its way out of the archive, which takes hours; until then it cannot be read.
    rehydrating: bool
    guard: str
    attempts: int
    conflicts: int = 0
    outcome: str = "committed"


@dataclass(frozen=True)
class TierChange:
    """A change to make."""

    target: Target
    tier: str
    #: How fast it is to come out of the archive; None is the service's choice.
    priority: str | None
    conditions: Conditions
    deadline: Deadline

    def make(self, records: LeaseRecords) -> TierSet:
        """Change the tier.

        Raises:
            Changed: it is not the version that the conditions name.
            Locked: it is leased, and the lease id is missing or wrong.
            OutcomeUnknown: the answer was lost. A tier does not tell who chose it; only a lease does.
        Source: https://learn.microsoft.com/rest/api/storageservices/set-blob-tier
        """
        with properties.explain_gone(self.target, self.conditions.expected_etag):
            try:
                return self._make(records)
            except Changed as error:
                if error.current_etag is not None:
                    raise
                raise properties.describe_conflict(error, self.target, self.deadline) from error

    def _make(self, records: LeaseRecords) -> TierSet:
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
        if under.expected_etag not in (None, quote(before.etag)):
            raise Changed(
                f"{self.target} changed since you read it",
                address=str(self.target.address),
                expected_etag=under.expected_etag,
                current_etag=quote(before.etag),
            )
        request = WriteRequest(
            target=self.target,
            send=lambda: self._send(under, deadline),
            look=lambda patience: self._find_outcome(under, patience),
            look_after_refusal=lambda patience: self._find_first_copy(before, under, patience),
            # Under the caller's lease a copy that the network delivers late could undo what the caller writes next.
            resend=is_own,
        )
        settled = send_until_settled(request, deadline)
        return TierSet(
            address=str(self.target.address),
            etag=quote(before.etag),
            last_modified=before.last_modified,
            tier=self.tier,
            rehydrating=settled.answer["rehydrating"],
            guard=under.guard,
            attempts=settled.attempts,
        )

    def _send(self, under: Conditions, deadline: Deadline) -> Mapping[str, Any]:
        from azure.storage.blob import RehydratePriority

        answers: list[Any] = []  # The SDK returns nothing.
        self.target.account.blob(self.target.address).set_standard_blob_tier(
            self.tier,
            rehydrate_priority=None if self.priority is None else RehydratePriority(self.priority),
            headers=under.request_headers,
            raw_response_hook=answers.append,
            **write_timeouts(deadline),
        )
        return {"rehydrating": answers[-1].http_response.status_code == HTTPStatus.ACCEPTED}

    def _find_outcome(self, under: Conditions, patience: Deadline) -> Finding[Any]:
        try:
            found, is_held = properties.fetch_whatever_lease(self.target, under.lease_id, patience)
        except NotFound:
            return Finding(Verdict.UNKNOWN, seen=NOTHING_THERE)
        if not is_held:
            return Finding(Verdict.UNKNOWN, seen=found, same=self._is_reached(found))
        if not self._is_reached(found):
            return Finding(Verdict.NOT_YET, seen=found)
        return Finding(Verdict.COMMITTED, {"rehydrating": bool(found.archive_status)}, seen=found)

    def _find_first_copy(self, before: Any, under: Conditions, patience: Deadline) -> Finding[Any]:
        # A tier that was there before the request proves nothing.
        if self._is_reached(before):
            return Finding(Verdict.NEVER)
        return self._find_outcome(under, patience)

    def _is_reached(self, found: Any) -> bool:
        pending = f"rehydrate-pending-to-{self.tier.lower()}"
        return properties.find_chosen_tier(found) == self.tier or found.archive_status == pending
