"""The terminal a process was started from, and the process group in its foreground."""

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Terminal:
    """A controlling terminal."""

    fd: int
    #: The process group of ours, which may lend its foreground to another.
    group: int

    @classmethod
    def of_this_process(cls) -> "Terminal | None":
        """Return it, if there is one."""
        try:
            return cls(os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC), os.getpgrp())
        except OSError:
            return None

    def move(self, source: int, target: int) -> bool:
        """Put a group in the foreground in place of another; return whether that one had it.

        Without SIGTTOU ignored this would stop us.
        """
        try:
            if os.tcgetpgrp(self.fd) != source:
                return False  # as after ``bg``
            os.tcsetpgrp(self.fd, target)
        except OSError:
            return False  # the terminal is gone, or the group is
        return True

    def is_ours(self) -> bool:
        """Return whether our group has the foreground, so that Ctrl-C reaches it."""
        try:
            return os.tcgetpgrp(self.fd) == self.group
        except OSError:
            return False

    def is_gone(self) -> bool:
        """Return whether it has hung up, or is not our session's any more."""
        try:
            os.tcgetpgrp(self.fd)
        except OSError:
            return True
        return False


def in_foreground() -> bool:
    """Return whether this process is in the foreground of a terminal."""
    terminal = Terminal.of_this_process()
    if terminal is None:
        return False
    try:
        return terminal.is_ours()
    finally:
        os.close(terminal.fd)
