"""lock run on a share and on a file: by their own leases, of which that of a file has no term."""

import shlex
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import files_world, forked
from tests.support.cli_world import CliWorld, command
from tests.support.forked_process import ForkedProcess


@pytest.fixture
def file(files_cli: CliWorld) -> str:
    return files_world.make(files_cli)


@contextmanager
def holder(cli: CliWorld, address: str, mark: Path) -> Iterator[ForkedProcess]:
    """Hold a lock in another process, as soon as the mark is there."""
    words = ("lock", "run", address, "--lease-duration", "15s", "--", "sh", "-c", f"echo $$ > {mark}; exec sleep 100")
    with cli.begin_fork(*words) as child:
        try:
            wait_until(lambda: mark.exists() and mark.read_text().endswith("\n"))
            yield child
        finally:
            child.kill()


def wait_until(is_true: object, seconds: float = 60) -> None:
    assert callable(is_true)
    until = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.05)  # another process makes it so


def lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("kind", ["share", "file"])
def test_a_command_runs_under_the_lock_which_is_free_afterwards(files_cli: CliWorld, file: str, kind: str) -> None:
    address = f"{kind}:{file if kind == 'file' else file.partition('/')[0]}"
    script = 'echo "$AZGUARD_LOCK $AZGUARD_FENCE" > out; exit 3'
    ran = [files_cli.fork("lock", "run", address, "--reason", "repair", "--", "sh", "-c", script) for _ in range(2)]
    shown = files_cli.call("lock", "show", address).json
    assert ([each.code for each in ran], (files_cli.root / "out").read_text()) == ([3, 3], f"{address} 2\n")
    assert (shown["state"], shown["fence"], shown["last_owner"]["reason"]) == ("free", 2, "repair")
    assert files_cli.call("lease", "list", "--mine").json == []


@pytest.mark.parametrize("kind", ["share", "file"])
def test_others_wait_and_a_broken_lock_ends_the_command(files_cli: CliWorld, file: str, kind: str) -> None:
    address = f"{kind}:{file if kind == 'file' else file.partition('/')[0]}"
    with holder(files_cli, address, files_cli.root / "mark") as child:
        busy = files_cli.fork("lock", "run", address, "--no-wait", "--", "true", scope="other")
        words = ["--lease-break-period", "0"] if kind == "share" else []
        broken = files_cli.call("lock", "break", address, "--yes", *words)
        status = child.wait(60)
    assert (busy.code, broken.code, status) == (75, 0, 77)
    assert files_cli.call("lock", "show", address).json["held"] is False


def test_a_run_that_is_superseded_stays_so_whatever_is_written_to_the_file(files_cli: CliWorld, file: str) -> None:
    def run(number: str, command: str) -> int:
        return files_cli.fork("lock", "run", f"file:{file}", "--sequence", number, "--", "sh", "-c", command).code

    put = f"echo new | {shlex.join(forked.command())} file put {file} --last-writer-wins -o none"
    assert run("42", put) == 0
    words = ("--metadata", "a=1", "--last-writer-wins")
    assert files_cli.call("file", "metadata", "set", file, *words).code == 0
    assert run("41", "true") == 42


def test_inside_the_lock_of_a_file_its_content_is_updated_and_the_lock_stays(files_cli: CliWorld, file: str) -> None:
    azguard = shlex.join(command())
    script = (
        f"{azguard} safe-update file:{file} --query guard -o tsv -- sed s/old/new/ > out && "
        f"{azguard} lock show file:{file} --query '[state, owner.reason]' -o tsv >> out"
    )
    ran = files_cli.fork("lock", "run", f"file:{file}", "--reason", "repair", "--", "sh", "-c", script)
    assert (ran.code, (files_cli.root / "out").read_text().split()) == (0, ["lease", "held", "repair"])
    assert files_world.client(files_cli, file).download_file().readall() == b"new"
    assert files_cli.call("lock", "show", f"file:{file}").json["state"] == "free"


def test_the_lock_of_a_killed_run_is_taken_over_on_this_machine_alone(files_cli: CliWorld, file: str) -> None:
    address, mark = f"file:{file}", files_cli.root / "mark"
    with holder(files_cli, address, mark) as child:
        command = int(mark.read_text())
        child.send_signal(signal.SIGKILL)
        wait_until(lambda: not lives(command))
    held = files_cli.call("lease", "list", "--mine").json
    elsewhere = {"AZGUARD_CACHE_DIR": str(files_cli.root / "elsewhere")}
    refused = files_cli.fork("lock", "run", address, "--no-wait", "--", "true", env=elsewhere)
    taken = files_cli.fork("lock", "run", address, "--wait", "60s", "--", "true")
    assert ([each["address"] for each in held], refused.code) == ([address], 75)
    assert (taken.code, "its holder on this machine has ended" in taken.err) == (0, True)


def test_a_share_is_held_for_the_steps_that_follow(files_cli: CliWorld, file: str) -> None:
    address = f"share:{file.partition('/')[0]}"
    held = files_cli.fork("lock", "hold", address, "--reason", "repair").json
    try:
        checked = files_cli.call("lock", "check", address).json
        busy = files_cli.fork("lock", "hold", address, "--no-wait", scope="other").code
        quota = files_cli.call("share", "quota", address, "9", "--last-writer-wins", scope="other").code
    finally:
        released = files_cli.call("lock", "release", address).json["outcome"]
    assert (checked["pid"], checked["fence"], busy, quota, released) == (held["pid"], held["fence"], 75, 49, "released")
    assert files_cli.call("lock", "check", address).code == 77
    assert files_cli.call("lock", "show", address).json["held"] is False


def test_a_lock_that_is_not_there_is_not_made(files_cli: CliWorld, file: str) -> None:
    ran = [files_cli.fork("lock", "run", address, "--", "true") for address in (f"file:{file}x", "share:is-not-there")]
    assert [each.code for each in ran] == [44, 44]
