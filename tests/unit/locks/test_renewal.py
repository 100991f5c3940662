"""What the answer to a renewal says of a lock."""

from azguard.locks.held_lock import _is_definite
from azguard.wire.failures import Broken, BrokenAnswer
from tests.support.cases import cases
from tests.support.fake_resource import Refusal


@cases(
    ("answer", "is_lost"),
    [
        (Refusal(409, "LeaseIdMismatchWithLeaseOperation"), True),
        (Refusal(409, "LeaseIsBrokenAndCannotBeRenewed"), True),
        (Refusal(412, "LeaseLost"), True),
        (Refusal(404, "BlobNotFound"), True),
        (Refusal(403, "AuthenticationFailed"), False),
        (Refusal(412, "ConditionNotMet"), False),
        (Refusal(503, "ServerBusy"), False),
        (BrokenAnswer(Broken.TIMED_OUT), False),
    ],
)
def test_a_lock_is_lost_only_if_the_service_says_that_its_lease_is_not_held(answer: Exception, is_lost: bool) -> None:
    assert _is_definite(answer) is is_lost
