"""Files that one process at a time locks; the kernel unlocks them when that process ends, however it ends.

filelock is not used: the queue of writers locks tickets that are open already, and one system call does it.

Not guaranteed: locks on a network file system, some of which accept the call and lock nothing.
"""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

#: Whether this system has such locks; Windows has not.
IS_SUPPORTED = os.name == "posix"
# How often to try a lock that may be waited for only so long: the system call has no timeout.
_POLL_SECONDS = 0.002


def lock(descriptor: int) -> None:
    """Lock an open file; wait as long as another process has it locked."""
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX)


def try_lock(descriptor: int) -> bool:
    """Lock an open file unless it is locked already; return whether it is ours now."""
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def create_locked(path: Path, flags: int = 0) -> int:
    """Return a file that is open and locked, which is made for this user alone if it is not there.

    Raises:
        OSError: it cannot be opened, or this file system has no locks.
    """
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | flags, 0o600)
    try:
        lock(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_and_try(path: Path, flags: int) -> int:
    """Return a file that is open, and locked unless another process has it locked or this file system has no locks.

    Raises:
        OSError: it cannot be opened.
    """
    descriptor = os.open(path, flags, 0o600)
    if IS_SUPPORTED:
        with suppress(OSError):
            try_lock(descriptor)
    return descriptor


@contextmanager
def lock_unused(path: Path, *, if_missing: bool = False) -> Iterator[bool]:
    """Keep a file locked meanwhile, unless a process has it locked; yield whether none has.

    Yield ``if_missing`` where there is no file, and False where it cannot be told. No file is made.
    """
    with ExitStack() as stack:
        is_unused = not IS_SUPPORTED
        try:
            if IS_SUPPORTED:
                # A network file system locks only what may be written.
                access = os.O_RDWR if os.access(path, os.W_OK) else os.O_RDONLY
                descriptor = os.open(path, access | os.O_NOFOLLOW | os.O_NONBLOCK)
                stack.callback(os.close, descriptor)
                is_unused = try_lock(descriptor)
        except FileNotFoundError:
            is_unused = if_missing
        except OSError:
            is_unused = False
        yield is_unused


@contextmanager
def hold(path: Path, at_most_seconds: float | None = None) -> Iterator[int]:
    """Hold a lock file, which is made if need be and stays, and yield it; wait for it at most so long, or for ever.

    Raises:
        OSError: the file cannot be opened, or this file system has no locks.
        TimeoutError: another process kept it locked.
    """
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        if at_most_seconds is None:
            lock(descriptor)
        else:
            _lock_within(descriptor, at_most_seconds)
        yield descriptor
    finally:
        os.close(descriptor)


def _lock_within(descriptor: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not try_lock(descriptor):
        if time.monotonic() > deadline:
            raise TimeoutError(f"another process kept it locked for {seconds:g} seconds")
        time.sleep(_POLL_SECONDS)  # a wait for the lock itself could not end in time
