"""Measure what a help page costs beside a bare Python, in processor time; for docs/benchmarks.md.

    python -m benchmarks.help_pages [--runs N]

The two commands of a pair run in turn, A B A B …, so that a busy machine slows both. It measures the azguard that is
installed beside this Python; install it as users do (not editable): that slows the bare Python, too.
"""

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

AZGUARD = str(Path(sys.executable).parent / "azguard")
BARE = (sys.executable, "-c", "pass")
RUNS = 25
#: A line, and how many times as long it may take as a bare Python.
TARGETS = {
    "--help": 3.0,
    "blob put --help": 3.5,
    "lock run --help": 3.5,
    "safe-update --help": 3.5,
}


def main() -> None:
    """Run every pair and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS, help=f"of each command of a pair; {RUNS} by default")
    runs = parser.parse_args().runs
    for line, target in TARGETS.items():
        pairs = [(_measure((AZGUARD, *line.split())), _measure(BARE)) for _ in range(runs + 1)][1:]
        ours, least = (statistics.median(times) * 1000 for times in zip(*pairs, strict=True))
        ratio = statistics.median(mine / other for mine, other in pairs)
        sys.stdout.write(
            f"azguard {line:20} {ours:6.1f} ms   python -c pass {least:6.1f} ms   ratio {ratio:5.2f}   ≤ {target:g}\n"
        )


def _measure(command: Sequence[str]) -> float:
    """Run a command to its end; return its seconds of processor time."""
    # Users have compiled modules.
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("AZ", "PYTHON"))}
    child = subprocess.Popen(command, env=kept, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {child.returncode}")
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
