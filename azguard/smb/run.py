"""``file lock run``: a file is open, and so locked, while a command runs; the command is ended if the handle is lost.

Not guaranteed: what the server frees, because the connection or the handle is gone, another may lock at once, while the
command is still being ended. SIGSTOP does not free it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from azguard.locks import guarded_run
from azguard.locks.guarded_run import GuardedCommand
from azguard.smb.file_lock import FileLock, FileLockSettings
from azguard.smb.file_locks import FileLocks
from azguard.smb.session import ShareSession


@dataclass(frozen=True)
class FileLockPlan:
    """What to run while which file is locked."""

    lock: FileLock
    command: GuardedCommand
    settings: FileLockSettings
    #: Is called when the file is locked, before the command starts.
    on_held: Callable[[], None] = lambda: None


def run(plan: FileLockPlan) -> int:
    """Run a command while its file is locked and return its exit status; see ``guarded_run.run``."""
    session = ShareSession(plan.lock.place, plan.settings.patience)
    locks = FileLocks(plan.lock, plan.settings, plan.command.environ, session, plan.on_held)
    return guarded_run.run(plan.command, locks)
