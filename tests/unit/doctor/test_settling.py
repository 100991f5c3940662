"""The doctor's judgement of what azguard says about a damaged request."""

from collections.abc import Callable

import pytest

from azguard.accounts.account import Account, Auth
from azguard.doctor import run, settling
from azguard.doctor.plays import Damage, Tap
from azguard.doctor.settling import Act, SettlingWrite
from azguard.doctor.stage import Check, CheckFinding, CheckStage, CheckVerdict, holds
from azguard.errors import AzguardError, OutcomeUnknown, Unavailable
from azguard.files.guarding import Guarding
from azguard.requests import commits
from azguard.requests.deadline import Deadline
from azguard.wire.client import Limits
from azguard.wire.connections import Reply
from azguard.wire.failures import BrokenAnswer
from tests.support.answering_client import AnsweringClient, Asked, reply
from tests.support.cases import cases
from tests.support.no_records import NoRecords


class Done(AnsweringClient):
    """Does all that it is asked for."""

    def answer(self, asked: Asked) -> Reply:
        return reply(201, {"x-ms-client-request-id": "1"})


class Stage(CheckStage):
    """A stage with a tap alone."""

    def __init__(self) -> None:
        self.tap = Tap(Done())


def put(stage: Stage) -> None:
    stage.tap.send("PUT", "http://h/a/c/b", {"x-ms-blob-type": "BlockBlob"}, b"", Limits())


@cases(
    ("times", "error", "verdict"),
    (1, None, CheckVerdict.HOLDS),
    (0, None, CheckVerdict.DIFFERS),
    (2, None, CheckVerdict.DIFFERS),
    (1, OutcomeUnknown("?"), CheckVerdict.HOLDS),
    (1, Unavailable("not sent"), CheckVerdict.DIFFERS),
    (0, Unavailable("not sent"), CheckVerdict.HOLDS),
)
def test_what_is_said_is_compared_with_what_was_done(
    times: int, error: AzguardError | None, verdict: CheckVerdict
) -> None:
    stage = Stage()

    def do() -> None:
        for number in range(times):
            try:
                put(stage)
            except BrokenAnswer:
                assert number == 0
        if error is not None:
            raise error

    write = SettlingWrite("a put", "blob.put_block_blob", lambda _: Act(do))
    assert settling.try_one(write, Damage.LOST, stage).verdict is verdict


def test_a_request_that_is_sent_twice_is_done_twice_where_nothing_excludes_it() -> None:
    stage = Stage()
    write = SettlingWrite("a put", "blob.put_block_blob", lambda _: Act(lambda: put(stage)))
    found = settling.try_one(write, Damage.DOUBLED, stage)
    assert found == (CheckVerdict.DIFFERS, "said to be committed; by the answers of the service done twice")


def _put_off(_: CheckStage) -> CheckFinding:
    commits.put_off(KeyboardInterrupt())
    return holds()


def _leave_unknown(_: CheckStage) -> CheckFinding:
    raise OutcomeUnknown("?") from KeyboardInterrupt()


@cases("check", _put_off, _leave_unknown)
def test_a_signal_while_a_check_settles_a_write_ends_the_run(check: Callable[[CheckStage], CheckFinding]) -> None:
    account, deadline = Account("a", {}, Auth.KEY), Deadline(5)
    checks = [Check("machine", "it", check), Check("machine", "the next", lambda _: pytest.fail("it is tried"))]
    with pytest.raises(KeyboardInterrupt):
        run.diagnose(run.DoctorPlan(services=()), account, checks, deadline, Guarding(NoRecords(), None), list)


def test_a_signal_that_leaves_a_damaged_write_unknown_is_raised() -> None:
    def do() -> None:
        raise OutcomeUnknown("?") from KeyboardInterrupt()

    write = SettlingWrite("a put", "blob.put_block_blob", lambda _: Act(do))
    with pytest.raises(KeyboardInterrupt):
        settling.try_one(write, Damage.LOST, Stage())
