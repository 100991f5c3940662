"""The effect of signals on a run: an end in order while it works, a fast end once its status is known."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from azguard.requests import commits

# Windows has no SIGHUP.
_ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
#: The reason of a run that ends because a person declined.
DECLINED = "declined"
# How long a signal that comes at a bad moment is put off, again and again: an import takes some 100 ms.
_PUT_OFF_SECONDS = 0.02


class State:
    """How far this run has come. Each is one attribute, so that setting it is one step for a signal."""

    # The write is committed: a signal changes nothing any more.
    committed = False
    # The run is over and becomes an exit status: a signal waits until that is known, and then hastens the end.
    over = False
    # A signal ended it, wherever it was: what it was about to make there is half made.
    interrupted = False
    # The answer to a question was no: an end with the status of Ctrl-C, but nothing a loop of a shell should end at.
    declined = False

    def commit(self) -> None:
        self.committed = True


state = State()


class EndedBySignal(KeyboardInterrupt):
    """Ctrl-C, SIGTERM or SIGHUP, with the exit status it stands for: 130, 143 or 129."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.status = 128 + number


def end_in_order() -> None:
    """Let signals end this process by an exception, so that what was begun is settled and released."""
    state.committed = state.over = state.interrupted = state.declined = False
    for number in _ENDING:
        # What we were started to ignore, as nohup does, stays ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    sys.unraisablehook = _hear_of_a_destructor


def _end(number: int, frame: FrameType | None) -> None:
    if state.committed:
        return
    if state.over or _would_be_lost(frame):
        _put_off(number)
    else:
        state.interrupted = True
        raise EndedBySignal(number)


def _would_be_lost(frame: FrameType | None) -> bool:
    """Return whether an exception would do harm: half a module left by an import, or printed after a destructor."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib") or frame.f_code is _hear_of_a_destructor.__code__:
            return True
        frame = frame.f_back
    return False


def _hear_of_a_destructor(failed: "sys.UnraisableHookArgs") -> None:
    """Send a signal again whose exception came in a destructor, where Python prints it and goes on.

    What a signal left half made cannot be closed, of which Python tells since 3.13; the signal is the reason.
    """
    if isinstance(failed.exc_value, EndedBySignal):
        _put_off(failed.exc_value.number)
    elif not state.interrupted:
        sys.__unraisablehook__(failed)


def _put_off(number: int) -> None:
    # To the main thread, which alone runs handlers: it may sleep, and would not notice another's signal.
    timer = threading.Timer(_PUT_OFF_SECONDS, signal.pthread_kill, (threading.main_thread().ident, number))
    timer.daemon = True
    timer.start()


@contextmanager
def until_committed() -> Iterator[None]:
    """Let a signal end this command only until its write is committed; what is left is to remember and to show it.

    From then on signals are ignored to the end of the run: 130 or 143 would say that nothing was written.
    """
    with commits.listen(state.commit):
        yield


@contextmanager
def heed() -> Iterator[None]:
    """Let signals end this command although its write is committed, while it waits for what others do."""
    before, state.committed = state.committed, False
    try:
        yield
    finally:
        state.committed = before


def discard_unfinished() -> None:
    """Delete the files that threads are still writing, before an end that does not wait for them."""
    # If the module was never imported, or not to its end, no file is unfinished.
    writing = sys.modules.get("azguard.atomic_files")
    discard = getattr(writing, "discard_unfinished", None)
    if discard is not None:
        discard()


def hasten(status: int) -> None:
    """Let a further signal end this process at once with a status that is known; raised, it would deny it."""

    def end(_number: int, _frame: object) -> None:
        discard_unfinished()
        os._exit(status)

    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, end)
