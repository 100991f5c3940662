"""A write that settles its own doubt: every fate, and every look."""

from typing import Any

import pytest
from azure.core.exceptions import ServiceRequestError, ServiceResponseError
from urllib3.exceptions import NewConnectionError

from azguard.errors import AzguardError, Changed, Forbidden, OutcomeUnknown, Unavailable
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import Lineage, new_op
from azguard.requests.settle import Finding, Settled, Verdict, send_until_settled, verdict_from_lineage
from tests.support.fake_resource import TARGET, Clock, Refusal

OP, OTHER = new_op(b"a" * 12), new_op(b"b" * 12)
LOST = ServiceResponseError("no answer")
NOT_SENT = ServiceRequestError("refused", error=NewConnectionError(None, "refused"))  # type: ignore[arg-type]
CONDITION = Refusal(412, "ConditionNotMet")
BUSY = Refusal(503, "ServerBusy")
COMMITTED, NEVER, NOT_YET, UNKNOWN = (Finding(verdict, "found") for verdict in Verdict)


@pytest.mark.parametrize(
    ("lineage", "parent", "current", "verdict"),
    [
        (Lineage().after(OP, '"1"'), '"1"', '"2"', Verdict.COMMITTED),
        (Lineage().after(OP, '"1"').after(OTHER, '"2"'), '"1"', '"3"', Verdict.COMMITTED),
        (Lineage().after(OTHER, '"1"'), '"1"', '"2"', Verdict.NEVER),
        (Lineage().after(OTHER, '"0"'), '"1"', '"1"', Verdict.NOT_YET),
        (Lineage(), '"1"', '"2"', Verdict.UNKNOWN),
        (Lineage(), '"1"', None, Verdict.UNKNOWN),
        (Lineage(), None, None, Verdict.NOT_YET),
        (Lineage().after(OTHER, None), None, '"1"', Verdict.UNKNOWN),
    ],
)
def test_a_look_at_the_lineage_says_no_more_than_it_proves(
    lineage: Lineage, parent: str | None, current: str | None, verdict: Verdict
) -> None:
    assert verdict_from_lineage(lineage, OP, parent, current) is verdict


class Story:
    """Transmissions and looks in order; each is an answer, or an exception to raise."""

    def __init__(self, sends: list[Any], looks: list[Any]) -> None:
        self.sends, self.looks = sends, looks
        self.clock = Clock()

    def tell(self, *, resend: bool = True, seconds: float = 10.0) -> object:
        """Return what the write ends with: what was settled, or the kind of error."""
        deadline = Deadline(seconds, self.clock, self.clock.sleep)
        try:
            return send_until_settled(
                lambda: _next(self.sends),
                lambda patience: _next(self.looks),
                TARGET,
                deadline,
                expected_etag='"1"',
                resend=resend,
            )
        except AzguardError as error:
            return error.kind


def _next(steps: list[Any]) -> Any:
    step = steps.pop(0) if len(steps) > 1 else steps[0]
    if isinstance(step, BaseException):
        raise step
    return step


@pytest.mark.parametrize(
    ("sends", "looks", "end"),
    [
        (["done"], [], Settled("done", 1, 0)),
        ([CONDITION], [NEVER], "changed"),
        ([CONDITION], [UNKNOWN], "changed"),
        ([CONDITION], [NOT_YET], "changed"),
        ([CONDITION], [COMMITTED], Settled("found", 1, 0)),  # by an earlier copy of the request
        ([CONDITION], [Finding(Verdict.UNKNOWN, same=True)], "unknown"),
        ([CONDITION], [Unavailable("no")], "unknown"),
        ([CONDITION], [KeyboardInterrupt()], "unknown"),
        ([CONDITION], [Forbidden("no")], "changed"),
        ([Refusal(403, "AuthorizationFailure")], [], "forbidden"),
        ([NOT_SENT, "done"], [], Settled("done", 1, 0)),
        ([NOT_SENT], [], "unavailable"),
        ([LOST], [COMMITTED], Settled("found", 1, 1)),
        ([BUSY], [COMMITTED], Settled("found", 1, 1)),
        ([LOST], [NEVER], "changed"),
        ([LOST], [UNKNOWN], "unknown"),
        ([LOST, "done"], [NOT_YET], Settled("done", 2, 1)),
        ([LOST, CONDITION], [NOT_YET, COMMITTED], Settled("found", 2, 1)),
        ([LOST, CONDITION], [NOT_YET, NEVER], "changed"),
        ([LOST, NOT_SENT], [NOT_YET, COMMITTED], Settled("found", 1, 1)),
        ([LOST], [NOT_YET], "unknown"),
        ([LOST], [Forbidden("no")], "unknown"),
        ([LOST], [KeyboardInterrupt()], "unknown"),
        ([KeyboardInterrupt()], [COMMITTED], Settled("found", 1, 0)),
        ([KeyboardInterrupt()], [NOT_YET], "unknown"),
        ([KeyboardInterrupt()], [KeyboardInterrupt()], "unknown"),
    ],
)
def test_a_write_ends_with_what_is_proved(sends: list[Any], looks: list[Any], end: object) -> None:
    assert Story(sends, looks).tell() == end


def test_a_write_that_is_not_safe_to_send_again_is_not() -> None:
    sends = [LOST, "done"]
    assert (Story(sends, [NOT_YET]).tell(resend=False), sends) == ("unknown", ["done"])


def test_ctrl_c_over_a_write_that_can_never_land_is_just_that() -> None:
    with pytest.raises(KeyboardInterrupt):
        Story([KeyboardInterrupt()], [NEVER]).tell()


def test_asking_is_worth_some_seconds_even_after_the_deadline() -> None:
    clock, left = Clock(), []

    def lost() -> None:
        clock.sleep(10)
        raise LOST

    def look(patience: Deadline) -> Finding[None]:
        left.append(patience.remaining)
        return Finding(Verdict.UNKNOWN)

    with pytest.raises(OutcomeUnknown):
        send_until_settled(lost, look, TARGET, clock.deadline(10))
    assert left == [5.0]


def test_a_write_whose_place_is_taken_says_which_version_it_was_for() -> None:
    with pytest.raises(Changed) as caught:
        send_until_settled(_lost, lambda patience: NEVER, TARGET, Clock().deadline(), expected_etag='"1"')
    assert (caught.value.expected_etag, caught.value.address) == ('"1"', "blob:site/config.json")


def _lost() -> str:
    raise LOST
