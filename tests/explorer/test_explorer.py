"""All interleavings of the real core, up to a bound; see ``python -m tests.explorer``."""

import pytest

from tests.explorer.__main__ import BEYOND
from tests.explorer.catalogue import SCENARIOS
from tests.explorer.scenario import Scenario
from tests.explorer.search import Search, walk
from tests.support import thorough

# How long each scenario is walked through at random, and how often.
_SECONDS = 2.0 if thorough.is_on() else 0.3
_WALKS = 25
EXHAUSTED = {name: each for name, each in SCENARIOS.items() if thorough.is_on() or each.short is not None}

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("scenario", EXHAUSTED.values(), ids=EXHAUSTED.keys())
def test_nothing_is_violated_in_any_schedule_up_to_the_bound(scenario: Scenario) -> None:
    report = Search(scenario, scenario.bound if thorough.is_on() else scenario.short or scenario.bound).run()
    assert (report.violations, report.is_complete) == ([], True)


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS.keys())
def test_nothing_is_violated_on_walks_at_random(scenario: Scenario) -> None:
    assert walk(scenario, BEYOND, _SECONDS, seed=1, walks=_WALKS).violations == []
