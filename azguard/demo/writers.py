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

from azguard.demo.worker import READY, WriterJob
from azguard.errors import AzguardError
from azguard.processes.signals import hold_back_interruptions

# The longest wait for output, so that the display shows the time go by.
_TICK_SECONDS = 0.1
# How many lines of standard error an error shows.
_SHOWN_LINES = 5


class Writers:
    """Running writer processes that wait for jobs."""

    def __init__(self, children: list[Popen[bytes]], stderr: IO[bytes]) -> None:
        self._children = children
        self._stderr = stderr
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
        for counts in self._count_until(len(self._children)):
            assert set(counts) <= {READY}

    def run(self, job: WriterJob) -> Iterator[Counter[str]]:
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
                raise self._explain_exit() from None
        yield from self._count_until(len(self._children) * job.count)

    def close(self) -> None:
        """Stop watching."""
        self._selector.close()

    def _count_until(self, total: int) -> Iterator[Counter[str]]:
        counts: Counter[str] = Counter()
        yield counts
        while counts.total() < total:
            for key, _ in self._selector.select(_TICK_SECONDS):
                counts.update(self._read_lines(key.fd))
            yield counts

    def _read_lines(self, descriptor: int) -> list[str]:
        said = os.read(descriptor, 65536)
        if not said:
            raise self._explain_exit()
        *lines, self._rest[descriptor] = (self._rest[descriptor] + said).split(b"\n")
        return [line.decode() for line in lines]

    def _explain_exit(self) -> AzguardError:
        """Return the error of a writer that ended, with the last lines it wrote."""
        said = os.pread(self._stderr.fileno(), 1 << 20, 0).decode("utf-8", "replace")
        lines = [line for line in said.splitlines() if line.strip()]
        return AzguardError(
            "one of the demonstration's writers ended before its time",
            detail=tuple(lines[-_SHOWN_LINES:]),
            reason="demo_writer_failed",
        )


@contextmanager
def start(count: int, queues: Path, environ: Mapping[str, str]) -> Iterator[Writers]:
    """Start so many writer processes for the length of a ``with`` block; they end with it, and with this process."""
    import tempfile

    with tempfile.TemporaryFile() as stderr, ExitStack() as stack:
        children: list[Popen[bytes]] = []
        stack.callback(_end, children)
        for _ in range(count):
            with hold_back_interruptions():
                children.append(_start(queues, environ, stderr))
        writers = Writers(children, stderr)
        stack.callback(writers.close)
        yield writers


def _start(queues: Path, environ: Mapping[str, str], stderr: IO[bytes]) -> Popen[bytes]:
    return Popen(
        [sys.executable, "-P", "-m", "azguard.demo.worker", str(queues)],
        env=_for_workers(environ),
        stdin=PIPE,
        stdout=PIPE,
        stderr=stderr,
        # Ctrl-C in the terminal must reach only this process, which then ends the writers.
        start_new_session=True,
    )


def _for_workers(environ: Mapping[str, str]) -> dict[str, str]:
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
