"""Notes about runs: which of them are over, as the kernel's lock on their file tells."""

import os
from pathlib import Path

import pytest

from azguard.accounts import account
from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import ConfigError
from azguard.locks.terraform import begin_run, find_over, open_note
from azguard.processes.locked_file import Machine, ProcessNote, ProcessNotes

ELSEWHERE = Machine("other", "another boot", "another installation")
PROD, DEV = (Address(Kind.BLOB, ("tfstate", name)) for name in ("prod", "dev"))
STATE = Target(account.emulator({"blob": 1}), PROD)


def over(notes: ProcessNotes) -> list[str]:
    return [each.facts["address"] for each in find_over(notes, STATE)]


def test_a_note_is_over_when_the_last_process_has_closed_it(tmp_path: Path) -> None:
    notes = ProcessNotes(tmp_path / "runs")
    note = open_note(notes)
    begin_run(note, STATE, None)
    assert note.descriptor is not None
    of_another_process = os.dup(note.descriptor)
    assert over(notes) == []
    note.close(is_done=False)
    assert over(notes) == []
    os.close(of_another_process)
    assert over(notes) == ["blob:tfstate/prod"]
    note.close(is_done=True)
    assert over(notes) == []


def test_a_note_that_cannot_be_written_is_the_fault_of_the_surroundings(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="file cannot be written: File exists"):
        open_note(ProcessNotes(tmp_path / "file"))
    full = ProcessNote(tmp_path / "full", {}, os.open("/dev/full", os.O_RDWR))
    with pytest.raises(ConfigError, match="full cannot be written: No space left on device"):
        begin_run(full, STATE, None)
    full.close(is_done=False)


def test_a_note_is_handed_on_to_the_processes_of_the_run(tmp_path: Path) -> None:
    note = open_note(ProcessNotes(tmp_path))
    assert note.descriptor is not None
    assert os.get_inheritable(note.descriptor)
    note.close(is_done=False)


@pytest.mark.parametrize("other", [Target(STATE.account, DEV), Target(account.emulator({"blob": 2}), PROD)])
def test_a_note_about_another_resource_is_left_alone(tmp_path: Path, other: Target) -> None:
    notes = ProcessNotes(tmp_path)
    note = open_note(notes)
    begin_run(note, other, None)
    note.close(is_done=False)
    assert (over(notes), note.path.exists()) == ([], True)


def test_a_note_of_another_machine_is_left_alone_as_in_a_cache_that_was_copied(tmp_path: Path) -> None:
    notes = ProcessNotes(tmp_path)
    note = open_note(notes)
    begin_run(note, STATE, None)
    note.write(**ELSEWHERE.facts)
    note.close(is_done=False)
    assert (over(notes), note.path.exists()) == ([], True)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"address": 1}', b"\xff"])
def test_a_file_that_is_no_note_is_passed_over(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)
    assert over(ProcessNotes(tmp_path)) == []
    assert (tmp_path / "a.json").exists()


def test_a_note_of_a_run_that_was_killed_before_its_command_began_is_deleted(tmp_path: Path) -> None:
    notes = ProcessNotes(tmp_path)
    note = open_note(notes)
    assert (over(notes), note.path.exists()) == ([], True)
    note.close(is_done=False)
    assert (over(notes), note.path.exists()) == ([], False)
