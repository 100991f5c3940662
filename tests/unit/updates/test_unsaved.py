"""Work that could not be written: it is in a file of the user's own, whole, or nowhere."""

import errno
import os
import stat
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from azguard.accounts.account import Target, emulator
from azguard.address import Address, Kind
from azguard.updates import recording

NOW = datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC)


def target(name: str = "app/config.json") -> Target:
    return Target(emulator(), Address(Kind.BLOB, ("site", name)))


def test_work_is_kept_in_a_file_that_only_its_owner_reads(tmp_path: Path) -> None:
    path = recording.save_unwritten_content(tmp_path / "deep" / "kept", target(), b"new", NOW)
    assert path is not None
    assert (path.parent, path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (
        tmp_path / "deep" / "kept",
        b"new",
        0o600,
    )
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert path.name.startswith("20261121T100000-")
    assert path.name.endswith("-site-app-config.json")


def test_work_never_overwrites_other_work(tmp_path: Path) -> None:
    paths = {recording.save_unwritten_content(tmp_path, target(), b"%d" % number, NOW) for number in range(3)}
    assert {path.read_bytes() for path in paths if path} == {b"0", b"1", b"2"}


def test_a_name_that_is_no_file_name_is_made_one(tmp_path: Path) -> None:
    path = recording.save_unwritten_content(tmp_path, target("../é \n" + "x" * 300), b"", NOW)
    assert path is not None
    assert path.parent == tmp_path


def test_work_goes_to_the_temporary_folder_where_its_own_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = recording.save_unwritten_content(tmp_path / "file" / "kept", target(), b"new", NOW)
    assert path is not None
    assert (path.parent, path.read_bytes()) == (tmp_path, b"new")


def test_where_nothing_can_be_written_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert (
        recording.save_unwritten_content(tmp_path / "kept", target(), b"new", NOW),
        list(tmp_path.rglob("*-*")),
    ) == (
        None,
        [],
    )
