"""What the refusal of a delete says of an earlier copy whose answer was lost."""

from datetime import UTC, datetime, timedelta

from azguard.errors import NotFound
from azguard.queues.messages import _judge_delete
from azguard.requests.commits import Verdict
from azguard.wire.failures import Refusal
from tests.support.cases import cases

HIDDEN_UNTIL = datetime(2026, 1, 31, 12, tzinfo=UTC)


@cases(
    ("code", "seconds_before", "verdict"),
    ("MessageNotFound", 5.0, Verdict.COMMITTED),
    # Another reader may have received it: the clocks of the service's machines differ.
    ("MessageNotFound", 4.9, Verdict.UNKNOWN),
    ("MessageNotFound", None, Verdict.UNKNOWN),
    ("PopReceiptMismatch", 60.0, Verdict.NEVER),
    ("QueueNotFound", 60.0, Verdict.UNKNOWN),
)
def test_a_message_is_gone_by_our_delete_only_while_no_other_could_receive_it(
    code: str, seconds_before: float | None, verdict: Verdict
) -> None:
    now = None if seconds_before is None else HIDDEN_UNTIL - timedelta(seconds=seconds_before)
    refusal = NotFound("refused", service_code=code)
    refusal.__cause__ = Refusal(404, code, "" if now is None else f"Time:{now:%Y-%m-%dT%H:%M:%S.%fZ}")
    assert _judge_delete(refusal, HIDDEN_UNTIL) is verdict
    assert _judge_delete(refusal, None) is (Verdict.NEVER if verdict is Verdict.NEVER else Verdict.UNKNOWN)
