"""All interleavings of the real core, up to a bound; see ``python -m tests.explorer``."""

from math import inf

import pytest

from tests.explorer.__main__ import BEYOND
from tests.explorer.catalogue import SCENARIOS
from tests.explorer.scenario import Bound, Scenario
from tests.explorer.search import Search, walk
from tests.support import thorough

# How often each scenario is walked through at random: a slow machine and a quick one take the same walks.
_WALKS = 100 if thorough.is_alone() else 25 if thorough.is_on() else 10
EXHAUSTED = {name: each for name, each in SCENARIOS.items() if thorough.is_on() or each.short is not None}

pytestmark = pytest.mark.thorough


def _choose_bound(scenario: Scenario) -> Bound:
    if thorough.is_alone():
        return scenario.deep or scenario.bound
    return scenario.bound if thorough.is_on() else scenario.short or scenario.bound


@pytest.mark.parametrize("scenario", EXHAUSTED.values(), ids=EXHAUSTED.keys())
def test_nothing_is_violated_in_any_schedule_up_to_the_bound(scenario: Scenario) -> None:
    report = Search(scenario, _choose_bound(scenario)).run()
    assert (report.violations, report.is_complete) == ([], True)


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS.keys())
def test_nothing_is_violated_on_walks_at_random(scenario: Scenario) -> None:
    assert walk(scenario, BEYOND, inf, seed=1, walks=_WALKS).violations == []
