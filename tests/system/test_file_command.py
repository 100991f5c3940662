"""Commands that edit a file, with real processes: what they get, what is read back, and that nothing is left."""

import os
import sys
import time
from pathlib import Path

import pytest

from azguard.errors import GaveUp, TransformFailed
from azguard.processes import file_command
from tests.support.cases import cases

PYTHON = sys.executable


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the private copies be in a folder of this test's own, which is empty again in the end."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def run(*command: str, content: bytes = b"a: 1\n", seconds: float = 30) -> tuple[bytes, bytes]:
    """Return the new content, and what was printed."""
    printed = bytearray()
    made = file_command.run(
        command,
        content,
        "site/config.yaml",
        environ=os.environ,
        deadline=time.monotonic() + seconds,
        clock=time.monotonic,
        relay=printed.extend,
    )
    return made.content, bytes(printed)


def shell(script: str, **settings: float) -> tuple[bytes, bytes]:
    return run("sh", "-c", script, "sh", "{}", **settings)  # type: ignore[arg-type]  # seconds alone is passed on


@cases(
    ("command", "answer"),
    (("sed", "-i", "s/1/2/", "{}"), True),
    (("tool", "--file={}"), True),
    (("jq", ".a = {}"), False),
    (("jq", ".a={}"), False),
    (("jq", "{a}"), False),
    (("tool", "-f{}"), False),
    (("{}",), False),
)
def test_the_file_is_an_argument_of_its_own_or_the_value_of_an_option(command: tuple[str, ...], answer: bool) -> None:
    assert file_command.names_file(command) == answer


def test_a_file_that_was_changed_in_place_is_read_back(folder: Path) -> None:
    assert (shell('printf "b: 2\\n" >> "$1"'), list(folder.iterdir())) == ((b"a: 1\nb: 2\n", b""), [])


def test_a_file_that_was_replaced_is_read_back() -> None:
    assert run("sed", "-i", "s/1/2/", "{}") == (b"a: 2\n", b"")


def test_each_place_gets_the_path_and_other_words_stay() -> None:
    script = "import sys; print(sys.argv[1] == sys.argv[2][4:], sys.argv[1][-12:], sys.argv[3:])"
    assert run(PYTHON, "-c", script, "{}", "--f={}", "x{}", ".a={}")[1] == b"True /config.yaml ['x{}', '.a={}']\n"


def test_stdin_is_empty_and_what_is_printed_is_no_content() -> None:
    assert shell("cat; echo printed") == (b"a: 1\n", b"printed\n")


def test_a_command_that_fails_is_told_without_the_path(folder: Path) -> None:
    with pytest.raises(TransformFailed) as caught:
        shell('echo 2 > "$1"; exit 3')
    assert "exited with status 3" in caught.value.message
    assert caught.value.message.count("{}") == 1
    assert list(folder.iterdir()) == []


def test_a_command_that_deletes_the_file_is_an_error(folder: Path) -> None:
    with pytest.raises(TransformFailed) as caught:
        run("rm", "{}")
    assert (caught.value.reason, list(folder.iterdir())) == ("scratch_gone", [])


def test_nothing_is_left_of_a_command_that_is_too_slow(folder: Path) -> None:
    with pytest.raises(GaveUp, match=r"sleep 60 \{\}|sleep 60"):
        run("sh", "-c", "sleep 60", "sh", "{}", seconds=0.2)
    assert list(folder.iterdir()) == []


def test_a_large_file_comes_back_whole() -> None:
    content = bytes(range(256)) * 4096
    assert run("true", "{}", content=content) == (content, b"")
