"""The line of a run over a tree: what it tells, and where it ends."""

import io
import sys
import time

import pytest

from azguard.cli.output import terminal
from azguard.cli.output.terminal import ERASE
from azguard.cli.output.trees import Pace, TreeProgress, describe
from azguard.trees.runs import Headway, Reached
from tests.support.cases import cases

MIB = 1024**2
HALF = Reached(120, 12 * MIB, 300, 30 * MIB, "blob:site/v1/css/site.css")


@cases(
    ("reached", "left", "room", "line"),
    (HALF, 72.0, 79, "put  40 %  120 of 300 files  12.0 of 30.0 MiB  1m12s left  css/site.css"),
    (HALF, 72.0, 60, "put  40 %  120 of 300 files  12.0 of 30.0 MiB  1m12s left"),
    (HALF, 72.0, 40, "put  40 %  120 of 300 files"),
    (HALF, None, 119, f"put  {'█' * 8}{'░' * 12}  40 %  120 of 300 files  12.0 of 30.0 MiB  css/site.css"),
    (Reached(3, 0, 4, 0), 1.0, 79, "put  75 %  3 of 4 files  1s left"),
    (Reached(1, 512, 1, 512), 0.0, 79, "put  100 %  1 of 1 file  0.5 of 0.5 KiB  0s left"),
    (Reached(0, 0, 0, 0), None, 79, "put  0 %  0 of 0 files"),
    # Not counted yet, or more than were counted.
    (Reached(3, 5 * 1024**3), None, 79, "put  3 files  5.0 GiB"),
    (Reached(5, 9, 4, 9), 1.0, 79, "put  5 files  0.0 KiB"),
    # Of a long name the end tells most, and no name drives the terminal.
    (
        Reached(0, 0, None, 0, f"blob:site/v1/{'d/' * 40}index.html"),
        None,
        40,
        "put  0 files  …/d/d/d/d/d/d/d/index.html",
    ),
    (Reached(0, 0, None, 0, "blob:site/v1/\x1b]a"), None, 40, "put  0 files  \\x1b]a"),
)
def test_the_line(reached: Reached, left: float | None, room: int, line: str) -> None:
    assert describe("put", reached, left, "site/v1/", room) == line


@cases("room", *range(1, 130))
def test_no_line_is_longer_than_the_terminal(room: int) -> None:
    reached = Reached(12_345, 9 * 1024**3, 123_456, 99 * 1024**3, "blob:site/v1/" + "\u6f22" * 90)
    assert terminal.measure(describe("get", reached, 86_400.0, "site/v1/", room)) <= max(room, len("get"))


def test_the_time_left_is_told_by_the_last_seconds() -> None:
    """Of 1,000 files 900 are left alone at once, and each of the others takes a second."""
    pace = Pace()
    assert pace.estimate(0.0, Reached(0, 0, 1000)) is None
    for second in range(1, 61):
        left = pace.estimate(float(second), Reached(900 + second, 0, 1000))
    assert left == pytest.approx(40.0)


def test_the_time_left_is_not_told_while_nothing_moves_or_nothing_is_counted() -> None:
    pace = Pace()
    assert [pace.estimate(at, Reached(5, 9, total)) for at, total in ((0.0, 9), (1.0, 9), (2.0, None))] == [None] * 3


@pytest.mark.parametrize("enabled", [True, False])
def test_it_is_drawn_where_it_is_wanted_and_gone_at_the_end(monkeypatch: pytest.MonkeyPatch, enabled: bool) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(terminal, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(terminal, "REDRAW_SECONDS", 0.001)
    headway = Headway()
    headway.begin("blob:site/v1/a")
    with TreeProgress("blob put", "blob:site/v1/", headway, [4, 6], enabled=enabled):
        deadline = time.monotonic() + (30 if enabled else 0.05)
        while "0 of 2 files" not in stderr.getvalue() and time.monotonic() < deadline:
            time.sleep(0.001)  # another thread writes it
    shown = stderr.getvalue()
    assert ("0 of 2 files" in shown, shown.endswith(ERASE)) == (enabled, enabled)
