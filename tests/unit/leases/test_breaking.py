"""Breaking a lease: only the one that was shown, and only if it is meant."""

from dataclasses import dataclass, field
from http import HTTPStatus

import pytest

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.errors import AzguardError, Changed, NotFound, UsageError
from azguard.guards.resolve import Conditions
from azguard.leases import breaking
from azguard.leases.breaking import BreakDone, BreakRequest, Safeguards
from azguard.leases.owners import OWNER, SERVICE_CLOCK, Owner
from tests.support.cases import cases
from tests.support.fake_resource import Clock
from tests.support.lease_script import ETAG, Answer, Scripted, it_is, now_is, scripted

DONE: Answer = (HTTPStatus.ACCEPTED, None, {"etag": ETAG, "x-ms-lease-time": "0"})
CHANGED: Answer = (HTTPStatus.PRECONDITION_FAILED, "ConditionNotMet", {})
NOON = it_is("2026-11-21T12:00:00.0000000Z")
VERSION = Conditions({"If-Match": ETAG}, "if-match", ETAG)
LOOK, BREAK = ("HEAD", None), ("PUT", "break")


def held_by(
    who: str,
    etag: str = ETAG,
    duration: str = "infinite",
    state: str = "leased",
    date: str = "Sat, 21 Nov 2026 12:00:00 GMT",
) -> Answer:
    """Return the answer to a look at a lease with a record of its holder."""
    owner = Owner(who, "build1", 7, "deploy.sh", "2026-11-21T09:00:00+00:00", clock=SERVICE_CLOCK)
    record = owner.tie_to_lease(who, None if duration == "infinite" else 60).as_metadata()
    told = {"etag": etag, "Date": date, "x-ms-lease-duration": duration}
    return now_is(state, {OWNER: record}, **told)


def held_without_record(etag: str = ETAG) -> Answer:
    return now_is("leased", etag=etag)


@dataclass
class Operator:
    """The person who is shown the lease, and answers."""

    consents: bool = True
    seen: list[str] = field(default_factory=list)

    def confirm(self) -> None:
        self.seen.append("asked")
        if not self.consents:
            raise UsageError("not broken")


def run(
    target: Target,
    *,
    conditions: Conditions | None = None,
    safeguards: Safeguards | None = None,
    assume_yes: bool = True,
    operator: Operator | None = None,
) -> BreakDone:
    """Break the lease on a target as the command does; without an operator no person can be asked."""
    request = BreakRequest(
        target=target,
        period=0,
        conditions=conditions or Conditions(),
        safeguards=safeguards or Safeguards(),
        assume_yes=assume_yes,
    )
    seen: list[str] = [] if operator is None else operator.seen
    return breaking.break_after_showing(
        request, Clock().deadline(), seen.append, None if operator is None else operator.confirm
    )


def refused(target: Target, asked: Scripted, **settings: object) -> tuple[AzguardError, list[tuple[str, str | None]]]:
    """Return the error that a break ends with, and what was asked of the service."""
    with pytest.raises(AzguardError) as caught:
        run(target, **settings)  # type: ignore[arg-type]  # whatever the case names
    return caught.value, asked.asked


# Only the one that was shown


def test_a_break_is_tied_to_the_version_that_was_shown() -> None:
    target, service = scripted(Kind.BLOB, held_by("alice"), DONE)
    done = run(target)
    assert (service.asked, service.headers[-1]["if-match"]) == ([LOOK, BREAK], ETAG)
    assert (done.guard, done.lease_time, done.broken.held_by, done.broken.age) == (
        "if-match",
        0,
        "alice@build1",
        3 * 3600,
    )


def test_a_container_is_tied_by_the_time_it_was_written_because_it_has_no_other_condition() -> None:
    target, service = scripted(Kind.CONTAINER, held_without_record(), DONE)
    assert run(target).guard == "conditions"
    assert service.headers[-1]["if-unmodified-since"] == "Thu, 09 May 2019 00:53:12 GMT"


def test_a_holder_that_writes_meanwhile_is_still_the_one_that_was_shown() -> None:
    target, service = scripted(
        Kind.BLOB, held_by("alice"), CHANGED, held_by("alice", '"2"'), held_by("alice", '"2"'), DONE
    )
    run(target)
    assert service.headers[-1]["if-match"] == '"2"'


@cases(
    ("shown", "now", "words"),
    (held_by("alice"), held_by("bob", '"2"'), "another holds the lease"),
    (held_by("alice"), held_without_record('"2"'), "another holds the lease"),
    (held_without_record(), held_by("bob", '"2"'), "another holds the lease"),
    (held_without_record(), held_without_record('"2"'), "no record says whether its holder is the same"),
    (held_by("alice", duration="infinite"), held_by("alice", '"2"', duration="fixed"), "another holds the lease"),
)
def test_a_lease_that_may_be_another_ones_now_is_not_broken(shown: Answer, now: Answer, words: str) -> None:
    target, service = scripted(Kind.BLOB, shown, CHANGED, now, now)
    error, asked = refused(target, service)
    assert (type(error), error.reason, error.current_etag) == (Changed, "lease_not_broken", '"2"')
    assert words in error.message
    assert asked.count(BREAK) == 1


def test_a_lease_that_ended_meanwhile_is_said_to_be_none() -> None:
    target, service = scripted(Kind.BLOB, held_by("alice"), CHANGED, now_is("available"), now_is("available"))
    error, asked = refused(target, service)
    assert (type(error), error.lease_state, asked.count(BREAK)) == (NotFound, "available", 1)


def test_a_lease_that_another_has_broken_meanwhile_is_not_broken_again() -> None:
    target, service = scripted(Kind.BLOB, held_by("alice"), CHANGED, now_is("broken"), now_is("broken"))
    error, asked = refused(target, service)
    assert (type(error), error.reason, asked.count(BREAK)) == (NotFound, "lease_broken_already", 1)


def test_a_lease_whose_holder_writes_before_every_break_is_given_up() -> None:
    again = [CHANGED, held_by("alice", '"2"'), held_by("alice", '"2"')]
    target, service = scripted(Kind.BLOB, held_by("alice"), *again * 5)
    error, asked = refused(target, service)
    assert (type(error), "written so often" in error.message, asked.count(BREAK)) == (Changed, True, 5)


def test_a_condition_of_the_caller_is_sent_as_it_is_and_tried_once() -> None:
    target, service = scripted(Kind.BLOB, held_by("alice"), CHANGED, held_by("alice", '"2"'))
    error, asked = refused(target, service, conditions=VERSION)
    assert (type(error), asked.count(BREAK), error.expected_etag) == (Changed, 1, ETAG)


# Only if it is meant


@cases("state", "available", "broken")
def test_what_is_not_leased_is_not_broken(state: str) -> None:
    target, service = scripted(Kind.BLOB, now_is(state))
    error, asked = refused(target, service)
    assert (type(error), asked) == (NotFound, [LOOK])


def test_a_break_that_is_not_confirmed_asks_the_service_for_nothing() -> None:
    target, service = scripted(Kind.BLOB)
    error, asked = refused(target, service, assume_yes=False)
    assert (type(error), error.reason, asked) == (UsageError, "break_not_confirmed", [])


def test_a_person_is_asked_after_the_lease_was_shown() -> None:
    target, _ = scripted(Kind.BLOB, held_by("alice"), DONE)
    operator = Operator()
    run(target, assume_yes=False, operator=operator)
    words = "site/a is leased, infinite, held for 3h by alice@build1, pid 7, since 2026-11-21T09:00:00+00:00: deploy.sh"
    assert operator.seen == [words, "asked"]


def test_a_person_who_says_no_breaks_nothing() -> None:
    target, service = scripted(Kind.BLOB, held_by("alice"))
    _, asked = refused(target, service, assume_yes=False, operator=Operator(consents=False))
    assert asked == [LOOK]


@cases(
    ("conditions", "safeguards", "assume_yes"),
    (Conditions(), Safeguards(), True),
    (VERSION, Safeguards(), False),
    (Conditions({"If-Unmodified-Since": "Thu, 09 May 2019 00:53:12 GMT"}, "conditions"), Safeguards(), False),
    (Conditions(), Safeguards(owner="alice"), False),
    (Conditions(), Safeguards(older_than=60), False),
)
def test_who_confirms_or_names_what_must_hold_is_not_asked(
    conditions: Conditions, safeguards: Safeguards, assume_yes: bool
) -> None:
    told = [NOON] if safeguards.older_than else []
    target, service = scripted(Kind.BLOB, held_by("alice"), *told, DONE)
    operator = Operator()
    run(target, conditions=conditions, safeguards=safeguards, assume_yes=assume_yes, operator=operator)
    assert (len(operator.seen), service.asked) == (1, [LOOK, *[("GET", None) for _ in told], BREAK])


# Safeguards


@cases(
    ("shown", "safeguards", "words"),
    (held_by("alice"), Safeguards(owner="bob"), "is not held by bob"),
    (held_without_record(), Safeguards(owner="alice"), "there is no record on"),
    (held_without_record(), Safeguards(older_than=1), "there is no record on"),
)
def test_a_safeguard_that_does_not_hold_breaks_nothing(shown: Answer, safeguards: Safeguards, words: str) -> None:
    target, service = scripted(Kind.BLOB, shown)
    error, asked = refused(target, service, safeguards=safeguards)
    assert (words in error.message, error.reason, asked) == (True, "lease_not_broken", [LOOK])


@cases(
    ("told", "words"),
    (NOON, "was taken 3h ago, which is not long enough"),
    # What is no answer of the service, and so does not tell its time: the Date of the look is not believed.
    (CHANGED, "the service tells no time that can be trusted"),
)
def test_an_age_is_counted_from_the_time_in_a_refusal_and_from_no_date(told: Answer, words: str) -> None:
    for date in ("Sat, 21 Nov 2026 12:00:00 GMT", "Sat, 21 Nov 2026 22:00:00 GMT"):
        target, service = scripted(Kind.BLOB, held_by("alice", date=date), told)
        error, asked = refused(target, service, safeguards=Safeguards(older_than=4 * 3600))
        assert (words in error.message, error.reason, asked) == (True, "lease_not_broken", [LOOK, ("GET", None)])


@cases("name", "alice", "build1", "alice@build1")
def test_a_holder_has_several_names(name: str) -> None:
    target, _ = scripted(Kind.BLOB, held_by("alice"), NOON, DONE)
    assert run(target, safeguards=Safeguards(owner=name, older_than=3 * 3600)).broken.held_by == "alice@build1"


def test_a_safeguard_beside_a_condition_that_names_no_version_is_refused() -> None:
    target, service = scripted(Kind.BLOB)
    conditions = Conditions({"If-Unmodified-Since": "Thu, 09 May 2019 00:53:12 GMT"}, "conditions")
    error, asked = refused(target, service, conditions=conditions, safeguards=Safeguards(owner="alice"))
    assert (error.reason, asked) == ("break_condition_without_version", [])
