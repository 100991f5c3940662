"""The queue of a lock in a simulation, under kills, lost and late answers, with mutants; and one look at it."""

import itertools
import random
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.leases import state as lease_state
from azguard.leases.owners import READER, TICKET
from azguard.leases.state import LeaseState
from azguard.locks import queue, waiter
from azguard.locks.queue import QueueLook
from azguard.requests.deadline import Deadline
from tests.support import thorough
from tests.support.listed_account import ListedAccount, item
from tests.support.simulated_locks import TERM, Contender, Simulation, Storm

CALM = Storm()
STORMY = Storm(lost=0.08, late=0.02)
# Until the next waiter looks.
_NOTICE_SECONDS = 4.0
# Until the second waiter has noticed that the lock is free, and that it has been free for long.
_SOON_SECONDS = 2.7
# So long a free lock is left to one waiter ahead that does not ask for it.
_LEFT_SECONDS = 8.0
# So long after their last sign of life, or after the lock came free, any number of dead waiters is passed over.
_PASSED_SECONDS = 15.0
# Several answers in a row may be lost, each of which is waited for: in two of 1,600 stories for 45 to 50 s.
_STORM_SECONDS = 60.0


def contend(seed: str, storm: Storm, *, kills: float, plain: float = 0.0) -> Simulation:
    """Play a story: about eight runs come within some seconds."""
    dice = random.Random(seed)
    simulation = Simulation(seed, storm)
    contenders = [
        Contender(
            name=f"run{number}",
            comes=dice.uniform(0, 12),
            holds=dice.uniform(0.5, 4),
            is_fair=dice.random() >= plain,
        )
        for number in range(dice.randint(3, 8))
    ]
    for each in contenders:
        if dice.random() < kills:
            each.killed = each.comes + dice.expovariate(1 / 6)
    simulation.run(contenders)
    return simulation


def queue_behind_the_dead(seed: str, dead: int) -> Simulation:
    """Play a story: so many that wait die at any time before or after the lock is free; three behind them live."""
    dice = random.Random(seed)
    simulation = Simulation(seed)
    simulation.service.page = 50
    free = 26.0
    waiters = [Contender(f"dead{number}", 2 + number * 0.6) for number in range(dead)]
    for each in waiters:
        each.killed = max(each.comes + 2, dice.choice([free, dice.uniform(0, free), dice.uniform(free - 8, free + 4)]))
    living = [Contender(f"living{number}", 3 + (dead + number) * 0.6) for number in range(3)]
    simulation.run([Contender("holder", 0, holds=free), *waiters, *living])
    return simulation


def queue_behind_the_mute(seed: str) -> Simulation:
    """Play a story: one gives signs of life, and its requests for the lock get lost; one waits behind it."""
    simulation = Simulation(seed)
    mute = Contender("mute", 2, is_mute=True, killed=40)
    simulation.run([Contender("holder", 0, holds=10), mute, Contender("living", 4)])
    return simulation


def violations(simulation: Simulation, storm: Storm) -> list[str]:
    served = sorted((each for each in simulation.contenders if each.entered is not None), key=_entered)
    return [
        *_overlaps(served),
        *(f"{later.name} has no higher fence" for each, later in _pairs(served) if later.fence <= each.fence),
        *(
            f"{later.name} overtook {first.name}"
            for first in served
            for later in served
            if _overtakes(later, first) and not (storm is STORMY and _was_left_alone(served, later))
        ),
        *(f"{each.name} was never served" for each in simulation.contenders if not each.killed and not each.entered),
        *_delays(simulation, served, 0.0 if storm is CALM else _STORM_SECONDS),
        *(
            f"{each.name} lost its place"
            for each in simulation.contenders
            if storm is CALM and each.lost_place and each.killed is None
        ),
    ]


def _entered(each: Contender) -> float:
    return each.entered or 0.0


def _pairs(served: list[Contender]) -> Iterator[tuple[Contender, Contender]]:
    return itertools.pairwise(served)


def _free_at(each: Contender) -> float:
    """Return when the command of a run ended; that of a run that was killed ends with its lease at the latest."""
    return each.left if each.left is not None else (each.killed or 0.0)


def _overlaps(served: list[Contender]) -> Iterator[str]:
    for each, later in _pairs(served):
        if _entered(later) < _free_at(each):
            yield f"{later.name} is inside beside {each.name}"


def _overtakes(later: Contender, first: Contender) -> bool:
    """Return whether one that looked only when the other had its ticket was served before it."""
    if not (later.is_fair and first.is_fair) or first.lost_place or not first.tickets or later.looked is None:
        return False
    return max(first.tickets.values()) < later.looked and _entered(later) < _entered(first)


def _was_left_alone(served: list[Contender], later: Contender) -> bool:
    """Return whether the lock had been free for so long that one whose requests were lost was passed over."""
    before = [_free_at(each) for each in served if _entered(each) < _entered(later)]
    return _entered(later) - max(before, default=0.0) >= _LEFT_SECONDS


def _delays(simulation: Simulation, served: list[Contender], allowance: float) -> Iterator[str]:
    """Yield how long the lock stood free while others waited for it, if that was too long."""
    for each, later in _pairs(served):
        dead = [other for other in simulation.contenders if other.killed is not None and other.killed < _entered(later)]
        # One that was killed while it had the lock holds up others until its lease ends.
        free = max(_free_at(each), later.comes, *((other.killed or 0.0) + TERM for other in dead if other.granted), 0.0)
        waited = [other for other in dead if not other.granted and other.tickets]
        most = free + _NOTICE_SECONDS
        if waited:
            most = max(free, *(other.signed for other in waited)) + _PASSED_SECONDS
        if len(waited) == 1 or any(other.is_mute for other in simulation.contenders):
            most = free + _LEFT_SECONDS + _SOON_SECONDS
        if _entered(later) > most + allowance:
            yield f"{later.name} waited too long after {each.name}"


@pytest.mark.thorough
@pytest.mark.parametrize("seed", thorough.some(range(4), 2))
def test_all_are_served_in_the_order_in_which_they_came(seed: int) -> None:
    simulation = contend(f"calm {seed}", CALM, kills=0.0)
    assert violations(simulation, CALM) == []
    assert [name for name in simulation.service.blobs if name != "x"] == []


@pytest.mark.thorough
@pytest.mark.parametrize("seed", thorough.some(range(6), 2))
def test_those_that_are_killed_are_passed_over(seed: int) -> None:
    assert violations(contend(f"kills {seed}", CALM, kills=0.4), CALM) == []


@pytest.mark.thorough
@pytest.mark.parametrize("seed", thorough.some(range(6), 2))
def test_lost_and_late_answers_change_no_order(seed: int) -> None:
    assert violations(contend(f"storm {seed}", STORMY, kills=0.25), STORMY) == []


@pytest.mark.thorough
@pytest.mark.parametrize("seed", thorough.some(range(6), 2))
def test_those_without_a_queue_are_served_too_and_change_no_order_of_the_others(seed: int) -> None:
    assert violations(contend(f"plain {seed}", CALM, kills=0.2, plain=0.4), CALM) == []


@settings(max_examples=thorough.count(12), deadline=None)
@given(seed=st.integers(), storm=st.sampled_from([CALM, STORMY]), kills=st.sampled_from([0.0, 0.5]))
def test_any_story_keeps_the_order(seed: int, storm: Storm, kills: float) -> None:
    assert violations(contend(str(seed), storm, kills=kills, plain=0.2), storm) == []


@pytest.mark.thorough
@pytest.mark.parametrize("dead", thorough.some([1, 3, 2, 5, 8], 2))
def test_any_number_of_the_dead_is_passed_over_within_15_seconds_and_the_living_keep_their_order(
    dead: int,
) -> None:
    assert violations(queue_behind_the_dead(f"dead {dead}", dead), CALM) == []


def test_a_waiter_that_lives_and_cannot_ask_for_the_lock_is_passed_over_too() -> None:
    assert violations(queue_behind_the_mute("mute"), CALM) == []


def test_the_next_waiter_deletes_the_tickets_of_the_dead() -> None:
    simulation = Simulation("dead")
    simulation.run([Contender("holder", 0, holds=8), *(Contender(f"dead{n}", 1 + n / 4, killed=6) for n in range(4))])
    assert len(simulation.service.blobs) == 5
    simulation.now += queue.DEAD_SECONDS
    simulation.run([Contender("next", simulation.now)])
    assert list(simulation.service.blobs) == ["x"]


# The quick ones are first: a run that is not thorough tries a few.
MUTANTS: Mapping[str, Any] = {
    "barging is allowed": patch.object(waiter.QueuePlace, "is_first", property(
        lambda self: self.seen is not None)),
    "the numbers of those served are given again": patch.object(queue.QueueLook, "next_number", property(
        lambda self: next(n for n in itertools.count(1) if n not in [each.number for each in self.tickets]))),
    "later numbers come first": patch.object(queue.QueueLook, "next_number", property(
        lambda self: min((each.number for each in self.tickets), default=10**9) - 1)),
    "the ticket is left behind": patch.object(waiter.OwnTicket, "leave", lambda self: None),
    "no sign of life is given": patch.object(waiter, "_SIGN_SECONDS", 10**9),
    "a free lock is left to those who do not ask": patch.object(waiter, "_LEFT_SECONDS", 10**9),
    "the dead are never skipped": patch.object(queue.Ticket, "is_alive", property(lambda self: True)),
    "the dead are skipped late": patch.object(queue, "SILENT_SECONDS", 15.0),
    "one whose turn has just come is left no time": patch.object(
        waiter.QueuePlace, "_is_gone", lambda self, before: False),
}  # fmt: skip
# The story that tells each mutant apart; by default, one of all that can happen.
STORIES: Mapping[str, Callable[[int], Simulation]] = {
    "a free lock is left to those who do not ask": lambda seed: queue_behind_the_mute(str(seed)),
    "the dead are never skipped": lambda seed: queue_behind_the_dead(f"mutant {seed}", 1 + seed % 6),
    "the dead are skipped late": lambda seed: queue_behind_the_dead(f"mutant {seed}", 1 + seed % 6),
    "one whose turn has just come is left no time": lambda seed: queue_behind_the_dead(f"mutant {seed}", 1 + seed % 6),
}
# The first seed that tells; it is tried first, since the stories of some mutants are long.
TELLING = {
    "barging is allowed": 2,
    "later numbers come first": 8,
    "the ticket is left behind": 8,
    "the dead are never skipped": 14,
    "the dead are skipped late": 32,
    "one whose turn has just come is left no time": 12,
    "no sign of life is given": 6,
}


@pytest.mark.thorough
@pytest.mark.parametrize("mutant", thorough.some(MUTANTS))
def test_a_mutant_is_caught(mutant: str) -> None:
    story = STORIES.get(mutant, lambda seed: contend(f"mutant {seed}", CALM, kills=0.4 * (seed % 2)))
    with MUTANTS[mutant]:
        assert any(_is_caught(story, seed) for seed in (TELLING.get(mutant, 0), *range(20)))


def _is_caught(story: Callable[[int], Simulation], seed: int) -> bool:
    try:
        return bool(violations(story(seed), CALM))
    except AssertionError:
        return True


LOCK = Address(Kind.BLOB, ("locks", "deploy"))
OWN = item("deploy", metadata={"azguardfence": "7"})
NAMED = (
    item("deploy!0000000002", metadata={TICKET: "two"}),
    item("deploy!0000000010", metadata={TICKET: "ten"}),
    item("deploy!reader-1", "leased", metadata={READER: "1"}),
)
# In an account with a hierarchical namespace what is in a folder comes before it; and a space comes before the mark.
OTHERS = (item("deploy/x"), item("deploy 2"), item("deploy-2", "leased"))


def look(*items: Any) -> QueueLook:
    return queue.look(Target(ListedAccount({"locks": items}).account, LOCK), Deadline(1))


def describe(seen: QueueLook) -> tuple[bool, list[int], int]:
    return seen.lock is not None, [each.number for each in seen.tickets], len(seen.readers)


def test_the_order_of_the_listing_does_not_matter() -> None:
    assert {str(describe(look(*order))) for order in itertools.permutations((OWN, *NAMED[:2], *OTHERS))} == {
        str((True, [2, 10], 0))
    }


@pytest.mark.parametrize("has_lock", [True, False])
def test_what_stands_behind_a_full_page_is_found(monkeypatch: pytest.MonkeyPatch, *, has_lock: bool) -> None:
    asked: list[str] = []

    def look_at(target: Target, _: Deadline) -> LeaseState:
        asked.append(str(target.address))
        return SimpleNamespace(answered_at=None, metadata={})  # type: ignore[return-value]  # it is not looked at

    monkeypatch.setattr(lease_state, "look", look_at)
    crowd = [item(f"deploy/{number:03}") for number in range(120)]
    before = [OWN] if has_lock else []
    assert describe(look(*before, *crowd, *NAMED)) == (True, [2, 10], 1)
    assert asked == ([] if has_lock else ["blob:locks/deploy"])
