"""The guardian's command with all it started: signals to it, and whether any of it is left.

On Linux all of it descends from the guardian, which adopts orphans: other process groups, sessions and daemons too.
Elsewhere it is the command's process group. Where it has a control group, that is what is killed first.
"""

import os
import signal

from azguard.processes import groups, tree
from azguard.processes.cgroup import ControlGroup
from azguard.processes.identity import Process

# A lock run inside ours. It ends its own command when it is asked to end; asked twice, a command may give up tidying.
NAME = "lock-guardian"


class CommandTree:
    """A command, by its pid, which is its process group too. Its parent is this process."""

    def __init__(self, command: int, group: ControlGroup | None = None) -> None:
        self._command = command
        self._control_group = group
        self._frozen: list[Process] = []
        #: How the command ended, as ``waitpid`` tells it; None while it runs.
        self.status: int | None = None
        self._childless = False

    def reap(self) -> list[int]:
        """Collect what has ended; return how the command's state changed meanwhile, as ``waitpid`` tells it."""
        changes = []
        while not self._childless:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            except ChildProcessError:
                self._childless = True
                break
            if pid == 0:
                break
            if pid == self._command:
                changes.append(status)
                if os.WIFEXITED(status) or os.WIFSIGNALED(status):
                    self.status = status
        return changes

    def is_gone(self) -> bool:
        """Return whether nothing of it runs any more."""
        if tree.IS_KNOWN:
            # Whatever descends from us has an ancestor among our children.
            return self._childless
        return self.status is not None and not groups.is_alive(self._command)

    def send(self, number: int) -> None:
        """Send a signal to the command's process group."""
        if self._group_is_ours():
            groups.send(self._command, number)

    def ask_to_end(self, number: int) -> None:
        """Send a signal that ends to the command's process group, which may be stopped."""
        if self._group_is_ours():
            groups.terminate(self._command, number)

    def terminate(self, *, with_group: bool = True) -> None:
        """Ask all of it to end; without the command's process group if that was asked already."""
        elsewhere = self._elsewhere()
        if with_group:
            self.ask_to_end(signal.SIGTERM)
        tree.terminate(drop_other_locks(elsewhere))

    def kill(self) -> None:
        """Kill all of it; to be repeated until ``is_gone``: without a control group it may fork meanwhile."""
        if self._control_group is not None:
            self._control_group.kill()
        self.send(signal.SIGKILL)
        tree.send(self._all(), signal.SIGKILL)

    def freeze(self) -> None:
        """Stop all of it; to be repeated, since it may fork meanwhile."""
        self.send(signal.SIGSTOP)
        running = [each for each in self._elsewhere() if not each.is_stopped]
        tree.send(running, signal.SIGSTOP)
        self._frozen += running

    def go_on(self) -> None:
        """Let the command's process group go on, and what was frozen."""
        self.send(signal.SIGCONT)
        tree.send(self._frozen, signal.SIGCONT)
        self._frozen = []

    def find_running(self) -> list[str]:
        """Return what still runs, for people."""
        return [f"{each.name} (pid {each.pid})" for each in self._all()]

    def _group_is_ours(self) -> bool:
        """Return whether the number is still that of the command's group: it is free once all in it are gone."""
        return self.status is None or not tree.IS_KNOWN or any(e.group == self._command for e in self._all())

    def _all(self) -> list[Process]:
        try:
            return tree.find_descendants(os.getpid())
        except OSError:
            return []  # The machine has no room to open a file. The command's process group is ended all the same.

    def _elsewhere(self) -> list[Process]:
        return [each for each in self._all() if each.group != self._command]


def drop_other_locks(processes: list[Process]) -> list[Process]:
    """Leave out the guardians of other locks, and what they guard."""
    guarded = {each.pid for each in processes if each.name == NAME}
    kept = []
    for each in processes:
        if each.pid in guarded or each.parent in guarded:
            guarded.add(each.pid)
        else:
            kept.append(each)
    return kept
