"""What the tool refuses before any request: ``tests/data/refusals.toml`` holds lines, and what each is answered.

A wanted change of an answer is a diff of that file: ``python -m tests.unit.cli.test_refusals --write`` plays all lines
and writes what they are answered now. ``--places`` plays them and names the places of the product that build a
UsageError, and that no line reaches.
"""

import ast
import json
import shlex
import socket
import sys
import tempfile
import tomllib
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

from azguard.cli import errors
from azguard.errors import AzguardError, UsageError
from tests.support import thorough
from tests.support.cases import cases
from tests.support.cli_world import CliWorld
from tests.support.places import REPOSITORY
from tests.unit.test_layers import MODULES

if TYPE_CHECKING:
    from types import FrameType

_TABLE = REPOSITORY / "tests" / "data" / "refusals.toml"
_REPORT = errors.report
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
    """How a line ended, with exit status 2."""

    #: The reason of the core's error; of the command line's own, the function that refuses.
    reason: str
    message: str
    hint: str


@dataclass(frozen=True)
class Account:
    """A folder whose account answers nothing and knows who connects."""

    cli: CliWorld
    listening: socket.socket

    def play(self, typed: Typed) -> Refused:
        """Run a line, which has to be refused before any request."""
        made = [self.cli.file(name, content) for name, content in typed.files.items()]
        told: list[BaseException] = []

        def report(error: BaseException, *given: Any) -> int:
            told.append(error)
            return _REPORT(error, *given)

        try:
            with patch.object(errors, "report", report):
                ran = self.cli.call(*shlex.split(typed.line), stdin=typed.stdin.encode(), env=typed.env)
        finally:
            for file in made:
                file.unlink()
        assert (ran.code, self._count()) == (2, 0), (typed.line, ran)
        message, _, hint = ran.err.rstrip("\n").removeprefix("error: ").partition("\nhint: ")
        return Refused(_find_reason(told[-1]) if told else "", message, hint)

    def _count(self) -> int:
        count = 0
        while True:
            try:
                connection, _ = self.listening.accept()
            except BlockingIOError:
                return count
            connection.close()
            count += 1


def _find_reason(error: BaseException) -> str:
    if isinstance(error, AzguardError) and error.reason is not None:
        return error.reason
    if isinstance(error.__cause__, AzguardError):
        return _find_reason(error.__cause__)
    path, function = [(each.filename, each.name) for each in traceback.extract_tb(error.__traceback__)][-1]
    return f"{Path(path).stem}.{function}"


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
    told = {name: row.pop(name) for name in ("reason", "message", "hint")}
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
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    with open_account(tmp_path_factory.mktemp("refusals")) as opened:
        yield opened


@cases(
    ("typed", "refused"),
    *thorough.choose_rows(read_table()),
    ids=lambda value: getattr(value, "line", None) or value.reason,
)
def test_a_line_is_refused_in_the_recorded_words_without_a_request(
    account: Account, typed: Typed, refused: Refused
) -> None:
    assert account.play(typed) == refused


def _renew() -> None:
    with tempfile.TemporaryDirectory() as folder, open_account(Path(folder)) as opened:
        write_table([(typed, opened.play(typed)) for typed, _ in read_table()])


def _list_unreached() -> Iterator[str]:
    """Yield the places that build a UsageError, and that no recorded line reaches."""
    built: set[tuple[str, int]] = set()
    init = UsageError.__init__

    def note(self: UsageError, *given: Any, **named: Any) -> None:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.endswith("azguard/errors.py"):
            frame = frame.f_back
        if frame is not None:
            built.add((str(Path(frame.f_code.co_filename).resolve()), frame.f_lineno))
        init(self, *given, **named)

    with (
        tempfile.TemporaryDirectory() as folder,
        open_account(Path(folder)) as opened,
        patch.object(UsageError, "__init__", note),
    ):
        for typed, _ in read_table():
            opened.play(typed)
    for path in MODULES.values():
        for each in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(each, ast.Call) and ast.unparse(each.func) == "UsageError":
                lines = {
                    (str(path.resolve()), line) for line in range(each.lineno, (each.end_lineno or each.lineno) + 1)
                }
                if not lines & built:
                    yield f"{path.relative_to(REPOSITORY)}:{each.lineno} {ast.unparse(each.args[0])[:100]}"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        _renew()
    elif sys.argv[1:] == ["--places"]:
        sys.stdout.writelines(f"{place}\n" for place in _list_unreached())
