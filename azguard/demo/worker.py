"""One of the demonstration's writers: a process that runs jobs of increments.

A line on standard input is a job; a line on standard output is the outcome of one increment. When standard input
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
class WriterJob:
    """What a worker is to do."""

    strategy: Strategy
    #: Where the blob service listens on 127.0.0.1.
    port: int
    #: How many increments to apply.
    count: int

    def line(self) -> bytes:
        """Return the job as a worker reads it."""
        return json.dumps([self.strategy, self.port, self.count]).encode() + b"\n"

    @classmethod
    def read(cls, line: str) -> "WriterJob":
        """Read a job from its line."""
        strategy, port, count = json.loads(line)
        return cls(Strategy(strategy), port, count)


def main(queues: Path) -> None:
    """Work until standard input closes."""
    lines: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    _import_all()
    _say(READY)
    while True:
        job = WriterJob.read(lines.get())
        apply = strategies.increments(job.strategy, job.port, queues)
        for _ in range(job.count):
            _say(apply())


def _listen(lines: SimpleQueue[str]) -> None:
    for line in sys.stdin:
        lines.put(line)
    os._exit(0)  # a thread can end the process only so; there is nothing to clean up


def _import_all() -> None:
    """Import what the first increment would, so that its time counts for no strategy."""
    for name in (
        "azure.storage.blob",
        "azguard.documents.edits",
        "azguard.updates.update",
        "azguard.blobs.update_content",
    ):
        import_module(name)


def _say(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
