"""What a command reads: a file, or stdin."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from azguard.cli.input import streams
from azguard.cli.input.accounts import secret
from azguard.cli.options.types import read_seconds
from azguard.commands.blob.append import AppendOptions
from azguard.errors import Changed, ConfigError, UsageError
from tests.support.cases import cases


@pytest.mark.parametrize(
    ("takes_folders", "hint"), [(True, "add --recursive to write all files below it"), (False, "name a file")]
)
def test_a_folder_is_refused_with_an_option_that_the_command_has(
    tmp_path: Path, takes_folders: bool, hint: str
) -> None:
    with pytest.raises(UsageError) as refused:
        streams.source(str(tmp_path), takes_folders=takes_folders)
    assert refused.value.hint == hint


@cases(("text", "hint"), ("0", "--wait 1s"), ("8d", "--wait 604800s"), ("1.5s", "--wait 2s"))
def test_the_hint_at_a_number_of_seconds_is_near_what_was_typed(text: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_seconds(text, "--wait", 1, 604800)
    assert refused.value.hint == hint


def test_a_file_whose_name_is_too_long_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    assert [streams.is_writable(tmp_path / name) for name in ("x" * 300, "a/b", "new", "")] == [
        False,
        False,
        True,
        False,
    ]


def test_content_of_a_named_file_must_not_change_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old content")
    with streams.content(str(path)) as stream:
        assert (stream.read(3), streams.size(stream)) == (b"old", 11)
        # The clock of a file system ticks in milliseconds: what it would show after the next tick.
        os.utime(path, ns=(1, 1))
        with pytest.raises(Changed, match="changed while it was read"):
            stream.read(100)


def test_a_log_that_grows_is_appended_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\n")
    with AppendOptions(file=str(path)).open_here() as stream, path.open("ab") as log:
        assert stream is not None
        assert stream.read(4) == b"one\n"
        log.write(b"two\n")
        log.flush()
        assert stream.read() == b"two\n"


@pytest.mark.skipif(not os.path.isfile("/proc/self/status"), reason="needs /proc")
def test_content_of_a_file_that_tells_no_size_is_read_whole() -> None:
    with streams.content("/proc/self/status") as stream:
        assert (streams.size(stream), stream.read().startswith(b"Name:"), stream.read()) == (0, True, b"")


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs /dev/zero")
@pytest.mark.parametrize(
    "read",
    [streams.read, streams.read_json, lambda name: list(streams.json_lines(name)), lambda name: secret(f"@{name}")],
    ids=["bytes", "JSON", "lines", "secret"],
)
def test_a_file_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch, read: Callable[[str], object]) -> None:
    monkeypatch.setattr(streams, "_MOST_BYTES", 1000)
    with pytest.raises((UsageError, ConfigError), match="is longer than"):
        read("/dev/zero")
