"""A shell for the commands of a page, under a terminal: what they show is what a reader of the page sees.

A plain ``azguard …`` runs inside the test, which is ten times as fast as a process. All else is a line for bash, whose
variables the next line finds again.
"""

import fcntl
import io
import os
import re
import select
import shlex
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from tests.support import forked
from tests.support.cli_world import command, here
from tests.support.terminals import open_terminal

_COLUMNS, _LINES = 80, 40
_SECONDS = 60
# These run other programs beside azguard, or azguard itself again: processes of their own.
_REAL = re.compile(r"azguard (emulator|demo|(file )?lock run|completion)\b")
_SINGLE_QUOTED = re.compile(r"'[^']*'")
_FOR_BASH = re.compile(r"[$`*?~;&<>|(){}\\]")
_ECHO = re.compile(r"(?P<echo>(?:echo|printf) (?:'[^']*'|\w+)) \| (?P<rest>.*)", re.DOTALL)
_INTO = re.compile(r"(.*) > ([\w.]+)", re.DOTALL)
_STYLES = re.compile(r"\x1b\[[0-9;]*m")
# What a progress bar has drawn on a line before the line is written.
_ERASED = re.compile(r"[^\r\n]*\r\x1b\[K")
_REMARK = re.compile(r"\s+# .*$")


class PageShell:
    """Runs the commands of one page in one folder."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self.folder = folder
        self._environ = {
            **environ,
            "COLUMNS": str(_COLUMNS),
            "NO_COLOR": "1",
            "TERM": "xterm",
        }

    def run(self, line: str) -> tuple[int, list[str]]:
        """Run a line as it was typed, and return its exit status and what the terminal then shows."""
        words = plain_words(line)
        with _terminal() as (descriptor, shown):
            status = self._bash(line, descriptor) if words is None else self._inside(words, descriptor)
        return status, _ERASED.sub("", _STYLES.sub("", shown[0])).replace("\r\n", "\n").splitlines()

    def _inside(self, words: "Words", terminal: int) -> int:
        from azguard.cli import signals
        from azguard.cli.app import run

        streams = sys.stdin, sys.stdout, sys.stderr
        with (
            here(self.folder, {**self._environ, **words.environ}),
            patch.object(signals, "hasten", lambda status: None),
        ):
            sys.stdin = io.TextIOWrapper(io.BytesIO(words.stdin), "utf-8")
            sys.stdout = open(words.into or os.dup(terminal), "w", encoding="utf-8")  # noqa: SIM115  # closed below
            sys.stderr = os.fdopen(os.dup(terminal), "w", encoding="utf-8")
            try:
                return run(words.arguments)
            finally:
                sys.stdout.close()
                sys.stderr.close()
                sys.stdin, sys.stdout, sys.stderr = streams

    def _bash(self, line: str, terminal: int) -> int:
        after = self.folder / ".environ"
        script = f"{line}\nstatus=$?\nenv -0 > {shlex.quote(str(after))}\nexit $status"
        done = subprocess.run(
            ["bash", "-c", script], cwd=self.folder, env=self._environ, stdin=subprocess.DEVNULL,
            stdout=terminal, stderr=terminal, timeout=_SECONDS,
        )  # fmt: skip
        pairs = (pair.partition("=") for pair in after.read_text().split("\0") if pair)
        self._environ = {name: value for name, _, value in pairs if name not in ("_", "SHLVL", "PWD", "OLDPWD")}
        return done.returncode


@dataclass(frozen=True)
class Words:
    """A line that is azguard alone."""

    environ: Mapping[str, str]
    stdin: bytes
    arguments: list[str]
    #: The file that stdout goes to.
    into: str | None


def plain_words(line: str) -> Words | None:
    """Return a line that is azguard alone, with an echo before it and a file behind it at most."""
    line, stdin, into = _REMARK.sub("", line), b"", None
    if echoed := _ECHO.fullmatch(line):
        stdin = subprocess.run(["bash", "-c", echoed["echo"]], capture_output=True, check=True).stdout
        line = echoed["rest"]
    if redirected := _INTO.fullmatch(line):
        line, into = redirected.groups()
    bare = _SINGLE_QUOTED.sub("''", line)
    if _FOR_BASH.search(bare) or _REAL.search(bare):
        return None
    words = shlex.split(line)
    split = next((index for index, word in enumerate(words) if not re.match(r"\w+=", word)), len(words))
    if words[split : split + 1] != ["azguard"]:
        return None
    return Words(dict(word.split("=", 1) for word in words[:split]), stdin, words[split + 1 :], into)


@contextmanager
def _terminal() -> Iterator[tuple[int, list[str]]]:
    """Yield a terminal to write to, and a list that holds what it showed once the block has ended."""
    ours, theirs = open_terminal()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", _LINES, _COLUMNS, 0, 0))
    pieces: list[bytes] = []
    shown: list[str] = []

    is_over, over = os.pipe()

    def read() -> None:
        # The end of a terminal that no process holds open any more is an error.
        with suppress(OSError):
            while ours in select.select([ours, is_over], [], [])[0] and (piece := os.read(ours, 65536)):
                pieces.append(piece)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield theirs, shown
    finally:
        os.close(theirs)
        # What a command leaves running in the background may hold the terminal open.
        os.write(over, b".")
        reader.join()
        for each in (over, is_over, ours):
            os.close(each)
        shown.append(b"".join(pieces).decode())


def on_path(folder: Path, environ: Mapping[str, str], started: str = "demo|completion") -> dict[str, str]:
    """Return the environment with an ``azguard`` on PATH that is this checkout's.

    What runs azguard again is ``started``, and what gets a signal but SIGKILL; all else is forked, which is quicker.
    """
    folder.mkdir(exist_ok=True)
    script = folder / "azguard"
    start, fork = shlex.join(command()), shlex.join(forked.command())
    choice = f'case "$1" in {started}) exec {start} "$@";; *) exec {fork} "$@";; esac'
    script.write_text(f"#!/bin/sh\n{choice}\n", encoding="utf-8")
    script.chmod(0o755)
    return {**environ, "PATH": f"{folder}:{environ['PATH']}"}
