"""Race ``azguard lock run`` against itself, kills and faults, and check that none is ever inside beside a holder.

    python -m tests.races.locks --contenders 8 --sections 50 --slots 1 --share 0.1 --kill-every 20 --seed 42

The same seed makes the same decisions: faults, kills, how long a section takes. When they meet is up to the schedule.
Exits 1 if a promise of locks was not kept.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

from azguard.emulators.azurite_process import Azurite
from tests.races import lock_race
from tests.races.lock_contenders import Sections
from tests.races.lock_race import Settings, Tally
from tests.races.progress import tell_seldom
from tests.support import azurites

_SHOWN = 5


def run(settings: Settings, most: float, say: Callable[[str], None], emulator: Azurite) -> Tally:
    """Race, ``most`` seconds at most, and say how it goes."""
    say(f"seed {settings.seed}: {settings}")
    tally = lock_race.run(settings, most, emulator, tell_seldom(say, time.monotonic()))
    for line in summary(tally):
        say(line)
    return tally


def summary(tally: Tally) -> list[str]:
    """Return the figures, and what was wrong."""
    found = tally.findings
    lines = [f"  {name:<28}{count:>8}" for name, count in tally.counts.items()]
    lines += [f"  {'killed: ' + how:<28}{count:>8}" for how, count in sorted(tally.kills.items())]
    lines += [f"  {'fault: ' + name:<28}{count:>8}" for name, count in sorted(tally.faults.items())]
    lines += [f"  {'most inside at once':<28}{found.most:>8}", f"  {'lock blobs used':<28}{found.locks:>8}"]
    lines.append(f"  {'seconds':<28}{tally.seconds:>8.0f}")
    if found.waits:
        lines.append(f"  {'free after a kill, s':<28}{max(found.waits):>8.1f} at most")
    for violation in found.violations[:_SHOWN]:
        lines.append(f"VIOLATION {violation.rule}: {violation.text}")
        lines += [f"    {line}" for line in violation.evidence]
    verdict = "no overlap, every fence higher than the last, every section once"
    lines.append(f"{len(found.violations)} violations" if found.violations else verdict)
    return lines


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.races.locks", description=__doc__.split("\n\n")[0])
    parser.add_argument("--contenders", type=int, default=8)
    parser.add_argument("--sections", type=int, default=50, help="of each contender")
    parser.add_argument("--slots", type=int, default=1, help="how many may be inside at once")
    parser.add_argument("--readers", type=int, default=0, help="how many of the contenders read beside each other")
    parser.add_argument("--share", type=float, default=0.0, help="of the requests that meet a fault")
    parser.add_argument(
        "--kill-every", type=float, default=0.0, metavar="SECONDS", help="kill -9 of azguard; 0 is never"
    )
    parser.add_argument("--term", type=int, default=15, help="of the leases, in seconds")
    parser.add_argument("--shortest", type=float, default=0.002, metavar="SECONDS", help="of a section")
    parser.add_argument("--longest", type=float, default=0.02, metavar="SECONDS", help="of a section")
    parser.add_argument("--stubborn", type=float, default=0.0, help="share of the sections that ignore SIGTERM")
    parser.add_argument("--children", action="store_true", help="sections start processes of their own")
    parser.add_argument("--minutes", type=float, default=60.0, help="at most")
    parser.add_argument("--story", metavar="FILE", help="where to write the whole history")
    parser.add_argument("--seed", default=str(random.randrange(10**6)))
    given = vars(parser.parse_args())
    most, story = given.pop("minutes") * 60, given.pop("story")
    kind = Sections(*(given.pop(name) for name in ("shortest", "longest", "stubborn", "children")))
    with azurites.fresh() as emulator:
        tally = run(
            Settings(**given, kind=kind),
            most,
            lambda line: print(line, flush=True),  # noqa: T201  # its output
            emulator,
        )
    if story:
        Path(story).write_text("\n".join(tally.story) + "\n", encoding="utf-8")
    return 1 if tally.findings.violations else 0


if __name__ == "__main__":
    sys.exit(main())
