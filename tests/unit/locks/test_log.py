"""What the history of a lock shows of the lines that holders have left."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest

from azguard.accounts import account
from azguard.accounts.target import Target
from azguard.address import Address, Kind
from azguard.blobs import download
from azguard.locks import log
from azguard.locks.log import HolderLine, LogLine
from azguard.requests.deadline import Deadline

LOCK = Target(account.emulator({"blob": 1}), Address(Kind.BLOB, ("locks", "a")))


def holding(fence: int, **changes: Any) -> HolderLine:
    known: dict[str, Any] = {
        "address": "blob:locks/a", "fence": fence, "outcome": "released", "holder": "ops@build-7",
        "since": f"2026-11-22T10:00:{fence:02d}Z", "ended": None, "reason": None, "run": None, "command": "sh",
        "pid": 7, "why": None,
    }  # fmt: skip
    return HolderLine(**(known | changes))


def line(of: HolderLine, before: HolderLine | None = None) -> bytes:
    return json.dumps(asdict(LogLine(of, before))).encode()


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that reads a history of these lines."""

    def read_lines(*lines: bytes) -> list[HolderLine]:
        def content(*words: Any) -> Iterator[bytes]:
            yield b"\n".join(lines) + b"\n"

        monkeypatch.setattr(download, "Download", content)
        return log.read(LOCK, Deadline())

    return read_lines


def test_a_line_that_the_network_delivered_twice_is_read_once(read: Any) -> None:
    assert read(line(holding(1)), line(holding(1))) == [holding(1)]


def test_lines_that_came_in_another_order_are_put_in_order(read: Any) -> None:
    assert read(line(holding(2)), line(holding(1))) == [holding(1), holding(2)]


def test_a_holder_without_a_line_is_told_by_the_next_one_and_only_then(read: Any) -> None:
    unknown = holding(1, outcome="unknown")
    assert read(line(holding(2), unknown)) == [unknown, holding(2)]
    assert read(line(holding(1)), line(holding(2), unknown)) == [holding(1), holding(2)]


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"holding": {}}', b"\xff", b"7", b'"x"'])
def test_what_is_no_line_of_ours_is_passed_over(read: Any, text: bytes) -> None:
    assert read(text, line(holding(1))) == [holding(1)]


def test_what_could_drive_a_terminal_is_shown_by_its_code(read: Any) -> None:
    assert read(line(holding(1, reason="a\x1b[2J")))[0].reason == r"a\x1b[2J"
