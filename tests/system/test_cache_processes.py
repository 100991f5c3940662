"""The cache under many processes at once, and under processes that are killed."""

import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from azguard.cache import copies
from azguard.cache.etag_cache import EtagCache
from azguard.cache.records import Key
from tests.support.caches import Clock, never
from tests.support.forked_function import FORKS

# One process starts all forks.
pytestmark = pytest.mark.xdist_group("cache processes")
PROCESSES = 32
RECORDS = 10


class Writer:
    """What runs in a process: it uses the cache of a folder in a scope of its own name, and says its warnings."""

    def __init__(self, folder: Path, name: str, pipe: Connection) -> None:
        self._folder, self._name, self._pipe = folder, name, pipe

    def work(self, job: Callable[["Writer"], None]) -> None:
        """Say that it is about to begin, wait until all are, and do the job."""
        self.say("ready")
        self._pipe.recv()
        job(self)

    def open(self) -> EtagCache:
        return EtagCache.open(self._folder / "cache", self._name, warn=self.say, now=lambda: datetime.now(UTC))

    def say(self, text: str) -> None:
        self._pipe.send(text)

    def record(self, cache: EtagCache, number: int) -> None:
        etag = f"{self._name}-{number}"
        cache.record(key(number), etag=etag, copy=copies.find_at(self._folder / etag), command="blob get")

    def hold(self) -> None:
        self.open().record_lease(key(0), self._name, duration=None, action="lock run")


def key(number: int) -> Key:
    return Key("https://account.blob.core.windows.net", f"blob:site/{number}")


def record_in_one_process(count: int, writer: Writer) -> None:
    cache = writer.open()
    for number in range(count):
        writer.record(cache, number)


def record_in_many_commands(count: int, writer: Writer) -> None:
    """Open the cache anew for each record, as a script does whose commands each record one."""
    for number in range(count):
        cache = writer.open()
        writer.record(cache, number)
        cache.close()


def record_until_killed(writer: Writer) -> None:
    cache, number = writer.open(), 0
    while True:
        number += 1
        writer.record(cache, number)
        writer.say(str(number))


Job = Callable[[Writer], None]


def _run(folder: Path, name: str, pipe: Connection, job: Job) -> None:
    Writer(folder, name, pipe).work(job)


@contextmanager
def started(folder: Path, name: str, job: Job) -> Iterator[tuple[BaseProcess, Connection]]:
    """Start a process that is about to begin; it is killed at the end, should it still run."""
    ours, theirs = FORKS.Pipe()
    process = FORKS.Process(target=_run, args=(folder, name, theirs, job))
    process.start()
    theirs.close()
    try:
        assert ours.recv() == "ready"
        yield process, ours
    finally:
        process.kill()
        process.join()
        ours.close()


def listen(pipe: Connection) -> Iterator[str]:
    """Yield what a process says until it has ended."""
    while True:
        try:
            yield pipe.recv()
        except (EOFError, OSError):
            return


def said(folder: Path, names: Sequence[str], job: Job) -> list[str]:
    """Let processes begin a job at once, and return what they said."""
    with ExitStack() as stack:
        running = [stack.enter_context(started(folder, name, job)) for name in names]
        for _, pipe in running:
            pipe.send("begin")
        lines = [line for _, pipe in running for line in listen(pipe)]
        for process, _ in running:
            process.join()
        assert [process.exitcode for process, _ in running] == [0] * len(running)
    return lines


def opened(folder: Path, scope: str) -> EtagCache:
    return EtagCache.open(folder / "cache", scope, warn=never, now=Clock())


def integrity(folder: Path) -> list[tuple[str]]:
    connection = sqlite3.connect(folder / "cache" / "etags.db")
    try:
        return connection.execute("PRAGMA integrity_check").fetchall()
    finally:
        connection.close()


@pytest.mark.parametrize(
    "record", [record_in_one_process, record_in_many_commands], ids=["one process", "many commands"]
)
def test_32_processes_lose_nothing_and_wait_for_each_other(
    tmp_path: Path, record: Callable[[int, Writer], None]
) -> None:
    names = [f"scope-{number}" for number in range(PROCESSES)]
    assert said(tmp_path, names, partial(record, RECORDS)) == []
    cache = opened(tmp_path, "scope-0")
    expected = sorted(f"{name}-{number}" for name in names for number in range(RECORDS))
    assert sorted(entry.etag for entry in cache.list_entries()) == expected
    assert sum(bool(each["copy"]) for each in cache.export()) == PROCESSES * RECORDS
    assert integrity(tmp_path) == [("ok",)]


def test_processes_in_one_scope_leave_one_whole_entry_each(tmp_path: Path) -> None:
    assert said(tmp_path, ["same"] * 8, partial(record_in_one_process, 20)) == []
    assert sorted(entry.etag for entry in opened(tmp_path, "same").list_entries()) == sorted(
        f"same-{number}" for number in range(20)
    )


@pytest.mark.skipif(os.name != "posix", reason="an open file is not moved elsewhere")
def test_processes_that_find_a_damaged_file_move_it_once_and_share_the_new_one(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "etags.db").write_bytes(b"garbage" * 1000)
    names = [f"scope-{number}" for number in range(16)]
    lines = said(tmp_path, names, partial(record_in_many_commands, 5))
    moved = list((tmp_path / "cache").glob("*.damaged-*"))
    assert (len(lines), lines[0].count(" it is now "), len(moved)) == (1, 1, 1)
    assert len(list(opened(tmp_path, "scope-0").list_entries())) == len(names) * 5


def test_leases_of_processes_that_exited_are_all_known(tmp_path: Path) -> None:
    names = [f"scope-{number}" for number in range(8)]
    assert said(tmp_path, names, Writer.hold) == []
    assert sorted(lease.lease_id for lease in opened(tmp_path, "x").list_held()) == names


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_process_killed_while_recording_loses_nothing_it_had_recorded(tmp_path: Path) -> None:
    moments = random.Random(1)
    for attempt in range(6):
        name = f"scope-{attempt}"
        with started(tmp_path, name, record_until_killed) as (process, pipe):
            pipe.send("begin")
            before = [pipe.recv() for _ in range(moments.randrange(1, 60))]
            process.kill()
            last = len(before) + len(list(listen(pipe)))
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
        with started(folder, "scope", partial(record_in_many_commands, 1)) as (process, pipe):
            pipe.send("begin")
            # Nothing is waited for: the kills are spread over the milliseconds in which the file is made.
            time.sleep(attempt * 0.0008)
            process.kill()
            process.join()
        cache = opened(folder, "scope")
        assert len(list(cache.list_entries())) in (0, 1)
        cache.close()
        assert integrity(folder) == [("ok",)]
