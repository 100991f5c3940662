"""The files of a folder: which are found, and which are passed over."""

import os
from pathlib import Path

import pytest

from azguard import atomic_files
from azguard.errors import UsageError
from azguard.trees.local_files import LocalFile, PassedOver, walk


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
