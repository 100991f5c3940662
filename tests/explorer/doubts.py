"""Whether a process that does not know how its write ended could have known it.

It could if one truth alone fits what it was told. So a state is looked for in which it was told the same, and the truth
is another one: among all that was visited, and where there is none, with more faults and more steps of other programs
than the bound has, of which only those are visited that tell this process the same.
"""

from collections.abc import Hashable, Iterator
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count

from tests.explorer import faults
from tests.explorer.player import Ended, Node, Player
from tests.explorer.scenario import Bound, Scenario, Violation
from tests.explorer.wire import Answer, Asked, Silence
from tests.explorer.world import UNKNOWN, State, World

# So many states are looked at for the other truth. Where there are more, the doubt is taken for one.
_MOST_STATES = 500
# What follows from content.
_OF_CONTENT = ("Content-MD5", "Content-Range", "x-ms-blob-content-md5", "Content-Length")


class Doubts:
    """The processes that ended with a doubt, by what they were told."""

    def __init__(self, scenario: Scenario, bound: Bound, player: Player) -> None:
        self._scenario = scenario
        #: The truths about each, and a state in which each was seen first.
        self._truths: dict[tuple[int, tuple[Hashable, ...]], dict[Hashable, int]] = {}
        wider = bound._replace(faults=bound.faults + 1, foreign=bound.foreign + 1, switches=None)
        beyond = replace(
            scenario,
            foreign=scenario.beyond or scenario.foreign,
            alphabet=tuple({*scenario.alphabet, *faults.USUAL}),
            is_symmetric=False,
        )
        self._world = World(beyond, wider, player)

    def note(self, key: int, state: State) -> None:
        """Take note of the doubts in a state in which all processes have ended."""
        if not self._scenario.judges_doubts:
            return
        for index, process in enumerate(state.processes):
            if _is_in_doubt(process.node):
                truth = self._find_truth(state, index)
                assert process.node is not None
                told = tuple(map(_abstract, process.node.history()))
                self._truths.setdefault((index, told), {}).setdefault(truth, key)

    def find_needless(self) -> Iterator[tuple[str, int]]:
        """Yield what is wrong with each doubt that only one truth explains, with the state in which it was seen."""
        for (index, told), truths in self._truths.items():
            (truth, key), *others = truths.items()
            if not others and not self._may_be_otherwise(index, told, truth):
                name = self._scenario.programs[index].name
                yield f"{name} ended 74, and what it was told leaves only one truth: {truth}", key

    def _find_truth(self, state: State, index: int) -> Hashable:
        return self._scenario.rules.find_truth(state.ghost, self._scenario.programs[index].name)

    def _may_be_otherwise(self, index: int, told: tuple[Hashable, ...], truth: Hashable) -> bool:
        """Return whether another truth was found, or not all could be looked at."""
        path = _Path(told)
        state = self._world.begin()
        met, order = {state.key}, count()
        # What leads farthest goes first.
        waiting = [(0, next(order), state)]
        while waiting and len(met) < _MOST_STATES:
            for after in self._list_next(heappop(waiting)[2]):
                node = after.processes[index].node
                steps = path.count(node)
                if steps is None or after.key in met:
                    continue
                if _is_in_doubt(node) and self._find_truth(after, index) != truth:
                    return True
                met.add(after.key)
                heappush(waiting, (-steps, next(order), after))
        return bool(waiting)

    def _list_next(self, state: State) -> Iterator[State]:
        for choice in self._world.choices(state):
            try:
                after = self._world.take(state, choice)
            except Violation:
                continue  # Beyond the bound docs/guarantees.md allows some.
            if after is not None:
                yield after


class _Path:
    """The history of a process that was told something."""

    def __init__(self, told: tuple[Hashable, ...]) -> None:
        self._told = told
        self._steps: dict[Node | None, int | None] = {None: 0}

    def count(self, node: Node | None) -> int | None:
        """Return how many of its steps lead to a node; None if it does not lead there."""
        if node not in self._steps:
            assert node is not None
            before = self.count(node.parent)
            is_on = before is not None and before < len(self._told) and _abstract(node) == self._told[before]
            self._steps[node] = before + 1 if is_on and before is not None else None
        return self._steps[node]


def _is_in_doubt(node: Node | None) -> bool:
    return node is not None and isinstance(node.step, Ended) and node.step.status == UNKNOWN


def _abstract(node: Node) -> Hashable:
    """Strip the content from a request and its answer: another writer may have written the same."""
    return node.seen[0] if node.parent else None, _strip(node.seen[-1]), _strip(node.step)


def _strip(step: object) -> Hashable:
    if isinstance(step, Asked):
        return step.action, step.path, step.headers
    if isinstance(step, Answer):
        kept = tuple(pair for pair in step.headers if pair[0] not in _OF_CONTENT)
        return Silence.BROKEN if step.is_of_another else (step.status, kept)
    return step if isinstance(step, Hashable) else str(step)
