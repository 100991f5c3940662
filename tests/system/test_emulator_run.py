import errno
import os
import pty
import signal
import socket
import subprocess
import sys
import textwrap

import pytest

from azguard.accounts.credentials import from_connection_string
from tests.support.emulator_world import World, until


def _refused(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED


def test_run_points_the_command_at_an_emulator_of_its_own(world: World) -> None:
    world.run("emulator", "start")
    background = world.json("emulator", "status")["blob_endpoint"]
    answer = world.run("emulator", "run", "--", "sh", "-c", 'printf %s "$AZURE_STORAGE_CONNECTION_STRING"')
    account = from_connection_string(answer.stdout)
    assert (account.name, account.endpoint("blob") != background, answer.stderr) == (
        "devstoreaccount1",
        True,
        "",
    )
    assert world.json("emulator", "status")["blob_endpoint"] == background


def test_run_works_for_the_sdk_and_leaves_nothing_running(world: World) -> None:
    script = textwrap.dedent("""\
        import os
        from azure.data.tables import TableServiceClient
        from azure.storage.blob import BlobServiceClient
        from azure.storage.queue import QueueServiceClient
        text = os.environ["AZURE_STORAGE_CONNECTION_STRING"]
        print(list(BlobServiceClient.from_connection_string(text).list_containers()))
        print(list(QueueServiceClient.from_connection_string(text).list_queues()))
        print(list(TableServiceClient.from_connection_string(text).list_tables()))
    """)
    answer = world.run("emulator", "run", "--", sys.executable, "-c", script)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "[]\n[]\n[]\n", "")
    assert world.processes() == []
    assert not (world.folder / "azurite.json").exists()


def test_run_gives_the_command_its_own_input_output_options_and_status(world: World) -> None:
    script = 'cat; echo aside >&2; echo "$@"; exit 7'
    options = ("--wait", "--help", "-q", "--", "-o")
    running = world.begin("emulator", "run", "sh", "-c", script, "sh", *options)
    said = running.communicate("hello\n", timeout=30)
    assert (said, running.returncode) == (("hello\n--wait --help -q -- -o\n", "aside\n"), 7)


def test_run_exits_as_a_command_that_was_killed(world: World) -> None:
    assert world.run("emulator", "run", "--", "sh", "-c", "kill -9 $$").returncode == 137


def test_run_without_a_command_is_refused(world: World) -> None:
    assert world.run("emulator", "run").returncode == 2


def test_run_of_a_missing_command_exits_127_at_once(world: World) -> None:
    answer = world.run("emulator", "run", "--", "no-such-command")
    assert (answer.returncode, answer.stdout, answer.stderr) == (
        127,
        "",
        "error: no-such-command: command not found\nhint: is it installed, and on the PATH?\n",
    )


@pytest.mark.parametrize("content", ["#!/bin/sh\n", "no program\n"])
def test_run_of_what_cannot_be_executed_exits_126(world: World, content: str) -> None:
    file = world.root / "file"
    file.write_text(content)
    file.chmod(0o755 if content.startswith("no") else 0o644)
    assert world.run("emulator", "run", "--", str(file)).returncode == 126
    assert world.processes() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_run_passes_signals_on_and_waits_for_the_command(world: World, number: signal.Signals) -> None:
    script = f"trap 'echo got; exit 3' {number.name[3:]}; echo ready; while :; do sleep 0.05; done"
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
    assert running.stdout.readline() == "ready\n"
    running.send_signal(number)
    rest, _ = running.communicate(timeout=20)
    assert (rest, running.returncode, world.processes()) == ("got\n", 3, [])


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
