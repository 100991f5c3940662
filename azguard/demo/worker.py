"""One of the demonstration's writers: a process that applies increments as it is told.

A line on standard input is a job; a line on standard output is what became of one increment. When standard input
closes, the process ends at once: the process that started it is gone, ``kill -9`` included.
"""

import json
import os
import sys
import threading
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue

from azguard.demo import strategies
from azguard.demo.strategies import Strategy

READY = "ready"


@dataclass(frozen=True)
class Job:
    """How many increments to apply, which way, and on which port the service answers."""

    way: Strategy
    port: int
    count: int

    def line(self) -> bytes:
        """Return the job as a worker reads it."""
        return json.dumps([self.way, self.port, self.count]).encode() + b"\n"

    @classmethod
    def read(cls, line: str) -> "Job":
        """Read a job from its line."""
        way, port, count = json.loads(line)
        return cls(Strategy(way), port, count)


def main(queues: Path) -> None:
    """Work until standard input closes."""
    lines: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    _import_all()
    _say(READY)
    while True:
        job = Job.read(lines.get())
        apply = strategies.increments(job.way, job.port, queues)
        for _ in range(job.count):
            _say(apply())


def _listen(lines: SimpleQueue[str]) -> None:
    for line in sys.stdin:
        lines.put(line)
    os._exit(0)  # from a thread nothing gentler ends a process, and there is nothing to put in order


def _import_all() -> None:
    """Import what the first increment would, so that no way pays for it."""
    for name in ("azure.storage.blob", "azguard.documents.edits", "azguard.updates.update", "azguard.blobs.updating"):
        import_module(name)


def _say(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
