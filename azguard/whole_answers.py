"""A transport that takes no half answers, and waits for none longer than it is told to.

Python's HTTP client takes a head that ends in the middle for a whole one: an ETag cut short then looks like an ETag,
and missing metadata like none. Such an answer counts as lost, so that the truth is asked for.

Some methods of the SDK, such as ``get_blob_tags``, drop the timeouts they are given; then those of ``within`` hold.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from azguard.proxies import request_settings

if TYPE_CHECKING:
    from azure.core.pipeline.transport import RequestsTransport

CUT_SHORT = "the answer was cut short"
# What one process keeps open to a service: as many as it ever has requests under way. The SDK's own pool keeps ten, and
# closes the others after each request.
CONNECTIONS = 64
# Answers that have no body say nothing about its length.
_NO_BODY = (204, 304)
_TIMEOUTS: ContextVar[Mapping[str, Any]] = ContextVar("timeouts")


@contextmanager
def within(timeouts: Mapping[str, Any]) -> Iterator[None]:
    """Give every request made in this block these timeouts, in seconds, unless it has some of its own."""
    before = _TIMEOUTS.set(timeouts)
    try:
        yield
    finally:
        _TIMEOUTS.reset(before)


def transport(**settings: Any) -> "RequestsTransport":
    """Return the SDK's transport over requests, which raises ServiceResponseError for an answer cut short."""
    from azure.core.exceptions import ServiceResponseError
    from azure.core.pipeline.transport import RequestsTransport

    class WholeAnswers(RequestsTransport):  # type: ignore[misc]  # to mypy the SDK's lazy exports are Any
        def open(self) -> None:
            if self.session is None:
                super().open()
                session: Any = self.session
                for adapter in session.adapters.values():
                    adapter.init_poolmanager(CONNECTIONS, CONNECTIONS)

        def send(self, request: Any, **kwargs: Any) -> Any:
            response: Any = super().send(request, **{**request_settings(request.url), **_TIMEOUTS.get({}), **kwargs})
            # Of the answer to a delete nothing matters but the status, which comes first.
            if request.method != "DELETE" and not _is_whole(request.method, response):
                raise ServiceResponseError(CUT_SHORT)
            return response

    return WholeAnswers(**settings)


def _is_whole(method: str, response: Any) -> bool:
    """Return whether the head's last lines are there: the service ends it with the date, Azurite with the length, or,
    where a table's answer has no body, with the ETag."""
    headers = response.headers
    if response.status_code >= 400:
        return True  # A refusal is one by its status; what stands between us and the service leaves much out.
    if method == "HEAD":
        return "Date" in headers  # Azurite leaves the length out
    closes = str(headers.get("Connection", "")).lower() == "close"
    framed = closes or response.status_code in _NO_BODY or "Content-Length" in headers or "Transfer-Encoding" in headers
    return "Date" in headers and framed and str(headers.get("ETag", '""')).endswith('"')
