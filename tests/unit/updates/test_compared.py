"""Metadata of which the service compares no version: compared just before each write, which is sent once."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

import pytest

from azguard.accounts.account import Target, emulator
from azguard.address import parse
from azguard.errors import TransformFailed, Unavailable
from azguard.requests.calls import CallOutcome, send_once
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage
from azguard.requests.service_errors import translate
from azguard.updates.compared import ComparedMetadata, RefusedHere, UnboundLineage, fence_by_release
from azguard.updates.resource import CommittedVersion, CurrentVersion
from azguard.wire.answers import Answer
from azguard.wire.failures import Response, SentRequest
from azguard.wire.operations.queues import QUEUE_GET_METADATA, QUEUE_SET_METADATA
from azguard.wire.rows import Operation
from tests.support.cases import cases
from tests.support.fake_resource import Current, FakeResource, Store

TARGET = Target(emulator(), parse("queue:jobs").address)
OURS, THEIRS = "oursoursoursours", "theirstheirsthei"


@dataclass
class Queue:
    """The metadata of a queue in memory; ``errors`` are raised by the next writes."""

    entries: dict[str, str] = field(default_factory=dict)
    errors: list[Exception] = field(default_factory=list)
    sent: list[Mapping[str, str]] = field(default_factory=list)
    is_silent: bool = False

    def __post_init__(self) -> None:
        self.metadata = ComparedMetadata(TARGET, self.fetch, self.send)

    def fetch(self, *_: object) -> Answer:
        if self.is_silent:
            raise Unavailable("no answer")
        return answer_with(QUEUE_GET_METADATA, self.entries)

    def send(self, _: Target, stamped: Mapping[str, str], *__: object) -> Answer:
        self.sent.append(stamped)
        if self.errors:
            raise self.errors.pop()
        self.entries.clear()
        self.entries.update(stamped)
        return answer_with(QUEUE_SET_METADATA, {})


def answer_with(operation: Operation, metadata: Mapping[str, str]) -> Answer:
    headers = {f"x-ms-meta-{name}": value for name, value in metadata.items()}
    return Answer(operation, Response(SentRequest("GET", "", {}), 200, "", headers, b""))


def write(queue: Queue, content: bytes = b'{"a": "1"}') -> CommittedVersion:
    metadata = queue.metadata
    state = metadata.read(Deadline())
    lineage = state.lineage.after(OURS, state.etag)
    return metadata.prepare(state, content, lineage, None, Deadline())(None)


def code_of(caught: "pytest.ExceptionInfo[RefusedHere]") -> tuple[int, str | None]:
    return caught.value.status_code, caught.value.code


def test_a_write_carries_its_lineage_which_is_no_part_of_the_content() -> None:
    queue = Queue()
    write(queue)
    read = queue.metadata.read(Deadline())
    assert (OURS in Lineage.parse(queue.entries[KEY]), b"lineage" in read.content) == (True, False)


def test_a_version_that_was_replaced_is_not_written_over() -> None:
    queue = Queue()
    commit = queue.metadata.prepare(queue.metadata.read(Deadline()), b"{}", None, None, Deadline())
    queue.entries["theirs"] = "1"
    with pytest.raises(RefusedHere) as caught:
        commit(None)
    assert (code_of(caught), queue.sent) == ((412, "ConditionNotMet"), [])


@cases("change", {"theirs": "1"}, {"Aaa": "1"}, {})
def test_whatever_the_version_became_it_is_not_written_over(change: dict[str, str]) -> None:
    queue = Queue(entries={"own": "1"})
    commit = queue.metadata.prepare(queue.metadata.read(Deadline()), b"{}", None, None, Deadline())
    queue.entries.clear()
    queue.entries.update(change)
    with pytest.raises(RefusedHere):
        commit(None)
    assert queue.sent == []


def test_a_write_that_was_answered_lets_the_next_one_be_sent() -> None:
    queue = Queue()
    assert [write(queue, content) == write(queue, content) for content in (b"{}", b'{"a": "2"}')] == [False] * 2
    assert len(queue.sent) == 4


@cases(
    ("lease_id", "current", "end"),
    ("ours", '"E5"', CommittedVersion('"E5"')),
    ("ours", '"E4"', (412, "ConditionNotMet")),
    ("ours", '"E6"', (412, "ConditionNotMet")),
    (None, '"E5"', (400, "LeaseOfCaller")),
)
def test_a_lease_that_is_given_up_fences_a_write_off_where_the_version_stayed(
    lease_id: str | None, current: str, end: object
) -> None:
    store = Store(lease=("ours", math.inf), current=Current(b"", current, ""))
    resource = FakeResource(store, iter(()))
    state = CurrentVersion(b"", '"E5"', Lineage())
    try:
        ended: object = fence_by_release(resource, resource.read, state, lease_id, Deadline())()
    except RefusedHere as error:
        ended = error.status_code, error.code
    assert (ended, store.active_lease()) == (end, None if lease_id else "ours")


def test_nothing_is_sent_while_an_earlier_write_may_still_arrive() -> None:
    queue = Queue(errors=[RefusedHere(HTTPStatus.SERVICE_UNAVAILABLE, "ServerBusy")])
    with pytest.raises(RefusedHere, match="ServerBusy"):
        write(queue)
    with pytest.raises(RefusedHere) as caught:
        write(queue)
    assert (code_of(caught), len(queue.sent)) == ((400, "MayStillArrive"), 1)


def test_a_write_that_was_refused_cannot_arrive_any_more() -> None:
    queue = Queue(errors=[RefusedHere.as_changed()])
    with pytest.raises(RefusedHere):
        write(queue)
    assert write(queue).etag == queue.metadata.read(Deadline()).etag


def test_where_the_version_cannot_be_compared_nothing_was_sent() -> None:
    queue = Queue()
    commit = queue.metadata.prepare(queue.metadata.read(Deadline()), b"{}", None, None, Deadline())
    queue.is_silent = True
    sent = send_once(lambda: commit(None))
    assert sent.error is not None
    assert (sent.outcome, translate(sent.error, TARGET).kind, queue.sent) == (
        CallOutcome.NOT_SENT, "unavailable", [],
    )  # fmt: skip


def test_no_fence_keeps_a_write_out() -> None:
    queue = Queue()
    with pytest.raises(RefusedHere) as caught:
        queue.metadata.fence(queue.metadata.read(Deadline()), None, None, Deadline())()
    assert code_of(caught) == (400, "NothingComparesVersions")


def test_a_lineage_says_of_no_write_that_it_can_never_come_or_never_was() -> None:
    lineage = UnboundLineage(Lineage().after(THEIRS, None).entries).after(OURS, '"1"')
    assert (OURS in lineage, lineage.successor('"1"'), lineage.reaches_creation) == (True, None, False)


def test_metadata_that_are_too_large_are_not_sent() -> None:
    queue = Queue()
    with pytest.raises(TransformFailed):
        write(queue, b'{"a": "' + 8192 * b"x" + b'"}')
    assert queue.sent == []
