"""Azurite, Microsoft's emulator of blobs, queues and tables: one in the background, or private ones.

Not guaranteed: that Azurite behaves as Azure does. tests/data/SEMANTICS.md lists where it is known to lie.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from azguard.emulators import state
from azguard.emulators.state import Azurite
from azguard.errors import ConfigError, NotFound
from azguard.folders import make_folder, make_private, open_private
from azguard.processes import identity, locked_file

_LOG = "azurite.log"
_LOCK = "azurite.lock"
DEFAULT_WAIT_SECONDS = 60.0
# Azurite closes within 50 ms unless its garbage collector is at work, which has been seen to take minutes.
_GRACE_SECONDS = 5.0


@dataclass(frozen=True)
class Status:
    """Whether the background emulator runs and answers, where, and if it does not, what happened."""

    running: bool
    answering: bool
    reason: str | None = None
    pid: int | None = None
    version: str | None = None
    blob_endpoint: str | None = None
    queue_endpoint: str | None = None
    table_endpoint: str | None = None
    data: str | None = None
    log: str | None = None
    started: str | None = None
    #: Of the Files emulator; None if it does not run.
    file_endpoint: str | None = None
    files_pid: int | None = None
    #: Where the shares are served over SMB; None if they are not.
    smb_endpoint: str | None = None


@dataclass(frozen=True)
class Started:
    """The background emulator after a start."""

    running: bool
    #: Whether it ran before.
    already_running: bool
    pid: int
    version: str
    blob_endpoint: str
    queue_endpoint: str
    table_endpoint: str
    data: str | None
    log: str | None
    started: str
    #: Of the Files emulator; None if it does not run.
    file_endpoint: str | None = None
    files_pid: int | None = None
    #: Where the shares are served over SMB; None if they are not.
    smb_endpoint: str | None = None


@dataclass(frozen=True)
class Stopped:
    """What a stop found."""

    running: bool
    #: ``stopped``, ``not_running``, or ``was_gone`` if it was killed or has crashed.
    outcome: str
    pid: int | None = None
    reason: str | None = None


def start(
    folder: Path,
    environ: Mapping[str, str],
    *,
    ports: Mapping[str, int] | None = None,
    data: str | None = None,
    wait: float = DEFAULT_WAIT_SECONDS,
    say: Callable[[str], None],
) -> Started:
    """Start the background emulator, or tell where it already runs; of several starts at once one wins.

    ``ports`` maps services to chosen ports; the others get the last run's, or free ones. ``wait`` is in seconds.
    """
    from azguard.emulators import azurite_install, azurite_process

    chosen = dict(ports or {})
    folder_of_data = _make_data_folder(data)
    with _hold_lock(folder):
        running, reason = state.look(folder)
        if running is not None:
            _check_same(running, chosen, folder_of_data)
            return Started(running=True, already_running=True, **_describe(running))
        if reason is not None:
            say(reason)
        command = azurite_install.ensure(folder, environ, say)
        plan = azurite_process.LaunchPlan(command, environ, chosen, folder_of_data, wait, _last_ports(folder))
        with open_private(folder / _LOG) as log:
            running, child = azurite_process.launch(plan, log)
        try:
            state.write(folder, running)
            azurite_process.release(child)
        except BaseException:
            azurite_process.discard(child)
            state.forget(folder)
            raise
    return Started(running=True, already_running=False, **_describe(running))


def stop(folder: Path) -> Stopped:
    """Stop the background emulator and forget it; nothing to do if none runs."""
    # A start that is still at work holds the lock; without a lock file there was never one.
    if not (folder / _LOCK).exists():
        return Stopped(running=False, outcome="not_running")
    with _hold_lock(folder):
        running, reason = state.look(folder)
        if running is not None:
            identity.end(running.pid, running.birth, _GRACE_SECONDS)
        state.forget(folder)
    if running is not None:
        return Stopped(running=False, outcome="stopped", pid=running.pid)
    return Stopped(running=False, outcome="was_gone" if reason else "not_running", reason=reason)


def status(folder: Path) -> Status:
    """Ask the background emulator's process and services how they are; changes nothing."""
    from azguard.emulators import azurite_process

    running, reason = state.look(folder)
    if running is None:
        return Status(running=False, answering=False, reason=reason or "no emulator was started")
    answering = azurite_process.answers(running.ports)
    reason = None if answering else f"process {running.pid} lives, but does not answer; see its log"
    return Status(running=True, answering=answering, reason=reason, **_describe(running))


def current(folder: Path) -> Azurite:
    """Return the background emulator."""
    found, reason = state.look(folder)
    if found is None:
        detail = (reason,) if reason else ()
        raise NotFound("the emulator is not running", detail=detail, reason="emulator_not_running")
    return found


@contextmanager
def private(
    folder: Path,
    environ: Mapping[str, str],
    *,
    wait: float = DEFAULT_WAIT_SECONDS,
    say: Callable[[str], None] = lambda text: None,
) -> Iterator[Azurite]:
    """Run an Azurite of one's own, in memory, on free ports, for the length of a ``with`` block.

    ``folder`` is where Azurite is looked for and installed; nothing else is written there. However this
    process ends, ``kill -9`` included, that Azurite ends with it.

    Raises:
        ConfigError: there is no Node.js.
        Unavailable: Azurite could not be installed, or did not answer within ``wait`` seconds.
    """
    import tempfile

    from azguard.emulators import azurite_install, azurite_process

    command = azurite_install.ensure(folder, environ, say)
    with tempfile.TemporaryFile() as log:
        mine, child = azurite_process.launch(azurite_process.LaunchPlan(command, environ, {}, None, wait), log)
        try:
            yield mine
        finally:
            azurite_process.discard(child)


@contextmanager
def _hold_lock(folder: Path) -> Iterator[None]:
    """Keep other processes from starting or stopping the background emulator."""
    file = folder / _LOCK
    with ExitStack() as stack:
        try:
            make_private(folder)
            stack.enter_context(locked_file.hold(file))
        except OSError as error:
            raise ConfigError(f"{file} cannot be written: {error.strerror}", reason="lock_file_not_writable") from error
        yield


def _last_ports(folder: Path) -> Mapping[str, int]:
    return state.find_last(folder).ports


def _check_same(running: Azurite, ports: Mapping[str, int], data: str | None) -> None:
    has = running.ports
    different = [f"its {name} port is {has[name]}" for name in ports if ports[name] != has[name]]
    if data is not None and (running.data is None or os.path.realpath(data) != os.path.realpath(running.data)):
        different.append(f"its data is in {running.data or 'memory'}")
    if different:
        raise ConfigError(
            f"the emulator is already running, but {', '.join(different)}",
            reason="emulator_differs",
        )


def _make_data_folder(data: str | None) -> str | None:
    if data is None:
        return None
    path = Path(data).absolute()
    try:
        make_folder(path)
    except OSError as error:
        raise ConfigError(f"the data folder {path} cannot be made: {error.strerror}") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise ConfigError(f"the data folder {path} cannot be written", reason="data_folder_not_writable")
    return str(path)


def _describe(running: Azurite) -> dict[str, Any]:
    names = ("pid", "version", "blob_endpoint", "queue_endpoint", "table_endpoint", "data", "log", "started")
    return {name: getattr(running, name) for name in names}
