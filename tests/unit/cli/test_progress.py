"""The progress bar: when it is drawn, and what it leaves on the terminal."""

import io
import sys

import pytest

from azguard.cli import progress
from azguard.cli.progress import Progress

MIB = 1024**2


def _drawn(monkeypatch: pytest.MonkeyPatch, done: int, whole: int, *, enabled: bool = True) -> str:
    """Return what stderr got from a bar that is asked to draw once its first moment is over."""
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(progress, "_QUIET_SECONDS", 0.0)
    with Progress("get site/a", whole, enabled) as bar:
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


def test_a_bar_is_erased_for_what_is_told_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(progress, "_QUIET_SECONDS", 0.0)
    with Progress("put dist", None, True) as bar:
        bar.at(2 * MIB)
        bar.erase()
        stderr.write("3 created\n")
    assert stderr.getvalue().endswith(f"{progress.ERASE}3 created\n")
