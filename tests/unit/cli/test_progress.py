"""The progress bar: when it is drawn, and what it leaves on the terminal."""

import io
import sys

import pytest

from azguard.cli.output import terminal
from azguard.cli.output.terminal import ERASE, LiveLine, Progress

MIB = 1024**2


def _drawn(
    monkeypatch: pytest.MonkeyPatch, done: int, whole: int, *, enabled: bool = True, title: str = "get site/a"
) -> str:
    """Return what stderr got from a bar that is asked to draw once its first moment is over."""
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(terminal, "QUIET_SECONDS", 0.0)
    with Progress(title, whole, enabled) as bar:
        bar.at(done)
    return stderr.getvalue()


def test_it_is_drawn_and_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = _drawn(monkeypatch, 2 * MIB, 4 * MIB)
    assert ("50 %  2 of 4 MiB" in shown, shown.endswith("\r\033[K")) == (True, True)


@pytest.mark.parametrize(("whole", "enabled"), [(MIB - 1, True), (4 * MIB, False)])
def test_it_is_not_drawn_for_little_or_where_it_is_not_wanted(
    monkeypatch: pytest.MonkeyPatch, whole: int, enabled: bool
) -> None:
    assert _drawn(monkeypatch, 1, whole, enabled=enabled) == ""


def test_a_closed_line_is_drawn_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    line = LiveLine()
    line.redraw()
    line.draw("put  2 files")
    line.redraw()
    line.draw("put  3 files")
    line.close()
    stderr.write("3 created\n")
    line.draw("put  4 files")
    line.close()
    assert stderr.getvalue() == f"{ERASE}put  2 files{ERASE}put  2 files{ERASE}put  3 files{ERASE}3 created\n"


@pytest.mark.parametrize("name", ["a", "a" * 200, "\u6f22" * 200])
def test_no_line_is_longer_than_the_terminal_and_no_name_hides_the_numbers(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = _drawn(monkeypatch, 2 * MIB, 4 * MIB, title=f"get site/{name}").split(ERASE)[1]
    assert ("50 %  2 of 4 MiB" in shown, terminal.measure(shown) < 80) == (True, True)
