"""Renames that wait for the disk: which sync of the folder counts, and how many there are."""

import os
import threading
from pathlib import Path

import pytest

from azguard import atomic_files
from azguard.atomic_files import write_atomically
from azguard.cli import errors, signals
from azguard.cli.errors import Facts
from tests.support.emulator_world import until

_WRITERS = 6


def test_files_renamed_during_a_sync_share_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_end = threading.Event()
    #: What was in the folder when each of its syncs began.
    synced: list[set[str]] = []

    def sync(folder: str) -> None:
        synced.append(set(os.listdir(folder)))
        may_end.wait(60)

    monkeypatch.setattr(atomic_files, "_sync_folder", sync)
    done: dict[str, int] = {}

    def write(name: str) -> None:
        write_atomically(tmp_path / name, b"content")
        done[name] = len(synced)

    first = threading.Thread(target=write, args=("first",))
    first.start()
    until(lambda: len(synced) == 1)
    others = [threading.Thread(target=write, args=(str(number),)) for number in range(_WRITERS)]
    for each in others:
        each.start()
    until(lambda: len(atomic_files._syncs[str(tmp_path)]._state._waiters) == _WRITERS)  # type: ignore[attr-defined]  # typeshed knows no such part
    may_end.set()
    for each in [first, *others]:
        each.join()
    assert (len(synced), synced[1], set(done)) == (2, set(done), {"first", *map(str, range(_WRITERS))})
    assert atomic_files._syncs == {}


def test_a_link_above_a_file_and_a_link_that_is_the_file_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "folder").symlink_to("real")
    (tmp_path / "file").symlink_to("real/a")
    write_atomically(tmp_path / "folder" / "a", b"1")
    write_atomically(tmp_path / "file", b"2")
    write_atomically(tmp_path / "folder" / ".." / "b", b"3")
    found = {each.name: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file() and not each.is_symlink()}
    assert (found, (tmp_path / "file").is_symlink()) == ({"a": b"2", "b": b"3"}, True)


def test_a_device_or_a_pipe_is_never_replaced(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path / ".", b"content")
    for path in (pipe, link):
        with pytest.raises(OSError, match="not a regular file"):
            write_atomically(path, b"content")
    assert pipe.is_fifo()


def test_a_folder_that_was_deleted_around_us_matters_only_to_what_is_named_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    write_atomically(tmp_path / "file", b"x")
    with pytest.raises(FileNotFoundError) as caught:
        write_atomically(Path("file"), b"x")
    monkeypatch.setattr(signals, "hasten", lambda status: None)
    status = errors.report(caught.value, Facts(), {})
    assert ((tmp_path / "file").read_bytes(), status, capsys.readouterr().err.partition("\n")[0]) == (
        b"x", 78, "error: the folder that you are in was deleted",
    )  # fmt: skip
