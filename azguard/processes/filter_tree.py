"""A filter command with all it started: to be ended, whichever way the command ended."""

import os
import signal
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from azguard.processes import groups, tree
from azguard.processes.identity import Process
from azguard.processes.offspring import Offspring

if TYPE_CHECKING:
    import subprocess

_POLL_SECONDS = 0.002


class FilterTree:
    """One command. Make this object before the command is started, and ``close`` it when the command was stopped.

    While several run in threads of one process, an orphan is ended together with the last of them: it may be the work
    of any.
    """

    #: What all that run now have started, and how many they are.
    _shared: Offspring | None = None
    _count = 0
    _sharing = threading.Lock()

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        tree.adopt_orphans()
        with self._sharing:
            FilterTree._count += 1
            FilterTree._shared = FilterTree._shared or Offspring()
            self._offspring = FilterTree._shared
        self._daemons = True

    def close(self) -> None:
        """Forget the command."""
        with self._sharing:
            FilterTree._count -= 1
            if FilterTree._count == 0:
                self._offspring.reap()
                FilterTree._shared = None

    def has_ended(self) -> bool:
        """Return whether the command itself has ended."""
        return self.process is None or self.process.poll() is not None

    def stop(self, signals: Sequence[signal.Signals], grace: float, *, daemons: bool = True) -> None:
        """End the command and its group: by these signals in turn, what is left after their grace by KILL.

        ``daemons`` says whether to end what has left the group, too.
        """
        self._daemons = daemons
        if self.process is None:
            return
        try:
            for number in signals:
                if self._ask(self.process.pid, number):
                    self._await_end(time.monotonic() + grace, all_of_it=number is signals[-1])
        finally:
            if self._has_group():
                groups.send(self.process.pid, signal.SIGKILL)
            tree.kill(self._running, grace)
            self._await_end(time.monotonic() + grace, all_of_it=False)

    def _ask(self, group: int, number: int) -> bool:
        """Ask all of it to end; return whether there was something to ask."""
        elsewhere = [each for each in self._running() if each.group != group]
        asked = self._has_group() and groups.terminate(group, number)
        tree.terminate(elsewhere, number)
        return asked or bool(elsewhere)

    def _await_end(self, until: float, *, all_of_it: bool) -> None:
        # A real clock: these are real processes. What the system does not let us kill, such as a set-user-id
        # command, is not waited for longer; its pipes are closed by now.
        while self._is_there(all_of_it=all_of_it) and time.monotonic() < until:
            time.sleep(_POLL_SECONDS)

    def _is_there(self, *, all_of_it: bool) -> bool:
        if self.process is None:
            return False
        if self.process.poll() is None:
            return True
        return all_of_it and (self._has_group() or bool(self._running()))

    def _has_group(self) -> bool:
        """Return whether anything runs in the command's group: once all in it are gone, its number is free again."""
        if self.process is None or self.process.returncode is None:
            return self.process is not None
        if not tree.IS_KNOWN:
            return groups.is_alive(self.process.pid)
        return any(each.group == self.process.pid for each in tree.find_descendants(os.getpid()))

    def _running(self) -> list[Process]:
        if self.process is None or not self._daemons:
            return []
        if FilterTree._count == 1:
            return self._offspring.running()
        # Once it is reaped, nothing descends from it any more, and its number may be another's.
        return [] if self.process.returncode is not None else tree.find_descendants(self.process.pid)
