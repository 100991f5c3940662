"""What keeps a version of a blob from being changed and deleted: a legal hold, and a policy until a date.

Neither moves the ETag, and the service compares no ETag when they are set. So azguard names the version itself in the
request: the one that has the ETag that is expected. Its content never changes, and a later version is left alone.

A change of them carries no trace of its writer, and comes late without harm only if it protects more than what is there
by then. So after a lost answer azguard looks: what was asked for is there, or it is sent again if it takes no
protection away, or its outcome is unknown.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar, Self

from azguard import columns
from azguard.accounts.account import Target
from azguard.blobs import refusals
from azguard.errors import BadRequest, Changed, Forbidden, NotFound, OutcomeUnknown
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.guards.versions import require_version
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.results import WOULD_CLEAR, Shown, Written
from azguard.requests.settle import NOTHING_THERE, Finding, WriteRequest, send_until_settled
from azguard.resources import properties
from azguard.times import http_date, iso
from azguard.wire.operations.blobs import (
    BLOB_DELETE_IMMUTABILITY_POLICY,
    BLOB_SET_IMMUTABILITY_POLICY,
    BLOB_SET_LEGAL_HOLD,
)
from azguard.wire.rows import Operation

LOCKED, UNLOCKED = "locked", "unlocked"


@frozen
class Retention:
    """What keeps a version."""

    legal_hold: bool
    #: The end of its policy; None where it has none.
    immutable_until: datetime | None
    #: ``unlocked``, or ``locked``: then the policy is never taken away, and its end only moves on.
    policy_mode: str | None

    @classmethod
    def of(cls, found: Any) -> Self:
        """Return that of the properties of a blob."""
        mode = found.immutability_mode
        return cls(bool(found.legal_hold), found.immutability_until, mode.lower() if mode else None)


@frozen(kw_only=True)
class RetentionShown(Retention, Shown):
    """What keeps a blob."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.LEGAL_HOLD, columns.IMMUTABLE_UNTIL, columns.POLICY_MODE)
    FIRST: ClassVar = (*Shown.FIRST, "version_id")

    version_id: str | None


@frozen(kw_only=True)
class RetentionSet(Retention, Written):
    """A change of what keeps a blob; the ETag is the blob's, which the change does not move."""

    COLUMNS: ClassVar = RetentionShown.COLUMNS

    version_id: str | None


def show(target: Target, conditions: Conditions, deadline: Deadline) -> RetentionShown:
    """Return the legal hold and the policy of a blob."""
    found = properties.fetch(target, conditions, deadline)
    return RetentionShown(
        **properties.describe_version(target.address, found),
        version_id=found.version_id,
        **vars(Retention.of(found)),
    )


@frozen(kw_only=True)
class RetentionChange:
    """A change to make; what is None stays."""

    legal_hold: bool | None = None
    #: The end of the policy to set.
    until: datetime | None = None
    #: None keeps the mode that is there.
    mode: str | None = None
    #: Whether to take the policy away.
    clears_policy: bool = False
    #: Whether an earlier end than that which is there is meant.
    shortens: bool = False
    #: Whether a policy is meant of which nothing can be undone.
    is_final: bool = False
    #: Whether only to look what it would do.
    is_tried: bool = False

    def make(self, target: Target, conditions: Conditions, deadline: Deadline) -> RetentionSet:
        """Make it for the version that the conditions name. If all is as it should be, nothing is sent.

        Raises:
            BadRequest: the account keeps no versions, so that none can be named.
            Changed: it is not the version that the conditions name; or the policy would end earlier, or could not be
                undone, and that was not said to be meant.
            Forbidden: the policy is locked.
            OutcomeUnknown: the answer was lost, and what was asked for is not there.
        Source: the pages Set Blob Legal Hold, Set Blob Immutability Policy and Delete Blob Immutability Policy of
            https://learn.microsoft.com/rest/api/storageservices/
        """
        with refusals.explain_gone(target, conditions.expected_etag):
            found = properties.fetch(target, Conditions(), deadline)
        require_version(target, conditions.expected_etag, found.etag)
        before = Retention.of(found)
        self._check(target, before)
        attempts, outcome = 0, "unchanged"
        if (wanted := self._foresee(before)) != before and self.is_tried:
            outcome = WOULD_CLEAR
        elif wanted != before:
            attempts, outcome = self._send(_name_version(target, found, conditions), wanted, conditions, deadline)
        return RetentionSet(
            **properties.describe_version(target.address, found),
            version_id=found.version_id,
            **vars(wanted),
            guard=conditions.guard,
            attempts=attempts,
            outcome=outcome,
        )

    def _check(self, target: Target, before: Retention) -> None:
        address, end = str(target.address), iso(before.immutable_until)
        if before.policy_mode == LOCKED and self._weakens(before):
            raise Forbidden(
                f"{target} is immutable until {end}, by a locked policy: it is neither shortened nor taken away",
                address,
                reason="policy_is_locked",
            )
        if self.until is None:
            return
        if self._weakens(before) and not self.shortens:
            raise Changed(
                f"{target} is immutable until {end}, and would be only until {iso(self.until)}",
                address,
                reason="policy_would_be_shorter",
            )
        if self._foresee(before).policy_mode == LOCKED and not self.is_final:
            raise Changed(
                f"a locked policy cannot be undone: {target} would be immutable until {iso(self.until)} for certain",
                address,
                reason="policy_is_final",
            )

    def _foresee(self, before: Retention) -> Retention:
        if self.legal_hold is not None:
            return replace(before, legal_hold=self.legal_hold)
        if self.clears_policy:
            return replace(before, immutable_until=None, policy_mode=None)
        return replace(before, immutable_until=self.until, policy_mode=self.mode or before.policy_mode or UNLOCKED)

    def _weakens(self, there: Retention) -> bool:
        """Return whether it takes away of the protection that is there."""
        after = self._foresee(there)
        ends_earlier = there.immutable_until is not None and (
            after.immutable_until is None or after.immutable_until < there.immutable_until
        )
        unlocks = there.policy_mode == LOCKED and after.policy_mode != LOCKED
        return ends_earlier or unlocks or (there.legal_hold and not after.legal_hold)

    def _send(self, version: Target, wanted: Retention, conditions: Conditions, deadline: Deadline) -> tuple[int, str]:
        operation, given = self._spell(wanted)
        request = WriteRequest[object](
            operation=operation,
            target=version,
            given={"headers": conditions.request_headers, **given},
            look=lambda patience: self._find_outcome(version, wanted, patience),
            unknown=OutcomeUnknown(
                f"the change of what keeps {version} was sent, and whether it was applied cannot be known",
                str(version.address),
                reason="retention_unknown",
            ),
        )
        return send_until_settled(request, deadline).attempts, "committed"

    def _spell(self, wanted: Retention) -> tuple[Operation, Mapping[str, Any]]:
        if self.legal_hold is not None:
            return BLOB_SET_LEGAL_HOLD, {"legal_hold": "true" if wanted.legal_hold else "false"}
        if wanted.immutable_until is None or wanted.policy_mode is None:
            return BLOB_DELETE_IMMUTABILITY_POLICY, {}
        until, mode = http_date(wanted.immutable_until), wanted.policy_mode.title()
        return BLOB_SET_IMMUTABILITY_POLICY, {"immutability_until": until, "immutability_mode": mode}

    def _find_outcome(self, version: Target, wanted: Retention, patience: Deadline) -> Finding[object]:
        try:
            found = properties.fetch(version, Conditions(), patience)
        except NotFound:
            return Finding(Verdict.UNKNOWN, seen=NOTHING_THERE)
        there = Retention.of(found)
        if self._foresee(there) == there:
            return Finding(Verdict.COMMITTED, seen=found)
        return Finding(Verdict.UNKNOWN if self._weakens(there) else Verdict.NOT_YET, seen=found)


def _name_version(target: Target, found: Any, conditions: Conditions) -> Target:
    """Return the target with the version that was found in its address, unless it names a version or snapshot."""
    if target.address.snapshot or target.address.version:
        return target
    if found.version_id:
        return target._replace(address=replace(target.address, version=found.version_id))
    if conditions.expected_etag is None:
        return target
    raise BadRequest(
        f"the account keeps no versions of {target}, so that the one you have seen cannot be named",
        str(target.address),
        reason="no_version_to_keep",
    )
