"""Lines as they stand in a file."""

import io
import os
import tempfile
from typing import Any

import pytest

from azguard.batch import lines
from azguard.batch.lines import Line, TextLine
from azguard.errors import UsageError
from tests.support.cases import cases


@cases(
    "text, words",
    [
        ("blob show site/a", ("blob", "show", "site/a")),
        ("blob put 'site/a b' --content \"it's\"", ("blob", "put", "site/a b", "--content", "it's")),
        (r"blob put site/a --etag '\"0x1\"'", ("blob", "put", "site/a", "--etag", r"\"0x1\"")),
        ("blob put site/a --etag '\"0x1\"'", ("blob", "put", "site/a", "--etag", '"0x1"')),
        ("blob put site/a#1 --content $HOME/*", ("blob", "put", "site/a#1", "--content", "$HOME/*")),
        ("azguard blob show site/a\r\n", ("blob", "show", "site/a")),
        ("  version  ", ("version",)),
        ('["blob", "show", "a b"]', ("blob", "show", "a b")),
        ('["azguard", "version"]', ("version",)),
        ('{"args": ["version"]}', ("version",)),
        ("\ufeffversion", ("version",)),
        ("blob show site/ä", ("blob", "show", "site/ä")),
    ],
)
def test_a_line_is_words_as_in_a_shell_or_json(text: str, words: tuple[str, ...]) -> None:
    assert lines.parse(TextLine(1, text.encode())) == Line(1, words)


def test_an_object_has_a_name_and_stdin_too() -> None:
    text = b'{"id": "first", "args": ["blob", "put", "site/a"], "stdin": "{}\\n"}'
    assert lines.parse(TextLine(7, text)) == Line(7, ("blob", "put", "site/a"), "{}\n", "first")


@cases(
    "content, message",
    [
        (b'blob put "site/a', "no command line: No closing quotation"),
        (b"blob \\", "no command line: No escaped character"),
        (b'["blob"', "no JSON: Expecting ',' delimiter at character 8"),
        (b"[" * 100_000, "no command line: maximum recursion depth exceeded"),
        (b"[]", '"args" is not a list of texts'),
        (b'["blob", 1]', '"args" is not a list of texts'),
        (b'{"stdin": ""}', '"args" is not a list of texts'),
        (b'{"args": "blob show site/a"}', '"args" is not a list of texts'),
        (b'{"args": ["version"], "stdin": {}}', '"stdin" is not a text'),
        (b'{"args": ["version"], "id": 7}', '"id" is not a text'),
        (b'{"args": ["version"], "Id": "7"}', "the key 'Id' means nothing here"),
        (b"blob show \xff", "no UTF-8: invalid start byte at byte 11"),
    ],
)
def test_another_line_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        lines.parse(TextLine(1, content))
    assert refused.value.message.startswith(message)


def test_empty_lines_and_remarks_are_left_out_and_counted() -> None:
    found = list(lines.read(io.BytesIO(b"\n# first\n  # second\nversion\n\t\nhelp")))
    assert found == [TextLine(4, b"version\n"), TextLine(6, b"help")]


def test_a_line_that_does_not_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_LONGEST_LINE", 10)
    with pytest.raises(UsageError, match="line 2: longer than 10 bytes"):
        list(lines.read(io.BytesIO(b"version\nblob show a\n")))


def test_a_pipe_is_read_twice_and_a_file_is_not_copied() -> None:
    reads, writes = os.pipe()
    os.write(writes, b"version\n")
    os.close(writes)
    with open(reads, "rb") as pipe, lines.keep(pipe) as kept:
        assert [_read_twice(kept), kept is pipe] == [[b"version\n"] * 2, False]
    with tempfile.TemporaryFile() as file, lines.keep(file) as kept:
        assert kept is file


def _read_twice(stream: Any) -> list[bytes]:
    found = []
    for _ in range(2):
        stream.seek(0)
        found.append(stream.read())
    return found
