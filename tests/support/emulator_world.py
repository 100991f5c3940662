"""A private world for tests of the emulator: its own cache folder and PATH, commands as processes of their own."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from azguard.emulators import azurite_install, background
from tests.support import result_shapes
from tests.support.forked_process import ForkedProcess
from tests.support.places import REPOSITORY


@dataclass(frozen=True)
class World:
    """A folder for the cache, a PATH that begins with a folder of ours, and ``python -m azguard`` in it."""

    root: Path
    azurite: Path

    @property
    def bin(self) -> Path:
        return self.root / "bin"

    @property
    def folder(self) -> Path:
        return self.root / "cache" / "emulator"

    @property
    def environ(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AZ", "SHELL", "PSM"))}
        return {
            **kept,
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join((str(REPOSITORY), os.environ.get("PYTHONPATH", ""))),
            "AZGUARD_CACHE_DIR": str(self.root / "cache"),
            "AZGUARD_CONFIG_DIR": str(self.root / "config"),
        }

    def program(self, name: str, script: str) -> Path:
        """Put a shell script on PATH, instead of what was there by that name."""
        file = self.bin / name
        file.unlink(missing_ok=True)
        file.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        file.chmod(0o755)
        return file

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "azguard", *words]

    def run(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run a command line to its end: forked, but for a command that runs another one."""
        env = {**self.environ, **environ}
        if words[:2] != ("emulator", "run"):
            forked = ForkedProcess(words, self.root, env)
            out, err = forked.communicate(timeout=90)
            return subprocess.CompletedProcess(words, forked.wait(), out.decode(), err.decode())
        return subprocess.run(
            self.command(*words), cwd=self.root, env=env, capture_output=True, text=True, timeout=90, check=False
        )

    def begin(self, *words: str, **environ: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*words),
            cwd=self.root,
            env={**self.environ, **environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def json(self, *words: str) -> dict[str, Any]:
        answer = self.run(*words)
        result: dict[str, Any] = json.loads(answer.stdout)
        result_shapes.check(words, result)
        return result

    def processes(self) -> list[str]:
        """Return the command lines of the live processes of this world."""
        if not Path("/proc").is_dir():
            pytest.skip("lists processes by /proc")
        mark = f"AZGUARD_CACHE_DIR={self.root / 'cache'}\0".encode()
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes():
                    found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue  # ended meanwhile, or another user's
        return found


def make(root: Path, azurite: Path) -> World:
    """Return a world whose ``azurite`` on PATH is the given installation's script, and which has a ``node``."""
    (root / "bin").mkdir()
    (root / "bin" / "azurite").symlink_to(azurite)
    if shutil.which("node") is None:
        # A machine without Node.js has the one of the emulator extra.
        (root / "bin" / "node").symlink_to(azurite_install.find_node(os.environ).program)
    return World(root, azurite)


@contextmanager
def started(root: Path, azurite: Path, *words: str, **environ: str) -> Iterator[World]:
    """Yield a world whose emulator runs, for tests that leave it as it is."""
    made = make(root, azurite)
    assert made.run("emulator", "start", *words, **environ).returncode == 0
    try:
        yield made
    finally:
        background.stop(made.folder)


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until a condition holds; fail if it never does, even on a busy machine."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)  # another process makes it so


def installation(command: Sequence[str]) -> Path:
    """Return the script of Azurite in a command that runs it."""
    return Path(command[-1]).resolve()
