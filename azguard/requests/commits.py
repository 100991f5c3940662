"""A write and its outcome: committed, not committed, not yet known.

From the moment at which a write is known to be committed, no interruption may deny it.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from enum import Enum
from typing import TypeVar

from azguard.errors import AzguardError, Forbidden, Locked

# A thread that a command starts has no listener: signals go to the main thread alone.
_listener: ContextVar[Callable[[], None] | None] = ContextVar("listener", default=None)
# The interruptions of the step that is under way; None where none is.
_put_off: ContextVar[list[KeyboardInterrupt] | None] = ContextVar("put_off", default=None)
T = TypeVar("T")


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


def step_through(pieces: Iterable[T], write: Callable[[T], None]) -> None:
    """Write each piece. All but the last are steps, after which a signal is heeded; each is read one ahead."""
    following = iter(pieces)
    piece = next(following, None)
    while piece is not None:
        after = next(following, None)
        with nullcontext() if after is None else step():
            write(piece)
        piece = after


def put_off(interruption: KeyboardInterrupt) -> None:
    """Put off an interruption that came while a write was settled, which is committed, to the end of its step."""
    interruptions = _put_off.get()
    if interruptions is not None:
        interruptions.append(interruption)


def raise_interruption(error: AzguardError) -> None:
    """Raise the interruption because of which an outcome is not known, where one is the cause of the error."""
    if isinstance(error.__cause__, KeyboardInterrupt):
        raise error.__cause__ from None


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


class Verdict(Enum):
    """What a look at the resource says about a write in doubt."""

    COMMITTED = "committed"
    NEVER = "never"  # another write has taken its place, so it can never commit
    NOT_YET = "not yet"  # what it would replace is still there; it may still arrive
    UNKNOWN = "unknown"


def look_under(lease_id: str | None, look: Callable[[str | None], T]) -> tuple[T, bool]:
    """Return the finding of ``look`` under a lease id, and whether that lease is still held.

    Where the lease has ended, which may be why the service refused the write, ``look`` asks again without the lease id.
    """
    try:
        return look(lease_id), lease_id is not None
    except Locked:
        if lease_id is None:
            raise
        return look(None), False


class WriteRefused(Forbidden):
    """A write of several requests, of which the service refused one: no transmission is in doubt."""


class NotSent(Exception):  # it is no error by itself: it says of one when it came
    """An error that came before anything was sent."""

    def __init__(self, error: AzguardError) -> None:
        super().__init__(error.message)
        self.error = error


@contextmanager
def look_first() -> Iterator[None]:
    """Make reads that come before a write: where one fails, the write was not sent.

    Raises:
        NotSent: one failed.
    """
    try:
        yield
    except AzguardError as error:
        raise NotSent(error) from error
