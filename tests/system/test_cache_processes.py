"""The cache under many processes at once, and under processes that are killed."""

import os
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from azguard.cache.etag_cache import EtagCache
from tests.support.caches import Clock, never
from tests.support.places import REPOSITORY

PROCESSES = 32
RECORDS = 10

_BEGIN = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from azguard.cache import copies
from azguard.cache.etag_cache import EtagCache
from azguard.cache.records import Key
name, count = sys.argv[1], int(sys.argv[2])
def key(number):
    return Key("https://account.blob.core.windows.net", f"blob:site/{number}")
def opened():
    return EtagCache.open(Path("cache"), name, warn=lambda text: print(text), now=lambda: datetime.now(UTC))
def record(cache, number):
    copy = copies.find_at(Path(f"{name}-{number}"))
    cache.record(key(number), etag=f"{name}-{number}", copy=copy, command="blob get")
import sqlite3, fcntl
print("ready", flush=True)
sys.stdin.readline()
"""
_ONE_PROCESS = _BEGIN + "cache = opened()\nfor number in range(count): record(cache, number)\n"
# As a script does: each command opens the cache anew.
_MANY_COMMANDS = _BEGIN + "for number in range(count): cache = opened(); record(cache, number); cache.close()\n"
_HOLDS = _BEGIN + "cache = opened(); cache.record_lease(key(0), name, duration=None, action='lock run')\n"
_UNTIL_KILLED = _BEGIN + (
    "cache = opened(); number = 0\nwhile True: number += 1; record(cache, number); print(number, flush=True)\n"
)


def started(folder: Path, script: str, name: str, count: int = 0) -> "subprocess.Popen[str]":
    """Start a process and wait until it is about to begin."""
    process = subprocess.Popen(
        [sys.executable, "-c", script, name, str(count)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert line(process) == "ready\n"
    return process


def line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def begin(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def said(processes: Sequence["subprocess.Popen[str]"]) -> list[str]:
    """Let all begin at once, and return what they said, line by line."""
    for process in processes:
        begin(process)
    outputs = [process.communicate(timeout=100)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes)
    return [each for output in outputs for each in output.splitlines()]


def opened(folder: Path, scope: str) -> EtagCache:
    return EtagCache.open(folder / "cache", scope, warn=never, now=Clock())


def integrity(folder: Path) -> list[tuple[str]]:
    connection = sqlite3.connect(folder / "cache" / "etags.db")
    try:
        return connection.execute("PRAGMA integrity_check").fetchall()
    finally:
        connection.close()


@pytest.mark.parametrize("script", [_ONE_PROCESS, _MANY_COMMANDS], ids=["one process", "many commands"])
def test_32_processes_lose_nothing_and_wait_for_each_other(tmp_path: Path, script: str) -> None:
    names = [f"scope-{number}" for number in range(PROCESSES)]
    assert said([started(tmp_path, script, name, RECORDS) for name in names]) == []
    cache = opened(tmp_path, "scope-0")
    expected = sorted(f"{name}-{number}" for name in names for number in range(RECORDS))
    assert sorted(entry.etag for entry in cache.list_entries()) == expected
    assert sum(bool(each["copy"]) for each in cache.export()) == PROCESSES * RECORDS
    assert integrity(tmp_path) == [("ok",)]


def test_processes_in_one_scope_leave_one_whole_entry_each(tmp_path: Path) -> None:
    assert said([started(tmp_path, _ONE_PROCESS, "same", 20) for _ in range(8)]) == []
    assert sorted(entry.etag for entry in opened(tmp_path, "same").list_entries()) == sorted(
        f"same-{number}" for number in range(20)
    )


@pytest.mark.skipif(os.name != "posix", reason="an open file is not moved elsewhere")
def test_processes_that_find_a_damaged_file_move_it_once_and_share_the_new_one(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "etags.db").write_bytes(b"garbage" * 1000)
    names = [f"scope-{number}" for number in range(16)]
    lines = said([started(tmp_path, _MANY_COMMANDS, name, 5) for name in names])
    moved = list((tmp_path / "cache").glob("*.damaged-*"))
    assert (len(lines), lines[0].count(" it is now "), len(moved)) == (1, 1, 1)
    assert len(list(opened(tmp_path, "scope-0").list_entries())) == len(names) * 5


def test_leases_of_processes_that_exited_are_all_known(tmp_path: Path) -> None:
    names = [f"scope-{number}" for number in range(8)]
    assert said([started(tmp_path, _HOLDS, name) for name in names]) == []
    assert sorted(lease.lease_id for lease in opened(tmp_path, "x").list_held()) == names


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_process_killed_while_recording_loses_nothing_it_had_recorded(tmp_path: Path) -> None:
    moments = random.Random(1)
    for attempt in range(6):
        name = f"scope-{attempt}"
        process = started(tmp_path, _UNTIL_KILLED, name)
        begin(process)
        before = [line(process) for _ in range(moments.randrange(1, 60))]
        process.kill()
        assert process.stdout is not None
        last = len(before) + process.stdout.read().count("\n")
        process.communicate(timeout=30)
        cache = opened(tmp_path, name)
        found = {entry.etag for entry in cache.list_entries(name)}
        # The one in flight may have been recorded before it could be said.
        assert found - {f"{name}-{last + 1}"} == {f"{name}-{number}" for number in range(1, last + 1)}
        cache.close()
    assert integrity(tmp_path) == [("ok",)]


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_process_killed_while_making_the_file_leaves_no_half_of_one(tmp_path: Path) -> None:
    for attempt in range(20):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        process = started(folder, _MANY_COMMANDS, "scope", 1)
        begin(process)
        # Nothing is waited for: the kills are spread over the milliseconds in which the file is made.
        time.sleep(attempt * 0.0008)
        process.kill()
        process.communicate(timeout=30)
        cache = opened(folder, "scope")
        assert len(list(cache.list_entries())) in (0, 1)
        cache.close()
        assert integrity(folder) == [("ok",)]
