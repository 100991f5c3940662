"""Files that are replaced whole or not at all."""

import stat
import sys
from pathlib import Path
from typing import BinaryIO

import pytest

from azguard.atomic_files import replacing, write_atomically

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
