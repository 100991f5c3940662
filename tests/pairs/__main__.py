"""Type the combinations of all commands, and print a table of how many there were; exit 1 if an oracle was broken."""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.pairs.play import Tally, choose, play
from tests.pairs.stage import open_stage
from tests.support import azurites, files_world


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.pairs")
    parser.add_argument("--command", action="append", default=[], metavar="NAME")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--share", type=float, default=1.0, metavar="PART")
    given = parser.parse_args()
    tallies = {}
    with tempfile.TemporaryDirectory() as folder, azurites.fresh() as azurite:
        root = Path(folder)
        (root / "work").mkdir()
        with files_world.running(root) as files:
            account = ";FileEndpoint=".join((azurite.connection_string, files.rpartition("FileEndpoint=")[2]))
            for described, lines in choose(given.command, given.seed, given.share):
                tallies[described.name] = Tally()
                with open_stage(root / "work", account) as stage:
                    play(stage, lines, tallies[described.name])
                _tell(described.name, tallies[described.name])
    lines, refused = (sum(getattr(each, name) for each in tallies.values()) for name in ("lines", "refused"))
    wrong = [each for tally in tallies.values() for each in tally.wrong]
    sys.stdout.write(f"{len(tallies)} commands, {lines} lines, {refused} refused by a rule, {len(wrong)} wrong\n")
    return int(bool(wrong))


def _tell(name: str, tally: Tally) -> None:
    statuses = ", ".join(f"{code}: {count}" for code, count in sorted(tally.statuses.items()))
    sys.stdout.write(f"{name}: {tally.lines} lines; {statuses}\n")
    sys.stdout.writelines(f"  {each}\n" for each in tally.wrong)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
