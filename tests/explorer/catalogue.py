"""All scenarios, by name."""

from itertools import chain

from tests.explorer import entities, locks, updates, writes
from tests.explorer.world import Scenario

SCENARIOS: dict[str, Scenario] = {
    each.name: each for each in chain(updates.scenarios(), entities.scenarios(), writes.scenarios(), locks.scenarios())
}
