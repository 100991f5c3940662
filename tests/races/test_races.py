"""Histories of real processes, with faults, kills and other writers, held against the truth.

Short here, so that every run of the suite has one; ``pytest tests/races --race-minutes 5`` is the long one, and
``python -m tests.races.run`` has every mix.
"""

from contextlib import nullcontext
from dataclasses import replace

import pytest

from azguard.emulators.azurite_process import Azurite
from tests.races import run
from tests.races.race import Settings, Tally
from tests.support import thorough

# Many processes that contend: one such race at a time.
pytestmark = [pytest.mark.xdist_group("races"), pytest.mark.thorough]

# What a race proves are its writes, faults and kills: it ends with the last of them, however quick the machine is.
_SHORT_SECONDS = 60.0


def _race(settings: Settings, emulator: Azurite) -> None:
    """Race; what is printed is shown if it fails, with the seed that makes the same decisions again."""
    enough = thorough.count(settings.enough, settings.enough // 2)
    _judge(run.run(replace(settings, enough=enough), _SHORT_SECONDS, print, lambda: nullcontext(emulator)))


def _judge(tally: Tally) -> None:
    assert tally.violations == []
    assert tally.counts["commits"] > 0


def test_eight_processes_with_faults_and_kills_do_everything_exactly_once(race_azurite: Azurite) -> None:
    _race(Settings(seed="2026", commands=8, kill_every=1.5, stop_every=2.5, enough=140), race_azurite)


def test_beside_other_writers_and_on_two_hosts_no_answer_is_false(seed: str, race_azurite: Azurite) -> None:
    beside = Settings(seed=seed, processes=6, hosts=2, foreign="half", kill_every=2, enough=100)
    _race(beside, race_azurite)


def test_whoever_gives_up_with_a_write_on_its_way_is_not_applied_later(seed: str, race_azurite: Azurite) -> None:
    hurried = Settings(
        seed=seed,
        processes=3,
        share=0.6,
        kill_every=0,
        stop_every=0,
        commands=0,
        hurried=1,
        enough=60,
    )
    _race(hurried, race_azurite)


@pytest.mark.timeout(0)
def test_a_long_race_has_nothing_doubled_nothing_lost_and_no_false_answer(
    seed: str, pytestconfig: pytest.Config
) -> None:
    minutes = float(pytestconfig.getoption("--race-minutes"))
    if not minutes:
        pytest.skip("long: --race-minutes N")
    _judge(run.run(Settings(seed=seed, foreign="half"), minutes * 60, print))
