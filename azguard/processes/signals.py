"""Signals to azguard while its command runs: they are for the command. And the terminal that some of them come from.

Files are waited for so that no signal is missed: Python runs the handler of a signal between two system calls, and one
that comes just before a ``read`` that waits would be heeded only when that ``read`` ends.
"""

import io
import math
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any, BinaryIO, Protocol, TypeVar

from azguard.frozen import frozen

#: These ask a program to end.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: All that is passed on.
FORWARDED = (*ENDING, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTSTP)
Handler = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None
# How long a signal to ourselves may take to stop us.
_STOPPING_TICKS = 50
_TICK_SECONDS = 0.02


@frozen
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


@contextmanager
def restore_handlers(*numbers: int) -> Iterator[dict[int, Handler]]:
    """Let the block handle these signals in another way; it gets their handlers, which are put back when it ends.

    Call it on the main thread.
    """
    before: dict[int, Handler] = {number: signal.getsignal(number) for number in numbers}
    try:
        yield before
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def hold_back_interruptions() -> Iterator[None]:
    """Deliver ending signals only at the end of a block that an exception must not tear apart, such as Popen.

    An exception inside Popen would lose a process already started. Blocking the signals instead would not do: the
    command would inherit that. Elsewhere than on the main thread, which alone runs handlers, there is nothing to do.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    with restore_handlers(*ENDING) as before:
        for number, handler in before.items():
            if callable(handler):
                signal.signal(number, lambda received, _: held.append(received))
        yield
    for received in held:
        signal.raise_signal(received)


class Stops:
    """Ctrl-Z: whether it was asked for, and how to obey."""

    def __init__(self) -> None:
        self.asked = False
        self._continued = False

    def stop(self) -> bool:
        """Stop this process and its group, as the terminal would have; return whether it was let go on.

        Where no shell is there to do so, the system does not stop it in the first place.
        """
        self.asked = self._continued = False
        with restore_handlers(signal.SIGTSTP, signal.SIGCONT):
            signal.signal(signal.SIGCONT, self._note)
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)
            os.killpg(os.getpgrp(), signal.SIGTSTP)
            # Another thread may be the one that takes the signal, some instructions from here.
            for _ in range(_STOPPING_TICKS):
                if self._continued:
                    break
                time.sleep(_TICK_SECONDS)  # the other thread tells by no event
        return self._continued

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._continued = True


@contextmanager
def raise_at_end() -> Iterator[None]:
    """Raise at the end what a signal raised meanwhile, if it was caught to settle a write."""
    raised: list[BaseException] = []

    def noting(handler: Callable[[int, FrameType | None], Any]) -> Callable[[int, FrameType | None], None]:
        def note(number: int, frame: FrameType | None) -> None:
            try:
                handler(number, frame)
            except BaseException as interruption:
                raised.append(interruption)
                raise

        return note

    with restore_handlers(*ENDING) as before:
        for number, handler in before.items():
            if callable(handler):
                signal.signal(number, noting(handler))
        yield
    if raised:
        raise raised[0]


@contextmanager
def ignore_ending() -> Iterator[None]:
    """Ignore ending signals while we release what we hold. Call it on the main thread."""
    with restore_handlers(*ENDING):
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
        yield


@contextmanager
def pass_on_all(pass_on: Callable[[int], None]) -> Iterator[Stops]:
    """Pass signals on to the command, while we go on waiting for it. Call it on the main thread."""
    stops = Stops()

    def note(number: int, _frame: FrameType | None) -> None:
        stops.asked = stops.asked or number == signal.SIGTSTP
        pass_on(number)

    with handle_unless_ignored(FORWARDED, note):
        yield stops


@contextmanager
def handle_unless_ignored(numbers: Iterable[int], handle: Callable[[int, FrameType | None], Any]) -> Iterator[None]:
    """Handle signals so during the block, except those that this process was started to ignore.

    What nohup or a background job ignores, the command ignores too. Call it on the main thread.
    """
    with restore_handlers(*numbers) as before:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, handle)
        yield


@contextmanager
def hold_temporary_folder(prefix: str) -> Iterator[str]:
    """Make a temporary folder for the length of a ``with`` block and return its path.

    A signal that comes while it is being made waits until it can be deleted.
    """
    import tempfile

    with ExitStack() as stack:
        with hold_back_interruptions():
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix=prefix))
        yield folder


class HasFileno(Protocol):
    """What has a file descriptor."""

    def fileno(self) -> int: ...


Readable = TypeVar("Readable", bound=int | HasFileno)


def wait_readable(files: Iterable[Readable], seconds: float | None) -> list[Readable]:
    """Return those that can be read or have ended, after so many seconds at most; None waits for ever.

    On Linux any descriptor will do. ``select`` refuses those from 1024 on, and a program that starts us may have left
    that many open; elsewhere it is used all the same, since ``poll`` does not know all terminals there.
    """
    files = list(files)
    if sys.platform != "linux":
        return select.select(files, [], [], seconds)[0]
    poll = select.poll()
    by_number = {each if isinstance(each, int) else each.fileno(): each for each in files}
    for number in by_number:
        poll.register(number, select.POLLIN)
    milliseconds = None if seconds is None else max(0, math.ceil(seconds * 1000))
    return [by_number[number] for number, _ in poll.poll(milliseconds)]


@contextmanager
def read_interruptibly(stream: BinaryIO) -> Iterator[BinaryIO]:
    """Yield a reader of what ``stream`` is open on, whose waiting ends with the handler of a signal.

    It is for pipes and terminals on the main thread, where handlers run; any other stream is yielded as it is.
    """
    if os.name != "posix" or threading.current_thread() is not threading.main_thread():
        yield stream
        return
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    before = signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    try:
        yield io.BufferedReader(_Reader(stream.fileno(), woken))  # type: ignore[type-var]  # its readinto is wider
    finally:
        signal.set_wakeup_fd(before)
        os.close(woken)
        os.close(wakes)


class _Reader(io.RawIOBase):
    """Waits for data and for signals at once; each signal writes a byte to the pipe ``woken``."""

    def __init__(self, descriptor: int, woken: int) -> None:
        self._descriptor = descriptor
        self._woken = woken

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]  # the buffer is any writable one
        while True:
            ready = wait_readable([self._descriptor, self._woken], None)
            if self._woken in ready:
                os.read(self._woken, 4096)
            if self._descriptor in ready:
                return os.readv(self._descriptor, [buffer])
