"""How much memory a tree takes, by how many names its listing has: ``python -m benchmarks.many_names``.

``put`` keeps a listing to compare with, and excludes all of it; ``delete`` deletes each name; ``get`` makes the folder
of each name, and reads nothing into it.

The listing is simulated, since no emulator holds a million blobs; the cache is a real one. Each run is a process of its
own, which tells its peak.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from azguard.accounts.account import Target, emulator
from azguard.address import Address, Kind
from azguard.blobs.content.download import BlobGot
from azguard.blobs.trees import BlobTree
from azguard.cache.etag_cache import EtagCache
from azguard.cache.reads import Reads
from azguard.guards.requested import RequestedConditions
from azguard.requests.deadline import Deadline
from azguard.requests.results import Written
from azguard.resources.pool import DEFAULT_JOBS
from azguard.resources.tree_store import ListedItem, TreeGet
from azguard.trees.deletes import Deleting, TreeDelete
from azguard.trees.downloads import TreeDownload
from azguard.trees.names import Patterns
from azguard.trees.runs import Control, run_phases
from azguard.trees.uploads import TreeUpload

if TYPE_CHECKING:
    from azguard.cli.output.trees import Tree

# A million deletes take a quarter of an hour; a million names without them half a minute.
_COUNTS = {"put": (1_000, 100_000, 1_000_000), "delete": (1_000, 100_000), "get": (1_000, 100_000)}
_MOMENT = datetime(2026, 11, 21, tzinfo=UTC)


class Simulated(BlobTree):
    """A container of many blobs, which are deleted at once."""

    count = 0

    def check(self, deadline: Deadline) -> None:
        """Find the container there."""

    def list_items(self, deadline: Deadline) -> Iterator[Any]:
        """Yield so many names."""
        for number in range(self.count):
            yield ListedItem(f"assets/{number:07d}/some-file-name.bin", f'"0x{number:X}"', _MOMENT, 4096, None)

    def get(self, get: TreeGet) -> tuple[Any, str | None]:
        """Read nothing."""
        got = BlobGot(
            address=str(get.target.address),
            etag='"0x1"',
            last_modified=_MOMENT,
            content_length=0,
            start=0,
            length=0,
            content_type=None,
            blob_type="BlockBlob",
            content_hash="",
            file=None,
            metadata={},
        )
        return got, None

    def delete(self, target: Target, conditions: Any, deadline: Deadline, *, listed: str | None) -> Written:
        """Delete nothing."""
        return Written(address=str(target.address), guard="if-match", attempts=1)


def measure(command: str, count: int) -> int:
    """Run one command in a process of its own and return its peak in MiB."""
    done = subprocess.run([sys.executable, "-m", __spec__.name, command, str(count)], capture_output=True, check=True)
    return int(done.stdout)


def run(command: str, count: int) -> None:
    """Run one command in this process and print its peak in MiB."""
    with tempfile.TemporaryDirectory() as folder:
        cache = EtagCache.open(Path(folder), "bench", warn=sys.exit, now=lambda: _MOMENT)
        reads = Reads(open_cache=lambda: cache, command="blob put", outer_lease=lambda target: None)
        store = Simulated(root=Target(emulator(), Address(Kind.CONTAINER, ("site",))), prefix="")
        Simulated.count = count
        asked = RequestedConditions(last_writer_wins=True)
        control = Control(Deadline())
        deleting = Deleting(store=store, reads=reads, asked=asked)
        delete = TreeDelete(deleting=deleting, patterns=Patterns())
        upload = TreeUpload(
            folder=Path(folder),
            store=store,
            patterns=Patterns(exclude=("*",)),
            reads=reads,
            asked=asked,
            scope="bench",
            mirrors=True,
            allows_empty=True,
        )
        download = TreeDownload(
            store=store, folder=Path(folder), patterns=Patterns(), reads=reads, asked=RequestedConditions()
        )
        trees: dict[str, Tree] = {"put": upload, "delete": delete, "get": download}
        phases = trees[command].phases(control)
        run_phases("site", phases, DEFAULT_JOBS, control, lambda done: None, lambda summary: None)
    # Not getrusage: its peak counts the process too from which this one was started.
    peak = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))[0]
    sys.stdout.write(f"{int(peak) // 1024}\n")


def main() -> None:
    """Write the peaks as a table."""
    sys.stdout.write("| run | names | peak |\n|---|---|---|\n")
    for command, counts in _COUNTS.items():
        for count in counts:
            sys.stdout.write(f"| {command} | {count:,} | {measure(command, count)} MiB |\n")
            sys.stdout.flush()


if __name__ == "__main__":
    if len(sys.argv) == len(("many_names", "command", "count")):
        run(sys.argv[1], int(sys.argv[2]))
    else:
        main()
