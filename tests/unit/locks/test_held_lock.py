"""What the answer to a renewal says of a lock, and whether a lock was released by its id, or lost."""

from dataclasses import replace
from datetime import UTC, datetime

from azguard.leases.owners import FENCE, OWNER, Owner
from azguard.leases.state import LeaseState
from azguard.locks import held_lock
from azguard.locks.held_lock import _is_definite
from azguard.wire.failures import Broken, BrokenAnswer, Refusal
from tests.support.cases import cases

FREE = LeaseState("blob:a/b", "available", "unlocked", None, "0x1", datetime.now(UTC), {FENCE: "1"})
OWNER_RECORD = Owner("me", "here", 1, "sh", None).tie_to_lease("id", 60)
HELD, ENDED = ({FENCE: "1", OWNER: each.as_metadata()} for each in (OWNER_RECORD, OWNER_RECORD.end()))


@cases(
    ("found", "version", "expected"),
    (FREE, "0x1", True),
    (FREE, None, True),
    (replace(FREE, state="broken"), "0x1", False),
    (replace(FREE, metadata={FENCE: "2"}), None, False),
    # It was written without the lock, or deleted, and made anew by the next holder, whose fence is the first too.
    (replace(FREE, etag="0x2"), "0x1", False),
    # Only a release by azguard leaves a record that speaks for no lease.
    (replace(FREE, etag="0x2", metadata=ENDED), "0x1", True),
    (replace(FREE, etag="0x2", metadata=HELD), "0x1", False),
)
def test_only_what_the_holder_left_itself_was_released(found: LeaseState, version: str | None, expected: bool) -> None:
    assert held_lock.was_released(found, 1, version) is expected


@cases(
    ("answer", "is_lost"),
    (Refusal(409, "LeaseIdMismatchWithLeaseOperation"), True),
    (Refusal(409, "LeaseIsBrokenAndCannotBeRenewed"), True),
    (Refusal(412, "LeaseLost"), True),
    (Refusal(404, "BlobNotFound"), True),
    (Refusal(403, "AuthenticationFailed"), False),
    (Refusal(412, "ConditionNotMet"), False),
    (Refusal(503, "ServerBusy"), False),
    (BrokenAnswer(Broken.TIMED_OUT), False),
)
def test_a_lock_is_lost_only_if_the_service_says_that_its_lease_is_not_held(answer: Exception, is_lost: bool) -> None:
    assert _is_definite(answer) is is_lost
