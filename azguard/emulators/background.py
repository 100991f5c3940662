"""All emulators of this machine as one: Azurite for blobs, queues and tables, and azguard's own for files."""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from azguard.emulators import azurite, azurite_process, files_process
from azguard.emulators.azurite import DEFAULT_WAIT_SECONDS, Started, Status, Stopped
from azguard.emulators.files_process import FilesEmulator
from azguard.errors import ConfigError
from azguard.processes import signals

FILE = "file"
SMB = "smb"
_WITHOUT_FILES = "file shares are not emulated: Werkzeug is not installed"
_WITHOUT_SMB = "file shares are served over REST alone"


@dataclass(frozen=True)
class Reach:
    """How to reach emulators."""

    connection_string: str
    #: The port on which Samba serves its shares; None if it does not.
    smb_port: int | None = None


def start(
    folder: Path,
    environ: Mapping[str, str],
    *,
    ports: Mapping[str, int] | None = None,
    smb: bool = False,
    data: str | None = None,
    wait: float = DEFAULT_WAIT_SECONDS,
    say: Callable[[str], None],
) -> Started:
    """Start the emulators in the background, or tell where they already run; see ``azurite.start``.

    With ``smb``, or a port for it, the shares are served over SMB as well, if Samba is installed.
    """
    chosen = dict(ports or {})
    file_port = chosen.pop(FILE, None)
    smb_port = chosen.pop(SMB, 0 if smb else None)
    started = azurite.start(folder, environ, ports=chosen, data=data, wait=wait, say=say)
    if not files_process.is_installed():
        say(_WITHOUT_FILES)
        return started
    location = None if started.data is None else str(Path(started.data) / FILE)
    beside = f"{started.pid} {started.started}"
    try:
        running = files_process.start(folder, environ, file_port, smb_port, data=location, beside=beside, wait=wait)
    except BaseException:
        if not started.already_running:
            azurite.stop(folder)
        raise
    if smb_port is not None:
        _say_problem(running, say)
    return replace(started, file_endpoint=running.endpoint, files_pid=running.pid, smb_endpoint=running.smb_endpoint)


def stop(folder: Path) -> Stopped:
    """Stop the emulators; nothing to do if none runs.

    Raises:
        ConfigError: they are another user's, or the folder is.
    """
    try:
        running = files_process.stop(folder, files_process.GRACE_SECONDS)
        stopped = azurite.stop(folder)
    except OSError as error:
        raise ConfigError(
            f"the emulator of {folder} cannot be stopped: {error.strerror}", reason="emulator_of_another"
        ) from error
    if running is not None and stopped.outcome == "not_running":
        return replace(stopped, outcome="stopped", pid=running.pid)
    return stopped


def status(folder: Path) -> Status:
    """Ask the processes and services how they are; changes nothing."""
    found = azurite.status(folder)
    running = files_process.find_running(folder)
    if running is None:
        return replace(found, reason=found.reason or files_process.explain_end(folder))
    if found.answering and azurite_process.find_server(running.port) is None:
        why = f"process {running.pid}, the Files emulator, lives, but does not answer; see {running.log}"
        found = replace(found, answering=False, reason=why)
    return replace(found, file_endpoint=running.endpoint, files_pid=running.pid, smb_endpoint=running.smb_endpoint)


def find_current(folder: Path) -> Reach:
    """Return the way to the emulators that run in the background.

    Raises:
        NotFound: none runs.
    """
    return _join(azurite.current(folder).connection_string, files_process.find_running(folder))


@contextmanager
def private(
    folder: Path, environ: Mapping[str, str], *, smb: bool = False, wait: float, say: Callable[[str], None]
) -> Iterator[Reach]:
    """Run emulators of one's own for the length of a ``with`` block; see ``azurite.private``."""
    with azurite.private(folder, environ, wait=wait, say=say) as mine:
        if not files_process.is_installed():
            yield Reach(mine.connection_string)
            return
        with signals.hold_temporary_folder("azguard-files-") as data, tempfile.NamedTemporaryFile() as log:
            running, child = files_process.launch(environ, 0, 0 if smb else None, data, log.file, wait)
            try:
                _say_problem(running, say)
                yield _join(mine.connection_string, running)
            finally:
                azurite_process.discard(child)


def _join(connection_string: str, running: FilesEmulator | None) -> Reach:
    if running is None:
        return Reach(connection_string)
    return Reach(f"{connection_string};FileEndpoint={running.endpoint}", running.smb_port)


def _say_problem(running: FilesEmulator, say: Callable[[str], None]) -> None:
    if running.smb_problem:
        say(f"{_WITHOUT_SMB}: {running.smb_problem}")
