"""Workers contend for the messages of a queue, through lost answers and kills: each is handled, none is lost.

Short here, so that every run of the suite has each kind once; ``pytest tests/races --race-minutes 5`` has the long
ones.
"""

import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from azguard.emulators.azurite_process import Azurite
from tests.races import queue_race
from tests.races.queue_race import Settings, Tally
from tests.support import thorough

pytestmark = [
    pytest.mark.xdist_group("queue-races"),
    pytest.mark.thorough,
    pytest.mark.skipif(sys.platform != "linux", reason="judges processes by /proc"),
    pytest.mark.timeout(240),
]
_SHORT_SECONDS, _LONG_SECONDS = 200.0, 3600.0

Race = Callable[..., Tally]


@pytest.fixture
def race(race_azurite: Azurite) -> Race:
    """Return a race in which every message is handled and deleted, and only after a success."""

    def run(settings: Settings, most: float = _SHORT_SECONDS) -> Tally:
        tally = queue_race.run(settings, most, race_azurite)
        assert (tally.lost, tally.early, tally.left, tally.broken) == ([], [], 0, []), tally.counts
        return tally

    return run


def test_four_workers_handle_every_message(seed: str, race: Race) -> None:
    messages = thorough.count(40, 20)
    assert race(Settings(seed=seed, messages=messages)).counts["starts"] >= messages


def test_lost_answers_and_kills_lose_no_message(seed: str, race: Race) -> None:
    tally = race(Settings(seed=seed, messages=30, share=0.08, kill_every=1.5))
    assert tally.counts["kills"] > 0


def test_with_claims_no_message_succeeds_twice_whatever_answers_are_lost(seed: str, race: Race) -> None:
    assert race(Settings(seed=seed, messages=thorough.count(24, 12), share=0.1, once=True)).twice == 0


@pytest.mark.parametrize("settings", [
    Settings(seed="", messages=2000),
    Settings(seed="", messages=2000, share=0.05, kill_every=10.0),
    Settings(seed="", messages=1000, share=0.05, once=True),
])  # fmt: skip
@pytest.mark.timeout(0)
def test_a_long_race_loses_no_message(settings: Settings, seed: str, race: Race, pytestconfig: pytest.Config) -> None:
    if not pytestconfig.getoption("--race-minutes"):
        pytest.skip("long: --race-minutes N")
    tally = race(replace(settings, seed=seed), _LONG_SECONDS)
    assert not settings.once or tally.twice == 0
