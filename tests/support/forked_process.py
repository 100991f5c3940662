"""The test's end of a fork: what ``subprocess.Popen`` is of a process that was started."""

import marshal
import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any, Self

from tests.support import forked

_MOST_BYTES = 64
_UMASK = os.umask(0)
os.umask(_UMASK)


class ForkedProcess:
    """A command line of azguard, or of another module, under way, with the parts of ``subprocess.Popen`` tests use.

    It is killed when this object goes, or this process ends.
    """

    def __init__(
        self,
        words: tuple[str, ...],
        cwd: Path,
        env: Mapping[str, str],
        *,
        module: str = "azguard",
        stdin: Any = subprocess.PIPE,
        stdout: Any = subprocess.PIPE,
        stderr: Any = subprocess.PIPE,
    ) -> None:
        self.returncode: int | None = None
        self._hearing = threading.Lock()
        self.stdin: IO[bytes] | None = None
        self.stdout: IO[bytes] | None = None
        self.stderr: IO[bytes] | None = None
        self._server = socket.socket(socket.AF_UNIX)
        self._server.connect(forked.server())
        with ExitStack() as passed:
            streams = [self._open(number, each, passed) for number, each in enumerate((stdin, stdout, stderr))]
            environ = {os.fsencode(name): os.fsencode(value) for name, value in env.items()}
            line = [os.fsencode(each) for each in ("-m", module, *words)]
            facts = line, environ, os.fsencode(cwd), _UMASK, [0, 1, 2]
            content = marshal.dumps(facts)
            count = socket.send_fds(self._server, [content], streams)
            self._server.sendall(content[count:])
            self._server.shutdown(socket.SHUT_WR)
        self._said = b""
        while b" " not in self._said:
            assert self._hear(), "it ended before it began"
        self.pid = int(self._said.partition(b" ")[0])

    def __del__(self) -> None:
        self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        self.wait()

    def poll(self) -> int | None:
        """Return the exit status, None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return its exit status; a signal's number is below zero."""
        until = None if timeout is None else time.monotonic() + timeout
        while self.returncode is None:
            patience = None if until is None else max(0.0, until - time.monotonic())
            if not self._can_be_heard(patience):
                raise subprocess.TimeoutExpired("azguard", timeout or 0.0)
            with self._hearing:
                if self.returncode is None and not self._hear():
                    self.returncode = int(self._said.partition(b" ")[2])
        return self.returncode

    def _can_be_heard(self, patience: float | None) -> bool:
        """Return whether the server says something within so many seconds; a process of many tests has high numbers."""
        ear = select.poll()
        ear.register(self._server, select.POLLIN)
        return bool(ear.poll(None if patience is None else patience * 1000))

    def communicate(self, input: bytes = b"", timeout: float | None = None) -> tuple[bytes, bytes]:
        """Give it this input, read what it prints, and wait for its end."""
        with ThreadPoolExecutor(3) as pool:
            written = pool.submit(self._write, input)
            out, err = (pool.submit(_read, stream) for stream in (self.stdout, self.stderr))
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
            written.result(timeout)
            return out.result(timeout), err.result(timeout)

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        with suppress(ProcessLookupError):
            if self.poll() is None:
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Send it SIGKILL, unless it has ended."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Send it SIGTERM, unless it has ended."""
        self.send_signal(signal.SIGTERM)

    def _open(self, number: int, wanted: Any, passed: ExitStack) -> int:
        """Return the descriptor that it gets as one of its three streams, and keep our end of a pipe."""
        if wanted is None:
            return number
        if wanted == subprocess.DEVNULL:
            return passed.enter_context(open(os.devnull, "r+b", buffering=0)).fileno()
        if wanted != subprocess.PIPE:
            return wanted if isinstance(wanted, int) else int(wanted.fileno())
        reading, writing = os.pipe()
        theirs, ours = (reading, writing) if number == 0 else (writing, reading)
        passed.callback(os.close, theirs)
        stream = os.fdopen(ours, "wb" if number == 0 else "rb")
        setattr(self, ("stdin", "stdout", "stderr")[number], stream)
        return theirs

    def _write(self, content: bytes) -> None:
        if self.stdin is not None:
            with suppress(BrokenPipeError), self.stdin:
                self.stdin.write(content)

    def _hear(self) -> bool:
        piece = self._server.recv(_MOST_BYTES)
        self._said += piece
        return piece != b""


def _read(stream: IO[bytes] | None) -> bytes:
    if stream is None:
        return b""
    with stream:
        return stream.read()
