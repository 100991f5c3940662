import errno
import json
import os
import pty
import signal
import socket
import subprocess
import sys
from contextlib import nullcontext

import pytest

from azguard.accounts.account import from_connection_string
from azguard.emulators import background
from tests.support.cli_world import CliWorld
from tests.support.emulator_world import World, until


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
    rest, _ = running.communicate(timeout=20)
    # The shell's last sleep ends by itself.
    left = [line for line in world.processes() if not line.startswith("sleep ")]
    assert (rest, running.returncode, left) == ("", 137, [])


def test_ctrl_c_in_a_terminal_reaches_the_command_once(world: World) -> None:
    script = "trap 'echo got; got=1' INT; echo ready; until [ $got ]; do sleep 0.05; done; sleep 0.3; echo end"
    pid, terminal = pty.fork()
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
    running.communicate(timeout=20)


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
    running.communicate(timeout=20)
    assert (running.returncode, world.processes()) == (130, [])
