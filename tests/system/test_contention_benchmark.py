"""The contention benchmark: its figures are right, and every way it races counts right."""

from contextlib import nullcontext

import pytest

from azguard.emulators.azurite_process import Azurite
from benchmarks import contention, contention_race
from benchmarks.contention_race import Outcome, Race, Share, quantile
from benchmarks.contention_ways import Counts, Way

# Many processes that contend: one such race at a time.
pytestmark = pytest.mark.xdist_group("races")

RACE = Race(Way.ONE_HOST, 2, 2, 0.0)


def test_a_quantile_is_the_smallest_value_that_so_many_do_not_exceed() -> None:
    values = [float(number) for number in range(1, 101)]
    assert [quantile(values, share) for share in (0.01, 0.5, 0.99, 1.0)] == [1.0, 50.0, 99.0, 100.0]


def test_the_figures_of_a_race() -> None:
    fast = Share([(0.0, 1.0), (1.0, 2.0)], Counts(reads=2, writes=2), 0.5)
    slow = Share([(0.0, 3.0), (3.0, 4.0)], Counts(reads=3, writes=3, leases=2), 1.5)
    assert contention_race.outcome(RACE, [fast, slow]) == Outcome(
        race=RACE,
        commits_per_second=1.0,
        requests=3.0,
        attempts=1.25,
        leases=0.5,
        processor=500.0,
        durations=[1.0, 1.0, 3.0, 1.0],
        fairness=0.5,
    )


@pytest.mark.timeout(60)
def test_every_way_counts_right_and_fills_a_row_of_the_table(azurite: Azurite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contention, "INCREMENTS", 8)
    monkeypatch.setattr(contention, "_FEWEST", 8)
    rows = contention.measured(list(Way), [2], rounds=1, latency=0.0, emulators=lambda: nullcontext(azurite))
    assert [row.way for row in rows] == list(Way)
    assert len(contention.table(rows)) == 1 + len(Way)
