"""What the tool refuses before any request: ``tests/data/refusals.toml`` holds lines, and what each is answered.

A wanted change of an answer is a diff of that file: ``python -m tests.unit.cli.test_refusals --write`` plays all lines
and writes what they are answered now.
"""

import json
import shlex
import socket
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli_world import CliWorld
from tests.support.places import REPOSITORY

_TABLE = REPOSITORY / "tests" / "data" / "refusals.toml"
_SERVICES = ("Blob", "Queue", "Table", "File")


@dataclass(frozen=True)
class Typed:
    """A line as it is typed after ``azguard``, and what it finds."""

    line: str
    stdin: str = ""
    files: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Refused:
    """How a line ended; ``requests`` counts the connections to the account."""

    exit: int
    message: str
    hint: str
    requests: int


@dataclass(frozen=True)
class Account:
    """A folder whose account answers nothing and knows who connects."""

    cli: CliWorld
    listening: socket.socket

    def play(self, typed: Typed) -> Refused:
        """Run a line."""
        made = [self.cli.file(name, content) for name, content in typed.files.items()]
        try:
            ran = self.cli.call(*shlex.split(typed.line), stdin=typed.stdin.encode(), env=typed.env)
        finally:
            for file in made:
                file.unlink()
        message, _, hint = ran.err.rstrip("\n").removeprefix("error: ").partition("\nhint: ")
        return Refused(ran.code, message, hint, self._count())

    def _count(self) -> int:
        count = 0
        while True:
            try:
                connection, _ = self.listening.accept()
            except BlockingIOError:
                return count
            connection.close()
            count += 1


@contextmanager
def open_account(root: Path) -> Iterator[Account]:
    """Open the port of the account."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/acc"
        ends = "".join(f"{service}Endpoint={url};" for service in _SERVICES)
        yield Account(CliWorld(root, f"AccountName=acc;AccountKey=a2V5;{ends}").with_cache(), listening)


def read_table() -> list[tuple[Typed, Refused]]:
    """Read the lines with their answers."""
    return [_read_row(row) for row in tomllib.loads(_TABLE.read_text())["refusal"]]


def _read_row(row: dict[str, Any]) -> tuple[Typed, Refused]:
    told = {name: row.pop(name) for name in ("exit", "message", "hint", "requests")}
    return Typed(**row), Refused(**told)


def write_table(rows: list[tuple[Typed, Refused]]) -> None:
    """Write the lines with their answers."""
    rows = sorted(rows, key=lambda row: (row[0].line, row[0].stdin))
    _TABLE.write_text("\n".join(_write_row(vars(typed), vars(refused)) for typed, refused in rows))


def _write_row(typed: dict[str, Any], refused: dict[str, Any]) -> str:
    shown = {name: value for name, value in typed.items() if value} | refused
    return "[[refusal]]\n" + "".join(f"{name} = {_write_value(value)}\n" for name, value in shown.items())


def _write_value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(name)} = {_write_value(each)}" for name, each in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    with open_account(tmp_path_factory.mktemp("refusals")) as opened:
        yield opened


@pytest.mark.parametrize(("typed", "refused"), [pytest.param(*row, id=row[0].line) for row in read_table()])
def test_a_line_is_refused_in_the_recorded_words_without_a_request(
    account: Account, typed: Typed, refused: Refused
) -> None:
    assert account.play(typed) == refused


def test_every_recorded_line_is_refused_before_any_request() -> None:
    assert {(refused.exit, refused.requests) for _, refused in read_table()} == {(2, 0)}


def _renew() -> None:
    with tempfile.TemporaryDirectory() as folder, open_account(Path(folder)) as opened:
        write_table([(typed, opened.play(typed)) for typed, _ in read_table()])


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    _renew()
