"""A small race of updates, with faults and kills, one for a lock, and one of workers: all checked by their traces.

    python -m tests.traces --seed 42

It takes some fifteen seconds, and ends with 1 if a rule was broken or an answer was false. What a rule is, and how it
can be broken, stands in ``rules``.
"""

import argparse
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

from tests.races import lock_race, queue_race, race
from tests.races.chain import Violation
from tests.races.lock_history import Violation as LockViolation
from tests.support import azurites, forked

# What proves something are writes, faults and kills: each part ends with the last of them, or after this time.
_SECONDS = 14.0
_MOST_SECONDS = 28.0


def run(seed: str) -> list[str]:
    """Play all parts at the same time, and return what was wrong."""
    beside = race.Settings(seed, processes=4, share=0.35, kill_every=1.5, stop_every=0, foreign="half", enough=120)
    hurried = race.Settings(seed, 2, share=0.9, kill_every=0, stop_every=0, commands=0, hurried=1)
    locks = lock_race.Settings(seed, contenders=3, sections=2)
    messages = queue_race.Settings(seed, workers=2, messages=10, once=True)
    forked.server()  # starts what forks, once, before the threads ask for it
    with azurites.fresh() as emulator, azurites.fresh() as other, ThreadPoolExecutor() as threads:
        raced = [
            threads.submit(race.run, beside, _SECONDS, emulator),
            threads.submit(race.run, hurried, _SECONDS, other),
        ]
        locked = threads.submit(lock_race.run, locks, _MOST_SECONDS, emulator)
        worked = threads.submit(queue_race.run, messages, _MOST_SECONDS, emulator)
        early = [f"message {each} was deleted before it was done" for each in worked.result().early]
        found = [
            *_describe(chain(*(each.result().violations for each in raced))),
            *_describe(locked.result().findings.violations),
        ]
        return [*found, *worked.result().broken, *early]


def _describe(violations: Iterable[Violation | LockViolation]) -> list[str]:
    return ["\n    ".join((f"{each.rule}: {each.text}", *each.evidence)) for each in violations]


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.traces", description=__doc__.split("\n\n")[0])
    parser.add_argument("--seed", default="1")
    found = run(parser.parse_args().seed)
    print(*found, f"{len(found)} violations", sep="\n")  # noqa: T201  # its output
    return 1 if found else 0
