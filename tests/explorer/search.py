"""All states of a scenario up to a bound, the shortest schedules first; or schedules at random beyond it."""

import random
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf

from tests.explorer.doubts import Doubts
from tests.explorer.names import Numbered
from tests.explorer.player import Player, without_chance
from tests.explorer.scenario import Bound, Scenario, Violation
from tests.explorer.world import Choice, State, World

# How long to go on after the first violation, for others.
_MORE_SECONDS = 3.0
# More steps than any process needs: one that takes more waits for ever.
_MOST_STEPS = 2000
# So many a walk remembers, before it begins to remember anew.
_MOST_NODES = 100_000


@dataclass(frozen=True)
class Found:
    """A violation, and the steps that lead to it."""

    what: str
    story: tuple[str, ...]
    #: That plays it again; None where all states were visited.
    seed: int | None = None


@dataclass
class Report:
    """What a search has seen."""

    scenario: str
    bound: Bound
    states: int = 0
    #: How many different ends there were; of a walk, how many walks.
    schedules: int = 0
    #: How many steps of real code were played.
    played: int = 0
    #: Of one processor, so that what else the machine does makes no difference.
    seconds: float = 0.0
    #: Whether every state up to the bound was visited.
    is_complete: bool = False
    violations: list[Found] = field(default_factory=list)


class Search:
    """Visits every state once, breadth first, so that the first story found is a shortest one."""

    #: Whether histories are not told apart that a process has forgotten.
    forgets = True

    def __init__(self, scenario: Scenario, bound: Bound, *, most: int = 3) -> None:
        self._player = Player(forgets=self.forgets)
        self._world = World(scenario, bound, self._player)
        self.report = Report(scenario.name, bound)
        self._most = most
        #: How each state was reached first.
        self._came: dict[int, tuple[int | None, Choice | None]] = {}
        self._queue: deque[tuple[int, State]] = deque()
        self._doubts = Doubts(scenario, bound, self._player)
        self._said: set[str] = set()

    def run(self) -> Report:
        """Visit all states; after a violation only as many as a few seconds allow."""
        began, until = time.process_time(), inf
        with without_chance():
            try:
                self._add(self._world.begin(), None, None)
            except Violation as violation:
                self.report.violations.append(Found(str(violation), ()))
            while self._queue and not self._has_enough():
                if self.report.violations:
                    until = min(until, time.process_time() + _MORE_SECONDS)
                    if time.process_time() > until:
                        break
                self._visit(*self._queue.popleft())
            self.report.is_complete = not self._queue
            for what, key in self._doubts.find_needless() if self.report.is_complete else ():
                self._tell(what, key, None)
            self._player.close()
        self.report.played = self._player.played
        self.report.seconds = time.process_time() - began
        return self.report

    def _has_enough(self) -> bool:
        return len(self.report.violations) >= self._most

    def _add(self, state: State, came: int | None, choice: Choice | None) -> None:
        key = state.key
        if key in self._came:
            return
        self._came[key] = (came, choice)
        self.report.states += 1
        if state.is_over:
            self.report.schedules += 1
            self._check_over(key, state)
        self._queue.append((key, state))

    def _visit(self, key: int, state: State) -> None:
        for choice in self._world.choices(state):
            try:
                after = self._world.take(state, choice)
            except Violation as violation:
                self._tell(str(violation), key, choice)
                continue
            if after is not None:
                self._add(after, key, choice)

    def _check_over(self, key: int, state: State) -> None:
        rules = self._world.scenario.rules
        try:
            rules.check_over(state.ghost, state.services, state.now)
        except Violation as violation:
            self._tell(str(violation), key, None)
        self._doubts.note(key, state)

    def _tell(self, what: str, key: int, last: Choice | None) -> None:
        if what not in self._said:
            self._said.add(what)
            self.report.violations.append(Found(what, tuple(self._tell_story(key, last))))

    def _tell_story(self, key: int, last: Choice | None) -> Iterator[str]:
        return tell(self._world, [*self._find_choices(key), *([] if last is None else [last])])

    def _find_choices(self, key: int) -> list[Choice]:
        """Return the steps by which a state was reached first."""
        choices: list[Choice] = []
        came: int | None = key
        while came is not None:
            came, choice = self._came[came]
            choices += [] if choice is None else [choice]
        return choices[::-1]


def tell(world: World, choices: list[Choice]) -> Iterator[str]:
    """Yield the lines of a story."""
    state = world.begin()
    numbered = Numbered()
    for choice in choices:
        try:
            after = world.take(state, choice) or state
        except Violation:
            after = state
        yield numbered.shorten(world.describe(state, choice, after))
        state = after


def walk(
    scenario: Scenario, bound: Bound, seconds: float, seed: int, *, most: int = 3, walks: int | None = None
) -> Report:
    """Take steps at random, one walk after another, each of the seed that follows the one before.

    With ``walks`` there are so many at most, so that a slow machine and a quick one take the same ones.
    """
    began = time.process_time()
    report = Report(scenario.name, bound)
    player, found = Player(), dict[str, Found]()
    world = World(scenario, bound, player)
    states: set[int] = set()
    with without_chance():
        while not report.schedules or (
            time.process_time() - began < seconds and len(found) < most and report.schedules != walks
        ):
            choices, what = _walk_once(world, random.Random(f"{scenario.name} {seed}"), states)
            if what is not None and (what not in found or len(choices) < len(found[what].story)):
                found[what] = Found(what, tuple(tell(world, choices)), seed)
            report.schedules += 1
            seed += 1
            if player.nodes > _MOST_NODES:
                player.close()
                player = Player()
                world = World(scenario, bound, player)
        player.close()
    report.violations += found.values()
    report.states, report.played = len(states), player.played
    report.seconds = time.process_time() - began
    return report


def _walk_once(world: World, dice: random.Random, states: set[int]) -> tuple[list[Choice], str | None]:
    state = world.begin()
    taken: list[Choice] = []
    try:
        while len(taken) < _MOST_STEPS:
            choices = list(world.choices(state))
            if not choices:
                break
            # Half of the steps meet nothing, so that a walk gets far.
            plain = [each for each in choices if each.kind in ("sends", "time") and each.what is None]
            choice = dice.choice(plain if plain and dice.random() < 0.6 else choices)
            taken.append(choice)
            after = world.take(state, choice)
            if after is None:
                taken.pop()
                continue
            state = after
            states.add(state.key)
            if state.is_over:
                world.scenario.rules.check_over(state.ghost, state.services, state.now)
        else:
            return taken, "a process does not end"
    except Violation as violation:
        return taken, str(violation)
    return taken, None
