"""Type the combinations of all commands, and print a table of how many there were; exit 1 if an oracle was broken."""

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tests.pairs.play import Part, Tally, choose, list_played, play
from tests.pairs.stage import Stage, join, open_stage
from tests.support import azurites, files_world

#: The page that has the table, between these marks.
PAGE = Path(__file__).parents[2] / "docs" / "guarantees.md"
MARKED = re.compile(r"(?<=<!-- written by tests.pairs -->\n).*?(?=<!-- end of tests.pairs -->)", re.DOTALL)
_COLUMNS = ("commands of", "commands", "pairs of options", "lines", "runs", "refused by a rule", "seconds", "wrong")


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.pairs")
    parser.add_argument("--command", action="append", default=[], metavar="NAME", help="a command, or all of a noun")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--share", type=float, default=1.0, metavar="PART")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="type in N accounts at a time")
    parser.add_argument("--write-docs", action="store_true", help="write the table into docs/guarantees.md")
    given = parser.parse_args()
    parts = list(choose(list_played(given.command), given.seed, given.share))
    # The longest first, one to each lane in turn.
    longest = sorted(parts, key=lambda part: -len(part.lines))
    with ProcessPoolExecutor(given.jobs) as pool:
        lanes = pool.map(_play_lane, [longest[lane :: given.jobs] for lane in range(given.jobs)])
        found = {name: tally for lane in lanes for name, tally in lane.items()}
    tallies: dict[str, Tally] = {}
    for part in parts:
        tallies.setdefault(part.described.name.split()[0], Tally()).add(found[part.described.name])
    rows = {noun: _count(tally) for noun, tally in tallies.items()}
    if given.write_docs:
        page = PAGE.read_text("utf-8")
        # Those of commands that were not typed now stay.
        rows = {**read_table(page), **rows}
        PAGE.write_text(MARKED.sub(lambda _: write_table(rows), page), "utf-8")
    sys.stdout.write(write_table(rows))
    return int(any(tally.wrong for tally in tallies.values()))


def _play_lane(parts: Sequence[Part]) -> dict[str, Tally]:
    """Type lines in an account of their own, and return what there was of each command."""
    tallies = {}
    with tempfile.TemporaryDirectory() as folder, _open_stage(Path(folder)) as stage:
        for part in parts:
            tallies[part.described.name] = play(stage, part)
            _tell(part.described.name, tallies[part.described.name])
    return tallies


@contextmanager
def _open_stage(folder: Path) -> Iterator[Stage]:
    files, work = folder / "files", folder / "stage"
    files.mkdir()
    work.mkdir()
    with (
        azurites.fresh() as azurite,
        files_world.running(files) as served,
        open_stage(work, join(azurite.connection_string, served)) as stage,
    ):
        yield stage


def _tell(name: str, tally: Tally) -> None:
    statuses = ", ".join(f"{code}: {count}" for code, count in sorted(tally.statuses.items()))
    wrong = "".join(f"  {each}\n" for each in tally.wrong)
    # At once: lanes write beside each other.
    sys.stdout.write(f"{name}: {tally.lines} lines in {tally.seconds:.1f} s; {statuses}\n{wrong}")
    sys.stdout.flush()


def _count(tally: Tally) -> list[int]:
    typed = [tally.commands, tally.pairs, tally.lines, tally.runs, tally.refused]
    return [*typed, round(tally.seconds), len(tally.wrong)]


def write_table(rows: Mapping[str, list[int]]) -> str:
    """Return the table: a row for the commands of each noun, and one for all."""
    total = [sum(counts) for counts in zip(*rows.values(), strict=True)]
    told = [*((f"`{noun}`", counts) for noun, counts in rows.items()), ("all", total)]
    cells = [_COLUMNS, ["---" for _ in _COLUMNS], *((name, *(f"{each:,}" for each in counts)) for name, counts in told)]
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)


def read_table(page: str) -> dict[str, list[int]]:
    """Return the rows of the table of a page, without that of all."""
    found = re.findall(r"^\| `([\w-]+)` \| (.*) \|$", (MARKED.search(page) or [""])[0], re.MULTILINE)
    return {noun: [int(cell.replace(",", "")) for cell in cells.split(" | ")] for noun, cells in found}


if __name__ == "__main__":
    sys.exit(main())
