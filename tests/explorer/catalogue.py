"""All scenarios, by name."""

from itertools import chain

from tests.explorer import entities, fenced, files, holds, leases, locks, trees, updates, workers, writes
from tests.explorer.scenario import Scenario

SCENARIOS: dict[str, Scenario] = {
    each.name: each
    for each in chain(
        updates.scenarios(),
        entities.scenarios(),
        files.scenarios(),
        writes.scenarios(),
        fenced.scenarios(),
        trees.scenarios(),
        leases.scenarios(),
        locks.scenarios(),
        holds.scenarios(),
        workers.scenarios(),
    )
}
