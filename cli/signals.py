"""What a signal does to a run: end it in order while it works, hasten its end once its status is known."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Windows has no SIGHUP.
_ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP; handled as Ctrl-C is, but with an exit status of its own: 143 or 129."""

    def __init__(self, number: int) -> None:
        self.status = 128 + number


def end_in_order() -> None:
    """Let SIGTERM and SIGHUP end this process as Ctrl-C does, so that what was begun is settled and released."""
    for number in _ENDING:
        # What we were started to ignore, as nohup does, stays ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _terminate)


def _terminate(number: int, frame: object) -> None:
    raise Terminated(number)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ignore Ctrl-C, TERM and HUP while telling what is done already; 130 would say that it is not."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, *_ENDING)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def hasten(status: int) -> None:
    """Let a further signal end this process at once with a status that is known; raised, it would deny it."""

    def end(number: int, frame: object) -> None:
        os._exit(status)

    for number in (signal.SIGINT, *_ENDING):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, end)
