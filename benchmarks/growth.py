"""What a command costs for each item, as its work grows: ``python -m benchmarks.growth [WORK…] [--items N…]``.

Each command is a process of its own against a service that answers at once (``growth_service``). Its processor time
less that of a run over one item, by the number of items, is the cost of each; the peak is that of its memory. The files
are in memory where the system has a folder there: some disks take longer for a new file the more were deleted lately.
"""

import argparse
import base64
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from benchmarks.growth_service import CONTENT, name_blob

_KEY = base64.b64encode(b"key").decode()
_COUNTS = (1_000, 10_000, 100_000)
# So many files fit into a folder of a test machine in memory.
_MOST_FILES = 10_000
_IN_MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Work:
    """A command, and what has to be there before it."""

    command: Sequence[str]
    #: The aim: milliseconds of processor time an item; None where only the memory has one.
    aim: float | None
    before: Sequence[Sequence[str]] = ()
    most: int = 100_000
    prepare: Callable[[Path, int], object] = field(default=lambda folder, items: None)


def make_files(folder: Path, items: int) -> None:
    """Make a file for each blob."""
    for number in range(items):
        path = folder / "tree" / name_blob(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(CONTENT)


def write_lines(folder: Path, items: int) -> None:
    """Write a line of a batch for each item, a write and a read by turns."""
    with (folder / "lines").open("w", encoding="utf-8") as lines:
        for number in range(items // 2):
            lines.write(f"blob put empty/{number} --content {number}\nblob show site/{name_blob(number)}\n")
        lines.write("blob show site/last\n" * (items % 2))


_PUT = ("blob", "put", "tree", "site/", "-r")
_PUT_NEW = ("blob", "put", "tree", "empty/", "-r")
_SKIP = ("--unchanged", "skip")
_ANY = ("--last-writer-wins",)
_GET = ("blob", "get", "site/", "got", "-r")
WORKS = {
    "blob list -o json": Work(("blob", "list", "site", "-o", "json"), 0.05),
    "blob list -o tsv --query": Work(("blob", "list", "site", "-o", "tsv", "--query", "[].name"), 0.05),
    "blob list -o table": Work(("blob", "list", "site", "-o", "table"), 0.15),
    "entity query -o table": Work(("entity", "query", "table", "-o", "table"), 0.15),
    "put -r": Work(_PUT_NEW, 0.8, most=_MOST_FILES, prepare=make_files),
    "get -r": Work(_GET, 1.0, most=_MOST_FILES),
    "delete -r": Work(("blob", "delete", "site/", "-r", *_ANY), 0.8, most=_MOST_FILES),
    "put -r again": Work((*_PUT, *_SKIP), 0.2, before=[(*_PUT, *_ANY)], most=_MOST_FILES, prepare=make_files),
    "get -r again": Work((*_GET, *_SKIP), 0.2, before=[_GET], most=_MOST_FILES),
    "status": Work(("status",), 0.8, before=[_GET], most=_MOST_FILES),
    "safe-update --where": Work(
        ("safe-update", "table:table", "--where", "PartitionKey eq 'p'", "--increment", "count"), 1.5, most=_MOST_FILES
    ),
    "queue move": Work(("queue", "move", "queue-a", "queue-b"), 1.5, most=_MOST_FILES),
    "queue work -- true": Work(("queue", "work", "queue-a", "--drain", "--", "true"), 10, most=1_000),
    "lock list --account": Work(("lock", "list", "--account"), 0.06),
    "batch --dry-run": Work(("batch", "-f", "lines", "--dry-run"), None, most=1_000_000, prepare=write_lines),
    "batch": Work(("batch", "-f", "lines"), None, most=1_000_000, prepare=write_lines),
}


class Cost(NamedTuple):
    """What a run took."""

    seconds: float
    peak_mib: int


@contextmanager
def serving(items: int) -> Iterator[str]:
    """Run the service; yield a connection string."""
    words = (sys.executable, "-m", "benchmarks.growth_service", str(items))
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/played"
        places = "".join(f"{kind}Endpoint={url};" for kind in ("Blob", "Queue", "Table", "File"))
        try:
            yield f"AccountName=played;AccountKey={_KEY};{places}"
        finally:
            server.terminate()


def measure(work: Work, items: int) -> Cost:
    """Run a command over so many items."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AZURE_", "AZGUARD_"))}
    place = _IN_MEMORY if _IN_MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(dir=place) as name, serving(items) as connection_string:
        folder = Path(name)
        work.prepare(folder, items)
        environ = {
            **kept,
            "AZURE_STORAGE_CONNECTION_STRING": connection_string,
            "AZGUARD_CACHE_DIR": str(folder / "cache"),
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        for command in work.before:
            _run(command, folder, environ)
        return _run(work.command, folder, environ)


def _run(command: Sequence[str], folder: Path, environ: Mapping[str, str]) -> Cost:
    words = (sys.executable, "-m", "azguard", *command)
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            words, cwd=folder, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said
        )
        # Not getrusage: it adds up all children of this process.
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {process.returncode}\n{(folder / 'said').read_text()[-2000:]}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss // 1024)


def main() -> None:
    """Write the costs as a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", nargs="*", help=", ".join(WORKS))
    parser.add_argument("--items", type=int, nargs="*", default=_COUNTS)
    asked = parser.parse_args()
    columns = " | ".join(f"{items:,}" for items in asked.items)
    sys.stdout.write(f"| work | {columns} | aim |\n|---|{'---|' * len(asked.items)}---|\n")
    for name in asked.work or WORKS:
        work = WORKS[name]
        once = measure(work, 1)
        aim = "–" if work.aim is None else f"{work.aim:g} ms"
        cells = [_describe(work, items, once) for items in asked.items]
        sys.stdout.write(f"| {name} | {' | '.join(cells)} | {aim} |\n")
        sys.stdout.flush()


def _describe(work: Work, items: int, once: Cost) -> str:
    if items > work.most:
        return "–"
    cost = measure(work, items)
    return f"{(cost.seconds - once.seconds) * 1000 / items:.3f} ms, {cost.peak_mib} MiB"


if __name__ == "__main__":
    main()
