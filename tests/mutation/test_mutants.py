"""Every mutant still has its place in the product, a scenario, and its row in docs/guarantees.md."""

from tests.explorer.catalogue import SCENARIOS
from tests.explorer.pages import find_table, group
from tests.mutation.mutants import MUTANTS
from tests.mutation.run import ROOT


def test_each_mutant_has_one_place_in_the_product() -> None:
    places = {each.name: (ROOT / each.file).read_text().count(each.old) for each in MUTANTS}
    assert {name: count for name, count in places.items() if count != 1} == {}


def test_each_mutant_has_a_scenario_that_is_to_catch_it() -> None:
    assert {each.scenario for each in MUTANTS} <= set(SCENARIOS)


def test_the_page_has_the_mutants_and_the_scenarios_that_there_are() -> None:
    tables = {name: list(group(find_table(name).splitlines()[2:])) for name in ("mutants", "explorer")}
    assert tables == {"mutants": [each.name for each in MUTANTS], "explorer": list(SCENARIOS)}
