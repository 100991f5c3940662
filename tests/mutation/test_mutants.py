"""Every mutant still has its place in the product, and a scenario."""

from tests.explorer.catalogue import SCENARIOS
from tests.mutation.mutants import MUTANTS
from tests.mutation.run import ROOT


def test_each_mutant_has_one_place_in_the_product() -> None:
    places = {each.name: (ROOT / each.file).read_text().count(each.old) for each in MUTANTS}
    assert {name: count for name, count in places.items() if count != 1} == {}


def test_each_mutant_has_a_scenario_that_is_to_catch_it() -> None:
    assert {each.scenario for each in MUTANTS} <= set(SCENARIOS)
