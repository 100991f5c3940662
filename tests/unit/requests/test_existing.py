"""A create that finds something: left alone and told so, ours only where the lineage says so."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from azguard.accounts.account import Account, Auth
from azguard.errors import AzguardError, Changed, Exists, Forbidden, Locked, NotFound, OutcomeUnknown
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage, new_op
from azguard.requests.results import Written
from azguard.resources import lifecycles
from azguard.resources.lifecycles import Existence
from azguard.wire.connections import Reply
from tests.support.answering_client import AnsweringClient, Asked, reply
from tests.support.cases import cases
from tests.support.fake_resource import TARGET

WRITTEN = datetime(2026, 11, 21, 10, tzinfo=UTC)
OURS, OTHERS = new_op(bytes(12)), new_op(b"\1" * 12)
CREATED = Written(address="blob:site/config.json", etag='"1"', last_modified=WRITTEN, guard="if-none-match", attempts=1)
FOUND = lifecycles.describe_existing(TARGET, '"7"', WRITTEN)
NOTHING_FOUND = lifecycles.describe_existing(TARGET)


def ending(error: Exception) -> Callable[[], Written]:
    """Return a request that ends with an error."""

    def make() -> Written:
        raise error

    return make


def outcome(error: Exception, found: Written = FOUND, *, skip: bool = True) -> tuple[object, int]:
    """Return how a create ends that was refused so, and how many times it was looked."""
    looks: list[Written] = []

    def look() -> Written:
        looks.append(found)
        return found

    try:
        return lifecycles.create_unless_exists(ending(error), look, skip=skip), len(looks)
    except AzguardError as raised:
        return raised, len(looks)


def test_what_was_created_is_not_looked_at() -> None:
    assert lifecycles.create_unless_exists(lambda: CREATED, ending(AssertionError()), skip=True) is CREATED


@cases(
    "error",
    Exists("there"),
    Changed("there"),
    Locked("leased", service_code="LeaseIdMissing"),
    ids=lambda error: error.kind,
)
def test_what_is_there_already_is_left_alone_and_told(error: AzguardError) -> None:
    assert outcome(error) == (FOUND, 1)
    assert (FOUND.outcome, FOUND.etag) == ("exists", '"7"')


@cases(
    "error",
    Exists("there"),
    Changed("there"),
    Locked("leased", service_code="LeaseIdMissing"),
    OutcomeUnknown("lost"),
    ids=lambda error: error.kind,
)
def test_where_a_refusal_is_asked_for_the_error_is_raised_as_it_is(error: AzguardError) -> None:
    ended, looks = outcome(error, skip=False)
    assert (ended is error, looks) == (True, 0)


@cases(
    "error",
    Locked("leased", service_code="LeaseAlreadyPresent"),
    Forbidden("no"),
    NotFound("no container"),
    ids=lambda error: error.kind,
)
def test_a_refusal_for_another_reason_is_not_taken_for_something_that_exists(error: AzguardError) -> None:
    ended, looks = outcome(error)
    assert (ended is error, looks) == (True, 0)


def test_blocks_that_were_discarded_are_not_taken_for_something_that_exists() -> None:
    error = Changed("discarded")
    ended, looks = outcome(error, NOTHING_FOUND)
    assert (ended is error, looks) == (True, 1)


def test_a_create_in_doubt_is_never_told_as_exists() -> None:
    ended, looks = outcome(OutcomeUnknown("lost"))
    assert isinstance(ended, OutcomeUnknown)
    assert (ended.reason, looks) == ("create_unknown", 0)


def test_a_create_that_something_equal_refused_leaves_it_alone() -> None:
    # Whether a copy of the request has made it is not known, and does not matter.
    assert outcome(OutcomeUnknown("refused", seen="what is there")) == (FOUND, 1)


class Service(AnsweringClient):
    """Answers with what is there."""

    def __init__(self, there: Reply) -> None:
        self.there = there

    def answer(self, _asked: Asked) -> Reply:
        return self.there


def _there(lineage: Lineage) -> Reply:
    told = {"ETag": "7", "Last-Modified": "Sat, 21 Nov 2026 10:00:00 GMT", f"x-ms-meta-{KEY}": str(lineage)}
    return reply(200, told)


@cases(
    ("there", "found"),
    (_there(Lineage()), FOUND),
    (_there(Lineage().after(OTHERS, None)), FOUND),
    # Another program may have changed it since, and have kept the lineage: its ETag and its time may not be ours.
    (_there(Lineage().after(OURS, None)), replace(NOTHING_FOUND, outcome="committed")),
    (_there(Lineage().after(OURS, None).after(OTHERS, '"1"')), replace(NOTHING_FOUND, outcome="committed")),
    (reply(404, {"x-ms-error-code": "BlobNotFound"}), NOTHING_FOUND),
)
def test_a_create_that_finds_something_tells_whose_it_is(there: Reply, found: Written) -> None:
    endpoints = {"blob": "https://acc.blob.core.windows.net"}
    account = Account("acc", endpoints, Auth.ANONYMOUS, None, {"client": Service(there)})
    assert lifecycles.find_existing(TARGET._replace(account=account), OURS, Deadline(1)) == found


@cases(("look", "is_there"), (lambda: None, True), (ending(NotFound("gone")), False))
def test_only_not_found_means_that_something_does_not_exist(look: Callable[[], object], is_there: bool) -> None:
    assert lifecycles.ask_whether_exists(TARGET, look) == Existence(str(TARGET.address), exists=is_there)


def test_a_refused_question_does_not_say_that_nothing_exists() -> None:
    with pytest.raises(Forbidden):
        lifecycles.ask_whether_exists(TARGET, ending(Forbidden("no")))
