"""Filter commands, with real processes: what they return, how they fail, and that nothing of them is left."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from azguard.cli.words.hints import in_words
from azguard.errors import GaveUp, TransformFailed, UsageError
from azguard.processes import filter_command, identity, tree
from azguard.processes.filter_command import FilterTree
from tests.support.emulator_world import until
from tests.support.places import REPOSITORY
from tests.support.terminals import open_terminal

PYTHON = sys.executable


def run(*command: str, content: bytes = b"", seconds: float | None = 30, most_bytes: int = 1 << 30) -> bytes:
    deadline = None if seconds is None else time.monotonic() + seconds
    return filter_command.run(
        command,
        content,
        environ=os.environ,
        deadline=deadline,
        clock=time.monotonic,
        grace=0.3,
        most_bytes=most_bytes,
    )


def failure(*command: str, content: bytes = b"") -> tuple[str, str | None]:
    with pytest.raises(TransformFailed) as caught:
        run(*command, content=content)
    assert caught.value.exit_code == 65
    return caught.value.message, in_words(caught.value).hint


def is_gone(pid: int) -> bool:
    """Return whether a process ends; one that waits to be reaped by the system has ended."""
    deadline = time.monotonic() + 60
    while identity.find_birth(pid) is not None and time.monotonic() < deadline:
        time.sleep(0.01)  # the system tells the end of another's child by no signal
    return identity.find_birth(pid) is None


@pytest.fixture(autouse=True)
def _no_child_is_left() -> Iterator[None]:
    before = _children()
    yield
    until(lambda: _children() <= before)


def _children() -> set[str]:
    """Return this process's children that run; the suite's emulator is one. What was killed is gone in a moment."""
    if tree.IS_KNOWN:
        # Every process is looked at: the kernel's own list of children leaves some out while others end.
        found = [identity.find(int(name)) for name in os.listdir("/proc") if name.isdigit()]
        return {str(each.pid) for each in found if each and each.parent == os.getpid() and not each.has_ended}
    listed = subprocess.Popen(["ps", "-o", "pid=,stat=", "--ppid", str(os.getpid())], stdout=subprocess.PIPE, text=True)
    rows = [line.split() for line in listed.communicate()[0].splitlines()]
    return {pid for pid, state in rows if not state.startswith("Z")} - {str(listed.pid)}


# What it returns


def test_content_goes_in_and_new_content_comes_out() -> None:
    assert run("tr", "a-z", "A-Z", content=b"caf\n\x00") == b"CAF\n\x00"


def test_without_a_deadline_it_takes_what_it_takes() -> None:
    assert run("cat", content=b"x", seconds=None) == b"x"


@pytest.mark.parametrize(
    ("command", "result"),
    [(["true"], b""), (["echo", "x"], b"x\n"), (["sh", "-c", "exec <&-; sleep 0.1; echo late"], b"late\n")],
)
def test_a_command_that_does_not_read_its_input_is_no_error(command: list[str], result: bytes) -> None:
    assert run(*command, content=b"x" * 5_000_000) == result


def test_a_hundred_megabytes_pass_through_both_pipes() -> None:
    content = os.urandom(1_000_000) * 100
    assert run("cat", content=content) == content


def test_a_command_may_close_its_output_before_it_decides_to_fail() -> None:
    assert failure("sh", "-c", "echo x; exec >&-; sleep 0.1; exit 3")[0].endswith(
        "exited with status 3; nothing was written"
    )


def test_the_environment_is_the_one_given_also_for_finding_the_command(tmp_path: Path) -> None:
    script = tmp_path / "shout"
    script.write_text('#!/bin/sh\necho "$WORD"\n')
    script.chmod(0o755)
    environ = {"PATH": str(tmp_path), "WORD": "hello"}
    assert filter_command.run(["shout"], b"", environ=environ, deadline=None, clock=time.monotonic) == b"hello\n"


def test_output_is_complete_when_nothing_holds_it_open() -> None:
    assert run("sh", "-c", "{ sleep 0.2; echo second; } & echo first") == b"first\nsecond\n"


def test_its_standard_error_is_ours(capfd: pytest.CaptureFixture[str]) -> None:
    run("sh", "-c", "echo careful >&2")
    assert capfd.readouterr() == ("", "careful\n")


# How it fails


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("exit 5", "sh -c 'exit 5' exited with status 5; nothing was written"),
        ("kill -SEGV $$", "sh -c 'kill -SEGV $$' was ended by SIGSEGV; nothing was written"),
        ("echo half; kill -9 $$", "sh -c 'echo half; kill -9 $$' was ended by SIGKILL; nothing was written"),
    ],
)
def test_a_failing_command_is_named_with_its_status(script: str, message: str) -> None:
    assert failure("sh", "-c", script, content=b"x" * 5_000_000) == (message, None)


def test_a_failure_is_seen_though_something_holds_the_output_open() -> None:
    # Waiting for the output would take longer than any test may.
    assert (
        failure("sh", "-c", "sleep 600 & exit 1")[0]
        == "sh -c 'sleep 600 & exit 1' exited with status 1; nothing was written"
    )


def test_a_command_that_cannot_start_says_why(tmp_path: Path) -> None:
    plain, lost, odd = tmp_path / "plain", tmp_path / "lost", tmp_path / "odd"
    plain.write_text("x")
    lost.write_text("#!/no/such/interpreter\n")
    odd.write_bytes(b"\x01\x02\x03")
    lost.chmod(0o755)
    odd.chmod(0o755)
    assert [
        failure("no-such-command", "x"),
        failure("jq .a | sort"),
        failure(str(plain)),
        failure(str(lost)),
        failure(str(odd)),
        failure("cat", "a\0b"),
    ] == [
        ("no-such-command: command not found", "is it installed, and on the PATH?"),
        ("'jq .a | sort': command not found", "no shell runs the command; for shell syntax write -- sh -c '...'"),
        (f"{plain}: not executable", f"make it executable: chmod +x {plain}; or name its interpreter first"),
        (f"{lost}: its interpreter was not found", "correct the script's first line, or install that interpreter"),
        (f"{odd}: cannot be run: Exec format error", "does a script lack its first line, such as #!/bin/sh?"),
        (
            "cat 'a\0b': cannot be run: embedded null byte",
            "does a script lack its first line, such as #!/bin/sh?",
        ),
    ]


@pytest.mark.parametrize("command", [[], [""]])
def test_no_command_is_a_usage_error(command: list[str]) -> None:
    with pytest.raises(UsageError):
        run(*command)


def test_endless_output_is_stopped() -> None:
    with pytest.raises(TransformFailed, match="yes wrote more than 1000000 bytes"):
        run("yes", most_bytes=1_000_000)


# The deadline


def test_a_deadline_that_has_passed_starts_nothing(tmp_path: Path) -> None:
    with pytest.raises(GaveUp, match=r"before touch .* was started"):
        run("touch", str(tmp_path / "trace"), seconds=0)
    assert list(tmp_path.iterdir()) == []


def test_the_deadline_is_read_from_the_clock_given() -> None:
    seconds = iter([0.0, 1.0, 999.0])
    with pytest.raises(GaveUp, match="sleep 60 did not finish before the deadline and was stopped"):
        filter_command.run(["sleep", "60"], b"", environ=os.environ, deadline=60, clock=lambda: next(seconds))


@pytest.mark.parametrize(
    "ignoring",
    ["", "trap '' TERM; ", "trap '' TERM INT HUP; kill -STOP $$; "],
    ids=["TERM", "KILL", "stopped"],
)
def test_at_the_deadline_the_whole_group_is_ended(tmp_path: Path, ignoring: str) -> None:
    pids = tmp_path / "pids"
    with pytest.raises(GaveUp):
        run("sh", "-c", f"sleep 61 & echo $$ $! > {pids}; {ignoring} wait; sleep 62", seconds=1)
    assert [is_gone(int(pid)) for pid in pids.read_text().split()] == [True, True]


def test_a_command_may_tidy_up_when_it_is_stopped(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with pytest.raises(GaveUp):
        run("sh", "-c", f"trap 'echo tidy > {trace}; exit 0' TERM; while :; do sleep 0.05; done", seconds=1)
    assert trace.read_text() == "tidy\n"


def test_output_held_open_by_something_else_is_waited_for_until_the_deadline() -> None:
    with pytest.raises(GaveUp, match="ended, but something it started held its output open"):
        run("sh", "-c", "sleep 60 & echo x", seconds=0.5)


def test_nothing_a_successful_command_started_is_left(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    assert run("sh", "-c", f"sleep 60 > /dev/null 2>&1 & echo $! > {pid}; echo done") == b"done\n"
    assert is_gone(int(pid.read_text()))


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone tells who is in a group")
def test_nothing_is_sent_to_a_group_that_is_gone_because_its_number_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "killpg", lambda *numbers: sent.append(numbers))
    assert (run("true"), sent) == (b"", [])


def test_beside_another_command_nothing_is_looked_for_below_a_number_that_is_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[int] = []

    def look(root: int, *_: object) -> list[identity.Process]:
        looked.append(root)
        return []

    with closing(FilterTree()) as one, closing(FilterTree()):
        one.process = subprocess.Popen(["true"], process_group=0)
        one.process.wait()
        monkeypatch.setattr(tree, "find_descendants", look)
        one.stop((signal.SIGTERM,), 0.1)
        monkeypatch.undo()
    assert one.process.pid not in looked


# How what a command starts leaves its process group; ``{0}`` is the file for the pid of something that is deaf to TERM.
DEAF = "sh -c 'trap \"\" TERM INT; echo $$ > {0}; while :; do sleep 1; done'"
ESCAPES = {
    "a group of its own": f"timeout 60 {DEAF}",
    "job control": f"exec 2>/dev/null; set -m; {DEAF} & wait",
    "a session of its own": f"setsid {DEAF} & wait",
    "a daemon": f"(setsid {DEAF} >/dev/null 2>&1 &); sleep 60",
    "a daemon without variables": f"(setsid env -i {DEAF} >/dev/null 2>&1 &); sleep 60",
}
linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone tells who descends from whom")


@linux
@pytest.mark.parametrize("name", ESCAPES)
def test_at_the_deadline_what_has_left_the_group_is_ended_too(tmp_path: Path, name: str) -> None:
    pid = tmp_path / "pid"
    # Time to get there, whatever else the machine does, and not more once it is there.
    began, moved = time.monotonic(), 0.0

    def clock() -> float:
        nonlocal moved
        moved = 60.0 if pid.exists() and pid.read_text() else moved
        return time.monotonic() - began + moved

    with pytest.raises(GaveUp):
        filter_command.run(
            ["bash", "-c", ESCAPES[name].format(pid)], b"", environ=os.environ, deadline=60, clock=clock, grace=0.3
        )
    assert is_gone(int(pid.read_text()))


@linux
@pytest.mark.parametrize("status", [0, 1])
def test_a_daemon_of_a_command_that_ended_by_itself_is_left_alone(tmp_path: Path, status: int) -> None:
    pid = tmp_path / "pid"
    daemon = f"(setsid sh -c 'echo $$ > {pid}; exec sleep 60' >/dev/null 2>&1 &)"
    with suppress(TransformFailed):
        run("bash", "-c", f"{daemon}; until [ -s {pid} ]; do sleep 0.02; done; exit {status}")
    os.kill(int(pid.read_text()), signal.SIGKILL)
    os.waitpid(int(pid.read_text()), 0)  # an orphan is ours


@linux
def test_what_this_process_started_before_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as other:
        with pytest.raises(GaveUp):
            run("bash", "-c", "(setsid sleep 60 >/dev/null 2>&1 &); sleep 60", seconds=0.5)
        assert other.poll() is None
        other.kill()


@linux
def test_the_work_of_a_command_beside_is_left_alone_until_that_one_ends(tmp_path: Path) -> None:
    pid, go = tmp_path / "pid", tmp_path / "go"
    daemon = f"(setsid {DEAF.format(pid)} >/dev/null 2>&1 &)"
    with ThreadPoolExecutor() as pool:
        slow = pool.submit(
            filter_command.run,
            ["bash", "-c", f"{daemon}; sleep 60"],
            b"",
            environ=os.environ,
            deadline=60,
            clock=lambda: 60.0 if go.exists() else 0.0,
            grace=0.3,
        )
        until(lambda: pid.exists() and pid.read_text())
        assert run("echo", "quick") == b"quick\n"
        os.kill(int(pid.read_text()), 0)
        go.touch()
        with pytest.raises(GaveUp):
            slow.result()
        assert is_gone(int(pid.read_text()))


# Ctrl-C

SCRIPT = textwrap.dedent(
    """
    import fcntl, os, sys, termios, time
    from azguard.processes import filter_command, identity, tree

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    command = ["sh", "-c", sys.argv[1]]
    try:
        filter_command.run(
            command, b"", environ=os.environ, deadline=None, clock=time.monotonic, grace=float(sys.argv[2])
        )
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    """
)


@pytest.mark.parametrize(
    ("trap", "said"),
    [("", ["interrupted"]), ("setsid sleep 65 & ", ["interrupted"]),
     ("trap 'echo passed on >&2; exit 1' INT; ", ["passed on", "interrupted"]),
     ("trap '' INT TERM; ", ["interrupted"])],
    ids=["dies", "has left the group", "tidies up", "ignores it"],
)  # fmt: skip
def test_ctrl_c_on_a_terminal_ends_everything(trap: str, said: list[str]) -> None:
    keyboard, terminal = open_terminal()
    with subprocess.Popen(
        [PYTHON, "-c", SCRIPT, f"sleep 63 & {trap} echo $$ $! >&2; wait; wait; sleep 64", "0.5"],
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        start_new_session=True,
        text=True,
    ) as process:
        os.close(terminal)
        assert process.stdout is not None
        pids = [int(pid) for pid in process.stdout.readline().split()]
        os.write(keyboard, b"\x03")
        assert process.stdout.read().split("\n")[:-1] == said
    os.close(keyboard)
    assert [process.returncode, *map(is_gone, pids)] == [0, True, True]


def test_an_interrupt_while_the_command_is_starting_does_not_lose_it(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        run("sleep", "60")
    assert [process.returncode for process in started] == [-signal.SIGINT]


def test_it_runs_in_any_thread() -> None:
    with ThreadPoolExecutor() as pool:
        assert pool.submit(run, "cat", content=b"x").result() == b"x"
