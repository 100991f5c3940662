"""The private file for another program: its name, its folder, and what may be found there afterwards."""

import os
import stat
from pathlib import Path

import pytest

from azguard.errors import TransformFailed
from azguard.processes.file_command import ScratchFile, choose_name
from tests.support.cases import cases

MOST = 100


@pytest.fixture
def scratch(tmp_path: Path) -> ScratchFile:
    return ScratchFile.make("site/config.yaml", b"a: 1\n", tmp_path)


def refusal(scratch: ScratchFile) -> str | None:
    with pytest.raises(TransformFailed) as caught:
        scratch.read(MOST)
    return caught.value.reason


@cases(
    ("name", "file"),
    ("site/a/config.yaml", "config.yaml"),
    ("site/--help", "content--help"),
    ("site/..", "content"),
    ("site/.env", ".env"),
    ("site/", "content"),
    ("site/a b$(reboot)`x`;\n.json", "a b__reboot__x___.json"),
    ("site/größe.json", "größe.json"),
    (f"site/{'x' * 300}.json", f"{'x' * 55}.json"),
)
def test_the_file_is_called_as_the_end_of_the_name(name: str, file: str) -> None:
    assert choose_name(name) == file


def test_folder_and_file_are_for_their_owner_alone(scratch: ScratchFile) -> None:
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (scratch.path.parent, scratch.path)]
    assert modes == [0o700, 0o600]


def test_what_was_written_in_place_is_read(scratch: ScratchFile) -> None:
    scratch.path.write_bytes(b"a: 2\n")
    assert scratch.read(MOST) == b"a: 2\n"


def test_what_took_the_place_of_the_file_is_read(scratch: ScratchFile) -> None:
    other = scratch.path.with_name("other")
    other.write_bytes(b"a: 3\n")
    os.replace(other, scratch.path)
    assert scratch.read(MOST) == b"a: 3\n"


def test_a_file_that_is_gone_is_an_error(scratch: ScratchFile) -> None:
    scratch.path.unlink()
    assert refusal(scratch) == "scratch_gone"


def test_a_link_is_not_followed(scratch: ScratchFile) -> None:
    scratch.path.unlink()
    scratch.path.symlink_to("/etc/hostname")
    assert refusal(scratch) == "scratch_not_readable"


def test_a_pipe_is_not_waited_for(scratch: ScratchFile) -> None:
    scratch.path.unlink()
    os.mkfifo(scratch.path)
    assert refusal(scratch) == "scratch_not_readable"


def test_a_folder_in_its_place_is_an_error(scratch: ScratchFile) -> None:
    scratch.path.unlink()
    scratch.path.mkdir()
    assert refusal(scratch) == "scratch_not_readable"


def test_a_file_that_is_too_large_is_not_read(scratch: ScratchFile) -> None:
    scratch.path.write_bytes(bytes(MOST + 1))
    with pytest.raises(TransformFailed, match="more than 100 bytes"):
        scratch.read(MOST)


def test_the_folder_goes_with_all_that_is_in_it(scratch: ScratchFile) -> None:
    scratch.path.with_name("config.yaml~").write_bytes(b"a backup")
    scratch.remove()
    assert not scratch.path.parent.exists()


def test_a_folder_that_cannot_be_made_is_no_crash(tmp_path: Path) -> None:
    with pytest.raises(TransformFailed) as caught:
        ScratchFile.make("x", b"", tmp_path / "missing")
    assert caught.value.reason == "scratch_not_written"
