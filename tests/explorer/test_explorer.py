"""All interleavings of the real core, up to a bound; see ``python -m tests.explorer``."""

from math import inf

import pytest

from azguard.requests.deadline import Deadline
from tests.explorer.__main__ import BEYOND
from tests.explorer.catalogue import SCENARIOS
from tests.explorer.faults import Fault
from tests.explorer.player import Player, Process, acting_as, without_chance
from tests.explorer.scenario import Bound, Scenario
from tests.explorer.search import Search, walk
from tests.explorer.traced import TraceSearch
from tests.explorer.world import Choice, World
from tests.support import thorough

# How often each scenario is walked through at random: a slow machine and a quick one take the same walks.
_WALKS = 100 if thorough.is_alone() else 25 if thorough.is_on() else 10
# Whose traces are checked up to the bound of the short tests, and how many of each.
TRACED = dict(thorough.some(pair for pair in SCENARIOS.items() if pair[1].short is not None))
_TRACES = inf if thorough.is_alone() else thorough.count(200, 20)

pytestmark = pytest.mark.thorough


def _choose_bounds(scenario: Scenario) -> list[Bound]:
    if thorough.is_alone():
        return scenario.bounds
    # Beside other tests a bound that takes seconds is left to ``-m thorough``.
    chosen = scenario.bound if thorough.is_on() and scenario.short is None else scenario.short
    return [] if chosen is None else [chosen]


# A run of the whole suite exhausts a quarter of the scenarios; it walks through all.
_CHOSEN = thorough.choose_rows([*SCENARIOS.values()])
EXHAUSTED = {f"{each.name}: {bound}": (each, bound) for each in _CHOSEN for bound in _choose_bounds(each)}


@pytest.mark.parametrize(("scenario", "bound"), EXHAUSTED.values(), ids=EXHAUSTED.keys())
def test_nothing_is_violated_in_any_schedule_up_to_the_bound(scenario: Scenario, bound: Bound) -> None:
    report = Search(scenario, bound).run()
    assert (report.violations, report.is_complete) == ([], True)


_SENDS, _TIME, _ARRIVES = Choice("sends"), Choice("time"), Choice("arrives")
_LATE, _STOPPED = Choice("sends", what=Fault.LATE), Choice("stopped", what=True)
_UPDATED = "file metadata update, tidied"
_STORIES: dict[str, tuple[str, list[Choice]]] = {
    "a rename": ("file put", [*[_SENDS] * 3, _LATE, _SENDS, _STOPPED, _TIME, _SENDS, _ARRIVES]),
    "a record": ("file put", [*[_SENDS] * 7, _LATE, _STOPPED, _TIME, _SENDS, _ARRIVES]),
    "a record, and the change of its lease": (
        _UPDATED,
        [*[_SENDS] * 3, _LATE, _SENDS, _TIME, _STOPPED, _TIME, _LATE, _ARRIVES, _SENDS, _SENDS, _ARRIVES],
    ),
    "a lease, and the change of it": (
        _UPDATED,
        [_SENDS, _LATE, _SENDS, _TIME, _SENDS, _LATE, _STOPPED, _TIME, _SENDS, _SENDS, _ARRIVES, _ARRIVES],
    ),
}


@pytest.mark.parametrize(("name", "story"), _STORIES.values(), ids=_STORIES.keys())
def test_a_file_keeps_nothing_of_what_comes_late_to_one_that_was_stopped(name: str, story: list[Choice]) -> None:
    scenario = SCENARIOS[name]
    world = World(scenario, Bound(faults=2, stops=1), Player())
    with without_chance():
        state = world.begin()
        for choice in story:
            state = world.take(state, choice) or state
        while not state.is_over:
            state = world.take(state, next(world.choices(state))) or state
    assert (state.left.stops, state.under_way) == (0, ())
    scenario.rules.check_over(state.ghost, state.services, state.now)


def test_a_deadline_that_is_given_no_clock_has_that_of_the_process() -> None:
    with without_chance(), acting_as(Process("A", 100.0, None)):
        assert Deadline(1).started == 100.0


def test_no_reader_is_beside_a_writer_whose_lease_has_ended_while_both_were_stopped() -> None:
    """The bound has one stop: with two, the states are too many."""
    world = World(SCENARIOS["lock, a reader and a writer"], Bound(stops=2), Player())
    reader, writer = Choice("sends", 0), Choice("sends", 1)
    with without_chance():
        state = world.begin()
        # The reader has marked the lock, and the writer holds it, when each is stopped; the reader goes on first.
        stopped = [reader, Choice("stopped", 0, what=True), *[writer] * 4, Choice("stopped", 1, what=False)]
        for choice in [*stopped, Choice("time"), *[reader] * 3, Choice("continues", 1), writer]:
            state = world.take(state, choice) or state
        assert dict(state.ghost.holders)["A"].until > state.now
        while not state.is_over:
            state = world.take(state, next(world.choices(state))) or state


@pytest.mark.parametrize("scenario", TRACED.values(), ids=TRACED.keys())
def test_no_trace_of_a_schedule_breaks_a_rule_of_the_protocol(scenario: Scenario) -> None:
    bound = scenario.short or scenario.bound
    assert TraceSearch(scenario, bound, schedules=_TRACES).run().violations == []


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS.keys())
def test_nothing_is_violated_on_walks_at_random(scenario: Scenario) -> None:
    assert walk(scenario, BEYOND, inf, seed=1, walks=_WALKS).violations == []
