"""``queue work`` and signals: however a process of it is ended or stopped, nothing is deleted that is not done."""

import json
import os
import signal
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import queue_world
from tests.support.cli_world import CliWorld
from tests.support.emulator_world import until
from tests.support.forked_process import ForkedProcess
from tests.support.lock_world import is_gone, processes

_SECONDS = 60.0
# Says that it runs, and then waits to be told to end.
_SCRIPT = 'echo $$ > "$LOG/$AZGUARD_MESSAGE_ID.$$"; while ! [ -e "$LOG/end" ]; do sleep 0.05; done'


@dataclass
class Running:
    """A worker that was begun, whose commands wait to be told to end."""

    cli: CliWorld
    queue: str
    process: ForkedProcess
    folder: Path
    mark: str

    def commands(self) -> list[int]:
        """Return the pids of the commands that were begun."""
        return [int(each.name.rpartition(".")[2]) for each in self.folder.glob("*.*")]

    def wait_for_commands(self, number: int) -> list[int]:
        until(lambda: len(self.commands()) == number)
        return self.commands()

    def finish(self) -> None:
        (self.folder / "end").touch()

    def helpers(self, word: str) -> list[int]:
        """Return the pids of the processes of the worker whose command line begins with a word."""
        return [each.pid for each in processes(self.mark) if each.words[0] == word]

    def told(self) -> str:
        return (self.folder.parent / "err").read_text()

    def result(self) -> tuple[int, Any]:
        """Wait for the end, and return the exit status and the result."""
        code = self.process.wait(_SECONDS)
        content = (self.folder.parent / "out").read_bytes()
        return code, json.loads(content) if content else None

    def seen(self) -> int:
        """Return how many messages can be received."""
        return len(queue_world.sdk(self.cli, self.queue).peek_messages(max_messages=32))

    def left(self) -> int:
        """Return how many messages the queue has, hidden ones included."""
        return int(queue_world.sdk(self.cli, self.queue).get_queue_properties().approximate_message_count)


@pytest.fixture
def running(cli: CliWorld, request: pytest.FixtureRequest) -> Iterator[Running]:
    """Yield a worker with two commands that run, in a queue of three messages."""
    yield from _begin(cli, *getattr(request, "param", ()))


def _begin(cli: CliWorld, *options: str) -> Iterator[Running]:
    queue, folder, mark = queue_world.queue(cli, "a", "b", "c"), cli.root / "ran", uuid.uuid4().hex
    folder.mkdir()
    with open(cli.root / "out", "wb") as out, open(cli.root / "err", "wb") as err:
        process = cli.begin_fork(
            "queue", "work", queue, "--jobs", "2", "-o", "json", *options, "--", "sh", "-c", _SCRIPT,
            env={"LOG": str(folder), "LOCK_WORLD": mark}, stdout=out, stderr=err,
        )  # fmt: skip
    made = Running(cli, queue, process, folder, mark)
    try:
        made.wait_for_commands(2)
        yield made
    finally:
        for each in processes(mark):
            with suppress(ProcessLookupError):
                os.kill(each.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_lets_the_commands_finish_and_takes_no_more(running: Running, number: int) -> None:
    running.process.send_signal(number)
    running.finish()
    code, found = running.result()
    assert (code, found["done"], found["stopped_by"], running.left()) == (0, 2, "signal", 1)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_second_signal_ends_commands_and_gives_messages_back(running: Running, number: int, status: int) -> None:
    pids = running.commands()
    running.process.send_signal(signal.SIGTERM)
    # Two signals of one kind that come at once are one.
    until(lambda: "another signal ends it" in running.told())
    running.process.send_signal(number)
    code, found = running.result()
    assert (code, found["released"], running.seen(), [is_gone(pid) for pid in pids]) == (status, 2, 3, [True, True])


def test_kill_9_ends_the_commands_and_loses_no_message(running: Running) -> None:
    pids = running.commands()
    running.process.kill()
    until(lambda: all(map(is_gone, pids)))
    until(lambda: processes(running.mark) == [])
    assert running.left() == 3


@pytest.mark.parametrize("running", [("--visibility-timeout", "2s")], indirect=True)
def test_a_worker_that_was_stopped_deletes_nothing_that_another_has(running: Running) -> None:
    sdk = queue_world.sdk(running.cli, running.queue)
    running.process.send_signal(signal.SIGSTOP)
    taken: list[str] = []

    def take_all() -> bool:
        taken.extend(each.id for each in sdk.receive_messages(visibility_timeout=300))
        return len(taken) == 3

    until(take_all)
    running.finish()
    running.process.send_signal(signal.SIGCONT)
    running.process.send_signal(signal.SIGTERM)
    _, found = running.result()
    assert (found["lost"], found["done"], running.left()) == (2, 0, 3)


@pytest.mark.parametrize("running", [("--visibility-timeout", "2s")], indirect=True)
def test_a_guardian_that_was_stopped_goes_on_and_its_message_stays_hidden(running: Running) -> None:
    guardians = running.helpers("lock-guardian")
    for pid in guardians:
        os.kill(pid, signal.SIGSTOP)
    running.finish()
    running.process.send_signal(signal.SIGTERM)
    code, found = running.result()
    assert (len(guardians), code, found["received"], found["done"]) == (2, 0, 2, 2)


@pytest.mark.parametrize("helper", ["lock-guardian", "command-place"])
def test_a_helper_that_is_killed_ends_its_command_and_the_message_is_tried_again(running: Running, helper: str) -> None:
    pids, (first, _) = running.commands(), running.helpers(helper)
    os.kill(first, signal.SIGKILL)
    until(lambda: any(map(is_gone, pids)))
    running.process.send_signal(signal.SIGTERM)
    running.finish()
    _, found = running.result()
    # Killed before it could tell that the command runs, the place gives the message back: nothing is known to have run.
    tried_again = found["failed"] + found["released"]
    assert (tried_again, found["done"] + found["lost"], running.left()) == (1, found["done"], 3 - found["done"])


@pytest.mark.parametrize("running", [("--max-dequeue", "1")], indirect=True)
def test_a_command_that_ends_itself_by_a_signal_has_failed(running: Running) -> None:
    for pid in running.commands():
        os.kill(pid, signal.SIGKILL)
    running.process.send_signal(signal.SIGTERM)
    code, found = running.result()
    assert (code, found["poisoned"] >= 1, found["poisoned"] + found["done"]) == (20, True, found["received"])
