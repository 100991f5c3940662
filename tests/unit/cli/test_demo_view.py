"""The table of the demonstration, on terminals of several widths."""

import shlex
import sysconfig
from pathlib import Path

import pytest

from azguard.cli.output import demo
from azguard.demo.race import DemoPlan


@pytest.mark.parametrize(
    ("columns", "shown"),
    [("78", ["way", "expected", "found", "", "unknown", "lost", "time"]), ("40", ["way", "found", ""])],
)
def test_a_narrow_terminal_shows_the_verdict_and_cuts_nothing(
    monkeypatch: pytest.MonkeyPatch, columns: str, shown: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    table = demo.Live(DemoPlan(writers=8, increments=25, seed=1), color=False)._table()
    assert [each.header for each in table.columns] == shown
    assert {each.overflow for each in table.columns} == {"fold"}


def test_a_demo_that_was_run_by_its_path_says_first_how_the_path_is_set(tmp_path: Path) -> None:
    scripts = sysconfig.get_path("scripts")
    assert [demo._next_steps("S", {"PATH": path})[0] for path in (str(tmp_path), scripts)] == [
        f'next: export PATH={shlex.quote(scripts)}:"$PATH"',
        "next: azguard emulator start && S",
    ]
