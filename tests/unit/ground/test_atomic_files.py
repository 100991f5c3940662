"""Files that are replaced whole or not at all."""

import os
import stat
import sys
from pathlib import Path
from typing import BinaryIO

import pytest

from azguard import atomic_files
from azguard.atomic_files import discard_unfinished, remove_left, replacing, write_atomically

posix = pytest.mark.skipif(sys.platform == "win32", reason="permissions and links of POSIX")


class Trouble(Exception):
    """What goes wrong while a file is written."""


def fail_after(stream: BinaryIO, content: bytes) -> None:
    stream.write(content)
    raise Trouble


@pytest.mark.parametrize("durable", [True, False])
def test_the_new_content_replaces_the_old(tmp_path: Path, durable: bool) -> None:
    file = tmp_path / "state.json"
    write_atomically(file, b"old", durable=durable)
    write_atomically(file, b"new\r\n", durable=durable)
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"state.json": b"new\r\n"}


def test_until_the_end_a_reader_finds_the_old_content(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    file.write_bytes(b"old")
    with replacing(file) as stream:
        stream.write(b"new")
        stream.flush()
        assert file.read_bytes() == b"old"
    assert file.read_bytes() == b"new"


def test_what_fails_halfway_leaves_the_old_content_and_nothing_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    file.write_bytes(b"old")
    with pytest.raises(Trouble), replacing(file) as stream:
        fail_after(stream, b"ne")
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"state.json": b"old"}


def test_what_cannot_be_renamed_leaves_nothing_beside_it(tmp_path: Path) -> None:
    folder = tmp_path / "state.json"
    folder.mkdir()
    with pytest.raises(OSError, match=r"state\.json"):
        write_atomically(folder, b"new")
    assert list(tmp_path.iterdir()) == [folder]


def test_without_its_folder_a_file_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "none" / "state.json", b"new")


def test_a_name_may_be_as_long_as_the_file_system_allows(tmp_path: Path) -> None:
    file = tmp_path / ("é" * 120)
    write_atomically(file, b"new")
    assert file.read_bytes() == b"new"


@posix
def test_the_permissions_are_those_asked_for(tmp_path: Path) -> None:
    secret, shared = tmp_path / "secret", tmp_path / "shared"
    write_atomically(secret, b"", 0o600)
    with replacing(shared, 0o666, exact=True):
        pass
    assert [stat.S_IMODE(each.stat().st_mode) for each in (secret, shared)] == [0o600, 0o666]


@posix
def test_a_symbolic_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(b"old")
    link.symlink_to(real)
    write_atomically(link, b"new")
    assert (link.is_symlink(), real.read_bytes()) == (True, b"new")


def leave(file: Path, *, seconds: float) -> Path:
    """Make a file that nothing has been written to for so many seconds."""
    file.write_bytes(b"half")
    moment = file.stat().st_mtime - seconds
    os.utime(file, (moment, moment))
    return file


@posix
def test_what_a_killed_process_left_is_deleted_and_nothing_else(tmp_path: Path) -> None:
    leave(tmp_path / ".a.azguard-0123456789ab", seconds=61)
    kept = [
        leave(tmp_path / ".b.azguard-0123456789ab", seconds=30),
        leave(tmp_path / ".a.azguard-0123", seconds=61),
        leave(tmp_path / "a.azguard-0123456789ab", seconds=61),
    ]
    (tmp_path / ".c.azguard-0123456789ab").mkdir()
    (tmp_path / ".d.azguard-0123456789ab").symlink_to(kept[0])
    remove_left(tmp_path)
    assert {each.name for each in tmp_path.iterdir()} == {
        *(each.name for each in kept), ".c.azguard-0123456789ab", ".d.azguard-0123456789ab",
    }  # fmt: skip


@posix
def test_what_a_living_process_writes_is_not_deleted_however_old_it_seems(tmp_path: Path) -> None:
    file = tmp_path / "a"
    with replacing(file) as stream:
        stream.write(b"new")
        stream.flush()
        os.utime(stream.fileno(), (0, 0))
        remove_left(tmp_path)
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"a": b"new"}


def test_a_folder_that_cannot_be_read_is_left_alone(tmp_path: Path) -> None:
    remove_left(tmp_path / "missing")


@posix
def test_what_is_being_written_is_deleted_by_a_process_that_ends_at_once(tmp_path: Path) -> None:
    def end() -> None:
        with replacing(tmp_path / "a"):
            discard_unfinished()
            assert list(tmp_path.iterdir()) == []

    with pytest.raises(FileNotFoundError):
        end()
    assert not atomic_files._unfinished
