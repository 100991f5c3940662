"""What the tests inherit from where they are started: a terminal, signals that are ignored, and no compiled modules.

The first two would reach the programs that the tests start, and change how those end. The third would have each of them
compile azguard anew, which is a third of its time.
"""

import fcntl
import os
import signal
import sys
import termios

_MEMORY = "/dev/shm"
# What the last three runs leave, and as much again.
_ROOM_BYTES = 4 << 30


def shed() -> None:
    """Go on as if started without a terminal, with no signal ignored, and where Python keeps what it compiles."""
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            # As after nohup, or in the background of a script. A handler keeps us alive all the same; unlike what is
            # ignored, it is not inherited.
            signal.signal(number, _go_on)
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return
    if os.getsid(0) == os.getpid():
        # The terminal of a session's leader is that of all its processes, and its Ctrl-C must still reach us.
        _continue_in_child()
    fcntl.ioctl(terminal, termios.TIOCNOTTY)
    os.close(terminal)


def work_in_memory() -> None:
    """Have the folders of the tests in memory, where there is room and programs may be run: a disk is waited for."""
    try:
        found = os.statvfs(_MEMORY)
    except OSError:
        return
    has_room = found.f_bavail * found.f_frsize >= _ROOM_BYTES
    if has_room and os.access(_MEMORY, os.W_OK) and not found.f_flag & os.ST_NOEXEC:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", _MEMORY)


def _go_on(number: int, frame: object) -> None:
    pass


def _continue_in_child() -> None:
    """Fork: the child goes on with what follows, and this process ends with the child's status."""
    child = os.fork()
    if child:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os._exit(status if status >= 0 else 128 - status)
