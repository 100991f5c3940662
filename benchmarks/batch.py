"""How many lines a second ``azguard batch`` runs, beside a process for each.

    python -m benchmarks.batch [--lines N] [--runs N]

Both do the same work against the same emulator, in turn, A B A B …: first the processes, one after the other, then the
batch. It measures the azguard that is installed beside this Python.
"""

import argparse
import shlex
import statistics
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks import speed

LINES = 1000
RUNS = 3
# A process each takes so long that some of them tell as much as all.
_PROCESSES = 20
TARGET = 20.0
_WORK = {
    "blob put": "blob put speed/{name} --content {name}",
    "entity merge": "entity merge Speed/p/{name} n={number} --last-writer-wins",
}
_BEFORE = {
    "blob put": None,
    "entity merge": "entity insert Speed/p/{name} n:int32=0",
}


def main() -> None:
    """Measure each kind of line and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=LINES, help=f"of a batch; {LINES} by default")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"of each; {RUNS} by default")
    asked = parser.parse_args()
    with speed.world() as (environ, folder):
        speed.run((speed.AZGUARD, "table", "create", "Speed"), environ)
        for name in _WORK:
            _compare(name, asked.lines, asked.runs, environ, folder)


def _compare(name: str, lines: int, runs: int, environ: Mapping[str, str], folder: Path) -> None:
    rates: list[tuple[float, float]] = []
    memory = 0.0
    for each in range(runs):
        file = _write(folder, _BEFORE[name], f"{each}b", lines)
        alone = _write(folder, _BEFORE[name], f"{each}a", _PROCESSES)
        for prepared in (alone, file):
            speed.run((speed.AZGUARD, "batch", "-f", str(prepared)), environ)
        commands = [_WORK[name].format(name=f"{each}a{number}", number=number) for number in range(_PROCESSES)]
        processes = sum(speed.run((speed.AZGUARD, *shlex.split(command)), environ).seconds for command in commands)
        file = _write(folder, _WORK[name], f"{each}b", lines)
        cost = speed.run((speed.AZGUARD, "batch", "-f", str(file)), environ)
        memory = cost.peak_mib
        rates.append((_PROCESSES / processes, lines / cost.seconds))
    ratio = statistics.median(batch / alone for alone, batch in rates)
    sys.stdout.write(
        f"{name}\n"
        f"  a process each  {statistics.median(alone for alone, _ in rates):8.1f} lines/s\n"
        f"  batch           {statistics.median(batch for _, batch in rates):8.1f} lines/s  peak {memory:.0f} MiB\n"
        f"  ratio           {ratio:8.1f}     target ≥ {TARGET:g}\n"
    )
    sys.stdout.flush()


def _write(folder: Path, line: str | None, prefix: str, count: int) -> Path:
    """Return a new file of so many lines; of none where there is no line."""
    path = folder / f"{prefix}.txt"
    names = (f"{prefix}{number}" for number in range(count if line else 0))
    path.write_text("".join(f"{(line or '').format(name=each, number=len(each))}\n" for each in names), "utf-8")
    return path


if __name__ == "__main__":
    main()
