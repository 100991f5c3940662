"""What this process sends, what is answered, and how long that took: for one who listens.

All threads of a process are heard, because transfers, renewals and updates of many entities have threads of their own.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Listener = Callable[[str], None]
_listeners: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell each request and each pause of this block to a listener, as a line of text that may hold credentials."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def tell(text: str) -> None:
    """Tell a line to those who listen."""
    for listener in _listeners:
        listener(text)


def send(call: Callable[[], Any], method: str, url: str, clock: Callable[[], float] = time.monotonic) -> Any:
    """Return the response of a request that ``call`` sends, and tell its end: a status, or why there was no answer."""
    if not _listeners:
        return call()
    began = clock()
    try:
        response = call()
    except BaseException as error:
        tell(f"{method} {url}: no answer after {_describe(clock() - began)} ({type(error).__name__})")
        raise
    code = response.headers.get("x-ms-error-code", "")
    tell(f"{method} {url}: {' '.join(filter(None, (str(response.status_code), code)))} in {_describe(clock() - began)}")
    return response


def _describe(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"
