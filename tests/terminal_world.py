"""An interactive shell under a terminal of its own, driven as a person would: by typing, and by reading."""

import fcntl
import os
import pty
import signal
import subprocess
import termios
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.emulator_world import until

CTRL_C, CTRL_Z = "\x03", "\x1a"
_SECONDS = 40.0


class Shell:
    """A bash with job control."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._ours, theirs = pty.openpty()

        def own_terminal() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self._process = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "-i"], cwd=folder, env={**environ, "PS1": "$ ", "HISTFILE": ""},
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, preexec_fn=own_terminal,
        )  # fmt: skip
        os.close(theirs)
        self.shown = ""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def type(self, text: str) -> None:
        """Type, a new line or a control character included."""
        os.write(self._ours, text.encode())

    def wait_for(self, text: str) -> None:
        """Wait until something is shown."""
        until(lambda: text in self.shown, _SECONDS)

    def forget(self) -> None:
        """Begin with an empty screen."""
        self.shown = ""

    def hang_up(self) -> None:
        """Tell everybody in the foreground that the terminal is gone, as when its window is closed."""
        os.killpg(os.tcgetpgrp(self._ours), signal.SIGHUP)

    def end(self) -> None:
        """End the shell; what it has left running is ended by who started it."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(_SECONDS)
        self._reader.join(_SECONDS)
        os.close(self._ours)

    def _read(self) -> None:
        # The end of a terminal that nobody holds open any more is an error.
        with suppress(OSError):
            while piece := os.read(self._ours, 65536):
                self.shown += piece.decode(errors="replace")


@contextmanager
def shell(folder: Path, environ: Mapping[str, str]) -> Iterator[Shell]:
    """Yield a shell that ends with the ``with`` block."""
    made = Shell(folder, environ)
    try:
        yield made
    finally:
        made.end()
