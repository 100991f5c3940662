"""What this process's children start from some moment on, in whichever process group or session it runs.

A child that is to be ended with all it started runs in a process group of its own. What is in ours is left alone: a
login's ``az`` runs there. So are the children that this process had before, as one has that began as a shell.

Not for several threads that start children in groups of their own: who started what cannot be told apart then.
"""

import os

from azguard.processes import tree
from azguard.processes.identity import Process


class Offspring:
    """The processes that descend from this one and were started after this object was made."""

    def __init__(self) -> None:
        self._strangers = tree.find_descendants(os.getpid())

    def running(self, but: int = 0) -> list[Process]:
        """Return those that run; ``but`` is the pid of one to leave out, whose descendants are not left out."""
        ours = os.getpgrp()
        found = tree.find_descendants(os.getpid(), self._strangers)
        return [each for each in found if each.group != ours and each.pid != but]

    def reap(self) -> None:
        """Collect adopted orphans that have ended."""
        # A process whose parent is collected becomes our child, and may have ended before.
        while self._reap_once():
            pass

    def _reap_once(self) -> bool:
        """Collect what has ended by now; return whether there was something to collect."""
        ours, strangers = os.getpgrp(), {each.pid for each in self._strangers}
        collected = False
        for each in tree.find_ended_children():
            if each.group == ours or each.pid in strangers:
                continue
            try:
                pid, _ = os.waitpid(each.pid, os.WNOHANG)
            except ChildProcessError:
                continue
            collected = collected or pid != 0
        return collected
