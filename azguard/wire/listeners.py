"""Those who listen to requests: each request, its answer and how long that took are told to them.

Requests of all threads are told, because transfers, renewals and updates of many entities have threads of their own.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from azguard.wire.connections import Reply

RequestListener = Callable[[str], None]
_listeners: list[RequestListener] = []


@contextmanager
def listen_to_requests(listener: RequestListener) -> Iterator[None]:
    """Tell each request and each pause of this block to a listener, as a line of text that may hold credentials."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def tell_listeners(text: str) -> None:
    """Tell a line to those who listen."""
    for listener in _listeners:
        listener(text)


def send_and_tell(
    call: Callable[[], "Reply"], method: str, url: str, clock: Callable[[], float] = time.monotonic
) -> "Reply":
    """Return the reply to a request that ``call`` sends, and tell its end: a status, or why there was no answer."""
    if not _listeners:
        return call()
    began = clock()
    try:
        reply = call()
    except BaseException as error:
        tell_listeners(f"{method} {url}: no answer after {_describe_seconds(clock() - began)} ({type(error).__name__})")
        raise
    answer = " ".join(filter(None, (str(reply.status_code), reply.headers.get("x-ms-error-code"))))
    tell_listeners(f"{method} {url}: {answer} in {_describe_seconds(clock() - began)}")
    return reply


def _describe_seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"
