"""The files of a folder: which are found, and where a name goes, never outside of it."""

import os
from pathlib import Path

import pytest

from azguard import atomic_files
from azguard.atomic_files import is_unfinished
from azguard.errors import UsageError
from azguard.trees.local_files import LocalFile, LocalFolder, PassedOver, find_fold, walk
from tests.support.cases import cases


def names(folder: Path, *, follows_links: bool = False) -> list[str]:
    return [each.name for each in walk(folder, follows_links=follows_links) if isinstance(each, LocalFile)]


def reasons(folder: Path, *, follows_links: bool = False) -> dict[str, str]:
    found = walk(folder, follows_links=follows_links)
    return {each.name: each.reason for each in found if isinstance(each, PassedOver)}


def test_files_are_found_in_order_with_slashes_and_empty_ones_too(tmp_path: Path) -> None:
    for name in ("b", "a/z", "a/b/c", "a.txt", ".hidden", "with space \N{LATIN SMALL LETTER U WITH DIAERESIS}"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert names(tmp_path) == [
        ".hidden", "a/b/c", "a/z", "a.txt", "b", "with space \N{LATIN SMALL LETTER U WITH DIAERESIS}",
    ]  # fmt: skip


def test_links_are_passed_over_by_name_unless_they_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/x").touch()
    (tmp_path / "folder").symlink_to("real")
    (tmp_path / "file").symlink_to("real/x")
    assert (names(tmp_path), set(reasons(tmp_path))) == (["real/x"], {"file", "folder"})
    assert names(tmp_path, follows_links=True) == ["file", "folder/x", "real/x"]


def test_a_folder_that_contains_itself_through_a_link_is_walked_once(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/x").touch()
    (tmp_path / "a/again").symlink_to("..")
    found = reasons(tmp_path, follows_links=True)
    assert list(found.values()) == ["its folder contains itself, through a link"]
    assert "a/x" in names(tmp_path, follows_links=True)


def test_what_is_in_too_many_folders_is_a_failure_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(300):
        os.mkdir("a")
        os.chdir("a")
    (tmp_path / "b").touch()
    deep, file = walk(tmp_path, follows_links=False)
    assert isinstance(deep, PassedOver)
    assert (deep.name.count("a"), str(deep.error), file) == (
        256, "it is in more than 255 folders", LocalFile(tmp_path / "b", "b"),
    )  # fmt: skip


def test_what_is_no_file_is_passed_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert reasons(tmp_path) == {"pipe": "it is no file"}


def test_what_a_killed_run_left_is_passed_over(tmp_path: Path) -> None:
    with atomic_files.replacing(tmp_path / "index.html"):
        (left,) = tmp_path.iterdir()
    left.write_text("<p>ha")
    (tmp_path / "index.html").unlink()
    (tmp_path / ".env").touch()
    assert (names(tmp_path), set(reasons(tmp_path))) == ([".env"], {left.name})


def test_a_link_to_nothing_is_passed_over_when_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to("nowhere")
    assert reasons(tmp_path, follows_links=True) == {"dangling": "it is no file"}


def test_a_link_to_itself_is_a_failure_and_the_rest_goes_on(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("a")
    (tmp_path / "b").touch()
    link, file = walk(tmp_path, follows_links=True)
    assert isinstance(link, PassedOver)
    assert (str(link.error), file) == (
        f"{tmp_path}/a cannot be read: Too many levels of symbolic links", LocalFile(tmp_path / "b", "b"),
    )  # fmt: skip


def test_a_name_that_is_not_utf8_is_a_failure_that_shows_it(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")).touch()
    (found,) = walk(tmp_path, follows_links=False)
    assert isinstance(found, PassedOver)
    assert (found.name, found.error is not None) == ("caf\\xe9", True)


@pytest.mark.parametrize("name", ["nothing", "file"])
def test_what_is_no_folder_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError):
        names(tmp_path / name)


@cases("name", "../x", "a/../../x", "/etc/passwd", "a//b", "a/", "", ".", "a/./b", "..", "a\0b", ids=repr)
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


def test_what_a_run_leaves_that_is_killed_early_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
