"""Where a name goes in a folder: never outside of it, and never in the place of another name."""

import os
from pathlib import Path

import pytest

from azguard.atomic_files import is_unfinished
from azguard.errors import UsageError
from azguard.trees.local_files import LocalFolder, find_fold
from tests.support.cases import cases


@cases("name", ["../x", "a/../../x", "/etc/passwd", "a//b", "a/", "", ".", "a/./b", "..", "a\0b"], ids=repr)
def test_a_name_that_would_leave_the_folder_or_is_none_of_a_file_is_refused(tmp_path: Path, name: str) -> None:
    root = tmp_path / "root"
    with pytest.raises(UsageError) as refused:
        LocalFolder.make(root).claim(name)
    assert refused.value.reason == "tree_name_refused"
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("name", ["a" * 256, "\u00e9" * 128, f"{'a' * 256}/b"], ids=["long", "bytes", "folder"])
def test_a_name_that_is_too_long_for_the_disk_is_refused(tmp_path: Path, name: str) -> None:
    folder = LocalFolder.make(tmp_path)
    for find in (folder.claim, folder.find):
        with pytest.raises(UsageError, match="too long") as refused:
            find(name)
        assert refused.value.reason == "tree_name_refused"


@pytest.mark.parametrize("name", ["a", "..a", "a..", "a/..b/c", " ", "a\\b", "-rf", "a:b", "*"])
def test_every_other_name_goes_below_the_folder(tmp_path: Path, name: str) -> None:
    assert LocalFolder.make(tmp_path).claim(name) == tmp_path / name


def test_a_link_in_the_folder_is_not_followed_out_of_it(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "link").symlink_to(outside)
    (root / "file").symlink_to(outside / "x")
    folder = LocalFolder.make(root)
    for name in ("link/x", "link/a/b", "file"):
        for find in (folder.claim, folder.find):
            with pytest.raises(UsageError, match="symbolic link"):
                find(name)
    assert list(outside.iterdir()) == []


def test_a_folder_that_is_itself_reached_by_a_link_is_one(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "root").symlink_to("real")
    assert LocalFolder.make(tmp_path / "root").claim("a/b") == tmp_path / "root/a/b"


def test_a_file_in_the_way_of_a_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("mine")
    with pytest.raises(UsageError, match="no folder"):
        LocalFolder.make(tmp_path).claim("a/b")
    assert (tmp_path / "a").read_text() == "mine"


def test_a_folder_in_the_way_of_a_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(UsageError, match="no file"):
        LocalFolder.make(tmp_path).claim("a")


def test_a_name_that_the_disk_takes_for_another_is_refused(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path, str.casefold)
    folder.claim("Readme")
    with pytest.raises(UsageError, match="another file of the tree has the same name"):
        folder.claim("README")
    assert folder.claim("other") == tmp_path / "other"


def test_a_disk_that_keeps_names_apart_folds_none(tmp_path: Path) -> None:
    assert find_fold(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_what_a_run_leaves_that_is_killed_while_it_looks_at_the_disk_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "unlink", lambda path: None)
    find_fold(tmp_path)
    assert [is_unfinished(each.name) for each in tmp_path.iterdir()] == [True]


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is not a folder") as refused:
        LocalFolder.make(tmp_path / "file")
    assert refused.value.reason == "tree_folder_fails"


def test_what_a_killed_run_left_is_deleted_in_each_folder_that_is_written_to(tmp_path: Path) -> None:
    names = ("a", "below/b")
    for name in names:
        left = tmp_path / Path(name).parent / ".x.azguard-0123456789ab"
        left.parent.mkdir(exist_ok=True)
        left.touch()
        os.utime(left, (0, 0))
    folder = LocalFolder.make(tmp_path)
    for name in names:
        folder.claim(name).touch()
    found = {str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*") if each.is_file()}
    assert found == set(names)
