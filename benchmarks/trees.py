"""Measure trees of files, up and down, beside AzCopy, the Azure CLI and a loop of the SDK; print the docs' tables.

    python -m benchmarks.trees [--files N] [--mib N] [--rounds N] [--az FILE] [--azcopy FILE]

``az`` and ``azcopy`` are measured where they are on PATH, or named. The tools run in turn, A B C A B C …, each with an
emulator of its own for each round, since Azurite slows down with many writes. The start of the program is part of each
figure; CPU seconds are those of the tool, not of the emulator. Install ``az`` into a virtual environment of its own,
since its dependencies are not ours.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME
from azguard.emulators import background
from azguard.emulators.azurite_process import Azurite
from azguard.folders import Folders
from benchmarks.speed import AZGUARD, HERE

MIB = 1 << 20
SMALL_BYTES = 4096
CONTAINER = "tree"


@dataclass(frozen=True)
class Tool:
    """One way to move a tree: its command lines, from a folder and the URL of a container with a SAS."""

    name: str
    put: Callable[[Path, str], Sequence[str]]
    get: Callable[[Path, str], Sequence[str]]


class Cost(NamedTuple):
    """What one run took."""

    seconds: float
    #: Of the processor, in the program and for it in the system.
    cpu: float
    mib: float


def main() -> None:
    """Run every tool on every tree and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--az", default=shutil.which("az"), help="the Azure CLI; by default, the one on PATH")
    parser.add_argument("--azcopy", default=shutil.which("azcopy"), help="AzCopy; by default, the one on PATH")
    parser.add_argument("--files", type=int, default=2000, help="how many of 4 KiB; 2000 by default")
    parser.add_argument("--mib", type=int, default=1024, help="the size of the one large file; 1024 by default")
    parser.add_argument("--rounds", type=int, default=3, help="of each tool; 3 by default")
    asked = parser.parse_args()
    tools = list_tools(asked.az, asked.azcopy)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for tree, title, count, size in (
            ("small", f"{asked.files:,} files of 4 KiB", asked.files, SMALL_BYTES),
            ("large", f"one file of {asked.mib:,} MiB", 1, asked.mib * MIB),
        ):
            if count and size:
                _make_files(folder / tree, count, size)
                sys.stdout.write("\n".join(write_table(title, _measure(folder, tree, tools, asked.rounds))) + "\n\n")
                sys.stdout.flush()


def _make_files(folder: Path, count: int, size: int) -> None:
    folder.mkdir()
    for number in range(count):
        with open(folder / f"{number:05}", "wb") as file:
            file.writelines(os.urandom(min(size, MIB)) for _ in range(max(1, size // MIB)))


def list_tools(az: str | None, azcopy: str | None) -> Sequence[Tool]:
    """Return the ways to move a tree, of the tools that are there; ours is the first."""
    sdk = str(HERE / "sdk_trees.py")
    tools = [
        Tool(
            "azguard",
            lambda folder, url: (AZGUARD, "blob", "put", str(folder), CONTAINER, "--recursive"),
            lambda folder, url: (AZGUARD, "blob", "get", CONTAINER, str(folder), "--recursive"),
        )
    ]
    if azcopy is not None:
        # It takes no account key. The stars, which it reads itself, leave out the name of the folder.
        way = (str(Path(azcopy).absolute()), "copy")
        quiet = ("--recursive=true", "--log-level=NONE")
        tools.append(
            Tool(
                "`azcopy copy`",
                lambda folder, url: (*way, f"{folder}/*", url, "--from-to=LocalBlob", *quiet),
                lambda folder, url: (*way, url.replace("?", "/*?", 1), str(folder), "--from-to=BlobLocal", *quiet),
            )
        )
    if az is not None:
        words = (str(Path(az).absolute()), "storage", "blob")
        tools.append(
            Tool(
                "`az storage blob upload-batch`, `download-batch`",
                lambda folder, url: (*words, "upload-batch", "-s", str(folder), "-d", CONTAINER, "-o", "none"),
                lambda folder, url: (*words, "download-batch", "-s", CONTAINER, "-d", str(folder), "-o", "none"),
            )
        )
    return [
        *tools,
        Tool(
            "the SDK in a pool of 16 threads, six connections a file",
            lambda folder, url: (sys.executable, sdk, "put", str(folder), CONTAINER),
            lambda folder, url: (sys.executable, sdk, "get", str(folder), CONTAINER),
        ),
    ]


def _measure(folder: Path, tree: str, tools: Sequence[Tool], rounds: int) -> Mapping[str, Sequence[tuple[Cost, Cost]]]:
    """Return what each round of each tool took, up and down."""
    found: dict[str, list[tuple[Cost, Cost]]] = {tool.name: [] for tool in tools}
    for turn in range(rounds):
        for number, tool in enumerate(tools):
            found[tool.name].append(move(tool, folder / tree, folder / f"{tree}-{number}-{turn}"))
    return found


def write_table(title: str, found: Mapping[str, Sequence[tuple[Cost, Cost]]]) -> list[str]:
    """Return the lines of a table in Markdown: medians, the highest memory, and our time as a part of each other's."""
    lines = [
        f"| {title} | up: time | CPU | down: time | CPU | memory | azguard's time is, up and down |",
        "|---|---|---|---|---|---|---|",
    ]
    ours = next(iter(found.values()))
    for name, costs in found.items():
        cells = [name]
        for way in range(2):
            cells.append(f"{statistics.median(each[way].seconds for each in costs):.1f} s")
            cells.append(f"{statistics.median(each[way].cpu for each in costs):.1f} s")
        cells.append(f"{max(each[way].mib for each in costs for way in range(2)):.0f} MiB")
        ratios = [
            statistics.median(mine[way].seconds / other[way].seconds for mine, other in zip(ours, costs, strict=True))
            for way in range(2)
        ]
        cells.append("" if costs is ours else f"{ratios[0]:.2f} and {ratios[1]:.2f} of it")
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def move(tool: Tool, source: Path, copy: Path) -> tuple[Cost, Cost]:
    """Move a tree up and down with an emulator of its own, and return what both took."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("AZ", "PYTHON", "XDG_"))}
    with (
        tempfile.TemporaryDirectory() as home,
        background.run_private_azurite(Folders.of(os.environ).emulator, os.environ) as running,
    ):
        environ = {
            **kept,
            "AZURE_STORAGE_CONNECTION_STRING": running.connection_string,
            "AZURE_CORE_COLLECT_TELEMETRY": "false",
            "HOME": home,
        }
        _run((AZGUARD, "container", "create", CONTAINER), environ)
        copy.mkdir()
        url = _sign(running)
        up, down = _run(tool.put(source, url), environ), _run(tool.get(copy, url), environ)
    if [_describe(each) for each in sorted(copy.iterdir())] != [_describe(each) for each in sorted(source.iterdir())]:
        raise SystemExit(f"{tool.name} did not move all files")
    for each in copy.iterdir():
        each.unlink()
    return up, down


def _describe(file: Path) -> tuple[str, int]:
    return file.name, file.stat().st_size


def _sign(running: Azurite) -> str:
    """Return the URL of the container with a SAS, for tools that take no key."""
    from azure.storage.blob import ContainerSasPermissions, generate_container_sas

    sas = generate_container_sas(
        EMULATOR_NAME,
        CONTAINER,
        account_key=EMULATOR_KEY,
        permission=ContainerSasPermissions(read=True, write=True, list=True, create=True),
        expiry=datetime.now(UTC) + timedelta(days=1),
    )
    return f"{running.blob_endpoint}/{CONTAINER}?{sas}"


def _run(command: Sequence[str], environ: Mapping[str, str]) -> Cost:
    begun = time.perf_counter()
    child = subprocess.Popen(
        command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - begun
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{command[0]} ended with {child.returncode}")
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / unit)


if __name__ == "__main__":
    main()
