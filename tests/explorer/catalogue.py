"""All scenarios, by name."""

from itertools import chain

from tests.explorer import entities, files, holds, leases, locks, trees, updates, workers, writes
from tests.explorer.scenario import Scenario

SCENARIOS: dict[str, Scenario] = {
    each.name: each
    for each in chain(
        updates.scenarios(),
        entities.scenarios(),
        files.scenarios(),
        writes.scenarios(),
        trees.scenarios(),
        leases.scenarios(),
        locks.scenarios(),
        holds.scenarios(),
        workers.scenarios(),
    )
}
