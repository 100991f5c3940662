"""What a line of ``azguard batch`` costs, beside a process for each.

    python -m benchmarks.batch [--lines N] [--runs N]

Both do the same work against the same emulator, in turn, A B A B …: first the processes, one after the other, then the
batch. It measures the azguard that is installed beside this Python.
"""

import argparse
import shlex
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import speed

LINES = 1000
RUNS = 3
# A process each takes so long that some of them tell as much as all.
_PROCESSES = 20
TARGET = 20.0
_WORK = {
    "blob put": "blob put speed/{name} --content {name}",
    "entity merge": "entity merge Batch/p/{name} n={number} --last-writer-wins",
}
_BEFORE = {
    "blob put": None,
    "entity merge": "entity insert Batch/p/{name} n:int32=0",
}


def main() -> None:
    """Measure each kind of line and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=LINES, help=f"of a batch; {LINES} by default")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"of each; {RUNS} by default")
    asked = parser.parse_args()
    with speed.world() as (environ, folder):
        speed.run((speed.AZGUARD, "table", "create", "Batch"), environ)
        for name in _WORK:
            _compare(name, asked.lines, asked.runs, environ, folder)


def _compare(name: str, lines: int, runs: int, environ: Mapping[str, str], folder: Path) -> None:
    alone, batches = [], []
    for each in range(runs):
        for prefix, count in ((f"{each}a", _PROCESSES), (f"{each}b", lines)):
            _run(_write(folder, _BEFORE[name], prefix, count), environ)
        commands = [_WORK[name].format(name=f"{each}a{number}", number=number) for number in range(_PROCESSES)]
        alone.append([speed.run((speed.AZGUARD, *shlex.split(command)), environ) for command in commands])
        batches.append(_run(_write(folder, _WORK[name], f"{each}b", lines), environ))
    clock = [sum(cost.seconds for cost in each) / _PROCESSES for each in alone]
    processor = [sum(cost.processor_seconds for cost in each) / _PROCESSES for each in alone]
    _show(f"{name}, seconds", clock, [cost.seconds / lines for cost in batches])
    _show(f"{name}, seconds of the processor", processor, [cost.processor_seconds / lines for cost in batches])
    sys.stdout.write(f"  peak {max(cost.peak_mib for cost in batches):.0f} MiB\n")
    sys.stdout.flush()


def _run(lines: Path, environ: Mapping[str, str]) -> speed.Cost:
    return speed.run((speed.AZGUARD, "batch", "-f", str(lines)), environ)


def _show(name: str, alone: Sequence[float], batch: Sequence[float]) -> None:
    ratio = statistics.median(one / other for one, other in zip(alone, batch, strict=True))
    sys.stdout.write(
        f"{name}\n"
        f"  a process each  {statistics.median(alone) * 1000:8.1f} ms a line\n"
        f"  batch           {statistics.median(batch) * 1000:8.1f} ms a line\n"
        f"  ratio           {ratio:8.1f}     target ≥ {TARGET:g}\n"
    )


def _write(folder: Path, line: str | None, prefix: str, count: int) -> Path:
    """Return a new file of so many lines; of none where there is no line."""
    path = folder / f"{prefix}.txt"
    names = (f"{prefix}{number}" for number in range(count if line else 0))
    path.write_text("".join(f"{(line or '').format(name=each, number=len(each))}\n" for each in names), "utf-8")
    return path


if __name__ == "__main__":
    main()
