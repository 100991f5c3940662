import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from azguard.emulators import background
from azguard.emulators.background import Reach
from tests.support import emulator_world
from tests.support.cases import cases
from tests.support.emulator_world import World

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
    [
        ("sh", "export AZURE_STORAGE_CONNECTION_STRING='A=b;C=d'"),
        ("fish", "set -gx AZURE_STORAGE_CONNECTION_STRING 'A=b;C=d'"),
        ("powershell", "$env:AZURE_STORAGE_CONNECTION_STRING = 'A=b;C=d'"),
    ],
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
    [
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
    ],
)
def test_the_shell_that_asks_is_guessed(environ: dict[str, str], parent: str, shell: str) -> None:
    assert background.guess_syntax(environ, parent) == shell
