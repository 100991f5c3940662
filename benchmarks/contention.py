"""What many writers of one blob get done: azguard beside the loops people write; for docs/benchmarks.md.

    python -m benchmarks.contention [--rounds N] [--writers N...] [--latency-ms N] [--data FILE]

Each worker applies increments one after the other. Every race has an emulator of its own; the races of a round are run
in turn, and each figure is the median of the rounds, so that a busy machine slows all of them. What shares the machine
with the workers is the emulator: see what it can do at most, on top of the table.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks import contention_race, raw_puts
from benchmarks.contention_race import Emulators, Outcome, Race, own_emulator
from benchmarks.contention_ways import Way

WRITERS = (1, 2, 4, 8, 16, 32)
ROUNDS = 3
LATENCY_MS = 10.0
# Increments in one race, about. The loops that are refused most make 13 writes of one: below 2,000 in any case, since
# Azurite's garbage collector freezes it quadratically in their number.
INCREMENTS = 160
_FEWEST = 60  # for one writer, which waits for no other


@dataclass(frozen=True)
class Row:
    """The medians of a race over its rounds. Ratios are to one azguard writer, undisturbed, of the same round."""

    way: Way
    writers: int
    commits_per_second: float
    of_one: float
    requests: float
    attempts: float
    leases: float
    processor: float
    p50: float
    p99: float
    of_ideal: float  # p99, of the time in which a perfect queue of so many would be through
    fairness: float


_COLUMNS: tuple[tuple[str, int, Callable[[Row], str]], ...] = (
    ("writers", 7, lambda row: f"{row.writers}"),
    ("", 20, lambda row: f"{row.way:<20}"),
    ("commits/s", 9, lambda row: f"{row.commits_per_second:.1f}"),
    ("of one", 6, lambda row: f"{row.of_one:.2f}"),
    ("requests", 8, lambda row: f"{row.requests:.2f}"),
    ("attempts", 8, lambda row: f"{row.attempts:.2f}"),
    ("leases", 6, lambda row: f"{row.leases:.2f}"),
    ("CPU ms", 6, lambda row: f"{row.processor:.1f}"),
    ("p50 s", 6, lambda row: f"{row.p50:.3f}"),
    ("p99 s", 6, lambda row: f"{row.p99:.3f}"),
    ("of ideal", 8, lambda row: f"{row.of_ideal:.2f}"),
    ("fairness", 8, lambda row: f"{row.fairness:.2f}"),
)


def main() -> None:
    """Run the races and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--writers", type=int, nargs="+", default=list(WRITERS), help="how many at once")
    parser.add_argument("--latency-ms", type=float, default=LATENCY_MS, help="added to each request")
    parser.add_argument("--ways", nargs="+", choices=[way.name for way in Way], default=[way.name for way in Way])
    parser.add_argument("--data", type=Path, help="a JSON file to write, from which docs/pictures draws")
    asked = parser.parse_args()
    ways = [Way[name] for name in asked.ways]
    _say("The emulator alone, from a bare client without latency:")
    for connections, rate in raw_puts.measure().items():
        _say(f"  {connections:2} connections: {rate:5.0f} writes/s")
    rows = measured(ways, sorted({1, *asked.writers}), asked.rounds, asked.latency_ms / 1000)
    _say(f"\nMedians of {asked.rounds} rounds, {asked.latency_ms:g} ms added to each request; the rest is per commit")
    for line in table(rows):
        _say(line)
    if asked.data:
        asked.data.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")


def measured(
    ways: list[Way], sizes: list[int], rounds: int, latency: float, emulators: Emulators = own_emulator
) -> list[Row]:
    """Run every way with every number of writers, round after round."""
    outcomes: dict[tuple[Way, int], list[Outcome]] = {}
    yardsticks: list[Outcome] = []
    with contention_race.crew(max(sizes), {1, *sizes}, emulators) as crew:
        for number in range(rounds):
            yardsticks.append(crew.race(_race(Way.ONE_HOST, 1, latency)))
            for size in sizes:
                for way in ways:
                    if not (size == 1 and way in (Way.FOUR_HOSTS, Way.NO_QUEUE)):  # one writer is one host
                        outcomes.setdefault((way, size), []).append(crew.race(_race(way, size, latency)))
                sys.stderr.write(f"round {number + 1} of {rounds}, {size} writers: done\n")
    return [_row(found, yardsticks) for found in outcomes.values()]


def table(rows: Iterable[Row]) -> list[str]:
    """Return the rows as lines of text under their headings."""
    lines = ["  ".join(f"{heading:>{width}}" for heading, width, _ in _COLUMNS)]
    last = 0
    for row in sorted(rows, key=lambda row: (row.writers, list(Way).index(row.way))):
        if last not in (0, row.writers):
            lines.append("")
        last = row.writers
        lines.append("  ".join(f"{show(row):>{width}}" for _, width, show in _COLUMNS))
    return lines


def _race(way: Way, writers: int, latency: float) -> Race:
    return Race(way, writers, _FEWEST if writers == 1 else max(1, INCREMENTS // writers), latency)


def _row(found: list[Outcome], yardsticks: list[Outcome]) -> Row:
    def median(value: Callable[[Outcome], float]) -> float:
        return statistics.median(map(value, found))

    race = found[0].race
    pairs = list(zip(found, yardsticks, strict=True))
    return Row(
        way=race.way,
        writers=race.workers,
        commits_per_second=median(lambda each: each.commits_per_second),
        of_one=statistics.median(each.commits_per_second / one.commits_per_second for each, one in pairs),
        requests=median(lambda each: each.requests),
        attempts=median(lambda each: each.attempts),
        leases=median(lambda each: each.leases),
        processor=median(lambda each: each.processor),
        p50=median(lambda each: each.quantile(0.5)),
        p99=median(lambda each: each.quantile(0.99)),
        of_ideal=statistics.median(each.quantile(0.99) * one.commits_per_second / race.workers for each, one in pairs),
        fairness=median(lambda each: each.fairness),
    )


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
