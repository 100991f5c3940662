"""Metadata of which the service compares no version: compared just before each write, which is sent once."""

import math
from collections.abc import Mapping
from dataclasses import field
from http import HTTPStatus

import pytest

from azguard.accounts.account import Target, emulator
from azguard.address import parse
from azguard.errors import TransformFailed, Unavailable
from azguard.frozen import frozen
from azguard.requests.calls import CallOutcome, send_once
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage
from azguard.requests.service_errors import translate
from azguard.updates.compared import ComparedMetadata, RefusedHere, StampedMetadata, UnboundLineage, fence_by_release
from azguard.updates.resource import CommittedVersion, CurrentVersion
from tests.support.cases import cases
from tests.support.fake_resource import Current, FakeResource, Store

TARGET = Target(emulator(), parse("queue:jobs").address)
OURS, THEIRS = "oursoursoursours", "theirstheirsthei"


@frozen
class Metadata(ComparedMetadata):
    """Metadata in memory; ``errors`` are raised by the next writes."""

    entries: dict[str, str] = field(default_factory=dict)
    errors: list[Exception] = field(default_factory=list)
    sent: list[Mapping[str, str]] = field(default_factory=list)

    def fetch(self, deadline: Deadline) -> StampedMetadata:
        return StampedMetadata(dict(self.entries), repr(sorted(self.entries.items())))

    def send(self, stamped: Mapping[str, str], lease_id: str | None, deadline: Deadline) -> CommittedVersion:
        self.sent.append(stamped)
        if self.errors:
            raise self.errors.pop()
        self.entries.clear()
        self.entries.update(stamped)
        return CommittedVersion(self.fetch(deadline).etag)


def write(metadata: Metadata, content: bytes = b'{"a": "1"}') -> CommittedVersion:
    state = metadata.read(Deadline())
    lineage = state.lineage.after(OURS, state.etag)
    return metadata.prepare(state, content, lineage, None, Deadline())(None)


def code_of(caught: "pytest.ExceptionInfo[RefusedHere]") -> tuple[int, str | None]:
    return caught.value.status_code, caught.value.code


def test_a_write_carries_its_lineage_which_is_no_part_of_the_content() -> None:
    metadata = Metadata(TARGET)
    write(metadata)
    read = metadata.read(Deadline())
    assert (OURS in Lineage.parse(metadata.entries[KEY]), b"lineage" in read.content) == (True, False)


def test_a_version_that_was_replaced_is_not_written_over() -> None:
    metadata = Metadata(TARGET)
    commit = metadata.prepare(metadata.read(Deadline()), b"{}", None, None, Deadline())
    metadata.entries["theirs"] = "1"
    with pytest.raises(RefusedHere) as caught:
        commit(None)
    assert (code_of(caught), metadata.sent) == ((412, "ConditionNotMet"), [])


@cases("change", {"theirs": "1"}, {"Aaa": "1"}, {})
def test_whatever_the_version_became_it_is_not_written_over(change: dict[str, str]) -> None:
    metadata = Metadata(TARGET, entries={"own": "1"})
    commit = metadata.prepare(metadata.read(Deadline()), b"{}", None, None, Deadline())
    metadata.entries.clear()
    metadata.entries.update(change)
    with pytest.raises(RefusedHere):
        commit(None)
    assert metadata.sent == []


def test_a_write_that_was_answered_lets_the_next_one_be_sent() -> None:
    metadata = Metadata(TARGET)
    assert [write(metadata, content) == write(metadata, content) for content in (b"{}", b'{"a": "2"}')] == [False] * 2
    assert len(metadata.sent) == 4


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
    metadata = Metadata(TARGET, errors=[RefusedHere(HTTPStatus.SERVICE_UNAVAILABLE, "ServerBusy")])
    with pytest.raises(RefusedHere, match="ServerBusy"):
        write(metadata)
    with pytest.raises(RefusedHere) as caught:
        write(metadata)
    assert (code_of(caught), len(metadata.sent)) == ((400, "MayStillArrive"), 1)


def test_a_write_that_was_refused_cannot_arrive_any_more() -> None:
    metadata = Metadata(TARGET, errors=[RefusedHere.as_changed()])
    with pytest.raises(RefusedHere):
        write(metadata)
    assert write(metadata).etag == metadata.fetch(Deadline()).etag


def test_where_the_version_cannot_be_compared_nothing_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = Metadata(TARGET)
    commit = metadata.prepare(metadata.read(Deadline()), b"{}", None, None, Deadline())

    def fail(*_: object) -> StampedMetadata:
        raise Unavailable("no answer")

    monkeypatch.setattr(Metadata, "fetch", fail)
    sent = send_once(lambda: commit(None))
    assert sent.error is not None
    assert (sent.outcome, translate(sent.error, TARGET).kind, metadata.sent) == (
        CallOutcome.NOT_SENT, "unavailable", [],
    )  # fmt: skip


def test_no_fence_keeps_a_write_out() -> None:
    metadata = Metadata(TARGET)
    with pytest.raises(RefusedHere) as caught:
        metadata.fence(metadata.read(Deadline()), None, None, Deadline())()
    assert code_of(caught) == (400, "NothingComparesVersions")


def test_a_lineage_says_of_no_write_that_it_can_never_come_or_never_was() -> None:
    lineage = UnboundLineage(Lineage().after(THEIRS, None).entries).after(OURS, '"1"')
    assert (OURS in lineage, lineage.successor('"1"'), lineage.reaches_creation) == (True, None, False)


def test_metadata_that_are_too_large_are_not_sent() -> None:
    metadata = Metadata(TARGET)
    with pytest.raises(TransformFailed):
        write(metadata, b'{"a": "' + 8192 * b"x" + b'"}')
    assert metadata.sent == []
