"""Notes about runs: which of them are over, as the kernel's lock on their file tells."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from azguard.errors import ConfigError
from azguard.locks.terraform import RunFile, RunNote, RunNotes
from azguard.processes.locked_file import Machine, ProcessNote

ELSEWHERE = Machine("other", "another boot", "another installation")
NOTE = RunNote(
    address="blob:tfstate/prod",
    endpoint="https://acc.blob.core.windows.net",
    who="ci@runner",
    began="2026-11-22T09:00:00+00:00",
)


def over(notes: RunNotes) -> list[RunNote | None]:
    return [each.note for each in notes.find_over(NOTE.address, NOTE.endpoint)]


def test_a_note_is_over_when_the_last_process_has_closed_it(tmp_path: Path) -> None:
    notes = RunNotes(tmp_path / "runs")
    file = notes.open()
    file.write(NOTE)
    assert file.file.descriptor is not None
    of_another_process = os.dup(file.file.descriptor)
    assert over(notes) == []
    file.close()
    assert (over(notes), file.is_over()) == ([], False)
    os.close(of_another_process)
    assert (over(notes), file.is_over()) == ([NOTE], True)
    file.remove()
    assert over(notes) == []


def test_a_note_that_cannot_be_written_is_the_fault_of_the_surroundings(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="file cannot be written: File exists"):
        RunNotes(tmp_path / "file").open()
    full = RunFile(ProcessNote(tmp_path / "full", {}, os.open("/dev/full", os.O_RDWR)))
    with pytest.raises(ConfigError, match="full cannot be written: No space left on device"):
        full.write(NOTE)
    full.close()


def test_a_note_is_handed_on_to_the_processes_of_the_run(tmp_path: Path) -> None:
    file = RunNotes(tmp_path).open()
    assert file.file.descriptor is not None
    assert os.get_inheritable(file.file.descriptor)
    file.close()


@pytest.mark.parametrize("other", [replace(NOTE, address="blob:tfstate/dev"), replace(NOTE, endpoint="https://b")])
def test_a_note_about_another_resource_is_left_alone(tmp_path: Path, other: RunNote) -> None:
    notes = RunNotes(tmp_path)
    file = notes.open()
    file.write(other)
    file.close()
    assert (over(notes), file.file.path.exists()) == ([], True)


def test_a_note_of_another_machine_is_left_alone_as_in_a_cache_that_was_copied(tmp_path: Path) -> None:
    file = RunNotes(tmp_path).open()
    file.write(NOTE)
    file.file.write(**ELSEWHERE.facts)
    file.close()
    assert (over(RunNotes(tmp_path)), file.file.path.exists()) == ([], True)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"address": 1}', b"\xff"])
def test_a_file_that_is_no_note_is_passed_over(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)
    assert over(RunNotes(tmp_path)) == []
    assert (tmp_path / "a.json").exists()


def test_a_note_of_a_run_that_was_killed_before_its_command_began_is_deleted(tmp_path: Path) -> None:
    file = RunNotes(tmp_path).open()
    assert (over(RunNotes(tmp_path)), file.file.path.exists()) == ([], True)
    file.close()
    assert (over(RunNotes(tmp_path)), file.file.path.exists()) == ([], False)
