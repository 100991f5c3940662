"""The cache's file for a user who may not write it, on a full disk, and for many processes: said, never raised."""

import os
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.places import REPOSITORY
from tests.unit.cache.test_file import filled, garbage, of_version_1, posix


def test_many_processes_convert_the_file_of_the_version_before_once(tmp_path: Path) -> None:
    of_version_1(tmp_path)
    code = textwrap.dedent("""
        import sys
        from pathlib import Path
        from azguard.cache.etag_cache import EtagCache
        from azguard.cache.records import Key
        from tests.support.caches import CONFIG, Clock
        cache = EtagCache.open(Path(sys.argv[1]), "one", warn=print, now=Clock())
        print(cache.find_last(CONFIG).etag)
    """)
    environ = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    running = [
        subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE, env=environ) for _ in range(8)
    ]
    assert [process.communicate(timeout=60)[0] for process in running] == [b'"0x2"\n'] * 8


def _limited(folder: Path, *before: str) -> list[str]:
    """Return last, last after two records, the number of entries and the warnings of a process so limited."""
    code = f"""
        import os, resource, signal, sys
        sys.path[:0] = {sys.path!r}
        from pathlib import Path
        from tests.unit.cache.test_file import CONFIG, Run, etag_of
        {"; ".join(before)}
        run = Run(Path({str(folder)!r}))
        found = etag_of(run.cache.find_last(CONFIG))
        for _ in range(2):
            run.cache.record(CONFIG, etag="0x2" * 50, command="blob get")
        print(found, etag_of(run.cache.find_last(CONFIG)), len(list(run.cache.list_entries())), *run.warnings, sep="|")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=folder.parent, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip().split("|")


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
# What is imported later may be in a folder that only root reads.
_AS_NOBODY = (
    "import fcntl, sqlite3",
    f"os.geteuid() or (os.setgroups([]), os.setgid({_NOBODY}), os.setuid({_NOBODY}))",
)


@posix
@pytest.mark.parametrize("version", [1, 2])
def test_a_read_only_file_is_read_and_said_once(nobodys: Path, version: int) -> None:
    with closing(sqlite3.connect(nobodys / "etags.db")) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    (nobodys / "etags.db").chmod(0o400)
    *found, warning = _limited(nobodys, *_AS_NOBODY)
    assert (found, "cannot be written: it is read-only" in warning) == (['"0x1"', '"0x1"', "11"], True)


@posix
@pytest.mark.parametrize("version", [1, 2])
def test_a_file_in_a_read_only_folder_is_read_and_said_once(nobodys: Path, version: int) -> None:
    with closing(sqlite3.connect(nobodys / "etags.db")) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    nobodys.chmod(0o500)
    *found, warning = _limited(nobodys, *_AS_NOBODY)
    assert (found, "cannot be written" in warning) == (['"0x1"', '"0x1"', "11"], True)


@posix
def test_a_file_that_may_not_be_read_is_said_once_and_memory_serves(nobodys: Path) -> None:
    (nobodys / "etags.db").chmod(0)
    *found, warning = _limited(nobodys, *_AS_NOBODY)
    assert (found, "cannot be used" in warning) == (["None", "0x2" * 50, "1"], True)


@posix
def test_a_damaged_file_that_cannot_be_moved_is_said_once(nobodys: Path) -> None:
    garbage(nobodys / "etags.db")
    nobodys.chmod(0o500)
    *found, warning = _limited(nobodys, *_AS_NOBODY)
    assert (found, "cannot be used: permission denied" in warning) == (["None", "0x2" * 50, "1"], True)


@posix
def test_a_folder_that_may_not_be_written_is_said_once(nobodys: Path) -> None:
    (nobodys / "etags.db").unlink()
    nobodys.chmod(0o500)
    *found, warning = _limited(nobodys, *_AS_NOBODY)
    assert (found, "cannot be used: permission denied" in warning) == (["None", "0x2" * 50, "1"], True)


@posix
@pytest.mark.parametrize("size", [0, 4096])
def test_a_full_disk_is_said_once_and_what_was_there_is_read(nobodys: Path, size: int) -> None:
    # A limit on the size of files refuses growth the way a full disk does.
    *found, warning = _limited(nobodys, f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))")
    assert (found[:2], "cannot be" in warning) == (['"0x1"', '"0x1"'], True)


@posix
def test_a_disk_that_is_full_from_the_start_is_said_once_and_memory_serves(tmp_path: Path) -> None:
    *found, warning = _limited(tmp_path / "cache", "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))")
    assert (found, "cannot be used" in warning) == (["None", "0x2" * 50, "1"], True)
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["etags.db.lock"]
