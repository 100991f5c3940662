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
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

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


PAIRS = (
    Pair("azguard --help : python -c pass", (AZGUARD, "--help"), (sys.executable, "-c", "pass"), 3.0),
    Pair(
        "blob show : SDK script that prints the ETag",
        (AZGUARD, "blob", "show", "speed/config.json"),
        (sys.executable, str(HERE / "sdk_show.py")),
        1.15,
    ),
    Pair(
        "safe-update --increment : SDK script of GET and PUT",
        (AZGUARD, "safe-update", "blob:speed/config.json", "--increment", "replicas"),
        (sys.executable, str(HERE / "sdk_get_put.py")),
        1.2,
    ),
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
        run((AZGUARD, "blob", "put", "speed/config.json", "-f", str(content)), environ)
        yield environ, folder


def _compare(pair: Pair, runs: int, environ: Mapping[str, str]) -> None:
    for command in (pair.ours, pair.least):
        run(command, environ)  # compiles modules, fills the system's file cache
    ours, least = [], []
    for _ in range(runs):
        ours.append(run(pair.ours, environ)[0])
        least.append(run(pair.least, environ)[0])
    ratios = [mine / other for mine, other in zip(ours, least, strict=True)]
    sys.stdout.write(
        f"{pair.name}\n"
        f"  azguard    min {min(ours) * 1000:6.1f} ms  median {statistics.median(ours) * 1000:6.1f} ms\n"
        f"  the other  min {min(least) * 1000:6.1f} ms  median {statistics.median(least) * 1000:6.1f} ms\n"
        f"  ratio      min {min(ours) / min(least):6.2f}     median {statistics.median(ratios):6.2f}"
        f"     target ≤ {pair.target:g}\n"
    )
    sys.stdout.flush()


def _measure_memory(environ: Mapping[str, str], folder: Path) -> None:
    large = folder / "large"
    with open(large, "wb") as file:
        file.truncate(GIB)
    for name, words in (
        ("put 1 GiB", ("blob", "put", "speed/large", "-f", str(large))),
        ("get 1 GiB", ("blob", "get", "speed/large", "-f", str(folder / "copy"))),
    ):
        seconds, mib = run((AZGUARD, *words), environ)
        sys.stdout.write(f"{name}\n  peak {mib:.0f} MiB, {seconds:.1f} s     target ≤ {MEMORY_TARGET_MIB:g} MiB\n")
        sys.stdout.flush()


def run(command: Sequence[str], environ: Mapping[str, str]) -> tuple[float, float]:
    """Run a command to its end; return its seconds on the clock and its peak memory in MiB."""
    begun = time.perf_counter()
    child = subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - begun
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {child.returncode}")
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return seconds, usage.ru_maxrss / unit


if __name__ == "__main__":
    main()
