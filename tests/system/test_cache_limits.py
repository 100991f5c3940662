"""The cache's file for a user who may not write it, on a full disk, and for many processes: said, never raised."""

import importlib
import io
import os
import resource
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, redirect_stderr
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from azguard.cache import file
from azguard.cache.etag_cache import EtagCache
from tests.support.caches import CONFIG, Clock, etag_of
from tests.support.forked_function import FORKS
from tests.unit.cache.test_file import Run, filled, garbage, of_version_1, posix

# One process starts all forks.
pytestmark = pytest.mark.xdist_group("cache processes")


def _find_etag(folder: Path, found: Any) -> None:
    cache = EtagCache.open(folder, "one", warn=found.put, now=Clock())
    last = cache.find_last(CONFIG)
    assert last is not None
    found.put(last.etag)


def test_many_processes_convert_the_file_of_the_version_before_once(tmp_path: Path) -> None:
    of_version_1(tmp_path)
    found = FORKS.SimpleQueue()
    running = [FORKS.Process(target=_find_etag, args=(tmp_path, found)) for _ in range(8)]
    for process in running:
        process.start()
    for process in running:
        process.join(60)
    assert [process.exitcode for process in running] == [0] * 8
    assert [found.get() for _ in running] == ['"0x2"'] * 8
    assert found.empty()


def _use(folder: Path, limit: Callable[[], object], pipe: Connection) -> None:
    """Under a limit, find the last ETag, record another twice, and tell what was found and which warnings came."""
    errors = io.StringIO()
    with redirect_stderr(errors):
        limit()
        run = Run(folder)
        found = etag_of(run.cache.find_last(CONFIG))
        for _ in range(2):
            run.cache.record(CONFIG, etag="0x2" * 50, command="blob get")
        assert (run.cache.find_held(CONFIG), list(run.cache.list_held())) == (None, [])
        last, count = etag_of(run.cache.find_last(CONFIG)), len(list(run.cache.list_entries()))
    pipe.send(([str(each) for each in (found, last, count, *run.warnings)], errors.getvalue()))


def _make_older(path: Path, version: int) -> None:
    """Make a cache of an earlier version of it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE leases DROP COLUMN job")
        connection.execute(f"PRAGMA user_version = {version}")


def _limited(folder: Path, limit: Callable[[], object]) -> list[str]:
    """Return last, last after two records, the number of entries and the warnings of a process so limited."""
    ours, theirs = FORKS.Pipe()
    process = FORKS.Process(target=_use, args=(folder, limit, theirs))
    process.start()
    theirs.close()
    told: tuple[list[str], str] = ours.recv()
    process.join(60)
    assert (process.exitcode, told[1]) == (0, "")
    return told[0]


@pytest.fixture
def nobodys() -> Iterator[Path]:
    """Return the filled cache of a user whom permissions bind, which they do not root."""
    with TemporaryDirectory() as home:
        folder = Path(home, "cache")
        filled(folder, entries=10)
        if os.geteuid() == 0:
            for path in (Path(home), folder, *folder.iterdir()):
                os.chown(path, _NOBODY, _NOBODY)
        yield folder
        folder.chmod(0o700)


_NOBODY = 65534


def _become_nobody() -> None:
    # What is imported later may be in a folder that only root reads.
    for name in ("fcntl", "sqlite3"):
        importlib.import_module(name)
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)


@posix
@pytest.mark.parametrize("version", [1, 2, file.VERSION])
def test_a_read_only_file_is_read_and_said_once(nobodys: Path, version: int) -> None:
    if version != file.VERSION:
        _make_older(nobodys / "etags.db", version)
    (nobodys / "etags.db").chmod(0o400)
    *found, warning = _limited(nobodys, _become_nobody)
    assert (found, "cannot be written: it is read-only" in warning) == (['"0x1"', '"0x1"', "11"], True)


@posix
@pytest.mark.parametrize("version", [1, 2, file.VERSION])
def test_a_file_in_a_read_only_folder_is_read_and_said_once(nobodys: Path, version: int) -> None:
    if version != file.VERSION:
        _make_older(nobodys / "etags.db", version)
    nobodys.chmod(0o500)
    *found, warning = _limited(nobodys, _become_nobody)
    assert (found, "cannot be written" in warning) == (['"0x1"', '"0x1"', "11"], True)


@posix
def test_a_file_that_may_not_be_read_is_said_once_and_memory_serves(nobodys: Path) -> None:
    (nobodys / "etags.db").chmod(0)
    *found, warning = _limited(nobodys, _become_nobody)
    assert (found, "cannot be used" in warning) == (["None", "0x2" * 50, "1"], True)


@posix
def test_a_damaged_file_that_cannot_be_moved_is_said_once(nobodys: Path) -> None:
    garbage(nobodys / "etags.db")
    nobodys.chmod(0o500)
    *found, warning = _limited(nobodys, _become_nobody)
    assert (found, "cannot be used: permission denied" in warning) == (["None", "0x2" * 50, "1"], True)


@posix
def test_a_folder_that_may_not_be_written_is_said_once(nobodys: Path) -> None:
    (nobodys / "etags.db").unlink()
    nobodys.chmod(0o500)
    *found, warning = _limited(nobodys, _become_nobody)
    assert (found, "cannot be used: permission denied" in warning) == (["None", "0x2" * 50, "1"], True)


def _fill_disk_of_nobody(size: int) -> None:
    _become_nobody()
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@posix
@pytest.mark.parametrize("size", [0, 4096])
def test_a_full_disk_is_said_once_and_what_was_there_is_read(nobodys: Path, size: int) -> None:
    # A limit on the size of files refuses growth the way a full disk does.
    *found, warning = _limited(nobodys, partial(_fill_disk_of_nobody, size))
    assert (found[:2], "cannot be" in warning) == (['"0x1"', '"0x1"'], True)


@posix
def test_a_disk_that_is_full_from_the_start_is_said_once_and_memory_serves(tmp_path: Path) -> None:
    *found, warning = _limited(tmp_path / "cache", partial(resource.setrlimit, resource.RLIMIT_FSIZE, (4096, 4096)))
    assert (found, "cannot be used" in warning) == (["None", "0x2" * 50, "1"], True)
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["etags.db.lock"]
