"""Workers contend for the messages of a queue, through lost answers and kills: each is handled, none is lost.

Short here, so that every run of the suite has each kind once; ``pytest tests/races --race-minutes 5`` has the long
ones.
"""

import sys
from dataclasses import replace

import pytest

from tests.races import queue_race
from tests.races.queue_race import Settings, Tally

pytestmark = [
    pytest.mark.xdist_group("queue-races"),
    pytest.mark.skipif(sys.platform != "linux", reason="judges processes by /proc"),
    pytest.mark.timeout(240),
]
_SHORT_SECONDS, _LONG_SECONDS = 200.0, 3600.0


def _race(settings: Settings, most: float = _SHORT_SECONDS) -> Tally:
    """Race; every message is handled and deleted, and only after a success."""
    tally = queue_race.run(settings, most)
    assert (tally.lost, tally.early, tally.left) == ([], [], 0), tally.counts
    return tally


def test_four_workers_handle_every_message(seed: str) -> None:
    assert _race(Settings(seed=seed)).counts["starts"] >= 60


def test_lost_answers_and_kills_lose_no_message(seed: str) -> None:
    tally = _race(Settings(seed=seed, messages=40, share=0.05, kill_every=3.0))
    assert tally.counts["kills"] > 0


def test_with_claims_no_message_succeeds_twice_whatever_answers_are_lost(seed: str) -> None:
    assert _race(Settings(seed=seed, messages=30, share=0.08, once=True)).twice == 0


@pytest.mark.parametrize("settings", [
    Settings(seed="", messages=2000),
    Settings(seed="", messages=2000, share=0.05, kill_every=10.0),
    Settings(seed="", messages=1000, share=0.05, once=True),
])  # fmt: skip
@pytest.mark.timeout(0)
def test_a_long_race_loses_no_message(settings: Settings, seed: str, pytestconfig: pytest.Config) -> None:
    if not pytestconfig.getoption("--race-minutes"):
        pytest.skip("long: --race-minutes N")
    tally = _race(replace(settings, seed=seed), _LONG_SECONDS)
    assert not settings.once or tally.twice == 0
