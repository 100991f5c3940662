"""The files of a folder: which are found, which are passed over, and that one read is one content."""

import os
from pathlib import Path

import pytest

from azguard import atomic_files
from azguard.errors import Changed, GaveUp, UsageError
from azguard.trees.local_files import LocalFile, PassedOver, open_unchanged, walk


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


def test_a_file_that_stays_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"content")
    with open_unchanged(tmp_path / "x") as file:
        assert (file.read(3), file.read(100), file.read(1), file.size) == (b"con", b"tent", b"", 7)


@pytest.mark.parametrize("change", ["append", "truncate", "overwrite"])
def test_a_file_that_is_written_to_while_it_is_read_ends_with_an_error(tmp_path: Path, change: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"12345678")
    with open_unchanged(path) as file:
        file.read(4)
        with open(path, "r+b") as writer:
            if change == "truncate":
                writer.truncate(2)
            else:
                writer.seek(8 if change == "append" else 0)
                writer.write(b"ab")
        # The clock of a file system ticks in milliseconds: what it would show after the next tick.
        os.utime(path, ns=(1, 1))
        with pytest.raises(Changed, match="changed while it was read"):
            list(iter(lambda: file.read(4), b""))


def test_a_file_that_is_replaced_under_its_name_is_read_as_it_was_opened(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    keep = tmp_path / "kept"
    os.link(path, keep)
    with open_unchanged(keep) as file:
        (tmp_path / "new").write_bytes(b"new")
        os.replace(tmp_path / "new", path)
        # Unlinking the other name changed the inode's time of change: what was read cannot be proved unchanged.
        with pytest.raises(Changed):
            file.read()


def test_a_check_may_end_the_reading(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"content")

    def stop() -> None:
        raise GaveUp("stopped")

    with open_unchanged(tmp_path / "x", stop) as file, pytest.raises(GaveUp):
        file.read(1)


def test_a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x")
    with pytest.raises(UsageError, match="no file any more"), open_unchanged(tmp_path / "x"):
        pass


def test_states_differ_where_the_content_may_differ(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"one")
    with open_unchanged(path) as first:
        before = first.state
    with open_unchanged(path) as again:
        assert again.state == before
    os.utime(path, ns=(5, 5))
    with open_unchanged(path) as later:
        assert later.state != before
