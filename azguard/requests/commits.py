"""The moment from which a write is known to be committed, so that an interruption must not deny it any more."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# A thread that a command starts has no listener: signals go to the main thread alone.
_listener: ContextVar[Callable[[], None] | None] = ContextVar("listener", default=None)
# The interruptions of the step that is under way; None where none is.
_put_off: ContextVar[list[KeyboardInterrupt] | None] = ContextVar("put_off", default=None)


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
    """Announce no commit: what is written here is not the write that the caller was asked for."""
    with listen(None):
        yield


@contextmanager
def step() -> Iterator[None]:
    """Announce no commit: what is written here is a step towards the write that the caller was asked for.

    An interruption that was put off until the step was settled is raised at the end, before the next one is sent.
    """
    interruptions: list[KeyboardInterrupt] = []
    before = _put_off.set(interruptions)
    try:
        with suppress():
            yield
    finally:
        _put_off.reset(before)
    if interruptions:
        raise interruptions[0]


def put_off(interruption: KeyboardInterrupt) -> None:
    """Put off an interruption that came while a write was settled, which is committed, to the end of its step."""
    interruptions = _put_off.get()
    if interruptions is not None:
        interruptions.append(interruption)


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
