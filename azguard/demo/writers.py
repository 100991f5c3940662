"""The demonstration's writer processes, as the process that started them sees them."""

import os
import selectors
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import IO

from azguard.demo.worker import READY, Job
from azguard.errors import AzguardError

# How often to look up from waiting, so that the picture shows the time go by.
_TICK_SECONDS = 0.1
_LAST_WORDS = 5


class Writers:
    """Running writer processes that wait for jobs."""

    def __init__(self, children: list[Popen[bytes]], words: IO[bytes]) -> None:
        self._children, self._last_words = children, words
        self._selector = selectors.DefaultSelector()
        self._rest: dict[int, bytes] = {}
        for child in children:
            assert child.stdout is not None
            self._selector.register(child.stdout.fileno(), selectors.EVENT_READ)
            self._rest[child.stdout.fileno()] = b""

    def await_ready(self) -> None:
        """Wait until all of them are ready for a job.

        Raises:
            AzguardError: one of them ended.
        """
        for counts in self._until(len(self._children)):
            assert set(counts) <= {READY}

    def run(self, job: Job) -> Iterator[Counter[str]]:
        """Give all of them the same job; yield how many increments ended how, again and again until the end.

        Raises:
            AzguardError: one of them ended.
        """
        for child in self._children:
            assert child.stdin is not None
            try:
                child.stdin.write(job.line())
                child.stdin.flush()
            except BrokenPipeError:
                raise self._ended() from None
        yield from self._until(len(self._children) * job.count)

    def close(self) -> None:
        """Stop watching."""
        self._selector.close()

    def _until(self, total: int) -> Iterator[Counter[str]]:
        counts: Counter[str] = Counter()
        yield counts
        while counts.total() < total:
            for key, _ in self._selector.select(_TICK_SECONDS):
                counts.update(self._words(key.fd))
            yield counts

    def _words(self, descriptor: int) -> list[str]:
        said = os.read(descriptor, 65536)
        if not said:
            raise self._ended()
        *lines, self._rest[descriptor] = (self._rest[descriptor] + said).split(b"\n")
        return [line.decode() for line in lines]

    def _ended(self) -> AzguardError:
        said = os.pread(self._last_words.fileno(), 1 << 20, 0).decode("utf-8", "replace")
        lines = [line for line in said.splitlines() if line.strip()]
        return AzguardError(
            "one of the demonstration's writers ended before its time",
            detail=tuple(lines[-_LAST_WORDS:]),
            reason="demo_writer_failed",
        )


@contextmanager
def started(count: int, queues: Path, environ: Mapping[str, str]) -> Iterator[Writers]:
    """Start so many writer processes for the length of a ``with`` block; they end with it, and with this process."""
    import tempfile

    with tempfile.TemporaryFile() as words, ExitStack() as stack:
        children: list[Popen[bytes]] = []
        stack.callback(_end, children)
        for _ in range(count):
            children.append(_start(queues, environ, words))  # noqa: PERF401  # each is ended, even if the next fails
        writers = Writers(children, words)
        stack.callback(writers.close)
        yield writers


def _start(queues: Path, environ: Mapping[str, str], words: IO[bytes]) -> Popen[bytes]:
    return Popen(
        [sys.executable, "-P", "-m", "azguard.demo.worker", str(queues)],
        env=_for_workers(environ),
        stdin=PIPE,
        stdout=PIPE,
        stderr=words,
        # Ctrl-C in the terminal is for us, and we end them.
        start_new_session=True,
    )


def _for_workers(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which the same azguard is found, and 127.0.0.1 is not asked for through a proxy."""
    kept = {name: value for name, value in environ.items() if not name.lower().endswith("_proxy")}
    return {**kept, "PYTHONPATH": os.pathsep.join(os.path.abspath(folder) for folder in sys.path)}


def _end(children: list[Popen[bytes]]) -> None:
    for child in children:
        child.kill()
    for child in children:
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()
