"""Notes of processes: whose process has ended, and which machine's they are."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from azguard.processes.locked_file import IS_SUPPORTED
from azguard.processes.notes import Machine, ProcessNote, ProcessNotes

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


def test_a_note_that_its_process_begins_meanwhile_is_not_abandoned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
