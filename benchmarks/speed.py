"""Measure what a run of azguard costs beside the least that could do the same; for docs/benchmarks.md.

    python -m benchmarks.speed [--runs N] [--skip-memory]

The two commands of a pair run in turn, A B A B …, so that a busy machine slows both. It measures the azguard that is
installed beside this Python; install it as users do (not editable): finding modules costs time too.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from azure.core.exceptions import ResourceExistsError
from azure.storage.blob import BlobClient, BlobLeaseClient

from azguard.emulators import background
from azguard.folders import Folders

HERE = Path(__file__).parent
AZGUARD = str(Path(sys.executable).parent / "azguard")
GIB = 1 << 30
# Azurite's garbage collector freezes it quadratically in blob writes; see that one run stays well under 2,000.
RUNS = 40


@dataclass(frozen=True)
class Pair:
    """A command of ours, the least that could do the same, and how many times as long ours may take."""

    name: str
    ours: Sequence[str]
    least: Sequence[str]
    target: float
    #: A blob whose lease is broken before each run.
    leased: str | None = None


def _beside_sdk(what: str, target: float, *words: str, leased: str | None = None) -> Pair:
    least = (sys.executable, str(HERE / "sdk_script.py"), what)
    return Pair(f"{what} : SDK script", (AZGUARD, *what.split(), *words), least, target, leased)


PAIRS = (
    Pair("azguard --help : python -c pass", (AZGUARD, "--help"), (sys.executable, "-c", "pass"), 3.0),
    _beside_sdk("blob show", 0.5, "speed/config.json"),
    _beside_sdk("blob get", 0.5, "speed/small"),
    _beside_sdk("blob put", 0.5, "speed/put", "-f", "small"),
    _beside_sdk("blob metadata set", 0.5, "speed/tagged", "--metadata", "owner=ops"),
    _beside_sdk("lease acquire", 0.5, "blob:speed/leased", leased="leased"),
    _beside_sdk("entity get", 0.5, "speed/p/r"),
    _beside_sdk("entity merge", 0.5, "speed/p/r", "status=new"),
    _beside_sdk("message put", 0.5, "speed", "resize 17"),
    _beside_sdk("safe-update", 0.6, "blob:speed/config.json", "--increment", "replicas"),
)
MEMORY_TARGET_MIB = 150.0


def main() -> None:
    """Run every pair and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS, help=f"of each command of a pair; {RUNS} by default")
    parser.add_argument("--skip-memory", action="store_true", help="leave out the put and get of 1 GiB")
    asked = parser.parse_args()
    with world() as (environ, folder):
        for pair in PAIRS:
            _compare(pair, asked.runs, environ)
        if not asked.skip_memory:
            _measure_memory(environ, folder)


@contextmanager
def world() -> Iterator[tuple[Mapping[str, str], Path]]:
    """Run a private emulator with one small blob in it; yield the environment for commands, and a folder."""
    emulator = Folders.of(os.environ).emulator
    with tempfile.TemporaryDirectory() as name, background.run_private_azurite(emulator, os.environ) as running:
        folder = Path(name)
        kept = {
            key: value
            for key, value in os.environ.items()
            # Users have compiled modules, and no modules from elsewhere.
            if not key.startswith(("AZ", "PYTHON", "XDG_"))
        }
        environ = {
            **kept,
            "AZURE_STORAGE_CONNECTION_STRING": running.connection_string,
            # The folders are found as they are for users, without AZGUARD_CACHE_DIR, which would save a module.
            "HOME": str(folder),
        }
        run((AZGUARD, "container", "create", "speed"), environ)
        content = folder / "config.json"
        content.write_text('{"replicas": 1}\n', encoding="utf-8")
        (folder / "small").write_bytes(b"x" * 1024)
        run((AZGUARD, "blob", "put", "speed/config.json", "-f", str(content)), environ)
        for blob in ("small", "put", "tagged", "leased", "other"):
            run((AZGUARD, "blob", "put", f"speed/{blob}", "-f", str(folder / "small")), environ)
        run((AZGUARD, "table", "create", "speed"), environ)
        run((AZGUARD, "queue", "create", "speed"), environ)
        for row in ("r", "other"):
            run((AZGUARD, "entity", "insert", f"speed/p/{row}", "status=new"), environ)
        with chdir(folder):
            yield environ, folder


def _compare(pair: Pair, runs: int, environ: Mapping[str, str]) -> None:
    for command in (pair.ours, pair.least):
        _run_one(pair, command, environ)  # compiles modules, fills the system's file cache
    found = [(_run_one(pair, pair.ours, environ), _run_one(pair, pair.least, environ)) for _ in range(runs)]
    sys.stdout.write(f"{pair.name}     target ≤ {pair.target:g}\n")
    for name in ("seconds", "processor_seconds"):
        ours, least = ([getattr(costs[side], name) for costs in found] for side in (0, 1))
        ratio = statistics.median(mine / other for mine, other in zip(ours, least, strict=True))
        sys.stdout.write(
            f"  {name:<17}  {statistics.median(ours) * 1000:6.1f} : {statistics.median(least) * 1000:6.1f} ms"
            f"     median {ratio:.2f}     min {min(ours) / min(least):.2f}\n"
        )
    sys.stdout.flush()


def _run_one(pair: Pair, command: Sequence[str], environ: Mapping[str, str]) -> "Cost":
    if pair.leased is not None:
        blob = BlobClient.from_connection_string(
            environ["AZURE_STORAGE_CONNECTION_STRING"], "speed", pair.leased, retry_total=0
        )
        with suppress(ResourceExistsError):
            BlobLeaseClient(blob).break_lease(0)
    return run(command, environ)


def _measure_memory(environ: Mapping[str, str], folder: Path) -> None:
    large = folder / "large"
    with open(large, "wb") as file:
        file.truncate(GIB)
    for name, words in (
        ("put 1 GiB", ("blob", "put", "speed/large", "-f", str(large))),
        ("get 1 GiB", ("blob", "get", "speed/large", "-f", str(folder / "copy"))),
    ):
        seconds, mib, _ = run((AZGUARD, *words), environ)
        sys.stdout.write(f"{name}\n  peak {mib:.0f} MiB, {seconds:.1f} s     target ≤ {MEMORY_TARGET_MIB:g} MiB\n")
        sys.stdout.flush()


class Cost(NamedTuple):
    """What a run took."""

    seconds: float
    peak_mib: float
    processor_seconds: float


def run(command: Sequence[str], environ: Mapping[str, str]) -> Cost:
    """Run a command to its end."""
    begun = time.perf_counter()
    child = subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - begun
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {child.returncode}")
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return Cost(seconds, usage.ru_maxrss / unit, usage.ru_utime + usage.ru_stime)


if __name__ == "__main__":
    main()
