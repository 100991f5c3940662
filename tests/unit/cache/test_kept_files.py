"""What is kept in files beside the reads of scopes: what is found, what is in use, and what is deleted by its age."""

import os
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from azguard import folders
from azguard.cache import kept_files
from azguard.cache.kept_files import KeptItem
from azguard.errors import ConfigError
from azguard.folders import KEPT, Keeping
from azguard.locks.hold_records import HoldRecords, HoldState
from azguard.processes import locked_file
from azguard.processes.locked_file import Machine, ProcessNotes
from tests.support.cases import cases
from tests.unit.locks.test_holds import hold

NOW = datetime.now(UTC)
DAY = 86400
USES = {folders.HOLD.kind: HoldRecords.may_be_held}
ANY_AGE = timedelta(0)


def write(path: Path, days: float = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("content")
    return make_old(path, days)


def make_old(path: Path, days: float) -> Path:
    os.utime(path, (NOW.timestamp() - days * DAY,) * 2)
    return path


def find(cache: Path) -> list[KeptItem]:
    return list(kept_files.find(cache, NOW, USES))


def prune(cache: Path, older_than: timedelta = ANY_AGE) -> list[str]:
    due = [each for each in find(cache) if each.is_due(older_than)]
    return [each.kind for each in kept_files.delete(due, USES)]


def sample(cache: Path, row: Keeping, days: float) -> Path:
    name = "etags.db.damaged-20261125T000000Z" if row is folders.DAMAGED else row.pattern.replace("*", "item")
    return write(cache / row.folder / name, days)


def test_every_kind_is_found_and_deleted_after_its_days_and_not_before(tmp_path: Path) -> None:
    for row in KEPT:
        young, old = tmp_path / f"{row.kind} young", tmp_path / f"{row.kind} old"
        sample(young, row, (row.days or 1) - 1)
        sample(old, row, (row.days or 1) + 1)
        assert [(each.kind, each.size) for each in find(young)] == [(row.kind, 7)]
        assert (prune(young), prune(old)) == ([], [row.kind] if row.days else [])
        assert prune(old, timedelta(days=1000)) == []


def test_each_folder_of_the_cache_that_azguard_writes_is_of_a_kind(tmp_path: Path) -> None:
    found = folders.Folders(tmp_path, tmp_path)
    names = ("emulator", "queues", "holds", "runs", "process_leases", "process_files", "attempts", "kept")
    places = {tmp_path / row.folder for row in KEPT} | {tmp_path / folders.EMULATOR.pattern}
    assert {getattr(found, name) for name in names} <= places
    # A new property of the folders needs its row.
    ground = {"cache", "config", "profiles", "count", "index", "of", "check"}
    assert {name for name in dir(found) if not name.startswith("_")} - ground == set(names)


def test_a_folder_is_as_old_as_what_was_last_written_in_it_and_as_large_as_all_of_it(tmp_path: Path) -> None:
    write(tmp_path / "kept/azguard-1/site.json", days=3)
    write(tmp_path / "kept/azguard-1/site.json.base", days=200)
    make_old(tmp_path / "kept/azguard-1", 200)
    (found,) = find(tmp_path)
    assert (found.size, found.age // DAY, found.in_use) == (14, 3, False)


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Path]:
    """Return the cache of an editor that has been open for 200 days."""
    path = write(tmp_path / "kept/azguard-1/site.json.base", 200)
    make_old(path.parent, 200)
    descriptor = os.open(path, os.O_RDONLY)
    locked_file.lock(descriptor)
    yield tmp_path
    os.close(descriptor)


@pytest.mark.skipif(not locked_file.IS_SUPPORTED, reason="this system has no such locks")
def test_what_a_process_has_locked_is_in_use_and_stays(locked: Path) -> None:
    assert ([each.in_use for each in find(locked)], prune(locked)) == ([True], [])


@pytest.mark.skipif(not locked_file.IS_SUPPORTED, reason="this system has no such locks")
def test_the_note_of_a_process_that_lives_stays_from_its_first_moment_on(tmp_path: Path) -> None:
    notes = ProcessNotes(tmp_path / "process-leases", Machine.find())
    (tmp_path / "process-leases").mkdir(mode=0o700)
    (tmp_path / "process-leases/begun.json").touch()  # Its process has made it, and not locked it yet.
    note = notes.open("held", {})
    assert list(kept_files.delete(find(tmp_path), USES)) == []
    note.close(is_done=False)
    assert [Path(each.path).name for each in kept_files.delete(find(tmp_path), USES)] == ["held.json"]


@cases(
    ("changes", "age", "in_use"),
    ({}, 40 * DAY, True),  # Its process lives.
    ({"pid": None, "birth": None}, 30, True),
    ({"pid": None, "birth": None}, 40 * DAY, False),
    ({"pid": None, "birth": None, "seconds": None}, 40 * DAY, True),
    ({"birth": "another"}, 30, True),  # Its process has ended, and its lease may not have.
    ({"birth": "another"}, 40 * DAY, False),
    ({"place": "another machine"}, 30, True),
    ({"place": "another machine", "seconds": None}, 40 * DAY, True),
    ({"state": HoldState.RELEASED}, 30, False),
    ({"state": HoldState.LOST}, 30, False),
)
def test_a_lock_perhaps_held_is_in_use(tmp_path: Path, changes: dict[str, object], age: float, in_use: bool) -> None:
    holds, record = HoldRecords(tmp_path / "holds"), hold(**{"seconds": DAY, **changes})
    holds.save(record)
    write(holds.file(record.lease_id, "log"), age / DAY)
    make_old(holds.file(record.lease_id, "json"), age / DAY)
    (found,) = find(tmp_path)
    assert (found.in_use, [each.suffix for each in found.paths]) == (in_use, [".json", ".log"])
    assert len(list(kept_files.delete([found], USES))) == (not in_use)
    assert len(list(holds.folder.iterdir())) == (2 if in_use else 0)


def test_what_was_written_after_it_was_found_stays(tmp_path: Path) -> None:
    path = write(tmp_path / "kept/work", 200)
    found = find(tmp_path)
    make_old(path, 0)
    assert (list(kept_files.delete(found, USES)), path.read_text()) == ([], "content")


def test_a_link_is_never_followed(tmp_path: Path) -> None:
    private = write(tmp_path / "home/letter", 200)
    cache = tmp_path / "cache"
    (cache / "kept").mkdir(parents=True, mode=0o700)
    (cache / "kept/linked").symlink_to(private.parent)
    list(kept_files.delete(find(cache), USES))
    (cache / "runs").symlink_to(private.parent)
    with pytest.raises(ConfigError, match="symbolic link"):
        find(cache)
    assert private.read_text() == "content"


def test_one_that_cannot_be_deleted_keeps_none_of_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        write(tmp_path / f"kept/{name}", 200)
    unlink = Path.unlink

    def refuse(path: Path, *, missing_ok: bool = False) -> None:
        if path.name == "b":
            raise PermissionError(13, "Permission denied", str(path))
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(ConfigError, match="b cannot be deleted: Permission denied"):
        prune(tmp_path)
    assert [asdict(each)["path"].rpartition("/")[2] for each in find(tmp_path)] == ["b"]
