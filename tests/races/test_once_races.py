"""Real workers, killed, stopped and behind a network that loses answers: no key has its effect twice.

Each message is in the queue twice, with one key. Each command notes its beginning, and its end, which is the effect.
What is proved, of every key:

- no two commands of it run at the same time;
- once a worker has noted that it is done, no command of it begins;
- it has one end. A second one is possible only if the worker of the first was killed between the end and its record,
  and begins only when all of that worker is gone.
"""

import itertools
import json
import math
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.faults.rules import at_random
from tests.support import queue_world, table_world, thorough
from tests.support.cases import cases
from tests.support.cli_world import CliWorld
from tests.support.emulator_world import until
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Fault
from tests.support.forked_process import ForkedProcess

pytestmark = [
    pytest.mark.xdist_group("other-races"),
    pytest.mark.thorough,
    pytest.mark.skipif(sys.platform != "linux", reason="stops and kills processes"),
    pytest.mark.timeout(240),
]

_LOOK_SECONDS = 0.02
# At one of so many looks the queues are counted.
_LOOKS = 25
_SHARE = 0.15
_FAULTS = dict.fromkeys((Fault.DROP, Fault.FAIL_AFTER, Fault.RESET, Fault.FAIL_BEFORE, Fault.REPLAYED), 1.0)
# Every fifth key goes to the poison queue when it is met for the first time.
_COMMAND = """
key=$(sed 's/.*"\\(k[0-9]*\\)".*/\\1/')
echo "begin $key $WORKER" >> "$LOG"
case $key in *[05]) mkdir "$LOG.$key" 2> /dev/null && { echo "fail $key $WORKER" >> "$LOG"; exit 65; } ;; esac
sleep "0.$(( $$ % 4 ))"
echo "end $key $WORKER" >> "$LOG"
"""


@dataclass(frozen=True)
class Line:
    """What a command noted: ``begin``, ``fail`` or ``end``; or ``gone``, when all of a worker was seen to be gone."""

    what: str
    key: str
    worker: str


@dataclass
class Race:
    """Workers on one queue, with one table."""

    #: For what the test does itself.
    cli: CliWorld
    queue: str
    table: str
    #: For the workers.
    through: CliWorld
    workers: dict[str, ForkedProcess] = field(default_factory=dict)
    killed: set[str] = field(default_factory=set)

    @property
    def log(self) -> Path:
        return self.cli.root / "log"

    def start(self, name: str, script: str = _COMMAND, claim_seconds: float = 30.0) -> None:
        words = (
            *(str(claim_seconds), "queue", "work", self.queue, "--once-table", self.table, "--once-key", "key"),
            *("--jobs", "2", "--visibility-timeout", "3s", "--retry-visibility", "1s", "--poll-interval", "0.5s"),
            *("--max-dequeue", "1000", "--grace", "1s", "--events", str(self.events(name)), "--", "sh", "-c", script),
        )
        with (self.cli.root / f"{name}.err").open("wb") as err:
            self.workers[name] = ForkedProcess(
                words,
                self.cli.root,
                self.through.environ(env={"LOG": str(self.log), "WORKER": name}),
                module="tests.races.once_worker",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=err,
            )

    def events(self, name: str) -> Path:
        return self.cli.root / f"{name}.jsonl"

    def kill(self, name: str) -> None:
        """Kill a worker with no warning; once all of it is gone, let its claims be as if they were old."""
        self.killed.add(name)
        self.workers[name].kill()
        self.workers[name].wait(60)
        until(lambda: not self.is_alive(name), seconds=20)
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"gone - {name}\n")
        pid = self.workers[name].pid
        for row in self.rows():
            if row["state"] == "claimed" and f"pid {pid})" in row["by"]:
                address = f"{self.table}/{row['PartitionKey']}/{row['RowKey']}"
                self.cli.call("entity", "merge", address, "seconds=-3600", "-o", "none")

    def is_alive(self, name: str) -> bool:
        """Return whether a worker, or anything that it has started, is there."""
        wanted = {f"WORKER={name}".encode(), f"LOG={self.log}".encode()}
        for each in Path("/proc").glob("[0-9]*/environ"):
            try:
                if wanted <= set(each.read_bytes().split(b"\0")):
                    return True
            except OSError:
                continue
        return False

    def stop_all(self) -> None:
        for name, worker in self.workers.items():
            if name not in self.killed:
                worker.terminate()
        for worker in self.workers.values():
            worker.wait(60)

    def lines(self) -> list[Line]:
        return [Line(*each.split()) for each in self.log.read_text().splitlines()] if self.log.exists() else []

    def rows(self) -> list[dict[str, Any]]:
        ran = self.cli.call("entity", "query", self.table, "-o", "json")
        return [json.loads(line) for line in ran.out.splitlines()]

    def count_messages(self) -> list[int]:
        """Return how many are left in the queue, and in the poison queue."""
        clients = [queue_world.sdk(self.cli, name) for name in (self.queue, f"{self.queue}-poison")]
        return [each.get_queue_properties().approximate_message_count for each in clients]


def find_violations(lines: Iterable[Line]) -> list[str]:
    """Return what must not be, in the order in which it was noted."""
    running: dict[str, str] = {}
    ended: dict[str, str] = {}
    gone: set[str] = set()
    found = []
    for number, line in enumerate(lines, 1):
        match line.what:
            case "gone":
                gone.add(line.worker)
            case "begin":
                for what, by in (("beside", running.get(line.key)), ("after the effect by", ended.get(line.key))):
                    if by is not None and by not in gone:
                        found.append(f"line {number}: {line.key} begun by {line.worker} {what} {by}")
                running[line.key] = line.worker
            case "end":
                ended[line.key] = running.pop(line.key, line.worker)
            case "fail":
                running.pop(line.key, None)
    return found


@contextmanager
def race(cli: CliWorld, share: float, seed: str, keys: int, copies: int = 2) -> Iterator[Race]:
    """Yield a race on a queue that has each key twice, with the table behind a network that loses answers."""
    made = Race(cli, queue_world.queue(cli), table_world.table(cli), cli)
    queue_world.sdk(cli, f"{made.queue}-poison").create_queue()
    client = queue_world.sdk(cli, made.queue)
    for _ in range(copies):
        for number in range(keys):
            client.send_message(json.dumps({"key": f"k{number}"}))
    port = re.search(r"TableEndpoint=http://127\.0\.0\.1:(\d+)", str(cli.connection_string))
    assert port is not None
    with proxy.running(int(port[1]), at_random(int(seed), share, _FAULTS, reads=True)) as between:
        text = str(cli.connection_string).replace(f":{port[1]}/", f":{between.port}/")
        made.through = CliWorld(cli.root, text)
        try:
            yield made
        finally:
            for worker in made.workers.values():
                worker.kill()
                worker.wait(60)


@pytest.mark.parametrize(("keys", "kills"), thorough.some([(20, 4), (12, 0)], 1))
def test_no_key_has_its_effect_twice(cli: CliWorld, keys: int, kills: int, seed: str) -> None:
    chance = random.Random(seed)
    with race(cli, _SHARE, seed, keys) as made:
        for number in range(3):
            made.start(f"w{number}")
        for number in range(3, 3 + kills):
            _await_lines(made, len(made.lines()) + chance.randrange(3, 9))
            made.kill(f"w{number - 3}")
            made.start(f"w{number}")
        _await_lines(made)
        made.stop_all()
        lines, rows = made.lines(), made.rows()
        statuses = {name: worker.returncode for name, worker in made.workers.items() if name not in made.killed}
    assert find_violations(lines) == []
    assert {line.key for line in lines if line.what == "end"} == {f"k{number}" for number in range(keys)}
    assert {row["state"] for row in rows} == {"done"}
    assert len(rows) == keys
    # 143: one that was told to stop before it had begun.
    assert set(statuses.values()) <= {0, 20, 143}


# One worker has a command that beats for ever; the others have the effect at once.
_BEAT = """
echo "begin k0 $WORKER" >> "$LOG"
while [ "$WORKER" = stopped ]; do echo "beat k0 $WORKER" >> "$LOG"; sleep 0.1; done
echo "end k0 $WORKER" >> "$LOG"
"""


def test_the_command_of_a_worker_that_is_stopped_ends_before_another_takes_its_claim_over(cli: CliWorld) -> None:
    with race(cli, 0.0, "0", keys=1, copies=1) as made:
        made.start("stopped", _BEAT, claim_seconds=8)
        until(lambda: Line("beat", "k0", "stopped") in made.lines())
        made.workers["stopped"].send_signal(signal.SIGSTOP)
        made.start("next", _BEAT, claim_seconds=8)
        until(lambda: Line("end", "k0", "next") in made.lines(), seconds=120)
        made.workers["stopped"].send_signal(signal.SIGCONT)
        until(lambda: '"event": "lost"' in made.events("stopped").read_text())
        made.stop_all()
        lines = made.lines()
        assert [row["state"] for row in made.rows()] == ["done"]
        assert made.count_messages() == [0, 0]
    begun = lines.index(Line("begin", "k0", "next"))
    assert [line.what for line in lines[begun:]] == ["begin", "end"]


@cases(
    ("noted", "violations"),
    (["begin k a", "end k a"], 0),
    (["begin k a", "fail k a", "begin k b", "end k b"], 0),
    (["begin k a", "begin k b"], 1),
    (["begin k a", "begin k a"], 1),
    (["begin k a", "end k a", "begin k b"], 1),
    (["begin k a", "end k a", "begin k a"], 1),
    (["begin k a", "gone - a", "begin k b", "end k b"], 0),
    (["begin k a", "end k a", "gone - a", "begin k b"], 0),
    (["begin k a", "gone - b", "begin k c"], 1),
    (["begin k a", "begin l b", "end l b", "end k a"], 0),
)
def test_a_history_is_judged(noted: list[str], violations: int) -> None:
    assert len(find_violations(Line(*each.split()) for each in noted)) == violations


def _await_lines(made: Race, count: float = math.inf) -> None:
    """Wait until so many lines are noted, or all is done; move back to work what is in the poison queue."""
    end = time.monotonic() + 90
    for number in itertools.count():
        if len(made.lines()) >= count:
            return
        if number % _LOOKS == 0:
            left, in_poison = made.count_messages()
            if left == in_poison == 0:
                return
            assert time.monotonic() < end, (made.lines()[-20:], made.rows())
            if in_poison:
                assert made.cli.call("queue", "move", f"{made.queue}-poison", "-o", "json").code == 0
        time.sleep(_LOOK_SECONDS)  # the workers tell by no event that they have ended
