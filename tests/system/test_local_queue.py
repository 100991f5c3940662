"""The queue of writers, among real processes: in order, and no dead or stopped one is in the way for long."""

import itertools
import os
import select
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from azguard.requests.deadline import Deadline
from azguard.updates import local_runs
from azguard.updates.local_runs import LocalQueue
from tests.support.places import REPOSITORY

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no queue on Windows")
# Says when it has its turn; ends it when its stdin does.
WRITER = """
    import sys
    from pathlib import Path
    from azguard.requests.deadline import Deadline
    from azguard.updates.local_runs import LocalQueue
    tell = lambda text: print(text, file=sys.stderr, flush=True)
    with LocalQueue(Path(sys.argv[1]), "key", Deadline(3600), tell):
        print("turn", flush=True)
        sys.stdin.read()
"""


class Writers:
    """Processes that queue in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen[str]] = []

    def start(self) -> subprocess.Popen[str]:
        """Start a writer and return it once it has a place in the queue."""
        before = self.tickets()
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(WRITER), str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
        )
        self.started.append(process)
        until = time.monotonic() + 60
        # One that is stopped may lose its ticket in the meantime.
        while not self.tickets() - before:
            assert time.monotonic() < until, "it never queued"
            time.sleep(0.005)  # another process makes it so
        return process

    def tickets(self) -> set[str]:
        return {path.name for path in self.folder.glob("*/*") if path.name != "next"}


@pytest.fixture
def writers(tmp_path: Path) -> Iterator[Writers]:
    made = Writers(tmp_path / "queue")
    yield made
    for process in made.started:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def finish(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.wait(60)


def await_turn(process: subprocess.Popen[str]) -> None:
    """Return once a writer has its turn; one that only gives up waiting would take half an hour."""
    assert process.stdout is not None
    assert process.stdout.readline() == "turn\n"


def has_turn(process: subprocess.Popen[str]) -> bool:
    assert process.stdout is not None
    return bool(select.select([process.stdout], [], [], 0.2)[0])


def test_writers_have_their_turns_in_the_order_in_which_they_came(writers: Writers) -> None:
    queue = [writers.start() for _ in range(4)]
    order = []
    while queue:
        await_turn(queue[0])
        order.append([has_turn(process) for process in queue[1:]])
        finish(queue.pop(0))
    assert order == [[False, False, False], [False, False], [False], []]
    assert writers.tickets() == set()


def test_a_killed_holder_gives_its_turn_to_the_next(writers: Writers) -> None:
    holder, second = writers.start(), writers.start()
    await_turn(holder)
    holder.kill()
    await_turn(second)


def test_a_killed_waiter_is_passed_over_in_order(writers: Writers) -> None:
    holder, second, third, fourth = (writers.start() for _ in range(4))
    await_turn(holder)
    second.kill()
    second.wait()
    still_waiting = [has_turn(third), has_turn(fourth)]
    finish(holder)
    await_turn(third)
    assert (still_waiting, has_turn(fourth)) == ([False, False], False)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing tells that a process is stopped")
def test_a_stopped_holder_is_passed_over_and_the_others_stay_in_order(writers: Writers) -> None:
    holder = writers.start()
    await_turn(holder)
    os.kill(holder.pid, signal.SIGSTOP)
    second, third = writers.start(), writers.start()
    await_turn(second)
    early = has_turn(third)
    finish(second)
    await_turn(third)
    os.kill(holder.pid, signal.SIGCONT)
    finish(holder)
    assert (early, len(writers.tickets())) == (False, 1)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing tells that a process is stopped")
def test_a_stopped_waiter_is_passed_over_but_not_those_before_it(writers: Writers) -> None:
    holder, second, third = (writers.start() for _ in range(3))
    await_turn(holder)
    os.kill(second.pid, signal.SIGSTOP)
    early = has_turn(third)
    finish(holder)
    await_turn(third)
    os.kill(second.pid, signal.SIGCONT)
    await_turn(second)
    assert early is False


def test_a_holder_that_is_stuck_costs_the_next_half_of_its_time(
    writers: Writers, monkeypatch: pytest.MonkeyPatch
) -> None:
    await_turn(writers.start())
    monkeypatch.setattr(local_runs, "_LOOK_SECONDS", 0.01)  # nothing else tells the time here
    looks = itertools.count()
    deadline = Deadline(100, clock=lambda: float(next(looks)))
    with LocalQueue(writers.folder, "key", deadline):
        assert 50 <= deadline.elapsed < 60


def test_waiting_is_told_and_costs_no_time_of_the_processor(tmp_path: Path) -> None:
    told: list[str] = []
    looks = []

    def clock() -> float:
        looks.append(time.monotonic())
        return looks[-1]

    with LocalQueue(tmp_path, "key", Deadline(60)), LocalQueue(tmp_path, "key", Deadline(4, clock), told.append):
        pass
    assert (told, len(looks) < 40) == (
        ["local queue: waiting behind 1 on this machine", "local queue: waited long enough, going ahead without"],
        True,
    )


def test_one_process_stopped_while_it_takes_a_number_does_not_stop_the_others(tmp_path: Path) -> None:
    import fcntl

    with LocalQueue(tmp_path, "key", Deadline(5)):
        pass
    counter = os.open(next(tmp_path.glob("*/next")), os.O_RDWR)
    fcntl.flock(counter, fcntl.LOCK_EX)
    with LocalQueue(tmp_path, "key", Deadline(0.4)):
        os.close(counter)


def test_another_address_is_another_queue(tmp_path: Path) -> None:
    told: list[str] = []
    with LocalQueue(tmp_path, "one", Deadline(3600)), LocalQueue(tmp_path, "two", Deadline(3600), told.append):
        assert told == []


def test_a_damaged_counter_is_no_error(tmp_path: Path) -> None:
    with LocalQueue(tmp_path, "key", Deadline(5)):
        counter = next(tmp_path.glob("*/next"))
        counter.write_text("nonsense")
        with LocalQueue(tmp_path, "key", Deadline(0.2)):
            tickets = sorted(path.name for path in counter.parent.iterdir())
    assert tickets == ["0", "1", "next"]


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with LocalQueue(tmp_path / "file", "key", Deadline(5)):
        pass


def test_an_interrupted_wait_leaves_nothing_behind(writers: Writers) -> None:
    holder = writers.start()
    await_turn(holder)
    waiter = writers.start()
    # Between the ticket and the wait, an interrupt leaves the ticket to the next writer.
    assert waiter.stderr is not None
    assert waiter.stderr.readline() == "local queue: waiting behind 1 on this machine\n"
    waiter.send_signal(signal.SIGINT)
    waiter.wait(60)
    assert len(writers.tickets()) == 1
