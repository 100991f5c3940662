"""Locked files, between two open files of one process, which the kernel keeps apart as it does processes."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from azguard.processes import locked_file
from azguard.processes.locked_file import IS_SUPPORTED, Machine, ProcessNote, ProcessNotes


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "lock"


def test_a_lock_is_given_to_one_and_again_when_it_is_let_go(file: Path) -> None:
    handle = os.open(file, os.O_CREAT | os.O_RDWR)
    try:
        with locked_file.hold(file):
            while_held = locked_file.try_lock(handle)
        assert (while_held, locked_file.try_lock(handle)) == (False, True)
    finally:
        os.close(handle)


def test_a_lock_is_let_go_when_the_block_fails(file: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked_file.hold(file):
        raise ZeroDivisionError
    with locked_file.hold(file, at_most_seconds=0):
        pass


def test_a_lock_is_waited_for_only_so_long(file: Path) -> None:
    with (
        locked_file.hold(file),
        pytest.raises(TimeoutError, match=r"kept it locked for 0\.05 seconds"),
        locked_file.hold(file, at_most_seconds=0.05),
    ):
        pytest.fail("both hold it")


def test_a_lock_file_that_cannot_be_made_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), locked_file.hold(tmp_path / "no" / "lock"):
        pytest.fail("it is held")


pytestmark = pytest.mark.skipif(not IS_SUPPORTED, reason="this system has no such locks")
HERE = Machine("build-1", "boot-1", "installation-1")


def find(notes: ProcessNotes) -> list[dict[str, str]]:
    return [{name: fact for name, fact in note.facts.items() if name != "since"} for note in notes.find_abandoned()]


def test_a_note_is_found_with_all_its_facts_when_its_process_has_let_go_of_it(tmp_path: Path) -> None:
    notes = ProcessNotes(tmp_path / "notes", HERE)
    note = notes.open("a", {"what": "lease"})
    note.add(what="rename", to="b")
    assert find(notes) == []
    note.close(is_done=False)
    # A line that a kill cut short.
    with open(note.path, "a") as file:
        file.write('{"to": ')
    assert find(notes) == [
        {"what": "rename", "to": "b", "host": "build-1", "boot": "boot-1", "installation": "installation-1"}
    ]
    note.close(is_done=True)
    assert list(notes.folder.iterdir()) == []


def test_a_note_that_is_begun_meanwhile_is_not_abandoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = ProcessNotes(tmp_path, HERE)
    (tmp_path / "a.json").touch()  # Its process has made it, and not locked it yet.
    close = os.close
    begun: list[ProcessNote] = []

    def close_and_begin(descriptor: int) -> None:
        close(descriptor)
        if not begun:
            begun.append(notes.open("a", {}))

    monkeypatch.setattr(os, "close", close_and_begin)
    assert (find(notes), len(begun)) == ([], 1)


def test_a_note_that_cannot_be_deleted_is_let_go_of_all_the_same(tmp_path: Path) -> None:
    note = ProcessNotes(tmp_path, HERE).open("a", {})
    note.path.unlink()
    note.path.mkdir()
    note.close(is_done=True)
    assert note.descriptor is None


@pytest.mark.parametrize(
    ("here", "is_found"),
    [
        (HERE, True),
        (replace(HERE, host="container-2", installation=None), True),
        (replace(HERE, boot="boot-2"), True),
        (replace(HERE, boot="boot-2", installation=None), False),
        (replace(HERE, boot="boot-2", host="build-2"), False),
        (replace(HERE, boot="boot-2", installation="installation-2"), False),
    ],
    ids=["same", "another container", "started again", "perhaps started again", "other host", "other installation"],
)
def test_a_note_of_another_machine_is_left_to_it(tmp_path: Path, here: Machine, *, is_found: bool) -> None:
    ProcessNotes(tmp_path, HERE).open("a", {}).close(is_done=False)
    assert bool(find(ProcessNotes(tmp_path, here))) is is_found


def test_what_is_no_note_is_left_alone(tmp_path: Path) -> None:
    for name, content in (("empty", b""), ("list", b"[]\n"), ("bytes", b"\xff\n"), ("lines", b'{"what": "x"}\n')):
        (tmp_path / f"{name}.json").write_bytes(content)
    assert find(ProcessNotes(tmp_path, HERE)) == []
    assert len(os.listdir(tmp_path)) == 4


def test_where_nothing_can_be_written_nothing_is_noted(tmp_path: Path) -> None:
    (tmp_path / "file").write_text(json.dumps({}))
    note = ProcessNotes(tmp_path / "file", HERE).open("a", {})
    note.add(to="b")
    note.close(is_done=False)
    assert (note.descriptor, find(ProcessNotes(tmp_path / "file", HERE))) == (None, [])


@pytest.mark.parametrize(
    ("is_there", "since", "may_come"), [(False, None, True), (True, None, False), (False, "0", False)]
)
def test_what_a_process_has_begun_may_come_later_than_its_end_but_not_for_ever(
    tmp_path: Path, since: str | None, *, is_there: bool, may_come: bool
) -> None:
    note = ProcessNotes(tmp_path, HERE).open("a", {})
    if since is not None:
        note.add(since=since)
    if is_there:
        note.note_there()
    note.close(is_done=False)
    assert [each.may_come for each in ProcessNotes(tmp_path, HERE).find_abandoned()] == [may_come]
