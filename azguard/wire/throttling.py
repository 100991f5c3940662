"""How long a service wants to be left alone (``Retry-After``), noted where its answers arrive, for all threads.

Each service, by its host and port, has a time of its own; its latest answer counts.
"""

import re
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from urllib.parse import urlsplit

from azguard import times

_SAYS_LATER = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
_SECONDS = re.compile(r"[0-9]+")
# Thirty years.
_MOST_SECONDS = 1e9
_until: dict[str, float] = {}


def note(url: str, status: int, headers: Mapping[str, str], clock: Callable[[], float] = time.monotonic) -> None:
    """Note what an answer from a URL says, if it is one that says later."""
    if status not in _SAYS_LATER and status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return
    seconds = _read_seconds(headers)
    if seconds is not None:
        _until[urlsplit(url).netloc] = clock() + seconds


def find_pause_seconds(endpoint: str, clock: Callable[[], float] = time.monotonic) -> float:
    """Return for how many seconds from now the service at an endpoint is to be left alone; 0 if it did not say so."""
    return max(0.0, _until.get(urlsplit(endpoint).netloc, 0.0) - clock()) if _until else 0.0


def _read_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that an answer asks for; a moment counts from the answer's own date, not from our clock."""
    text = headers.get("Retry-After", "").strip()
    if _SECONDS.fullmatch(text):
        return min(float(text), _MOST_SECONDS)
    until, now = times.find_http_date(text), times.find_http_date(headers.get("Date"))
    return None if until is None or now is None else max(0.0, (until - now).total_seconds())
