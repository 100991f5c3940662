"""azguard emulator: local emulators to try things on."""

import os
import sys
from collections.abc import Iterable, Mapping
from typing import Annotated

from azguard.accounts.account import from_connection_string
from azguard.cli.context import Environment
from azguard.cli.options.types import DURATION, PORT, TEXT, ValueType
from azguard.cli.parsing import command_line
from azguard.cli.parsing.rows import CommandSpec, argument, flag, option
from azguard.cli.parsing.tree import Group
from azguard.cli.rules import checked
from azguard.cli.words.files import NEED_OF_FILES, USE_OF_EXPORT
from azguard.emulators import azurite_process, background
from azguard.emulators.azurite_install import check_system
from azguard.errors import NotFound, UsageError
from azguard.processes import identity

# The names of other shells are known, too.
_SHELL = ValueType("choice", lambda text, _: background.find_syntax(text), choices=background.SHELLS)

app = Group("Run emulators on this machine: Azurite, and one of file shares.")

_WAIT_SECONDS = 60.0

Smb = Annotated[bool, flag("--smb", "Serve the file shares over SMB, too; needs Samba.")]
Wait = Annotated[
    float,
    option(
        "--wait",
        "[DURATION]",
        "Wait this long for the emulator to answer.",
        DURATION,
        bare=DURATION.write(_WAIT_SECONDS),
    ),
]


@app.command(
    rules=(
        checked(
            "--blob-port --queue-port --table-port --file-port --smb-port",
            "each its own port",
            "emulator._choose_ports",
        ),
    )
)
def start(
    env: Environment,
    data: Annotated[
        str | None,
        option("--data", "DIR", "Keep the data here.", TEXT, otherwise="in memory"),
    ] = None,
    blob_port: Annotated[
        int | None,
        option("--blob-port", "N", "The port for blobs.", PORT, otherwise="as the last time"),
    ] = None,
    queue_port: Annotated[int | None, option("--queue-port", "N", "The port for queues.", PORT)] = None,
    table_port: Annotated[int | None, option("--table-port", "N", "The port for tables.", PORT)] = None,
    file_port: Annotated[int | None, option("--file-port", "N", "The port for file shares.", PORT)] = None,
    smb: Smb = False,
    smb_port: Annotated[int | None, option("--smb-port", "N", "The port for SMB; implies --smb.", PORT)] = None,
    wait: Wait = _WAIT_SECONDS,
) -> None:
    """Start the emulator in the background, or say where it runs.

    azguard uses the Azurite on PATH if it has the version that azguard was tested with. Else it installs Azurite once,
    from npm. File shares, which Azurite lacks, are azguard's own. They take the ports of the last time, if free.

    With --smb the file shares are served over SMB as well, if Samba is installed: same files, same locks.

    Examples:
        azguard emulator start && eval "$(azguard emulator env)"
    """
    check_system()
    ports = _choose_ports(
        {"blob": blob_port, "queue": queue_port, "table": table_port, "file": file_port, "smb": smb_port}
    )
    data_before = azurite_process.find_last(env.folders.emulator).data
    started = background.start(
        env.folders.emulator,
        env.environ,
        ports=ports,
        smb=smb,
        data=data,
        wait=wait,
        say=env.out.info,
    )
    if not started.already_running and (started.data is None or started.data != data_before):
        endpoints = (started.blob_endpoint, started.queue_endpoint, started.table_endpoint, started.file_endpoint)
        _forget(env, filter(None, endpoints))
    env.out.show(started)
    if started.file_endpoint is None:
        env.out.info(f"hint: {NEED_OF_FILES}")
    env.out.info(f"{'already running; ' if started.already_running else ''}hint: {USE_OF_EXPORT[_shell(env)]}")


@app.command()
def stop(env: Environment) -> None:
    """Stop the emulator; what it held in memory is gone.

    Examples:
        azguard emulator stop
    """
    check_system()
    stopped = background.stop(env.folders.emulator)
    env.out.show(stopped)
    if stopped.outcome != "stopped":
        env.out.info(stopped.reason or "the emulator was not running")


@app.command()
def status(env: Environment) -> int:
    """Tell where the emulator answers; exit 44 if it does not.

    Examples:
        azguard emulator status
    """
    check_system()
    found = background.status(env.folders.emulator)
    return env.out.answer(found, 0 if found.answering else NotFound.exit_code)


@app.command("env")
def env_(
    env: Environment,
    shell: Annotated[
        str | None,
        option("--shell", "sh|fish|powershell", "The syntax.", _SHELL, otherwise="that of your shell"),
    ] = None,
    unset: Annotated[bool, flag("--unset", "Print the line that unsets the variable, after a stop.")] = False,
) -> None:
    """Print the lines that point a shell at the emulator.

    sh, bash, zsh: eval "$(azguard emulator env)". fish: azguard emulator env | source.
    PowerShell: azguard emulator env | Out-String | Invoke-Expression.

    Examples:
        eval "$(azguard emulator env)"
        eval "$(azguard emulator env --unset)"
    """
    check_system()
    syntax = shell or _shell(env)
    if unset:
        sys.stdout.write(f"{background.write_unset(syntax)}\n")
        return
    # The one secret azguard ever prints: the emulator's key, the same everywhere, which Microsoft publishes.
    current = background.find_current(env.folders.emulator)
    sys.stdout.write(f"{background.write_exports(current.variables, syntax)}\n")


@app.command(
    spec=CommandSpec(runs_program=True),
    rules=(checked("CMD...", "it stands after --", "command_line.require_divider"),),
)
def run(
    env: Environment,
    command: Annotated[list[str], argument("-- CMD...", "The command and its arguments.")],
    smb: Smb = False,
    wait: Wait = _WAIT_SECONDS,
) -> int:
    """Run a command with an emulator of its own; exit with its status.

    The emulator begins empty, keeps its data in memory, and ends with the command or with azguard.

    Examples:
        azguard emulator run -- azguard container create site
    """
    from azguard.processes import child

    command_line.require_divider(command, env.argv)
    check_system()
    child.check(command, env.environ)
    with background.private(env.folders.emulator, env.environ, smb=smb, wait=wait, say=env.out.info) as mine:
        _forget(env, from_connection_string(mine.connection_string).endpoints.values())
        env.cache.close()
        return child.run(command, {**env.environ, **mine.variables}).status


def _forget(env: Environment, endpoints: Iterable[str]) -> None:
    """Forget what an emulator before this one held at the same endpoints: it is not there."""
    for endpoint in endpoints:
        env.cache.forget_account(endpoint)


def _shell(env: Environment) -> str:
    return background.guess_syntax(env.environ, identity.find_name(os.getppid()))


def _choose_ports(given: Mapping[str, int | None]) -> dict[str, int]:
    ports: dict[str, int] = {}
    for service, port in given.items():
        if port in ports.values():
            raise UsageError(f"port {port} is given twice", hint="each service needs its own")
        if port is not None:
            ports[service] = port
    return ports
