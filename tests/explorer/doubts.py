"""Whether a process that does not know how its write ended could have known it.

It could if one truth alone fits what it was told until then. So a state is looked for in which it was told the same,
and the truth is another one: among all that was visited, and where there is none, with more faults and more steps of
other programs than the bound has, of which only those are visited that tell this process the same.
"""

import re
from collections.abc import Hashable, Iterator
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

from tests.explorer import faults
from tests.explorer.faults import Fault
from tests.explorer.player import Node, Player, Seen
from tests.explorer.scenario import Bound, Scenario, Violation
from tests.explorer.wire import Answer, Asked, Silence
from tests.explorer.world import UNKNOWN, State, World, name_doubt

# So many states are looked at for the other truth. Where there are more, the doubt is taken for one.
_MOST_STATES = 1000
# What follows from content.
_OF_CONTENT = ("Content-MD5", "Content-Range", "x-ms-blob-content-md5", "Content-Length")
# Of these answers the body tells more than content.
_TOLD_IN_BODY = ("application/json", "application/xml", "multipart/mixed")
# A step: the time, what was told then, and what followed.
_Told = tuple[Hashable, Hashable, Hashable]
# The content of an entity, and the time of an error, which its process knows.
_PASSING = re.compile(rb'"v": ?"[^"]*"|Time:[^"<]*')


class Doubts:
    """The doubts of processes, by what they were told until then."""

    def __init__(self, scenario: Scenario, bound: Bound, player: Player) -> None:
        self._scenario = scenario
        #: Those that are in the history of each process.
        self._said: dict[tuple[int, Node], tuple[_Doubt, ...]] = {}
        #: The truths about each, and a state in which each was seen first.
        self._truths: dict[_Doubt, dict[Hashable, int]] = {}
        wider = bound._replace(faults=bound.faults + 1, foreign=bound.foreign + 1, switches=None)
        beyond = replace(
            scenario,
            foreign=scenario.beyond or scenario.foreign,
            alphabet=tuple({*scenario.alphabet, *faults.USUAL, Fault.AHEAD}),
            is_symmetric=False,
        )
        self._world = _World(beyond, wider, player)

    def note(self, key: int, state: State) -> None:
        """Take note of the doubts in a state in which all processes have ended."""
        if not self._scenario.judges_doubts:
            return
        for index, process in enumerate(state.processes):
            assert process.node is not None
            known = index, process.node
            if known not in self._said:
                self._said[known] = _list_doubts(*known)
            for doubt in self._said[known]:
                self._truths.setdefault(doubt, {}).setdefault(self._find_truth(state, doubt), key)

    def find_needless(self) -> Iterator[tuple[str, int]]:
        """Yield what is wrong with each doubt that only one truth explains, with the state in which it was seen."""
        for doubt, truths in self._truths.items():
            (truth, key), *others = truths.items()
            if not others and not self._may_be_otherwise(doubt, truth):
                said = f"{self._scenario.programs[doubt.number].name} {doubt.describe()}"
                yield f"{said}, and what it was told leaves only one truth: {truth}", key

    def _find_truth(self, state: State, doubt: "_Doubt") -> Hashable:
        return self._scenario.rules.find_truth(state.ghost, self._scenario.programs[doubt.number].name, doubt.what)

    def _may_be_otherwise(self, doubt: "_Doubt", truth: Hashable) -> bool:
        """Return whether another truth was found, or not all could be looked at."""
        path = self._world.path = _Path(doubt.told)
        self._world.number = doubt.number
        state = self._world.begin()
        met, order = {state.key}, count()
        # Where the truth is another one already goes first, and then what leads farthest.
        waiting = [(True, 0, next(order), state)]
        while waiting and len(met) < _MOST_STATES:
            for after in self._list_next(heappop(waiting)[-1]):
                steps = path.count(after.processes[doubt.number].node)
                if steps is None or after.key in met:
                    continue
                met.add(after.key)
                is_same, is_told = self._find_truth(after, doubt) == truth, steps == len(doubt.told)
                if is_told and not is_same:
                    return True
                # Once all is told, only what is under way can still make it another one.
                if not is_told or after.under_way:
                    heappush(waiting, (is_same, -steps, next(order), after))
        return bool(waiting)

    def _list_next(self, state: State) -> Iterator[State]:
        for choice in self._world.choices(state):
            try:
                after = self._world.take(state, choice)
            except Violation:
                continue  # Beyond the bound docs/guarantees.md allows some; or it was told something else.
            if after is not None:
                yield after


class _Doubt(NamedTuple):
    """What a process does not know the end of, and what it was told until it said so."""

    number: int
    what: str
    told: tuple[_Told, ...]

    def describe(self) -> str:
        """Return how it was said."""
        return f"leaves {self.what} in doubt" if self.what else f"ended {UNKNOWN}"


def _list_doubts(index: int, node: Node) -> tuple[_Doubt, ...]:
    history = node.history()
    told = tuple(map(_abstract, history))
    said = [(at, name_doubt(each.step)) for at, each in enumerate(history, 1)]
    return tuple(_Doubt(index, what, told[:at]) for at, what in said if what is not None)


class _Path:
    """The history of a process that was told something."""

    def __init__(self, told: tuple[_Told, ...]) -> None:
        self._told = told
        self._steps: dict[Node | None, int | None] = {None: 0}

    def count(self, node: Node | None) -> int | None:
        """Return how many of its steps lead to a node, or to one before it; None if it does not lead there."""
        if node not in self._steps:
            assert node is not None
            before = self.count(node.parent)
            if before is None or before == len(self._told):
                self._steps[node] = before
            else:
                self._steps[node] = before + 1 if _abstract(node) == self._told[before] else None
        return self._steps[node]

    def leads_on(self, node: Node, seen: Seen) -> bool:
        """Return whether a process was told this then, or all that counts already."""
        steps = self.count(node)
        if steps is None or steps == len(self._told):
            return steps is not None
        return self._told[steps][:2] == (seen[0], _strip(seen[1]))


class _World(World):
    """Plays no step of one process that leads away from what it was told."""

    number = 0
    path = _Path(())

    def _go_on(self, state: State, index: int, told: Answer | Silence | None) -> State:
        node = state.processes[index].node
        assert node is not None
        if index == self.number and not self.path.leads_on(node, (self._find_time(state, node), told)):
            raise Violation("it was told something else")
        return super()._go_on(state, index, told)


def _abstract(node: Node) -> _Told:
    """Strip the content from a request and its answer: another writer may have written the same."""
    return node.seen[0] if node.parent else None, _strip(node.seen[-1]), _strip(node.step)


def _strip(step: object) -> Hashable:
    if isinstance(step, Asked):
        return step.action, step.path, step.query, step.headers
    if isinstance(step, Answer):
        if step.is_of_another:
            return Silence.BROKEN
        kept = tuple(pair for pair in step.headers if pair[0] not in _OF_CONTENT)
        tells = (step.header("Content-Type") or "").startswith(_TOLD_IN_BODY)
        return step.status, kept, _PASSING.sub(b"", step.body) if tells else b""
    return step if isinstance(step, Hashable) else str(step)
