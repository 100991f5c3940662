"""The emulator this machine runs in the background, as its state file tells, and the shell variables that name it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME
from azguard.atomic_files import write_atomically
from azguard.errors import ConfigError, UsageError
from azguard.processes import identity

_LAST_PORT = 65_535
_FILE = "azurite.json"
# Outlives a stop, so that the next start answers at the endpoints that shells and scripts know already.
_LAST_FILE = "azurite-last.json"
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


@dataclass(frozen=True)
class Azurite:
    """A running Azurite: its process, and where it answers."""

    pid: int
    #: What tells its process from others of the same pid: see ``processes.identity``.
    birth: str
    version: str
    #: The port of each service: blob, queue and table.
    ports: Mapping[str, int]
    #: The data folder; None if everything is in memory.
    data: str | None
    log: str | None
    #: When it was started: ISO 8601 in UTC.
    started: str

    @property
    def blob_endpoint(self) -> str:
        return _endpoint(self.ports["blob"])

    @property
    def queue_endpoint(self) -> str:
        return _endpoint(self.ports["queue"])

    @property
    def table_endpoint(self) -> str:
        return _endpoint(self.ports["table"])

    @property
    def connection_string(self) -> str:
        """Return the connection string; its key is the emulator's, which Microsoft publishes."""
        return (
            f"DefaultEndpointsProtocol=http;AccountName={EMULATOR_NAME};AccountKey={EMULATOR_KEY};"
            f"BlobEndpoint={self.blob_endpoint};QueueEndpoint={self.queue_endpoint};TableEndpoint={self.table_endpoint}"
        )


def look(folder: Path) -> tuple[Azurite | None, str | None]:
    """Return the emulator that runs in the background, or why none does although one was started.

    Raises:
        ConfigError: the file that tells it cannot be read, such as another user's.
    """
    file = folder / _FILE
    try:
        recorded = _read(file)
    except ValueError as error:
        return None, f"the state file {file} was damaged ({error}); if an Azurite still runs, end it by hand"
    if recorded is None or identity.find_birth(recorded.pid) == recorded.birth:
        return recorded, None
    who = f"Azurite (process {recorded.pid}, started {recorded.started})"
    return None, f"{who} was killed or crashed; see {recorded.log}"


def load(folder: Path) -> Azurite | None:
    """Return the emulator that runs in the background; None if none does, for whatever reason."""
    running, _ = look(folder)
    return running


def write(folder: Path, running: Azurite) -> None:
    """Record a running emulator, whole or not at all, for its owner's eyes only."""
    # Not durable: after a crash of this machine the emulator does not run either.
    write_atomically(folder / _FILE, json.dumps(asdict(running), indent=2).encode(), 0o600, durable=False)
    last = asdict(LastRun(running.ports, running.data))
    write_atomically(folder / _LAST_FILE, json.dumps(last, indent=2).encode(), 0o600, durable=False)


@dataclass(frozen=True)
class LastRun:
    """Where the emulator was last, whether it runs still or not."""

    #: The port of each service; empty if there was no run.
    ports: Mapping[str, int]
    #: The data folder; None if everything was in memory, or there was no run.
    data: str | None


def find_last(folder: Path) -> LastRun:
    """Return where the emulator was last; a record that is damaged counts as none."""
    try:
        recorded = json.loads((folder / _LAST_FILE).read_text(encoding="utf-8"))
        ports = {service: int(recorded["ports"][service]) for service in ("blob", "queue", "table")}
        data = recorded["data"]
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return LastRun({}, None)
    is_sound = all(0 < port <= _LAST_PORT for port in ports.values()) and isinstance(data, str | None)
    return LastRun(ports, data) if is_sound else LastRun({}, None)


def forget(folder: Path) -> None:
    """Remove the record, if there is one."""
    (folder / _FILE).unlink(missing_ok=True)


def _read(file: Path) -> Azurite | None:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}", reason="emulator_of_another") from None
    try:
        recorded = Azurite(**json.loads(text))
        numbers = [recorded.pid, *(recorded.ports[service] for service in ("blob", "queue", "table"))]
    except (KeyError, TypeError) as error:
        raise ValueError(str(error)) from error
    if not all(isinstance(number, int) for number in numbers):
        raise ValueError("a pid or a port is no number")
    return recorded


def _endpoint(port: int) -> str:
    return f"http://127.0.0.1:{port}/{EMULATOR_NAME}"


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


def describe(connection_string: str, smb_port: int | None) -> dict[str, str]:
    """Return the variables that point at an emulator, by name."""
    return {VARIABLE: connection_string} | ({} if smb_port is None else {SMB_VARIABLE: str(smb_port)})


def lines(variables: Mapping[str, str], shell: str) -> str:
    """Return the lines that export variables in a syntax of ``SHELLS``."""
    return "\n".join(_FORMS[shell].format(variable=name, value=value) for name, value in variables.items())


def line_to_unset(shell: str) -> str:
    """Return the line that takes all of them away again, in a syntax of ``SHELLS``."""
    return _UNSET_FORMS[shell].format(variable=VARIABLE, smb=SMB_VARIABLE)


def guess(environ: Mapping[str, str], parent: str) -> str:
    """Return the syntax of the shell that is asking; ``parent`` is the name of the process that started us.

    The parent knows best: ``$SHELL`` is the login shell even inside a script of another one, and
    ``PSModulePath`` is inherited by whatever PowerShell starts.
    """
    if parent in _SYNTAX_OF:
        return _SYNTAX_OF[parent]
    if "PSModulePath" in environ:
        return "powershell"
    return _SYNTAX_OF.get(environ.get("SHELL", "").rpartition("/")[2], "sh")
