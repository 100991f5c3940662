"""What an update leaves on this machine: the version it wrote, its journal, and the content it could not write."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from azguard.accounts.account import Target
from azguard.errors import AzguardError, TransformFailed
from azguard.folders import Folders
from azguard.requests.lineage import new_op
from azguard.updates.plan import UpdatePlan
from azguard.updates.recording import LocalRecords, UpdateRequest, update_and_record
from azguard.updates.resource import CommittedVersion
from tests.support.fake_resource import FakeResource, Fault, Store

OP = new_op(b"0" * 12)
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def plus_one(content: bytes) -> bytes:
    return b"%d" % (int(content or b"0") + 1)


@dataclass
class Reads:
    """What was recorded, call by call."""

    calls: list[tuple[Any, ...]] = field(default_factory=list)

    def record_content(self, target: Target, written: CommittedVersion, content: bytes, lineage: str | None) -> None:
        self.calls.append(("content", content, written.etag))

    def follow_parts(self, target: Target, before: str | None, after: str | None, lineage: str | None) -> None:
        pass

    def follow(self, target: Target, before: str | None, after: str | None, lineage: str | None) -> None:
        self.calls.append(("follow", before, after))


@dataclass
class Room:
    """One machine, and the updates on it."""

    folder: Path
    store: Store = field(default_factory=lambda: Store.holding(b"1"))
    reads: Reads = field(default_factory=Reads)

    def update(
        self,
        transform: Callable[[bytes], bytes] = plus_one,
        *faults: Fault,
        timeout: float = 60.0,
        plan: dict[str, Any] | None = None,
        **request: Any,
    ) -> Any:
        made = UpdateRequest(
            resource=FakeResource(self.store, iter(faults)),
            plan=UpdatePlan(transform, OP, is_keyed=request.pop("is_keyed", False), **(plan or {})),
            deadline=self.store.clock.deadline(timeout),
            **request,
        )
        return update_and_record(made, LocalRecords(folders=self.folders, reads=self.reads, now=lambda: NOON))

    @property
    def folders(self) -> Folders:
        return Folders(self.folder / "cache", self.folder / "config")


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


def raised(room: Room, *faults: Fault, **settings: Any) -> AzguardError:
    with pytest.raises(AzguardError) as caught:
        room.update(plus_one, *faults, **settings)
    return caught.value


def test_the_version_that_was_written_is_recorded_with_its_content(room: Room) -> None:
    report = room.update()
    assert (report.outcome, report.op_id, report.content_length) == ("committed", f"op:{OP}", 1)
    assert room.reads.calls == [("content", b"2", report.etag)]


def test_of_metadata_the_content_stays_so_the_read_version_follows(room: Room) -> None:
    before = room.store.etag
    report = room.update(is_of_metadata=True)
    assert (room.reads.calls, report.content_length) == ([("follow", before, report.etag)], None)


@pytest.mark.parametrize(("shows", "calls"), [(False, 0), (True, 1)])
def test_unchanged_content_was_read_only_if_a_command_was_given_it(room: Room, shows: bool, calls: int) -> None:
    report = room.update(lambda content: content, shows_content=shows)
    assert (report.outcome, len(room.reads.calls)) == ("unchanged", calls)


def test_where_only_the_key_was_recorded_the_read_version_follows(room: Room) -> None:
    before = room.store.etag
    report = room.update(lambda content: content, is_keyed=True)
    assert (report.outcome, room.reads.calls) == ("unchanged", [("follow", before, report.etag)])


def test_what_an_earlier_run_of_the_key_wrote_is_not_recorded(room: Room) -> None:
    room.update(is_keyed=True)
    room.reads.calls.clear()
    assert (room.update(is_keyed=True).outcome, room.reads.calls) == ("applied_before", [])


def test_the_content_that_could_not_be_written_is_saved_and_named(room: Room) -> None:
    error = raised(room, *[Fault.BUSY] * 50, timeout=1.0)
    kept = Path(str(error.facts["kept"]))
    assert (kept.read_bytes(), kept.parent) == (b"2", room.folders.kept)
    assert (error.detail[-1], error.values["leaves_trace"]) == (f"the new content is kept in {kept}", True)
    assert room.reads.calls == []


def test_without_a_lineage_the_error_says_that_no_trace_is_left(room: Room) -> None:
    error = raised(room, *[Fault.BUSY] * 50, timeout=1.0, plan={"stamps": False})
    assert error.values["leaves_trace"] is False


def test_a_failed_transform_leaves_nothing(room: Room) -> None:
    def fail(content: bytes) -> bytes:
        raise TransformFailed("no")

    with pytest.raises(TransformFailed) as caught:
        room.update(fail)
    assert (caught.value.facts, room.folders.kept.exists(), room.reads.calls) == ({}, False, [])
