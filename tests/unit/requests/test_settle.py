"""A write that settles its own doubt: every fate, and every look."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from azguard.errors import AzguardError, Changed, Forbidden, Locked, OutcomeUnknown, Unavailable
from azguard.requests import commits, settle, trace
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import Lineage, new_op, verdict_from_lineage
from azguard.requests.settle import NOTHING_THERE, Finding, Settled, WriteRequest, send_until_settled
from azguard.wire import client
from azguard.wire.failures import Broken, BrokenAnswer, NotConnected, Refusal, Stage
from azguard.wire.operations.blobs import BLOB_LEASE_ACQUIRE, BLOB_PUT_BLOCK_BLOB, BLOB_UNDELETE
from azguard.wire.rows import Operation, Settlement
from tests.support.cases import cases
from tests.support.fake_resource import TARGET, Clock

OP, OTHER = new_op(b"a" * 12), new_op(b"b" * 12)
LOST = BrokenAnswer(Broken.TIMED_OUT)
NOT_SENT = NotConnected(Stage.HOST, ConnectionRefusedError("Connection refused"))
CONDITION = Refusal(412, "ConditionNotMet")
UNHEARD_OF = Refusal(412, "GeoLocationConditionNotAllowed")
BUSY = Refusal(503, "ServerBusy")
COMMITTED, NEVER, NOT_YET, UNKNOWN = (Finding(verdict, "found") for verdict in Verdict)


@cases(
    ("lineage", "parent", "current", "verdict"),
    (Lineage().after(OP, '"1"'), '"1"', '"2"', Verdict.COMMITTED),
    (Lineage().after(OP, '"1"').after(OTHER, '"2"'), '"1"', '"3"', Verdict.COMMITTED),
    (Lineage().after(OTHER, '"1"'), '"1"', '"2"', Verdict.NEVER),
    (Lineage().after(OTHER, '"0"'), '"1"', '"1"', Verdict.NOT_YET),
    (Lineage(), '"1"', '"2"', Verdict.UNKNOWN),
    (Lineage(), '"1"', None, Verdict.UNKNOWN),
    (Lineage(), None, None, Verdict.NOT_YET),
    (Lineage().after(OTHER, None), None, '"1"', Verdict.UNKNOWN),
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

    def tell(self, operation: Operation = BLOB_PUT_BLOCK_BLOB, **settings: Any) -> object:
        """Return what the write ends with: what was settled, or the kind of error."""
        request = WriteRequest(
            operation=operation,
            target=TARGET,
            send=lambda: _next(self.sends),
            look=lambda patience: _next(self.looks),
            expected_etag='"1"',
            **settings,
        )
        try:
            return send_until_settled(request, self.clock.deadline(10))
        except AzguardError as error:
            return error.kind


def _next(steps: list[Any]) -> Any:
    step = steps.pop(0) if len(steps) > 1 else steps[0]
    if isinstance(step, BaseException):
        raise step
    return step


@cases(
    ("sends", "looks", "end"),
    (["done"], [], Settled("done", 1, 0)),
    ([CONDITION], [NEVER], "changed"),
    ([CONDITION], [UNKNOWN], "changed"),
    ([CONDITION], [NOT_YET], "changed"),
    ([UNHEARD_OF], [Finding(Verdict.NOT_YET, seen=SimpleNamespace(etag="1"))], "bad_request"),
    ([UNHEARD_OF], [Finding(Verdict.UNKNOWN, seen=SimpleNamespace(etag="2"))], "changed"),
    ([UNHEARD_OF], [UNKNOWN], "bad_request"),
    ([CONDITION], [COMMITTED], Settled("found", 1, 0)),  # by an earlier copy of the request
    ([CONDITION], [Finding(Verdict.UNKNOWN, may_be_ours=True)], "unknown"),
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
)
def test_a_write_ends_with_what_is_proved(sends: list[Any], looks: list[Any], end: object) -> None:
    assert Story(sends, looks).tell() == end


def test_a_write_that_is_not_safe_to_send_again_is_not() -> None:
    sends = [LOST, "done"]
    assert (Story(sends, [NOT_YET]).tell(resend=False), sends) == ("unknown", ["done"])


@cases("look", UNKNOWN, Unavailable("no"))
def test_a_write_of_which_a_look_tells_nothing_is_not_sent_again(look: Any) -> None:
    sends = [LOST, "done"]
    assert (Story(sends, [look]).tell(), sends) == ("unknown", ["done"])


@cases(
    ("sends", "looks", "end"),
    ([LOST, "done"], [UNKNOWN], Settled("done", 2, 1)),
    ([LOST, CONDITION], [UNKNOWN], "unknown"),
    ([LOST], [UNKNOWN], "unknown"),
    ([KeyboardInterrupt()], [UNKNOWN], "unknown"),
)
def test_what_may_be_repeated_is_sent_again_without_a_look(sends: list[Any], looks: list[Any], end: object) -> None:
    assert [Story(sends[:], looks).tell(row) for row in (BLOB_LEASE_ACQUIRE, BLOB_UNDELETE)] == [end, end]


@cases(
    ("settle", "end"),
    (Settlement.LINEAGE, Settled("found", 1, 1)),
    (Settlement.NOTHING, "unknown"),
    (Settlement.REPEATED, Settled("done", 2, 1)),
    (Settlement.RECEIPT, Settled("done", 2, 1)),
)
def test_a_look_counts_only_where_the_row_says_that_it_tells(settle: Settlement, end: object) -> None:
    row = BLOB_PUT_BLOCK_BLOB._replace(settle=settle)
    assert Story([LOST, "done"], [COMMITTED]).tell(row) == end


@cases(
    ("sends", "looks", "judged", "end"),
    ([LOST, CONDITION], [NOT_YET], COMMITTED, Settled("found", 2, 1)),
    ([LOST, CONDITION], [NOT_YET], UNKNOWN, "unknown"),
    ([LOST, Refusal(409, "LeaseAlreadyPresent")], [NOT_YET], NEVER, "locked"),
    ([LOST, CONDITION], [NOT_YET, COMMITTED], None, Settled("found", 2, 1)),
    ([LOST], [COMMITTED], None, Settled("found", 1, 1)),
    ([LOST, "done"], [NOT_YET], None, Settled("done", 2, 1)),
    ([CONDITION], [NEVER], None, "changed"),
)
def test_a_refusal_is_judged_only_after_a_doubt_that_the_look_leaves_open(
    sends: list[Any], looks: list[Any], judged: Finding[str] | None, end: object
) -> None:
    def judge(refusal: AzguardError, found: Finding[str]) -> Finding[str]:
        assert judged is not None
        return judged

    assert Story(sends, looks).tell(judge_refusal=judge) == end


def test_what_a_refusal_is_judged_by_is_its_meaning_and_what_the_look_found() -> None:
    judged: list[object] = []

    def judge(refusal: AzguardError, found: Finding[str]) -> Finding[str]:
        judged.append((refusal.kind, refusal.expected_etag, found))
        return UNKNOWN

    Story([LOST, CONDITION], [NOT_YET]).tell(judge_refusal=judge)
    assert judged == [("changed", '"1"', NOT_YET)]


@cases(
    ("sends", "looks", "detail"),
    ([LOST], [UNKNOWN], "no answer from http://127.0.0.1:10000/devstoreaccount1: timed out"),
    ([KeyboardInterrupt()], [NOT_YET], "interrupted"),
    (
        [Refusal(404, "BlobNotFound")],
        [Finding(Verdict.UNKNOWN, seen=NOTHING_THERE, may_be_ours=True)],
        "it was there before, and is gone now: deleted by this command, or by another writer",
    ),
)
def test_an_unknown_outcome_has_the_words_of_the_request(sends: list[Any], looks: list[Any], detail: str) -> None:
    words = OutcomeUnknown("it cannot be known", "blob:site/a", reason="mine")
    request = WriteRequest(
        BLOB_PUT_BLOCK_BLOB, TARGET, send=lambda: _next(sends), look=lambda patience: _next(looks), unknown=words
    )
    with pytest.raises(OutcomeUnknown) as caught:
        send_until_settled(request, Clock().deadline())
    assert (caught.value.as_json(), caught.value.detail) == (words.as_json(), (detail,))


@cases(("sends", "looks"), ([KeyboardInterrupt()], [COMMITTED]), ([LOST], [KeyboardInterrupt()]))
def test_an_interruption_of_what_its_caller_undoes_passes_through(sends: list[Any], looks: list[Any]) -> None:
    with pytest.raises(KeyboardInterrupt):
        Story(sends, looks).tell(is_undone_by_caller=True)


@cases(
    ("sends", "looks", "end"),
    ([LOST], [NOT_YET, COMMITTED], Settled("found", 1, 1)),
    ([LOST], [NOT_YET], "unknown"),
    ([NOT_SENT], [], None),
)
def test_an_interruption_between_two_sends_ends_as_the_first(sends: list[Any], looks: list[Any], end: object) -> None:
    story = Story(sends, looks)
    story.clock.sleep = interrupted  # type: ignore[method-assign, assignment]  # of this case alone
    try:
        assert story.tell() == end
    except KeyboardInterrupt:
        assert end is None


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_an_interruption_of_a_step_is_raised_once_that_is_settled() -> None:
    ended: list[object] = []
    with pytest.raises(KeyboardInterrupt), commits.step():
        ended.append(Story([KeyboardInterrupt()], [COMMITTED]).tell())
    with commits.suppress():
        ended.append(Story([KeyboardInterrupt()], [COMMITTED]).tell())
    assert ended == [Settled("found", 1, 0)] * 2


def test_only_the_last_of_many_pieces_is_announced_and_heeds_no_interruption_that_was_put_off() -> None:
    events: list[str] = []

    def write(piece: str) -> None:
        events.append(piece)
        commits.announce()
        if piece == "c":
            commits.put_off(KeyboardInterrupt())

    with commits.listen(lambda: events.append("committed")):
        for pieces in ("", "a", "abc"):
            commits.step_through(pieces, write)
        with pytest.raises(KeyboardInterrupt):
            commits.step_through("bcd", write)
    commits.announce()
    assert events == ["a", "committed", "a", "b", "c", "committed", "b", "c"]


def test_an_interruption_of_the_announcement_announces_again() -> None:
    calls: list[None] = []

    def listener() -> None:
        calls.append(None)
        if len(calls) == 1:
            raise KeyboardInterrupt

    with commits.listen(listener):
        commits.announce()
    assert len(calls) == 2


def test_what_a_lease_that_has_ended_hides_is_looked_for_without_it() -> None:
    asked: list[str | None] = []

    def look(lease_id: str | None) -> str:
        asked.append(lease_id)
        if lease_id == "lost" or len(asked) > 4:
            raise Locked("not held")
        return "found"

    found = [commits.look_under(lease_id, look) for lease_id in ("held", "lost", None)]
    assert (found, asked) == ([("found", True), ("found", False), ("found", False)], ["held", "lost", None, None])
    with pytest.raises(Locked):
        commits.look_under(None, look)
    assert len(asked) == 5


def test_a_refusal_is_looked_after_whatever_the_row_says_of_a_doubt() -> None:
    row = BLOB_PUT_BLOCK_BLOB._replace(settle=Settlement.NOTHING)
    assert Story([CONDITION], [COMMITTED]).tell(row) == Settled("found", 1, 0)


@cases(
    ("found", "end"),
    (COMMITTED, Settled("found", 1, 0)),
    (NOT_YET, "interrupted"),
    (Finding(Verdict.UNKNOWN, may_be_ours=True), "unknown"),
)
def test_ctrl_c_after_a_refusal_asks_what_a_refusal_asks(
    found: Finding[str], end: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settle, "is_perhaps_ours", interrupted)
    try:
        ended = Story([CONDITION], [UNKNOWN]).tell(look_after_refusal=lambda patience: found)
    except KeyboardInterrupt:
        ended = "interrupted"
    assert ended == end


def test_ctrl_c_over_a_write_that_can_never_land_is_just_that() -> None:
    with pytest.raises(KeyboardInterrupt):
        Story([KeyboardInterrupt()], [NEVER]).tell()


@cases(
    ("sends", "looks", "judged", "outcome"),
    (["done"], [], None, "committed"),
    ([LOST], [COMMITTED], None, "committed"),
    ([LOST], [NEVER], None, "not applied"),
    ([LOST, CONDITION], [NOT_YET], NEVER, "not applied"),
    ([CONDITION], [NEVER], None, "not applied"),
    ([NOT_SENT], [], None, "not applied"),
    ([LOST], [NOT_YET], None, "unknown"),
    ([KeyboardInterrupt()], [UNKNOWN], None, "unknown"),
)
def test_the_trace_says_of_each_end_what_is_known(
    sends: list[Any], looks: list[Any], judged: Finding[str] | None, outcome: str, tmp_path: Path
) -> None:
    judge = None if judged is None else lambda refusal, found: judged
    with trace.into(str(tmp_path / "trace"), "test", pytest.fail):
        Story(sends, looks).tell(judge_refusal=judge)
    lines = (tmp_path / "trace").read_text().splitlines()
    assert [(step["step"], step["outcome"]) for step in map(json.loads, lines[-1:])] == [("settled", outcome)]


@cases(("pause", "ends"), (0.0, 9.8), (3.0, 9.0), (5.0, 5.0), (20.0, 0.0))
def test_a_write_is_sent_again_after_a_pause_that_ends_before_the_deadline(
    pause: float, ends: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "find_pause_seconds", lambda endpoint: pause)
    story = Story([NOT_SENT], [])
    assert story.tell() == "unavailable"
    assert story.clock() - 1000.0 == pytest.approx(ends)


def test_asking_is_worth_some_seconds_even_after_the_deadline() -> None:
    clock, left = Clock(), []

    def lost() -> None:
        clock.sleep(10)
        raise LOST

    def look(patience: Deadline) -> Finding[None]:
        left.append(patience.remaining)
        return Finding(Verdict.UNKNOWN)

    with pytest.raises(OutcomeUnknown):
        send_until_settled(WriteRequest(BLOB_PUT_BLOCK_BLOB, TARGET, send=lost, look=look), clock.deadline(10))
    assert left == [5.0]


def test_a_write_whose_place_is_taken_says_which_version_it_was_for() -> None:
    request = WriteRequest(BLOB_PUT_BLOCK_BLOB, TARGET, send=_lost, look=lambda patience: NEVER, expected_etag='"1"')
    with pytest.raises(Changed) as caught:
        send_until_settled(request, Clock().deadline())
    assert (caught.value.expected_etag, caught.value.address) == ('"1"', "blob:site/config.json")


def _lost() -> str:
    raise LOST
