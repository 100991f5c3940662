"""All emulators of this machine as one: Azurite for blobs, queues and tables, and azguard's own for files.

They run in the background, or for one process alone. The variables of a shell name them.

Not guaranteed: that Azurite behaves as Azure does. tests/data/SEMANTICS.md lists where it is known to lie.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from azguard.emulators import azurite_install, azurite_process, files_process
from azguard.emulators.azurite_process import Azurite
from azguard.emulators.files_process import FilesEmulator
from azguard.errors import ConfigError, NotFound, UsageError
from azguard.folders import explain_unwritable, make_folder, make_private, open_private
from azguard.frozen import frozen
from azguard.processes import identity, locked_file, signals

_LOG = "azurite.log"
_LOCK = "azurite.lock"
DEFAULT_WAIT_SECONDS = 60.0
# Azurite closes within 50 ms unless its garbage collector is at work, which has been seen to take minutes.
_GRACE_SECONDS = 5.0
FILE = "file"
SMB = "smb"
_WITHOUT_FILES = "file shares are not emulated: Werkzeug is not installed"
_WITHOUT_SMB = "file shares are served over REST alone"
VARIABLE = "AZURE_STORAGE_CONNECTION_STRING"
#: The port on which the shares are served over SMB: Azure Storage has no variable for it.
SMB_VARIABLE = "AZGUARD_SMB_PORT"
SHELLS = ("sh", "fish", "powershell")
# A connection string holds no quote, so quoting it needs no escapes in any of the three.
_FORMS = {
    "sh": "export {variable}='{value}'",
    "fish": "set -gx {variable} '{value}'",
    "powershell": "$env:{variable} = '{value}'",
}
_UNSET_FORMS = {
    "sh": "unset {variable} {smb}",
    "fish": "set -e {variable} {smb}",
    "powershell": "Remove-Item Env:{variable}, Env:{smb} -ErrorAction SilentlyContinue",
}
_SYNTAX_OF = {
    **dict.fromkeys(("sh", "bash", "zsh", "dash", "ash", "ksh", "mksh", "busybox"), "sh"),
    "fish": "fish",
    "pwsh": "powershell",
    "powershell": "powershell",
}


@frozen(kw_only=True)
class Emulators:
    """The emulators in the background: where they answer; None is what does not run."""

    running: bool
    pid: int | None = None
    version: str | None = None
    blob_endpoint: str | None = None
    queue_endpoint: str | None = None
    table_endpoint: str | None = None
    data: str | None = None
    log: str | None = None
    started: str | None = None
    file_endpoint: str | None = None
    #: Of the Files emulator.
    files_pid: int | None = None
    #: Where the shares are served over SMB.
    smb_endpoint: str | None = None


@frozen(kw_only=True)
class Status(Emulators):
    """Whether they run and answer, and if they do not, what happened."""

    FIRST: ClassVar = ("running", "answering", "reason")

    answering: bool
    reason: str | None = None


@frozen(kw_only=True)
class Started(Emulators):
    """They run after a start."""

    FIRST: ClassVar = ("running", "already_running")

    #: Whether they ran before.
    already_running: bool


@frozen
class Stopped:
    """What a stop found."""

    running: bool
    #: ``stopped``, ``not_running``, or ``was_gone`` if it was killed or has crashed.
    outcome: str
    pid: int | None = None
    reason: str | None = None


@frozen
class Reach:
    """How to reach emulators."""

    connection_string: str
    #: The port on which Samba serves its shares; None if it does not.
    smb_port: int | None = None

    @property
    def variables(self) -> dict[str, str]:
        """Return the variables of a shell that point at them, by name."""
        smb = {} if self.smb_port is None else {SMB_VARIABLE: str(self.smb_port)}
        return {VARIABLE: self.connection_string, **smb}


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
    """Start the emulators in the background, or tell where they already run; of several starts at once one wins.

    ``ports`` maps services to chosen ports; the others get the last run's, or free ones. With ``smb``, or a port for
    it, the shares are served over SMB as well, if Samba is installed. ``wait`` is in seconds.
    """
    chosen = dict(ports or {})
    file_port = chosen.pop(FILE, None)
    smb_port = chosen.pop(SMB, 0 if smb else None)
    started = _start_azurite(folder, environ, ports=chosen, data=data, wait=wait, say=say)
    if not files_process.is_installed():
        say(_WITHOUT_FILES)
        return started
    location = None if started.data is None else str(Path(started.data) / FILE)
    beside = f"{started.pid} {started.started}"
    try:
        running = files_process.start(folder, environ, file_port, smb_port, data=location, beside=beside, wait=wait)
    except BaseException:
        if not started.already_running:
            _stop_azurite(folder)
        raise
    if smb_port is not None:
        _say_problem(running, say)
    return replace(started, **_describe_files(running))


def stop(folder: Path) -> Stopped:
    """Stop the emulators; nothing to do if none runs.

    Raises:
        ConfigError: they are another user's, or the folder is.
    """
    try:
        running = files_process.stop(folder)
        stopped = _stop_azurite(folder)
    except OSError as error:
        raise ConfigError(
            f"the emulator of {folder} cannot be stopped: {error.strerror}", reason="emulator_of_another"
        ) from error
    if running is not None and stopped.outcome == "not_running":
        return replace(stopped, outcome="stopped", pid=running.pid)
    return stopped


def status(folder: Path) -> Status:
    """Ask the processes and services how they are; changes nothing."""
    found = _look_at_azurite(folder)
    running = files_process.find_running(folder)
    if running is None:
        return replace(found, reason=found.reason or files_process.explain_end(folder))
    if found.answering and azurite_process.find_server(running.port) is None:
        why = f"process {running.pid}, the Files emulator, lives, but does not answer; see {running.log}"
        found = replace(found, answering=False, reason=why)
    return replace(found, **_describe_files(running))


def find_current(folder: Path) -> Reach:
    """Return the way to the emulators that run in the background.

    Raises:
        NotFound: none runs.
    """
    found, reason = azurite_process.look(folder)
    if found is None:
        detail = (reason,) if reason else ()
        raise NotFound("the emulator is not running", detail=detail, reason="emulator_not_running")
    return _join(found.connection_string, files_process.find_running(folder))


@contextmanager
def private(
    folder: Path, environ: Mapping[str, str], *, smb: bool = False, wait: float, say: Callable[[str], None]
) -> Iterator[Reach]:
    """Run emulators of one's own for the length of a ``with`` block; see ``run_private_azurite``."""
    with run_private_azurite(folder, environ, wait=wait, say=say) as mine:
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


@contextmanager
def run_private_azurite(
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
    command = azurite_install.ensure(folder, environ, say)
    with tempfile.TemporaryFile() as log:
        mine, child = azurite_process.launch(azurite_process.LaunchPlan(command, environ, {}, None, wait), log)
        try:
            yield mine
        finally:
            azurite_process.discard(child)


def _start_azurite(
    folder: Path,
    environ: Mapping[str, str],
    *,
    ports: Mapping[str, int],
    data: str | None,
    wait: float,
    say: Callable[[str], None],
) -> Started:
    folder_of_data = _make_data_folder(data)
    with _hold_lock(folder):
        running, reason = azurite_process.look(folder)
        if running is not None:
            _check_azurite(running, ports, folder_of_data)
            return Started(running=True, already_running=True, **_describe_azurite(running))
        if reason is not None:
            say(reason)
        command, last = azurite_install.ensure(folder, environ, say), azurite_process.find_last(folder)
        plan = azurite_process.LaunchPlan(command, environ, ports, folder_of_data, wait, last.ports)
        with open_private(folder / _LOG) as log:
            running, child = azurite_process.launch(plan, log)
        try:
            azurite_process.write(folder, running)
            azurite_process.release(child, "Azurite")
        except BaseException:
            azurite_process.discard(child)
            azurite_process.forget(folder)
            raise
    return Started(running=True, already_running=False, **_describe_azurite(running))


def _stop_azurite(folder: Path) -> Stopped:
    # A start that is still at work holds the lock; without a lock file there was never one.
    if not (folder / _LOCK).exists():
        return Stopped(running=False, outcome="not_running")
    with _hold_lock(folder):
        running, reason = azurite_process.look(folder)
        if running is not None:
            identity.end(running.pid, running.birth, _GRACE_SECONDS)
        azurite_process.forget(folder)
    if running is not None:
        return Stopped(running=False, outcome="stopped", pid=running.pid)
    return Stopped(running=False, outcome="was_gone" if reason else "not_running", reason=reason)


def _look_at_azurite(folder: Path) -> Status:
    running, reason = azurite_process.look(folder)
    if running is None:
        return Status(running=False, answering=False, reason=reason or "no emulator was started")
    answering = azurite_process.answers(running.ports)
    reason = None if answering else f"process {running.pid} lives, but does not answer; see its log"
    return Status(running=True, answering=answering, reason=reason, **_describe_azurite(running))


@contextmanager
def _hold_lock(folder: Path) -> Iterator[None]:
    file = folder / _LOCK
    with ExitStack() as stack:
        with explain_unwritable(file, reason="lock_file_not_writable"):
            make_private(folder)
            stack.enter_context(locked_file.hold(file))
        yield


def _check_azurite(running: Azurite, ports: Mapping[str, int], data: str | None) -> None:
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


def _describe_azurite(running: Azurite) -> dict[str, Any]:
    names = ("pid", "version", "blob_endpoint", "queue_endpoint", "table_endpoint", "data", "log", "started")
    return {name: getattr(running, name) for name in names}


def _describe_files(running: FilesEmulator) -> dict[str, Any]:
    return {"file_endpoint": running.endpoint, "files_pid": running.pid, "smb_endpoint": running.smb_endpoint}


def _join(connection_string: str, running: FilesEmulator | None) -> Reach:
    if running is None:
        return Reach(connection_string)
    return Reach(f"{connection_string};FileEndpoint={running.endpoint}", running.smb_port)


def _say_problem(running: FilesEmulator, say: Callable[[str], None]) -> None:
    if running.smb_problem:
        say(f"{_WITHOUT_SMB}: {running.smb_problem}")


def find_syntax(shell: str) -> str:
    """Return the syntax of ``SHELLS`` that a shell has, by its name.

    Raises:
        UsageError: the shell is not known.
    """
    if shell not in _SYNTAX_OF:
        raise UsageError(
            f"the shell {shell!r} is not known",
            reason="shell_unknown",
            values={"shell": shell, "shells": " ".join(SHELLS)},
        )
    return _SYNTAX_OF[shell]


def write_exports(variables: Mapping[str, str], shell: str) -> str:
    """Return the lines that export variables in a syntax of ``SHELLS``."""
    return "\n".join(_FORMS[shell].format(variable=name, value=value) for name, value in variables.items())


def write_unset(shell: str) -> str:
    """Return the line that takes all of them away again, in a syntax of ``SHELLS``."""
    return _UNSET_FORMS[shell].format(variable=VARIABLE, smb=SMB_VARIABLE)


def guess_syntax(environ: Mapping[str, str], parent: str) -> str:
    """Return the syntax of the shell that is asking; ``parent`` is the name of the process that started us.

    The parent knows best: ``$SHELL`` is the login shell even inside a script of another one, and
    ``PSModulePath`` is inherited by whatever PowerShell starts.
    """
    if parent in _SYNTAX_OF:
        return _SYNTAX_OF[parent]
    if "PSModulePath" in environ:
        return "powershell"
    return _SYNTAX_OF.get(environ.get("SHELL", "").rpartition("/")[2], "sh")
