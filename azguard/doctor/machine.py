"""Checks of this machine: what the cache, locks, commands under a lock and connections rest on."""

import os
import platform
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

from azguard import __version__, times
from azguard.accounts import endpoints
from azguard.accounts.account import Account
from azguard.doctor.stage import Check, CheckFinding, differs, holds, not_possible
from azguard.errors import AzguardError
from azguard.folders import Folders, make_private
from azguard.processes import identity, locked_file, tree
from azguard.processes.guardian import Guardian
from azguard.wire import network
from azguard.wire.failures import NotConnected

PART = "machine"
_OLDEST_PYTHON = (3, 11)
# Two commands that end by themselves; one of them leaves its process group and its session.
_COMMAND = ("sh", "-c", "(setsid sleep 60 || sleep 60) & sleep 60")
_SECONDS = 30.0
_START_SECONDS = 0.2
_CA_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


def list_checks(account: Account, folders: Folders, environ: Mapping[str, str]) -> Iterator[Check]:
    """Yield the checks of the machine. That of commands comes first: no thread may have been started before it."""
    yield _row("a lost lock ends its command", partial(check_process_control, environ))
    yield _row("azguard and Python", _check_python)
    yield _row("cache folder: written, locked", partial(check_folder, folders.cache))
    yield _row("cache database", partial(check_database, folders.cache))
    yield _row("processes told apart", check_proc)
    yield _row("terminal for a command", _check_terminal)
    yield _row("clock through sleep", check_boot_clock)
    for service, endpoint in account.endpoints.items():
        yield _row(f"way to the {service} service", partial(check_way, endpoint))
    if any(each.startswith("https:") for each in account.endpoints.values()):
        yield _row("CA certificates", partial(check_certificates, environ))


def _row(name: str, run: Callable[[], CheckFinding]) -> Check:
    return Check(PART, name, lambda _: run())


def _check_python() -> CheckFinding:
    version = platform.python_version()
    told = f"azguard {__version__}, Python {version}, {platform.system()} {platform.machine()}"
    if sys.version_info < _OLDEST_PYTHON:
        return differs(f"{told}: azguard needs Python 3.11")
    return holds(told)


def check_folder(folder: Path) -> CheckFinding:
    """Check that a file of ours can be made and locked, so that a second lock is refused."""
    path = folder / f"doctor-{uuid.uuid4().hex}"
    if not locked_file.IS_SUPPORTED:
        return not_possible("this system has no such locks")
    try:
        make_private(folder)
        ours = locked_file.create_locked(path)
    except OSError as error:
        return differs(f"no file can be made there: {error.strerror}")
    try:
        second = os.open(path, os.O_RDWR)
        try:
            is_ignored = locked_file.try_lock(second)
        finally:
            os.close(second)
    finally:
        os.close(ours)
        path.unlink()
    if is_ignored:
        return differs("a file that is locked can be locked again: writers of this machine do not queue")
    return holds()


def check_database(folder: Path) -> CheckFinding:
    """Check that SQLite keeps a database there, with a write-ahead log."""
    import sqlite3

    path = folder / f"doctor-{uuid.uuid4().hex}.db"
    try:
        with closing(sqlite3.connect(path)) as connection:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            with connection:
                connection.execute("CREATE TABLE entries (etag TEXT)")
    except sqlite3.Error as error:
        return differs(f"SQLite: {error}")
    finally:
        for suffix in ("", "-wal", "-shm"):
            with suppress(OSError):
                path.with_name(path.name + suffix).unlink()
    return holds(f"SQLite {sqlite3.sqlite_version}") if mode == "wal" else differs(f"SQLite keeps no log, but {mode}")


def check_proc() -> CheckFinding:
    """Check that the kernel describes this process in ``/proc``."""
    if identity.HAS_PROC:
        return holds("by /proc")
    try:
        known = identity.find_birth(os.getpid())
    except OSError:
        known = None
    return differs("there is neither /proc nor ps") if known is None else holds("by ps, which is slower than /proc")


def _check_terminal() -> CheckFinding:
    try:
        ours, theirs = os.openpty()
    except OSError as error:
        return differs(f"no pseudo-terminal can be opened: {error.strerror}")
    os.close(ours)
    os.close(theirs)
    return holds()


def check_boot_clock() -> CheckFinding:
    """Check that there is a clock that cannot be set and counts sleep."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return holds("CLOCK_BOOTTIME")
    if sys.platform == "darwin":
        return holds("CLOCK_MONOTONIC")
    return differs("a lease that ended while the machine slept is noticed late")


def check_process_control(environ: Mapping[str, str]) -> CheckFinding:
    """Check that a command whose lock is lost is ended, with a process of it that has a session of its own."""
    if threading.active_count() > 1:
        return not_possible("this process has threads, so that none is forked here")
    if not tree.IS_KNOWN:
        return differs("only the process group of a command is ended here, not what has left the group")
    guardian = Guardian.fork()
    try:
        ends = times.read_boot_clock() + _SECONDS
        guardian.start(_COMMAND, environ, ends=ends, grace=0.0, on_lost="kill")
        time.sleep(_START_SECONDS)  # the command does not tell when its process has begun
        guardian.lost()
        left = guardian.wait(lambda message: None).left
    except AzguardError as error:
        return differs(error.message)
    finally:
        guardian.close()
    left = (*left, *guardian.find_left_running())
    return differs(f"still running: {', '.join(left)}") if left else holds()


def check_way(endpoint: str) -> CheckFinding:
    """Tell whether a proxy is in between."""
    proxy = endpoints.find_proxy(endpoint)
    if proxy is None:
        return holds("directly")
    if proxy.address == "?":
        return differs(f"{proxy.variable} is not a URL of a proxy")
    return holds(f"through the proxy that {proxy.variable} names")


def check_certificates(environ: Mapping[str, str]) -> CheckFinding:
    """Check that the certificates that are trusted can be read."""
    try:
        network.find_context()
    except NotConnected as error:
        return differs(str(error))
    named = next((name for name in _CA_VARIABLES if environ.get(name)), None)
    return holds("those of certifi" if named is None else f"those that {named} names")
