"""Signals to azguard while its command runs: they are for the command."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from azguard.locks.guardian import Guardian

_FORWARDED = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTSTP,
)  # fmt: skip


class Stops:
    """Ctrl-Z: whether somebody asked for it, and how to obey."""

    def __init__(self) -> None:
        self.asked = False

    def stop(self) -> None:
        """Stop this process and its group, as the terminal would have; return once it goes on."""
        self.asked = False
        handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.killpg(os.getpgrp(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, handler)


@contextmanager
def passed_on(guardian: Guardian) -> Iterator[Stops]:
    """Pass signals on to the command, while we go on waiting for it. Call it on the main thread."""
    stops = Stops()

    def pass_on(number: int, frame: FrameType | None) -> None:
        stops.asked = stops.asked or number == signal.SIGTSTP
        guardian.pass_on(number)

    before = {number: signal.getsignal(number) for number in _FORWARDED}
    try:
        for number, handler in before.items():
            # What we were started to ignore (nohup, a background job), the command ignores too.
            if handler is not signal.SIG_IGN:
                signal.signal(number, pass_on)
        yield stops
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
