"""A local file that is read as content: what is read is one content, or an error."""

import os
from pathlib import Path

import pytest

from azguard.errors import Changed, GaveUp, UsageError
from azguard.resources.sources import open_unchanged


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
