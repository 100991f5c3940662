"""The table of the demonstration, on terminals of several widths."""

import shlex
import sysconfig
from pathlib import Path

import pytest

from azguard.commands import demo
from azguard.demo import race
from azguard.demo.race import CountVerdict, DemoPlan, DemoResult, StrategyResult
from azguard.demo.worker import Strategy
from azguard.emulators import azurite_install
from tests.support.cli_world import CliWorld


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


@pytest.mark.parametrize(("found", "status"), [(200, 0), (199, 1)])
def test_the_exit_status_tells_whether_the_count_of_azguard_is_exact(
    offline: CliWorld, monkeypatch: pytest.MonkeyPatch, found: int, status: int
) -> None:
    verdict = CountVerdict.EXACT if found == 200 else CountVerdict.TOO_FEW
    ended = tuple(StrategyResult(way, 200, found, verdict, 0, 0, 1.0, 900, 90) for way in Strategy)
    result = DemoResult(ended, exact=found == 200, writers=8, increments=25, seed=1)
    monkeypatch.setattr(azurite_install, "check_system", lambda: None)
    monkeypatch.setattr(race, "run", lambda *_given, **_named: result)
    ran = offline.call("demo", "--seed", "1", "-o", "json")
    assert (ran.code, ran.json["exact"]) == (status, found == 200)


def test_a_demo_that_was_run_by_its_path_says_first_how_the_path_is_set(tmp_path: Path) -> None:
    scripts = sysconfig.get_path("scripts")
    assert [demo._next_steps("S", {"PATH": path})[0] for path in (str(tmp_path), scripts)] == [
        f'next: export PATH={shlex.quote(scripts)}:"$PATH"',
        "next: azguard emulator start && S",
    ]
