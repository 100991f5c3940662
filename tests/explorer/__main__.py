"""``python -m tests.explorer [SCENARIO] [--short]``: visit all states up to the bound.

With ``--seconds N`` or ``--seed S`` walk at random beyond it.
"""

import argparse
import random
import sys

from tests.explorer.catalogue import SCENARIOS
from tests.explorer.search import Report, Search, walk
from tests.explorer.world import Bound

# What walks at random may meet, beyond the bound that is exhausted.
BEYOND = Bound(faults=4, foreign=3, kills=2, stops=2)


def main() -> int:
    """Explore, and return 1 if something is violated."""
    parser = argparse.ArgumentParser(prog="python -m tests.explorer", description=__doc__)
    parser.add_argument("scenario", nargs="?", help=f"one of: {', '.join(SCENARIOS)}; by default all")
    parser.add_argument("--seconds", type=float, help="walk at random for so long, instead of visiting all states")
    parser.add_argument("--seed", type=int, help="the seed of the first walk; by default a random one")
    parser.add_argument("--short", action="store_true", help="up to the bound of the short tests")
    given = parser.parse_args()
    names = [given.scenario] if given.scenario else list(SCENARIOS)
    if unknown := [name for name in names if name not in SCENARIOS]:
        parser.error(f"there is no scenario {unknown[0]!r}; there are: {', '.join(SCENARIOS)}")
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    found = False
    say("| scenario | bound | schedules | states | steps of real code | seconds |")
    say("|---|---|---|---|---|---|")
    for name in names:
        scenario = SCENARIOS[name]
        if given.seconds is None and given.seed is None:
            report = Search(scenario, (given.short and scenario.short) or scenario.bound).run()
        else:
            report = walk(scenario, BEYOND, (given.seconds or 0.0) / len(names), seed)
        show(report)
        found |= bool(report.violations)
    return int(found)


def show(report: Report) -> None:
    """Print what a search has seen, and the story of each violation."""
    counts = f"{report.schedules:,} | {report.states:,} | {report.played:,} | {report.seconds:.1f}"
    say(f"| {report.scenario} | {report.bound} | {counts} |")
    for each in report.violations:
        say(f"\n{each.what}" + ("" if each.seed is None else f" (--seed {each.seed})"))
        for line in each.story:
            say(f"  {line}")
        say("")


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
