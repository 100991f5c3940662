"""``azguard doctor`` and Ctrl-C: what it made is deleted, and a lost lock ends a command."""

import signal

from tests.support.cli_world import CliWorld
from tests.support.emulator_world import until
from tests.support.terminals import need_terminal


def list_doctors(cli: CliWorld) -> list[str]:
    """Return the names of the containers that a doctor made."""
    return [each["name"] for each in cli.call("container", "list", "--prefix", "azguard-doctor-").json]


def test_ctrl_c_deletes_what_was_made(cli: CliWorld) -> None:
    with cli.begin_fork("doctor", "--only", "blob", "--full", "-o", "json") as running:
        until(lambda: list_doctors(cli))
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate()
        code = running.wait()
    assert (code, out, list_doctors(cli)) == (130, b"", [])


def test_the_machine_that_runs_the_tests_has_all_that_locks_need(cli: CliWorld) -> None:
    need_terminal()
    ran = cli.fork("doctor", "--only", "table", "-o", "json", "--query", "checks[?part=='machine'].verdict")
    assert set(ran.json) == {"holds"}
