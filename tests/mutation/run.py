"""Put mutants in, one at a time, and have the explorer look for them."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.mutation.mutants import Mutant

ROOT = Path(__file__).parents[2]
HEAD = "| what was changed | rule | scenario | explorer | seconds | trace check |\n|---|---|---|---|---|---|"
_PARTS = ("azguard", "cli", "commands", "tests")


@dataclass(frozen=True)
class Caught:
    """How the explorer ended on a mutant."""

    mutant: Mutant
    #: What its rules say was violated; None if nothing was.
    what: str | None
    seconds: float
    steps: int
    #: The rule that the traces of all schedules break; None if none does.
    by_trace: str | None


@contextmanager
def copied_tree() -> Iterator[Path]:
    """Copy the product and its tests, so that a mutant harms no one else."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *_PARTS]
        listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        for name in listed.stdout.splitlines():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, root / name, follow_symlinks=False)
        yield root


def play(mutant: Mutant, root: Path) -> Caught:
    """Explore the scenario of a mutant until something is violated: once by its rules, once by its traces alone.

    Raises:
        AnchorGone: see ``Mutant.apply``.
        RuntimeError: the explorer itself fails.
    """
    before = mutant.apply(root)
    try:
        found, traced = _explore(mutant, root), _explore(mutant, root, "--traces")
    finally:
        (root / mutant.file).write_text(before)
    by_trace = traced["what"] and traced["what"].partition(":")[0]
    return Caught(mutant, found["what"], found["seconds"], len(found["story"]), by_trace)


def _explore(mutant: Mutant, root: Path, *how: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.explorer", mutant.scenario, "--first", "--json", *how]
    command += ["--short"] if mutant.bound is None else ["--bound", json.dumps(mutant.bound)]
    environ = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=root, env=environ, check=False, capture_output=True, text=True)
    if done.returncode not in (0, 1) or not done.stdout.startswith("{"):
        raise RuntimeError(f"{mutant.name}: the explorer fails on it:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def to_row(caught: Caught) -> str:
    """Return the row of a mutant as docs/guarantees.md has it."""
    what = "nothing" if caught.what is None else caught.what.replace("|", "/")
    mutant, by_trace = caught.mutant, "" if caught.by_trace is None else f"*{caught.by_trace}*"
    return f"| {mutant.name} | {mutant.rule} | {mutant.scenario} | {what} | {caught.seconds:.1f} | {by_trace} |"
