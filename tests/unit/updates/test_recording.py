"""What an update tells of its end and leaves on this machine: its version, its journal, and work not written."""

import errno
import os
import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from azguard.accounts.account import Target, emulator
from azguard.address import Address, Kind
from azguard.errors import AzguardError, TransformFailed
from azguard.folders import Folders
from azguard.requests.lineage import Lineage, is_op, new_op
from azguard.updates import recording
from azguard.updates.doubt import find_status
from azguard.updates.recording import LocalRecords, UpdateReport, UpdateRequest, update_and_record
from azguard.updates.resource import CommittedVersion, UpdateHooks, UpdatePlan
from azguard.updates.update import update
from tests.support.cases import cases
from tests.support.fake_resource import TARGET, FakeResource, Fault, Store

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
        return update_and_record(
            made, LocalRecords(folders=self.folders, reads=self.reads, hooks=UpdateHooks(now=lambda: NOON))
        )

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
    assert report.replaced_length == 1
    assert room.reads.calls == [("content", b"2", report.etag)]


def test_of_metadata_the_content_stays_so_the_read_version_follows(room: Room) -> None:
    before = room.store.etag
    report = room.update(is_of_metadata=True)
    assert (room.reads.calls, report.content_length) == ([("follow", before, report.etag)], None)
    assert report.replaced_length is None


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


NOW = datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC)


def target(name: str = "app/config.json") -> Target:
    return Target(emulator(), Address(Kind.BLOB, ("site", name)))


def test_work_is_kept_in_a_file_that_only_its_owner_reads(tmp_path: Path) -> None:
    path = recording.save_unwritten_content(tmp_path / "deep" / "kept", target(), b"new", NOW)
    assert path is not None
    assert (path.parent, path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (
        tmp_path / "deep" / "kept",
        b"new",
        0o600,
    )
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert path.name.startswith("20261121T100000-")
    assert path.name.endswith("-site-app-config.json")


def test_work_never_overwrites_other_work(tmp_path: Path) -> None:
    paths = {recording.save_unwritten_content(tmp_path, target(), b"%d" % number, NOW) for number in range(3)}
    assert {path.read_bytes() for path in paths if path} == {b"0", b"1", b"2"}


def test_a_name_that_is_no_file_name_is_made_one(tmp_path: Path) -> None:
    path = recording.save_unwritten_content(tmp_path, target("../é \n" + "x" * 300), b"", NOW)
    assert path is not None
    assert path.parent == tmp_path


def test_work_goes_to_the_temporary_folder_without_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = recording.save_unwritten_content(tmp_path / "file" / "kept", target(), b"new", NOW)
    assert path is not None
    assert (path.parent, path.read_bytes()) == (tmp_path, b"new")


def test_where_nothing_can_be_written_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert (
        recording.save_unwritten_content(tmp_path / "kept", target(), b"new", NOW),
        list(tmp_path.rglob("*-*")),
    ) == (None, [])


OURS, OTHER = new_op(b"a" * 12), new_op(b"b" * 12)


def test_an_op_of_our_own_making_can_be_read_in_a_lineage_and_is_never_the_same() -> None:
    ops = {UpdateHooks().new_op() for _ in range(100)}
    assert (len(ops), all(is_op(op) for op in ops)) == (100, True)


@cases(("has_length", "length"), (True, 4), (False, None))
def test_a_length_is_told_only_of_content_that_has_one(*, has_length: bool, length: int | None) -> None:
    store = Store.holding(b"old")
    plan = UpdatePlan(lambda content: content + b"x", OURS)
    ended = update(FakeResource(store, iter(())), plan, store.clock.deadline())
    report = UpdateReport.of(TARGET, OURS, ended, has_length=has_length)
    assert (report.content_length, report.etag, report.op_id) == (length, '"E2"', f"op:{OURS}")


def test_no_length_is_told_of_content_that_an_earlier_run_wrote() -> None:
    store, plan = Store.holding(b"old"), UpdatePlan(lambda content: content + b"x", OURS)
    for _ in range(2):
        ended = update(FakeResource(store, iter(())), plan, store.clock.deadline())
    report = UpdateReport.of(TARGET, OURS, ended, has_length=True)
    assert (report.content_length, report.etag, report.outcome) == (None, None, "applied_before")


def test_the_outcome_of_an_op_is_committed_or_not_or_unknown_without_its_whole_history() -> None:
    store = Store()
    store.put(None, b"1", OTHER, str(Lineage().after(OTHER, None)), None)
    resource = FakeResource(store, iter(()))
    whole = [find_status(resource, op, store.clock.deadline()).outcome for op in (OTHER, OURS)]
    store.foreign_write()
    wiped = [find_status(resource, op, store.clock.deadline()).outcome for op in (OTHER, OURS)]
    assert (whole, wiped) == (["committed", "not_committed"], ["unknown", "unknown"])
