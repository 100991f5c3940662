"""Real processes contend for a lock, and the sections that they run under it look whether another is beside them.

Short here, so that every run of the suite has each kind once; ``pytest tests/races --race-minutes 5`` has the long
ones, and ``python -m tests.races.locks`` every mix.
"""

import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from azguard.emulators.azurite_process import Azurite
from tests.races import locks
from tests.races.lock_contenders import LOCK, Sections
from tests.races.lock_race import Settings, Tally
from tests.support import thorough
from tests.support.cli_world import CliWorld

pytestmark = [
    pytest.mark.xdist_group("lock-races"),
    pytest.mark.thorough,
    pytest.mark.skipif(sys.platform != "linux", reason="judges processes by /proc"),
    # Each kill of a holder costs the term of its lease, and each process its start on a busy machine. Where most of the
    # time is such a wait, the group of a race is its own.
    pytest.mark.timeout(240),
]

# Long enough to be killed in, with processes that do not end by themselves.
_HARD = Sections(shortest=0.1, longest=1.0, stubborn=0.3, children=True)
# How often each contender is inside, in a thorough run and by default.
_TWO, _THREE = thorough.count(2, 1), thorough.count(3, 2)
_SHORT_SECONDS, _LONG_SECONDS = 220.0, 3600.0

Race = Callable[..., Tally]


@pytest.fixture
def race(race_azurite: Azurite) -> Race:
    """Return a race; what it prints is shown if it fails, with the seed that makes the same decisions again."""

    def run(settings: Settings, most: float = _SHORT_SECONDS) -> Tally:
        tally = locks.run(settings, most, print, race_azurite)
        assert tally.findings.violations == ()
        return tally

    return run


def test_eight_contenders_are_never_inside_together(seed: str, race: Race) -> None:
    tally = race(Settings(seed=seed, contenders=8, sections=_TWO))
    assert (tally.findings.entries, tally.findings.most) == (8 * _TWO, 1)


def test_lost_and_late_answers_let_nobody_in_beside_the_holder(seed: str, race: Race) -> None:
    tally = race(Settings(seed=seed, contenders=4, sections=_THREE, share=0.2))
    assert tally.findings.entries == 4 * _THREE


@pytest.mark.xdist_group("killed holders")
def test_whoever_is_killed_is_gone_before_the_next_holder_is_inside(seed: str, race: Race) -> None:
    tally = race(Settings(seed=seed, contenders=4, sections=_THREE, kill_every=5, kind=_HARD))
    assert tally.counts["killed"] > 0


def test_who_does_not_know_the_queue_is_served_and_does_no_harm(seed: str, race: Race) -> None:
    tally = race(Settings(seed=seed, contenders=6, sections=_TWO, plain=2, share=0.1))
    assert tally.findings.entries == 6 * _TWO


def test_three_slots_are_held_by_three_and_never_by_more(seed: str, race: Race) -> None:
    tally = race(Settings(seed=seed, contenders=7, sections=_TWO, slots=3, kind=Sections(1.0, 2.0)))
    assert (tally.findings.entries, tally.findings.most, tally.findings.locks) == (7 * _TWO, 3, 3)


@pytest.mark.xdist_group("killed slots")
def test_the_slot_of_who_is_killed_comes_free(seed: str, race: Race) -> None:
    hard = Settings(seed=seed, contenders=5, sections=_THREE, slots=2, kill_every=4, kind=_HARD)
    assert race(hard).counts["killed"] > 0


def test_readers_are_inside_together_and_never_beside_a_writer(seed: str, race: Race) -> None:
    tally = race(Settings(seed=seed, contenders=6, readers=4, sections=_TWO, share=0.1, kind=Sections(1.0, 2.0)))
    assert (tally.findings.entries, tally.findings.most > 1, tally.findings.locks) == (6 * _TWO, True, 1)


@pytest.mark.xdist_group("killed readers")
def test_a_reader_that_is_killed_is_gone_before_the_next_writer_is_inside(seed: str, race: Race) -> None:
    tally = race(Settings(seed=seed, contenders=5, readers=3, sections=_THREE, kill_every=5, kind=_HARD))
    assert tally.counts["killed"] > 0


@pytest.mark.parametrize("settings", [
    Settings(seed="", sections=50),
    Settings(seed="", sections=50, share=0.1),
    Settings(seed="", sections=20, kill_every=15, kind=_HARD),
    Settings(seed="", contenders=9, sections=20, slots=3, share=0.1, kill_every=15, kind=_HARD),
    Settings(seed="", contenders=9, readers=6, sections=30, share=0.1, kind=Sections(0.0, 0.5)),
    Settings(seed="", contenders=9, readers=6, sections=15, share=0.05, kill_every=15, kind=_HARD),
])  # fmt: skip
@pytest.mark.timeout(0)
def test_a_long_race_has_no_overlap(settings: Settings, seed: str, race: Race, pytestconfig: pytest.Config) -> None:
    if not pytestconfig.getoption("--race-minutes"):
        pytest.skip("long: --race-minutes N")
    race(replace(settings, seed=seed), _LONG_SECONDS)


def test_holders_that_disagree_on_the_number_of_slots_are_refused(cli: CliWorld) -> None:
    lock = LOCK.replace("/x", "/three")

    def asked(*words: str) -> tuple[int, str]:
        ran = cli.fork("lock", "run", lock, *words, "--", "true")
        return ran.code, ran.err.splitlines()[0] if ran.err else ""

    assert asked("--slots", "3") == (0, "")
    refusal = "error: locks/three is a lock of 3 slots, not of {}"
    assert asked("--slots", "2") == (2, refusal.format(2))
    assert asked() == (2, refusal.format(1))
    assert asked("--slots", "3") == (0, "")
