"""The records on this machine of locks that are held beyond one command."""

import os
from dataclasses import asdict, replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from azguard import times
from azguard.errors import LockLost
from azguard.locks import background_holder
from azguard.locks.hold_records import HoldRecord, HoldRecords, HoldState, JobScope, find_place
from azguard.processes import child, identity

ID = "0e0e0e0e-0000-4000-8000-000000000000"
OTHER_ID = "0e0e0e0e-0000-4000-8000-000000000001"
MINE = JobScope("s", None)


def hold(**changes: object) -> HoldRecord:
    known = HoldRecord(
        lease_id=ID,
        lock="blob:locks/a",
        address="blob:locks/a",
        endpoint="https://acc",
        scope="s",
        fence=7,
        seconds=60,
        since="2026-11-22T10:00:00Z",
        until=None,
        pid=os.getpid(),
        birth=identity.find_birth(os.getpid()),
        place=find_place(),
        ends=times.read_boot_clock() + 60,
        log=None,
    )
    return replace(known, **changes)  # type: ignore[arg-type]  # fields of a hold


@pytest.fixture
def holds(tmp_path: Path) -> HoldRecords:
    return HoldRecords(tmp_path / "holds")


def test_a_record_is_found_by_its_lease(holds: HoldRecords) -> None:
    holds.save(hold())
    assert (holds.find(ID), holds.find(OTHER_ID), holds.find("../holds")) == (holds.find(ID), None, None)
    assert holds.find(ID) is not None


def test_the_newest_record_of_a_scope_is_first(holds: HoldRecords) -> None:
    older, newer = hold(), hold(lease_id=OTHER_ID, fence=8)
    for each in (newer, older, hold(lease_id=OTHER_ID.replace("1", "2"), scope="t")):
        holds.save(each)
    assert holds.list_own(MINE) == [newer, older]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"state": "held"}', '{"state": "odd"}', "\x00"])
def test_a_damaged_record_is_none(holds: HoldRecords, text: str) -> None:
    holds.save(hold())
    holds.file(ID, "json").write_text(text)
    assert (holds.find(ID), holds.list_own(MINE)) == (None, [])


def test_a_field_of_a_later_version_is_passed_over(holds: HoldRecords) -> None:
    holds.save(hold())
    file = holds.file(ID, "json")
    file.write_text(file.read_text().replace("{", '{"later": 1,', 1))
    assert holds.find(ID) is not None


def test_a_process_of_another_container_is_not_taken_for_one_of_here() -> None:
    here, elsewhere = hold(), hold(place="other")
    assert (here.process is not None and here.process.lives, elsewhere.process, elsewhere.seconds_left) == (
        True, None, None
    )  # fmt: skip


def test_a_pid_that_was_given_to_another_process_is_not_taken_for_it() -> None:
    process = hold(birth="another").process
    assert process is not None
    assert not process.lives


def test_what_ended_long_ago_is_deleted_and_what_is_held_stays(holds: HoldRecords) -> None:
    holds.save(hold())
    holds.close(hold(lease_id=OTHER_ID), HoldState.RELEASED)
    for lease_id in (ID, OTHER_ID):
        os.utime(holds.file(lease_id, "json"), (0, 0))
    holds.prune()
    assert (holds.find(ID) is not None, holds.find(OTHER_ID)) == (True, None)


def test_records_are_for_their_owner_alone(holds: HoldRecords) -> None:
    holds.save(hold())
    modes = [os.stat(path).st_mode & 0o777 for path in (holds.folder, holds.file(ID, "json"))]
    assert modes == [0o700, 0o600]


def test_a_lock_whose_lease_ended_too_early_is_not_held(holds: HoldRecords, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    begun = Mock()
    begun.channel.receive.return_value = [{"is": "held", "hold": asdict(hold(ends=times.read_boot_clock()))}]
    monkeypatch.setattr(child, "fork_to_background", lambda *_: begun)
    with pytest.raises(LockLost):
        background_holder.hold(Mock(holds=holds), told.append)
    assert (told, begun.channel.send.called, begun.let_go.called) == ([], False, True)
