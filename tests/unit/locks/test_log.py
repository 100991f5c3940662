"""What the history of a lock shows of the lines that holders, and those who broke the lock, have left."""

import json
from dataclasses import asdict, replace
from typing import Any

from azguard.locks import log
from azguard.locks.log import HolderLine, LogLine
from tests.support.cases import cases


def holding(fence: int, **changes: Any) -> HolderLine:
    known: dict[str, Any] = {
        "address": "blob:locks/a", "fence": fence, "outcome": "released", "holder": "ops@build-7",
        "since": f"2026-11-22T10:00:{fence:02d}Z", "ended": None, "reason": None, "run": None, "command": "sh",
        "pid": 7, "why": None,
    }  # fmt: skip
    return HolderLine(**(known | changes))


def line(of: HolderLine, before: HolderLine | None = None) -> bytes:
    return json.dumps(asdict(LogLine(of, before))).encode()


def read(*lines: bytes) -> list[HolderLine]:
    return log.order([line for line in log.parse(b"\n".join(lines) + b"\n") if line is not None])


def test_a_line_that_the_network_delivered_twice_is_read_once() -> None:
    assert read(line(holding(1)), line(holding(1))) == [holding(1)]


def test_lines_that_came_in_another_order_are_put_in_order() -> None:
    assert read(line(holding(2)), line(holding(1))) == [holding(1), holding(2)]


def test_a_holder_without_a_line_is_told_by_the_next_one_and_only_then() -> None:
    unknown = holding(1, outcome="unknown")
    assert read(line(holding(2), unknown)) == [unknown, holding(2)]
    assert read(line(holding(1)), line(holding(2), unknown)) == [holding(1), holding(2)]


@cases("text", b"", b"{", b"[]", b'{"holding": {}}', b"\xff", b"7", b'"x"')
def test_what_is_no_line_of_ours_is_passed_over(text: bytes) -> None:
    assert read(text, line(holding(1))) == [holding(1)]


def test_what_could_drive_a_terminal_is_shown_by_its_code() -> None:
    assert read(line(holding(1, reason="a\x1b[2J")))[0].reason == r"a\x1b[2J"


def broken() -> HolderLine:
    return holding(1, outcome="broken", broken_by="eve@laptop", broken_at="2026-11-22T11:00:00Z", break_reason="stuck")


BARE = ("released", None)


@cases(
    ("lines", "expected"),
    # The holder's own line says how it ended, whichever was written first.
    ([line(holding(1, outcome="lost")), line(broken())], [("lost", "eve@laptop")]),
    ([line(broken()), line(holding(1, outcome="lost"))], [("lost", "eve@laptop")]),
    # A break is better known than what the next holder found.
    ([line(broken()), line(holding(2), holding(1, outcome="unknown"))], [("broken", "eve@laptop"), BARE]),
    # A break of a lease that no record is of is of no holder.
    ([line(holding(1)), line(replace(broken(), fence=None, since=None))], [BARE, ("broken", "eve@laptop")]),
)  # fmt: skip
def test_a_break_is_read_into_the_holders_line(lines: list[bytes], expected: list[tuple[str, str | None]]) -> None:
    assert [(each.outcome, each.broken_by) for each in read(*lines)] == expected


def test_a_line_of_an_earlier_version_is_read() -> None:
    old = json.loads(line(holding(1)))
    for name in ("exit_status", "signal", "broken_by", "broken_at", "break_reason", "break_run"):
        del old["holding"][name]
    assert read(json.dumps(old).encode()) == [holding(1)]
