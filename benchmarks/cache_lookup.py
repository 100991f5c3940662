"""How long the ETag cache takes to answer when it remembers a million resources.

Run by hand: ``python benchmarks/cache_lookup.py [ENTRIES]``. Fills a cache in a temporary folder through its
import, then measures within one process: opening it, look-ups that find, that do not, by file, and records.
"""

import random
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from azguard.cache import copies
from azguard.cache.etag_cache import EtagCache
from azguard.cache.records import Key

ACCOUNT = "https://benchmarks.blob.core.windows.net"
SCOPE = "session-4711-98765-1f3a9c02"
REPEATS = 20_000


def key(number: int) -> Key:
    """Return the resource of a number: names of the usual length, many with one beginning."""
    return Key(ACCOUNT, f"blob:site/environments/{number % 97}/services/{number:09d}/config.json")


def records(count: int) -> Iterator[dict[str, object]]:
    """Yield one record for each resource."""
    for number in range(count):
        yield {
            "scope": SCOPE,
            "account": ACCOUNT,
            "address": key(number).address,
            "etag": f'"0x8DE{number:012X}"',
            "last_modified": "2026-11-21T10:00:00Z",
            "length": number,
            "content_hash": f"sha256:{number:064x}",
            "time": "2026-11-21T11:00:00Z",
            "command": "blob get",
        }


def opened(folder: Path) -> EtagCache:
    """Return the cache in a folder."""
    return EtagCache.open(folder, SCOPE, warn=say, now=lambda: datetime.now(UTC))


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{text}\n")


def milliseconds(action: Callable[..., object], *arguments: object) -> float:
    """Return how long one call takes."""
    began = time.perf_counter_ns()
    action(*arguments)
    return (time.perf_counter_ns() - began) / 1e6


def show(what: str, durations: list[float]) -> None:
    """Print the middle, the slow end and the slowest of some durations."""
    ordered = sorted(durations)
    middle, slow = ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]
    say(f"{what:<20} p50 {middle:7.3f} ms   p99 {slow:7.3f} ms   max {ordered[-1]:8.3f} ms")


def measure(folder: Path, count: int) -> None:
    """Measure a filled cache."""
    chosen = random.Random(1)
    present = [key(chosen.randrange(count)) for _ in range(REPEATS)]
    absent = [key(count + chosen.randrange(count)) for _ in range(REPEATS)]
    file = folder / "config.json"
    show("open", [milliseconds(opened, folder) for _ in range(200)])
    cache = opened(folder)
    show("look-up, found", [milliseconds(cache.find_last, each) for each in present])
    show("look-up, not found", [milliseconds(cache.find_last, each) for each in absent])
    file.write_text("{}")
    show(
        "look-up by file",
        [milliseconds(lambda each: cache.find_bound(each, copies.find_at(file)), each) for each in present],
    )

    def record(each: Key) -> None:
        cache.record(each, etag='"0x1"', copy=copies.find_at(file), command="blob get")

    show("record", [milliseconds(record, each) for each in present])
    cache.close()


def main(count: int) -> None:
    """Fill, measure, print."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        cache = opened(folder)
        seconds = milliseconds(cache.import_records, records(count)) / 1000
        cache.close()
        say(f"{count:,} entries imported in {seconds:.0f} s, {cache.path.stat().st_size / 2**20:.0f} MiB")
        measure(folder, count)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
