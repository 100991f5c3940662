"""How a run ends when the service cannot be reached, or it is told to end."""

import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.support import forked
from tests.support.cli_world import CliWorld
from tests.support.emulator_world import until

MIB = 1024 * 1024


def at(cli: CliWorld, endpoint: str) -> CliWorld:
    return CliWorld(cli.root, f"AccountName=acc;AccountKey=a2V5;BlobEndpoint=http://{endpoint}/acc")


@contextmanager
def mute() -> Iterator[socket.socket]:
    """Listen, take connections, and never answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@contextmanager
def black_hole() -> Iterator[int]:
    """Give a port on which no further connection comes to be: its backlog is full."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        port = server.getsockname()[1]
        filling = []
        for _ in range(8):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
            filling.append(one)
        try:
            yield port
        finally:
            for one in filling:
                one.close()


@contextmanager
def hanging_up() -> Iterator[tuple[int, list[int]]]:
    """Take connections and close them at once; give the port, and a list that grows with each."""
    taken: list[int] = []

    def take() -> None:
        with suppress(OSError):
            while True:
                connection, (_, port) = server.accept()
                taken.append(port)
                connection.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        taking = threading.Thread(target=take)
        taking.start()
        try:
            yield server.getsockname()[1], taken
        finally:
            server.shutdown(socket.SHUT_RDWR)
            taking.join()


READS = [("blob", "show", "site/a"), ("blob", "get", "site/a"), ("blob", "list", "site"), ("container", "list"),
         ("container", "exists", "site")]  # fmt: skip
WRITES = [("blob", "put", "site/a"), ("blob", "delete", "site/a", "--etag", "0x1"), ("container", "create", "site")]


def ended(cli: CliWorld, *words: str) -> tuple[int, str]:
    """Return how a command ended, and with what kind of error; it fails if the command does not end."""
    ran = cli.fork(*words, "-o", "json", stdin=b"x", timeout=60)
    return ran.code, ran.error["kind"]


@pytest.mark.parametrize("words", [READS[0], WRITES[0]])
def test_a_closed_port_is_unavailable(offline: CliWorld, words: tuple[str, ...]) -> None:
    assert ended(at(offline, "127.0.0.1:9"), *words) == (53, "unavailable")


@pytest.mark.parametrize("words", [*READS[1:], *WRITES[1:]])
def test_every_command_gives_up_on_a_closed_port_when_told(offline: CliWorld, words: tuple[str, ...]) -> None:
    assert ended(at(offline, "127.0.0.1:9"), *words, "--timeout", "0.3s") == (53, "unavailable")


def test_a_longer_timeout_tries_for_longer(offline: CliWorld) -> None:
    tries = []
    for timeout in ("0.1s", "5s"):
        with hanging_up() as (port, taken):
            world = at(offline, f"127.0.0.1:{port}")
            assert ended(world, "blob", "show", "site/a", "--timeout", timeout) == (53, "unavailable")
        tries.append(len(taken))
    assert tries[0] < tries[1]


@pytest.mark.parametrize("words", [READS[0], WRITES[0]])
def test_an_unknown_host_is_unavailable(offline: CliWorld, words: tuple[str, ...]) -> None:
    assert ended(at(offline, "nosuch.invalid"), *words) == (53, "unavailable")


@pytest.mark.parametrize("words", [READS[0], WRITES[0]])
def test_a_port_that_takes_no_connection_is_unavailable(offline: CliWorld, words: tuple[str, ...]) -> None:
    with black_hole() as port:
        assert ended(at(offline, f"127.0.0.1:{port}"), *words) == (53, "unavailable")


@pytest.mark.parametrize("words", READS)
def test_a_read_that_is_never_answered_is_unavailable(offline: CliWorld, words: tuple[str, ...]) -> None:
    with mute() as server:
        assert ended(at(offline, f"127.0.0.1:{server.getsockname()[1]}"), *words, "--timeout", "1s") == (
            53,
            "unavailable",
        )


def test_the_message_says_where_and_why(offline: CliWorld) -> None:
    ran = at(offline, "127.0.0.1:9").call("blob", "show", "site/a", "--timeout", "0.1s")
    assert ran.err.splitlines() == [
        "error: no answer from http://127.0.0.1:9/acc: connection refused: nothing listens there",
        "hint: check the host and the port of the endpoint",
    ]


# Waiting for an answer then takes longer than any test may.
PATIENT = {"AZGUARD_WRITE_TIMEOUT": "10m"}
SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]


@pytest.mark.parametrize(("number", "code"), SIGNALS)
@pytest.mark.parametrize("words", [READS[0], READS[2]])
def test_a_signal_while_waiting_for_an_answer_ends_the_run_at_once(
    offline: CliWorld, words: tuple[str, ...], number: signal.Signals, code: int
) -> None:
    with mute() as server:
        world = at(offline, f"127.0.0.1:{server.getsockname()[1]}")
        running = world.begin_fork(*words, "--timeout", "10m", env=PATIENT)
        connection, _ = server.accept()
        connection.recv(1)
        running.send_signal(number)
        out, err = running.communicate(timeout=60)
        connection.close()
    assert (running.returncode, out, err) == (code, b"", b"error: interrupted\n")


def test_a_signal_while_a_write_waits_for_its_answer_tells_that_its_outcome_is_unknown(offline: CliWorld) -> None:
    with mute() as server:
        world = at(offline, f"127.0.0.1:{server.getsockname()[1]}")
        running = world.begin_fork("container", "create", "site", "-o", "json")
        connection, _ = server.accept()
        connection.recv(1)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=60)
        connection.close()
    assert (running.returncode, b'"kind": "unknown"' in err, b"Traceback" in err) == (74, True, False)


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_while_connecting_ends_the_run_at_once(offline: CliWorld, number: signal.Signals, code: int) -> None:
    with black_hole() as port:
        running = at(offline, f"127.0.0.1:{port}").begin_fork("blob", "show", "site/a", "--timeout", "10m", env=PATIENT)
        until(lambda: connecting(running.pid, port))
        running.send_signal(number)
        out, err = running.communicate(timeout=60)
    assert (running.returncode, out, err) == (code, b"", b"error: interrupted\n")


def connecting(pid: int, port: int) -> bool:
    """Return whether a process waits for a connection to a port."""
    with open(f"/proc/{pid}/net/tcp") as table:
        waiting = [line.split() for line in table if f":{port:04X} 02" in line]
    with open(f"/proc/{pid}/cmdline", "rb") as line:
        return b"azguard" in line.read() and len(waiting) > 0 and opened(pid)


def opened(pid: int) -> bool:
    import os

    links = []
    for each in os.listdir(f"/proc/{pid}/fd"):
        try:
            links.append(os.readlink(f"/proc/{pid}/fd/{each}"))
        except OSError:
            continue  # closed meanwhile
    return any(link.startswith("socket:") for link in links)


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_while_stdin_is_read_ends_the_run_and_writes_nothing(
    cli: CliWorld, number: signal.Signals, code: int
) -> None:
    site = cli.container()
    running = cli.begin_fork("blob", "put", f"{site}/a")
    assert running.stdin is not None
    running.stdin.write(b"x" * 100_000)  # more than a pipe holds: azguard has begun to read
    running.stdin.flush()
    running.send_signal(number)
    assert (running.wait(60), running.stderr and running.stderr.read()) == (code, b"error: interrupted\n")
    running.stdin.close()
    assert cli.call("blob", "exists", f"{site}/a").code == 44


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_while_blocks_are_staged_ends_the_run_at_once_and_commits_nothing(
    cli: CliWorld, number: signal.Signals, code: int
) -> None:
    from tests.support.faultproxy import proxy

    site, staging, go_on = cli.container(), threading.Event(), threading.Event()

    def decide(request: proxy.Request) -> proxy.Fault:
        if "comp=block&" in request.path:
            staging.set()
            go_on.wait(100)
        return proxy.Fault.NONE

    cli.file("big", b"x" * 40 * MIB)
    with proxy.running(cli.port, decide) as between:
        running = cli.through(between.port).begin_fork("blob", "put", f"{site}/a", "-f", "big", env=PATIENT)
        assert staging.wait(60)
        running.send_signal(number)
        try:
            _, err = running.communicate(timeout=60)
        finally:
            go_on.set()
    assert (running.returncode, err) == (code, b"error: interrupted\n")
    assert cli.call("blob", "exists", f"{site}/a").code == 44


@pytest.mark.parametrize("words", ["blob put site/a", "blob put site/a -f -", "safe-update blob:sea/a --merge-patch -"])
def test_a_closed_stdin_is_said_and_nothing_is_asked_of_the_service(cli: CliWorld, words: str) -> None:
    ran = subprocess.run(
        ["sh", "-c", f"exec {shlex.join(forked.command())} {words} <&-"],
        cwd=cli.root,
        env=cli.environ(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stderr.splitlines()[0]) == (2, "error: stdin is closed")


@pytest.mark.parametrize("closed", ["<&-", "<&- >&- 2>&-"])
def test_no_file_of_ours_has_the_number_of_a_closed_stream(closed: str) -> None:
    script = """
import os
from azguard.cli.output.stream import open_streams
open_streams()
os._exit(os.open(os.devnull, os.O_RDONLY))
"""
    ran = subprocess.run(["sh", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, script], timeout=60, check=False)
    assert ran.returncode > 2
