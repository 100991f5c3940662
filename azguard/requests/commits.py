"""The moment from which a write is known to be committed, so that an interruption must not deny it any more."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# A thread that a command starts has no listener: signals go to the main thread alone.
_listener: ContextVar[Callable[[], None] | None] = ContextVar("listener", default=None)


@contextmanager
def listen(listener: Callable[[], None] | None) -> Iterator[None]:
    """Call the listener whenever a write of this thread is known to be committed."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


@contextmanager
def suppress() -> Iterator[None]:
    """Announce no commit: what is written here is a step towards the write that the caller was asked for."""
    with listen(None):
        yield


def announce() -> None:
    """Tell the listener that a write is committed. Call it before the outcome is returned, and as often as you like."""
    try:
        _call_listener()
    except KeyboardInterrupt:
        # It came too late: the write is committed.
        _call_listener()


def _call_listener() -> None:
    listener = _listener.get()
    if listener is not None:
        listener()
