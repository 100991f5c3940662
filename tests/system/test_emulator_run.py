import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from azguard.accounts.account import from_connection_string
from azguard.emulators import background
from azguard.emulators.background import Reach
from tests.support import emulator_world
from tests.support.cases import cases
from tests.support.cli_world import CliWorld
from tests.support.emulator_world import World, until
from tests.support.terminals import fork_on_terminal


def _refused(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED


def test_run_without_a_command_is_refused(world: World) -> None:
    assert world.run("emulator", "run").returncode == 2


def test_run_of_a_missing_command_exits_127_at_once(world: World) -> None:
    answer = world.run("emulator", "run", "--", "no-such-command")
    assert (answer.returncode, answer.stdout, answer.stderr) == (
        127,
        "",
        "error: no-such-command: command not found\nhint: is it installed, and on the PATH?\n",
    )


def test_run_of_what_is_not_executable_exits_126_at_once(world: World) -> None:
    file = world.root / "file"
    file.write_text("#!/bin/sh\n")
    assert world.run("emulator", "run", "--", str(file)).returncode == 126


def test_run_of_what_cannot_be_executed_exits_126_and_leaves_nothing(world: World) -> None:
    file = world.root / "file"
    file.write_text("no program\n")
    file.chmod(0o755)
    assert world.run("emulator", "run", "--", str(file)).returncode == 126
    assert world.processes() == []


def test_run_forgets_what_was_read_where_it_begins_empty(offline: CliWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = "http://127.0.0.1:31000/devstoreaccount1"
    reach = background.Reach(f"AccountName=devstoreaccount1;AccountKey=a2V5;BlobEndpoint={endpoint}")
    monkeypatch.setattr(background, "private", lambda *_, **__: nullcontext(reach))
    record = {
        "scope": "test", "account": endpoint, "address": "container:site", "etag": '"0x1"',
        "time": "2026-11-23T07:22:42Z", "command": "container create", "copy": False,
    }  # fmt: skip
    offline.call("cache", "import", stdin=json.dumps(record).encode())
    before = offline.call("cache", "list").json
    assert offline.call("emulator", "run", "--", "true").code == 0
    assert (len(before), offline.call("cache", "list").json) == (1, [])


def test_run_passes_signals_on_waits_for_the_command_and_exits_as_it_was_killed(world: World) -> None:
    numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    traps = "; ".join(f"trap 'echo {number.name}' {number.name[3:]}" for number in numbers)
    script = f"{traps}; trap 'kill -9 $$' USR1; echo $$; while :; do sleep 0.05; done"
    # A session of its own, as under a service manager: no terminal has told the command already.
    running = subprocess.Popen(
        world.command("emulator", "run", "--", "sh", "-c", script),
        cwd=world.root,
        env=world.environ,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert running.stdout is not None
    command = int(running.stdout.readline())
    for number in numbers:
        running.send_signal(number)
        assert running.stdout.readline() == f"{number.name}\n"
    os.kill(command, signal.SIGUSR1)
    rest, _ = running.communicate(timeout=60)
    # The shell's last sleep ends by itself.
    left = [line for line in world.processes() if not line.startswith("sleep ")]
    assert (rest, running.returncode, left) == ("", 137, [])


def test_ctrl_c_in_a_terminal_reaches_the_command_once(world: World) -> None:
    script = "trap 'echo got; got=1' INT; echo ready; until [ $got ]; do sleep 0.05; done; sleep 0.3; echo end"
    pid, terminal = fork_on_terminal()
    if pid == 0:
        os.chdir(world.root)
        os.execve(sys.executable, world.command("emulator", "run", "--", "sh", "-c", script), world.environ)
    said = b""
    with open(terminal, "rb", buffering=0) as stream:
        while b"ready" not in said:
            said += stream.read(100)
        os.write(terminal, b"\x03")
        while b"end" not in said:
            said += stream.read(100)
        _, status = os.waitpid(pid, 0)
    assert (said.count(b"got"), os.waitstatus_to_exitcode(status)) == (1, 0)


def test_a_killed_run_takes_its_azurite_along(world: World) -> None:
    script = 'echo "$AZURE_STORAGE_CONNECTION_STRING"; exec cat'
    running = world.begin("emulator", "run", "--", "sh", "-c", script)
    assert running.stdout is not None
    endpoint = from_connection_string(running.stdout.readline().strip()).endpoint("blob")
    port = int(endpoint.rsplit(":", 1)[1].partition("/")[0])
    assert not _refused(port)
    running.kill()
    # By the port: a process that is ending loses its environment, by which we find it, before its sockets.
    until(lambda: _refused(port))
    assert not any("azurite" in line for line in world.processes())
    running.communicate(timeout=60)


def test_run_that_is_stopped_before_its_azurite_answers_leaves_nothing(world: World) -> None:
    mark = world.root / "ready"
    world.program(
        "azurite",
        f"""
[ "$1" = --version ] && {{ echo 3.35.0; exit; }}
touch {mark}
exec node -e 'setInterval(() => {{}}, 1000)'
""",
    )
    running = world.begin("emulator", "run", "--", "true")
    until(mark.exists)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    assert (running.returncode, world.processes()) == (130, [])


_SHOWN = "$AZURE_STORAGE_CONNECTION_STRING"


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory, azurite_script: Path) -> Iterator[World]:
    """Return a world whose emulator runs."""
    with emulator_world.started(tmp_path_factory.mktemp("started"), azurite_script) as world:
        yield world


@pytest.mark.parametrize("shell", ["sh", "bash", "zsh", "fish"])
def test_env_works_as_the_help_says_in_each_shell(started: World, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    world = started
    azguard = " ".join(world.command())
    script = {
        "fish": f"{azguard} emulator env | source; echo {_SHOWN}",
    }.get(shell, f'eval "$({azguard} emulator env)"; echo "{_SHOWN}"')
    # The login shell is another one: what counts is who asks.
    environ = {**world.environ, "SHELL": "/usr/bin/fish" if shell != "fish" else "/bin/bash"}
    told = subprocess.run([shell, "-c", script], cwd=world.root, env=environ, capture_output=True, text=True)
    assert (told.stdout.strip(), told.stderr) == (background.find_current(world.folder).connection_string, "")


def test_env_without_an_emulator_exits_44_and_prints_nothing(world: World) -> None:
    answer = world.run("emulator", "env")
    assert (answer.returncode, answer.stdout, answer.stderr) == (
        44,
        "",
        "error: the emulator is not running\nhint: start it: azguard emulator start\n",
    )


@pytest.mark.parametrize("shell", ["sh", "fish"])
def test_env_is_taken_away_again_without_an_emulator(world: World, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    unset = " ".join(world.command("emulator", "env", "--unset"))
    take = f"{unset} | source" if shell == "fish" else f'eval "$({unset})"'
    environ = {**world.environ, "AZURE_STORAGE_CONNECTION_STRING": "gone"}
    told = subprocess.run(
        [shell, "-c", f'{take}; echo "left:{_SHOWN}"'], cwd=world.root, env=environ, capture_output=True, text=True
    )
    assert (told.stdout, told.stderr) == ("left:\n", "")


def test_env_for_a_shell_is_in_its_syntax(world: World) -> None:
    told = world.run("emulator", "env", "--unset", "--shell", "zsh")
    assert told.stdout == "unset AZURE_STORAGE_CONNECTION_STRING AZGUARD_SMB_PORT\n"


def test_env_for_an_unknown_shell_is_refused(world: World) -> None:
    answer = world.run("emulator", "env", "--shell", "tcsh")
    assert (answer.returncode, answer.stdout) == (2, "")


@cases(
    ("shell", "line"),
    ("sh", "export AZURE_STORAGE_CONNECTION_STRING='A=b;C=d'"),
    ("fish", "set -gx AZURE_STORAGE_CONNECTION_STRING 'A=b;C=d'"),
    ("powershell", "$env:AZURE_STORAGE_CONNECTION_STRING = 'A=b;C=d'"),
)
def test_the_line_is_in_the_shells_own_syntax(shell: str, line: str) -> None:
    assert background.write_exports(Reach("A=b;C=d").variables, shell) == line


def test_a_port_for_smb_has_a_line_of_its_own() -> None:
    lines = background.write_exports(Reach("A=b", 4450).variables, "sh")
    assert lines == "export AZURE_STORAGE_CONNECTION_STRING='A=b'\nexport AZGUARD_SMB_PORT='4450'"


def test_the_line_that_takes_it_away_is_in_the_shells_own_syntax() -> None:
    assert [background.write_unset(shell) for shell in background.SHELLS] == [
        "unset AZURE_STORAGE_CONNECTION_STRING AZGUARD_SMB_PORT",
        "set -e AZURE_STORAGE_CONNECTION_STRING AZGUARD_SMB_PORT",
        "Remove-Item Env:AZURE_STORAGE_CONNECTION_STRING, Env:AZGUARD_SMB_PORT -ErrorAction SilentlyContinue",
    ]


@cases(
    ("environ", "parent", "shell"),
    ({}, "", "sh"),
    ({"SHELL": "/bin/zsh"}, "", "sh"),
    ({"SHELL": "/usr/local/bin/fish"}, "", "fish"),
    ({"SHELL": "/usr/bin/pwsh"}, "", "powershell"),
    ({"SHELL": "/bin/tcsh"}, "", "sh"),
    ({"PSModulePath": "/opt/modules"}, "", "powershell"),
    ({"SHELL": "/usr/bin/fish"}, "bash", "sh"),
    ({"SHELL": "/bin/bash"}, "fish", "fish"),
    ({"SHELL": "/bin/bash", "PSModulePath": "/opt/modules"}, "bash", "sh"),
    ({"SHELL": "/bin/bash", "PSModulePath": "/opt/modules"}, "pwsh", "powershell"),
    ({"SHELL": "/usr/bin/fish"}, "python3", "fish"),
)
def test_the_shell_that_asks_is_guessed(environ: dict[str, str], parent: str, shell: str) -> None:
    assert background.guess_syntax(environ, parent) == shell
