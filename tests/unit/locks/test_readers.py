"""Readers and writers of one lock in a simulation: never a writer beside another, under kills and lost answers."""

import random
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from azguard.locks import readers
from tests.support import thorough
from tests.support.simulated_locks import LOCK, TERM, Contender, Simulation, Storm

CALM = Storm()
STORMY = Storm(lost=0.08, late=0.02)


def contend(seed: str, storm: Storm, *, kills: float) -> Simulation:
    """Play a story: readers and writers come within some seconds, many of them at the same time."""
    dice = random.Random(seed)
    simulation = Simulation(seed, storm)
    # With a reader before all others the lock is there, and marked; without one it is made while all come.
    first = [Contender("first", 0.0, holds=0.1, is_shared=True)] * dice.choice([0, 1])
    contenders = [
        Contender(
            name=f"run{number}",
            comes=dice.choice([5.0, dice.uniform(5, 13)]),
            holds=dice.uniform(0.1, 3),
            is_shared=dice.random() < 0.6,
            is_fair=True,
        )
        for number in range(dice.randint(3, 7))
    ]
    for each in contenders:
        if dice.random() < kills:
            each.killed = each.comes + dice.expovariate(1 / 4)
    simulation.run([*first, *contenders])
    return simulation


def violations(simulation: Simulation) -> list[str]:
    inside = [each for each in simulation.contenders if each.entered is not None]
    writers = sorted((each for each in inside if not each.is_shared), key=lambda each: each.entered or 0.0)
    fences = [each.fence for each in writers]
    return [
        *_overlaps(inside),
        *(["the fences do not rise"] if any(a >= b for a, b in pairwise(fences)) else []),
        *(f"{each.name} was never served" for each in simulation.contenders if not each.killed and not each.entered),
    ]


def _overlaps(inside: list[Contender]) -> Iterator[str]:
    for number, each in enumerate(inside):
        for other in inside[number + 1 :]:
            is_alone = not (each.is_shared and other.is_shared)
            if is_alone and _begin(each) < _end(other) and _begin(other) < _end(each):
                yield f"{each.name} and {other.name} are inside together"


def _begin(each: Contender) -> float:
    return each.entered or 0.0


def _end(each: Contender) -> float:
    return each.left if each.left is not None else (each.killed or 0.0)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", thorough.some(range(8), 2))
def test_no_writer_is_beside_another(seed: int) -> None:
    simulation = contend(f"calm {seed}", CALM, kills=0.0)
    assert violations(simulation) == []
    assert list(simulation.service.blobs) == [LOCK]


@pytest.mark.thorough
@pytest.mark.parametrize("seed", thorough.some(range(8), 2))
def test_no_writer_is_beside_another_whatever_gets_lost(seed: int) -> None:
    assert violations(contend(f"storm {seed}", STORMY, kills=0.3)) == []


@settings(max_examples=thorough.count(15), deadline=None)
@given(seed=st.integers(), storm=st.sampled_from([CALM, STORMY]), kills=st.sampled_from([0.0, 0.5]))
def test_in_any_story_no_writer_is_beside_another(seed: int, storm: Storm, kills: float) -> None:
    assert violations(contend(str(seed), storm, kills=kills)) == []


def test_readers_are_inside_together() -> None:
    simulation = Simulation("together")
    simulation.run([Contender(f"reader{number}", 0.0, holds=20, is_shared=True) for number in range(5)])
    entered = [each.entered or 99 for each in simulation.contenders]
    assert max(entered) < 10


def test_a_writer_that_waits_is_served_before_the_readers_that_come_after_it() -> None:
    simulation = Simulation("no starvation")
    stream = [Contender(f"reader{number}", number * 1.0, holds=3, is_shared=True) for number in range(12)]
    writer = Contender("writer", 3.5)
    simulation.run([*stream, writer])
    after = [each for each in stream if (each.looked or 0.0) > max(writer.tickets.values(), default=writer.looked or 0)]
    assert (len(after) > 5, violations(simulation)) == (True, [])
    assert all(_begin(each) > _begin(writer) for each in after)


def test_a_reader_that_was_killed_keeps_a_writer_out_until_its_lease_ends_and_leaves_no_blob() -> None:
    simulation = Simulation("killed")
    simulation.run([Contender("reader", 0.0, holds=20, is_shared=True, killed=5.0), Contender("writer", 6.0)])
    writer = simulation.contenders[1]
    assert (TERM - 1 < _begin(writer) < TERM + 5, list(simulation.service.blobs)) == (True, [LOCK])


def test_a_lock_that_was_lost_to_a_reader_is_not_left_as_one_that_was_released() -> None:
    simulation = Simulation("lost")
    simulation.run([Contender("writer", 0.0, holds=20, killed=5.0), Contender("reader", 6.0, is_shared=True)])
    assert (violations(simulation), simulation.service.blobs[LOCK].lease_state(simulation.now)) == ([], "broken")


MUTANTS: Mapping[str, Any] = {
    "a writer does not look for readers": patch.object(readers.Draining, "may_have_readers", lambda self, place: False),
    "a writer counts no reader": patch.object(readers, "_is_inside", lambda reader, time: False),
    "a reader does not look for a writer": patch.object(
        readers, "_CERTAINLY_FREE", ("available", "broken", "leased", "expired")
    ),
}


# The first seed that tells; it is tried first.
TELLING = {
    "a writer does not look for readers": 5,
    "a writer counts no reader": 4,
    "a reader does not look for a writer": 20,
}


@pytest.mark.thorough
@pytest.mark.parametrize("mutant", thorough.some(MUTANTS, 1))
def test_a_mutant_is_caught(mutant: str) -> None:
    with MUTANTS[mutant]:
        seeds = (TELLING[mutant], *range(60))
        caught = (bool(violations(contend(f"mutant {seed}", STORMY, kills=0.0))) for seed in seeds)
        assert any(caught)
