"""All scenarios, by name."""

from tests.explorer import updates
from tests.explorer.world import Scenario

SCENARIOS: dict[str, Scenario] = {each.name: each for each in updates.scenarios()}
