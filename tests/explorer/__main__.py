"""``python -m tests.explorer [SCENARIO]... [--short]``: visit all states up to the bounds.

With ``--seconds N`` or ``--seed S`` walk at random beyond it. With ``--write-docs`` the rows are written into
docs/guarantees.md.
"""

import argparse
import json
import random
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import chain
from multiprocessing import get_context

from tests.explorer.catalogue import SCENARIOS
from tests.explorer.pages import write_table
from tests.explorer.scenario import Bound, Scenario
from tests.explorer.search import Report, Search, walk
from tests.explorer.traced import TraceSearch

# What walks at random may meet, beyond the bound that is exhausted.
BEYOND = Bound(faults=4, foreign=3, kills=2, stops=2)
_HEAD = "| scenario | bound | schedules | states | steps of real code | seconds |\n|---|---|---|---|---|---|"


def main() -> int:
    """Explore, and return 1 if something is violated."""
    given = _parse()
    rows: list[str] = []
    if not given.json:
        _say(_HEAD)
    found = False
    with ProcessPoolExecutor(given.jobs, get_context("fork")) as pool:
        explore = partial(_explore, given)
        reports = map(explore, given.scenarios) if given.jobs == 1 else pool.map(explore, given.scenarios)
        for report in chain.from_iterable(reports):
            found |= bool(report.violations)
            if given.json:
                _say(json.dumps(_describe(report)))
            else:
                rows.append(_say(_to_row(report)))
                _show_violations(report)
    if given.write_docs:
        write_table("explorer", _HEAD, rows, SCENARIOS)
    return int(found)


def _explore(given: argparse.Namespace, name: str) -> list[Report]:
    """Explore one scenario, which another process can do as well."""
    scenario = SCENARIOS[name]
    if given.seconds is None and given.seed is None:
        search = TraceSearch if given.traces else Search
        return [search(scenario, each, most=1 if given.first else 3).run() for each in _choose_bounds(given, scenario)]
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    return [walk(scenario, BEYOND, (given.seconds or 0.0) * given.jobs / len(given.scenarios), seed)]


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.explorer", description=__doc__)
    parser.add_argument("scenarios", nargs="*", help=f"some of: {', '.join(SCENARIOS)}; by default all")
    parser.add_argument("--seconds", type=float, help="walk at random for so long, instead of visiting all states")
    parser.add_argument("--seed", type=int, help="the seed of the first walk; by default a random one")
    parser.add_argument("--short", action="store_true", help="up to the bound of the short tests")
    parser.add_argument("--bound", type=json.loads, help='up to this bound, as JSON: {"faults": 2, "kills": 1}')
    parser.add_argument("--first", action="store_true", help="end with the first violation")
    parser.add_argument("--traces", action="store_true", help="check the traces of all schedules, and nothing else")
    parser.add_argument("--json", action="store_true", help="print each report as JSON")
    parser.add_argument("--write-docs", action="store_true", help="write the rows into docs/guarantees.md")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes explore at a time; by default 1")
    given = parser.parse_args()
    given.scenarios = given.scenarios or list(SCENARIOS)
    if unknown := [name for name in given.scenarios if name not in SCENARIOS]:
        parser.error(f"there is no scenario {unknown[0]!r}; there are: {', '.join(SCENARIOS)}")
    return given


def _choose_bounds(given: argparse.Namespace, scenario: Scenario) -> list[Bound]:
    if given.bound is not None:
        return [Bound(**given.bound)]
    return [scenario.short or scenario.bounds[0]] if given.short else scenario.bounds


def _describe(report: Report) -> dict[str, object]:
    found = report.violations[0] if report.violations else None
    return {
        "scenario": report.scenario,
        "bound": str(report.bound),
        "schedules": report.schedules,
        "states": report.states,
        "seconds": report.seconds,
        "what": None if found is None else found.what,
        "story": [] if found is None else list(found.story),
    }


def _to_row(report: Report) -> str:
    counts = f"{report.schedules:,} | {report.states:,} | {report.played:,} | {report.seconds:.1f}"
    return f"| {report.scenario} | {report.bound} | {counts} |"


def _show_violations(report: Report) -> None:
    """Print the story of each violation."""
    for each in report.violations:
        _say(f"\n{each.what}" + ("" if each.seed is None else f" (--seed {each.seed})"))
        for line in each.story:
            _say(f"  {line}")
        _say("")


def _say(line: str) -> str:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
    return line


if __name__ == "__main__":
    sys.exit(main())
