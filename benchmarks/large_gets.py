"""Measure a get of a large blob: seconds and memory, beside the SDK's own download and the Azure CLI's.

    python -m benchmarks.large_gets [--az DIRECTORY-OF-AZ] [--mib N] [--runs N]

The ways run in turn, A B C A B C …, so that a busy machine slows all of them. The start of the program is part of each
figure. Install ``az`` into a virtual environment of its own: its dependencies are not ours.
"""

import argparse
import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.speed import AZGUARD, HERE, Cost, run, world

MIB = 1 << 20
RUNS = 5
# The SDK's default is one connection, and az's is two. Six are as many as ours.
SDK_CONNECTIONS = 6


def main() -> None:
    """Run every way and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--az", type=Path, help="the folder that has az")
    parser.add_argument("--mib", type=int, default=256, help="the size of the blob; 256 by default")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"of each way; {RUNS} by default")
    asked = parser.parse_args()
    with world() as (environ, folder):
        _make_blob(folder, asked.mib * MIB, environ)
        ways = _list_ways(folder / "copy", asked.az)
        quiet = {**environ, "AZURE_CORE_COLLECT_TELEMETRY": "false"}
        for command in ways.values():
            run(command, quiet)  # compiles modules, fills the system's file cache
        rounds = [{name: run(command, quiet) for name, command in ways.items()} for _ in range(asked.runs)]
    for name in ways:
        _print(name, asked.mib, rounds)


def _make_blob(folder: Path, size: int, environ: Mapping[str, str]) -> None:
    large = folder / "large"
    with open(large, "wb") as file:
        file.writelines(os.urandom(MIB) for _ in range(size // MIB))
    run((AZGUARD, "blob", "put", "speed/large", "-f", str(large)), environ)
    large.unlink()


def _list_ways(copy: Path, az: Path | None) -> dict[str, Sequence[str]]:
    ways: dict[str, Sequence[str]] = {
        "azguard blob get -f": (AZGUARD, "blob", "get", "speed/large", "-f", str(copy)),
        "azguard blob get >": (AZGUARD, "blob", "get", "speed/large"),
        f"SDK, {SDK_CONNECTIONS} connections": (
            sys.executable, str(HERE / "sdk_get.py"), str(copy), str(SDK_CONNECTIONS),
        ),
    }  # fmt: skip
    if az is not None:
        words = "storage blob download -c speed -n large --no-progress -o none"
        for connections in (2, SDK_CONNECTIONS):
            ways[f"az, {connections} connections"] = (
                str(az.absolute() / "az"), *words.split(), "-f", str(copy), "--max-connections", str(connections),
            )  # fmt: skip
    return ways


def _print(name: str, mib: int, rounds: Sequence[Mapping[str, Cost]]) -> None:
    seconds = [each[name][0] for each in rounds]
    ratios = [each["azguard blob get -f"][0] / each[name][0] for each in rounds]
    peak = max(each[name][1] for each in rounds)
    median = statistics.median(seconds)
    sys.stdout.write(
        f"{name:24} min {min(seconds):5.2f} s  median {median:5.2f} s  {mib / median:4.0f} MiB/s"
        f"  peak {peak:3.0f} MiB  azguard takes {statistics.median(ratios):.2f} of its time\n"
    )


if __name__ == "__main__":
    main()
