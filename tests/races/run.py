"""Race azguard against itself, faults, kills and other writers, and check every answer against the truth.

    python -m tests.races.run --minutes 5 --processes 8 --share 0.25 --kill-every 3 --foreign half --seed 42

The same seed makes the same decisions: jobs, faults, kills, foreign writes. When they meet is up to the schedule, so
two runs of one seed are alike and not the same. Exits 1 if anything that was said is not the truth.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from azguard.emulators.azurite_process import Azurite
from tests.races import race
from tests.races.progress import tell_seldom
from tests.races.race import FOREIGN_CHOICES, Settings, Tally
from tests.support import azurites

_SHOWN = 5


def run(
    settings: Settings,
    seconds: float,
    say: Callable[[str], None],
    emulators: Callable[[], AbstractContextManager[Azurite]] = azurites.fresh,
) -> Tally:
    """Race for so long, on the next of these emulators whenever one has seen enough, and say how it goes.

    A race that may end before its time is one on one emulator.
    """
    total, began, round_number = Tally(), time.monotonic(), 0
    say(f"seed {settings.seed}: {settings}")
    while (left := seconds - (time.monotonic() - began)) > 0 and not total.violations:
        one = replace(settings, seed=f"{settings.seed}/{round_number}")
        with emulators() as emulator:
            tally = race.run(one, left, emulator, tell_seldom(say, began, f"emulator {round_number}: "))
        _add(total, tally)
        round_number += 1
        if settings.enough:
            break
    for line in summary(total):
        say(line)
    return total


def summary(tally: Tally) -> list[str]:
    """Return the figures, and what was wrong with the part of the history that shows it."""
    lines = [f"  {name:<24}{count:>8}" for name, count in tally.counts.items()]
    lines += [f"  {'told: ' + end:<24}{count:>8}" for end, count in sorted(tally.ends.items())]
    lines += [f"  {'fault: ' + name:<24}{count:>8}" for name, count in sorted(tally.faults.items())]
    for violation in tally.violations[:_SHOWN]:
        lines.append(f"VIOLATION {violation.rule}: {violation.text}")
        lines += [f"    {line}" for line in violation.evidence]
    verdict = "nothing doubled, nothing lost, no false answer"
    lines.append(f"{len(tally.violations)} violations" if tally.violations else verdict)
    return lines


def _add(total: Tally, one: Tally) -> None:
    total.counts.update(one.counts)
    total.faults.update(one.faults)
    total.ends.update(one.ends)
    total.violations += one.violations
    total.story = one.story
    found = one.findings
    assert found is not None
    total.counts.update(
        {
            "commits": found.commits,
            "fences": found.fences,
            "foreign writes": found.foreign,
            "unknown": found.unknown,
            "unknown, committed": found.unknown_committed,
            "keys forgotten": found.forgotten,
        }
    )


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.races.run", description=__doc__.split("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--share", type=float, default=0.25, help="of the writes, that meet a fault")
    parser.add_argument("--kill-every", type=float, default=3.0, metavar="SECONDS", help="0 is never")
    parser.add_argument("--stop-every", type=float, default=5.0, metavar="SECONDS", help="0 is never")
    parser.add_argument("--foreign", choices=FOREIGN_CHOICES, default="none")
    parser.add_argument("--hosts", type=int, default=1, help="cache folders that the processes are spread over")
    parser.add_argument("--commands", type=int, default=4, help="every so many-th process is a command line; 0 is none")
    parser.add_argument("--hurried", type=float, default=0.2, help="share of the updates that have little time")
    parser.add_argument(
        "--story",
        metavar="FILE",
        help="where to write the last emulator's whole history, traces included; if something is violated, it is "
        "written to a file in any case",
    )
    parser.add_argument("--seed", default=str(random.randrange(10**6)))
    given = vars(parser.parse_args())
    minutes = given.pop("minutes")
    story = given.pop("story")
    tally = run(Settings(**given), minutes * 60, lambda line: print(line, flush=True))  # noqa: T201  # its output
    if tally.violations and not story:
        story = f"race-{given['seed'].replace('/', '-')}.txt"
        print(f"the whole history is in {story}")  # noqa: T201  # its output
    if story:
        Path(story).write_text("\n".join(tally.story) + "\n", encoding="utf-8")
    return 1 if tally.violations else 0


if __name__ == "__main__":
    sys.exit(main())
