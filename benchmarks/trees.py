"""Measure trees of files, up and down: seconds and CPU seconds, beside the Azure CLI's batches and a loop of the SDK.

    python -m benchmarks.trees [--az DIRECTORY-OF-AZ] [--files N] [--mib N] [--rounds N]

The tools run in turn, A B C A B C …, each with an emulator of its own for each round, since Azurite slows down with
many writes. The start of the program is part of each figure; CPU seconds are those of the tool, not of the emulator.
Install ``az`` into a virtual environment of its own: its dependencies are not ours.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from azguard.emulators import azurite
from azguard.folders import Folders
from benchmarks.speed import AZGUARD, HERE

MIB = 1 << 20
SMALL_BYTES = 4096
CONTAINER = "tree"


@dataclass(frozen=True)
class Tool:
    """One way to move a tree."""

    name: str
    put: Callable[[Path], Sequence[str]]
    get: Callable[[Path], Sequence[str]]


class Cost(NamedTuple):
    """What one run took."""

    seconds: float
    #: Of the processor, in the program and for it in the system.
    cpu: float
    mib: float


def main() -> None:
    """Run every tool on every tree and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--az", type=Path, help="the folder that has az")
    parser.add_argument("--files", type=int, default=2000, help="how many of 4 KiB; 2000 by default")
    parser.add_argument("--mib", type=int, default=1024, help="the size of the one large file; 1024 by default")
    parser.add_argument("--rounds", type=int, default=3, help="of each tool; 3 by default")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for tree, count, size in (("small", asked.files, SMALL_BYTES), ("large", 1, asked.mib * MIB)):
            if count and size:
                _make_files(folder / tree, count, size)
                _compare(folder, tree, _list_tools(asked.az), asked.rounds)


def _make_files(folder: Path, count: int, size: int) -> None:
    folder.mkdir()
    for number in range(count):
        with open(folder / f"{number:05}", "wb") as file:
            file.writelines(os.urandom(min(size, MIB)) for _ in range(max(1, size // MIB)))


def _list_tools(az: Path | None) -> Sequence[Tool]:
    sdk = str(HERE / "sdk_trees.py")
    tools = [
        Tool(
            "azguard",
            lambda folder: (AZGUARD, "blob", "put", str(folder), CONTAINER, "--recursive"),
            lambda folder: (AZGUARD, "blob", "get", CONTAINER, "-f", str(folder), "--recursive"),
        ),
        Tool(
            "SDK loop",
            lambda folder: (sys.executable, sdk, "put", str(folder), CONTAINER),
            lambda folder: (sys.executable, sdk, "get", str(folder), CONTAINER),
        ),
    ]
    if az is not None:
        words = (str(az.absolute() / "az"), "storage", "blob")
        tools.append(
            Tool(
                "az batch",
                lambda folder: (*words, "upload-batch", "-s", str(folder), "-d", CONTAINER, "-o", "none"),
                lambda folder: (*words, "download-batch", "-s", CONTAINER, "-d", str(folder), "-o", "none"),
            )
        )
    return tools


def _compare(folder: Path, tree: str, tools: Sequence[Tool], rounds: int) -> None:
    found: dict[str, list[tuple[Cost, Cost]]] = {tool.name: [] for tool in tools}
    for turn in range(rounds):
        for tool in tools:
            found[tool.name].append(_run_both(tool, folder / tree, folder / f"{tree}-{tool.name}-{turn}"))
    for way, title in enumerate(("up", "down")):
        ours = [each[way] for each in found["azguard"]]
        for name, costs in found.items():
            _print(f"{tree} {title} {name}", ours, [each[way] for each in costs])


def _run_both(tool: Tool, source: Path, copy: Path) -> tuple[Cost, Cost]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("AZ", "PYTHON", "XDG_"))}
    with (
        tempfile.TemporaryDirectory() as home,
        azurite.private(Folders.of(os.environ).emulator, os.environ) as running,
    ):
        environ = {
            **kept,
            "AZURE_STORAGE_CONNECTION_STRING": running.connection_string,
            "AZURE_CORE_COLLECT_TELEMETRY": "false",
            "HOME": home,
        }
        _run((AZGUARD, "container", "create", CONTAINER), environ)
        copy.mkdir()
        up, down = _run(tool.put(source), environ), _run(tool.get(copy), environ)
    if sorted(os.listdir(copy)) != sorted(os.listdir(source)):
        raise SystemExit(f"{tool.name} did not move all files")
    for each in copy.iterdir():
        each.unlink()
    return up, down


def _run(command: Sequence[str], environ: Mapping[str, str]) -> Cost:
    begun = time.perf_counter()
    child = subprocess.Popen(
        command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - begun
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {child.returncode}")
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / unit)


def _print(name: str, ours: Sequence[Cost], costs: Sequence[Cost]) -> None:
    pairs = list(zip(ours, costs, strict=True))
    sys.stdout.write(
        f"{name:22} {statistics.median(each.seconds for each in costs):6.1f} s"
        f"  CPU {statistics.median(each.cpu for each in costs):6.1f} s"
        f"  peak {max(each.mib for each in costs):4.0f} MiB"
        f"  azguard: {statistics.median(mine.seconds / other.seconds for mine, other in pairs):.2f} of its time,"
        f" {statistics.median(mine.cpu / other.cpu for mine, other in pairs):.2f} of its CPU\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    main()
