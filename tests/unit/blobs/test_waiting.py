"""Waiting for a blob: one small request a look, by the answers that the live service gives."""

import pytest

from azguard.address import Kind
from azguard.blobs.waiting import BlobWaited, Until, Waiting, wait
from azguard.errors import Forbidden, GaveUp, NotFound, Unavailable
from azguard.guards.resolve import Conditions
from tests.support.cases import cases
from tests.support.fake_resource import Clock
from tests.support.lease_script import ETAG, Answer, Scripted, now_is, scripted

THERE = now_is("available")
GONE: Answer = (404, "BlobNotFound", {})
NOWHERE: Answer = (404, "ContainerNotFound", {})
SAME: Answer = (304, "ConditionNotMet", {})
BUSY: Answer = (503, "ServerBusy", {})
NEWER = now_is("available", etag='"0x2"')
PAST = Conditions({"If-None-Match": '"0x1"'})


def waited(until: Until, *answers: Answer, seconds: float = 60.0) -> tuple[BlobWaited, Scripted, list[str], Clock]:
    """Wait with the longest pauses; return what was found, what was asked, what was told and the clock."""
    target, service = scripted(Kind.BLOB, *answers)
    clock, told = Clock(), list[str]()
    how = Waiting(
        patience=clock.deadline(seconds),
        tell=lambda: told.append("waiting"),
        tell_lease=lambda state: told.append(state.state),
        uniform=max,
    )
    return wait(target, until, PAST if until is Until.CHANGED else Conditions(), how), service, told, clock


@cases(
    ("until", "answer"),
    (Until.EXISTS, THERE),
    (Until.ABSENT, GONE),
    (Until.CHANGED, NEWER),
    (Until.UNLEASED, THERE),
)
def test_what_is_so_already_costs_one_request_and_tells_nothing(until: Until, answer: Answer) -> None:
    found, service, told, clock = waited(until, answer)
    assert (found.until, [method for method, _ in service.asked], told, clock.now) == (until, ["HEAD"], [], 1000.0)


@cases(
    ("until", "answers", "exists", "etag"),
    (Until.EXISTS, (GONE, GONE, THERE), True, ETAG),
    (Until.EXISTS, (NOWHERE, GONE, THERE), True, ETAG),
    (Until.ABSENT, (THERE, NEWER, GONE), False, None),
    (Until.CHANGED, (SAME, SAME, NEWER), True, '"0x2"'),
    (Until.UNLEASED, (now_is("leased"), now_is("breaking"), now_is("broken")), True, ETAG),
)
def test_what_is_not_so_yet_is_waited_for(
    until: Until, answers: tuple[Answer, ...], exists: bool, etag: str | None
) -> None:
    found, service, told, _ = waited(until, *answers)
    assert (found.exists, found.etag, len(service.asked), len(told)) == (exists, etag, 3, 1)


def test_a_change_is_asked_for_by_the_condition_of_the_version() -> None:
    _, service, _, _ = waited(Until.CHANGED, SAME, NEWER)
    assert [headers.get("if-none-match") for headers in service.headers] == ['"0x1"', '"0x1"']


@cases("until", Until.EXISTS, Until.ABSENT, Until.CHANGED)
def test_errors_that_may_pass_are_tolerated(until: Until) -> None:
    last = {Until.EXISTS: THERE, Until.ABSENT: GONE, Until.CHANGED: NEWER}[until]
    found, service, _, _ = waited(until, BUSY, BUSY, BUSY, last)
    assert (found.until, len(service.asked)) == (until, 4)


def test_errors_that_do_not_pass_until_the_end_are_told() -> None:
    with pytest.raises(Unavailable):
        waited(Until.EXISTS, *[BUSY] * 20, seconds=8)


def test_a_refusal_is_told_at_once() -> None:
    with pytest.raises(Forbidden):
        waited(Until.EXISTS, (403, "AuthorizationPermissionMismatch", {}))


@cases(("until", "before"), (Until.CHANGED, SAME), (Until.UNLEASED, now_is("leased")))
def test_a_blob_that_is_deleted_meanwhile_is_waited_for_no_longer(until: Until, before: Answer) -> None:
    with pytest.raises(NotFound):
        waited(until, before, GONE)


@cases("before", (), (THERE,))
def test_a_missing_container_proves_no_absence(before: tuple[Answer, ...]) -> None:
    with pytest.raises(NotFound, match="there is no container site"):
        waited(Until.ABSENT, *before, NOWHERE)


@cases(
    ("until", "answer", "words"),
    (Until.EXISTS, GONE, "site/a does not exist after 2s"),
    (Until.ABSENT, THERE, "site/a still exists after 2s"),
    (Until.CHANGED, SAME, "site/a is unchanged after 2s"),
    (Until.UNLEASED, now_is("leased"), "site/a is still leased after 2s"),
)
def test_the_end_of_the_time_says_what_is_still_so(until: Until, answer: Answer, words: str) -> None:
    with pytest.raises(GaveUp) as caught:
        waited(until, *[answer] * 9, seconds=2)
    assert (caught.value.message, caught.value.exit_code) == (words, 75)
