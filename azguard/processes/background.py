"""A process in the background, which outlives the command that started it.

It is forked, so that it has in memory what its parent had: no credential is written anywhere. It has a session of its
own, and no terminal. Of the files of its parent it keeps the error stream alone, until ``leave_errors``: a reader
that reads the output of the command to its end does not wait for this process.

The environment stays as it is. CI runners find by it what a job left behind, and end that with the job.
"""

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from azguard.processes import channel, tree
from azguard.processes.channel import Channel

_POLL_SECONDS = 0.02
_FIRST_OTHER_FILE = 3
_MOST_FILES = 1 << 20


@dataclass(frozen=True)
class Background:
    """The parent's side of a process in the background."""

    pid: int
    channel: Channel

    def end(self, seconds: float) -> None:
        """Let it go, which it notices, and wait until it has ended; kill it if that takes longer."""
        self.channel.close()
        until = time.monotonic() + seconds
        while os.waitpid(self.pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > until:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                return
            time.sleep(_POLL_SECONDS)


def start(name: str, work: Callable[[Channel], None]) -> Background:
    """Fork a process of this name that does a piece of work and ends; call it before any thread is started."""
    ours, theirs = channel.pair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        _serve(name, work, theirs)
    theirs.close()
    return Background(pid, ours)


def leave_errors(log: Path) -> None:
    """Print from now on into a file instead of the parent's error stream.

    Raises:
        OSError: it cannot be made.
    """
    opened = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    os.dup2(opened, 2)
    os.close(opened)


def _serve(name: str, work: Callable[[Channel], None], theirs: Channel) -> NoReturn:
    status = 1
    try:
        os.setsid()
        tree.rename(name)
        _leave_streams(theirs.fileno())
        work(theirs)
        status = 0
    except BaseException:  # noqa: BLE001  # nothing of azguard's own stack may run in this process
        traceback.print_exc(file=sys.stderr)
    finally:
        os._exit(status)


def _leave_streams(kept: int) -> None:
    """Close what the parent has open, except its error stream and one other file."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(nothing, number)
    os.closerange(_FIRST_OTHER_FILE, kept)
    os.closerange(kept + 1, _MOST_FILES)
