"""A transport of the SDK without a network: the tests say what it answers."""

from typing import Any, Self

import requests
from azure.core.pipeline.transport import HttpTransport, RequestsTransportResponse


class AnsweringTransport(HttpTransport[Any, Any]):
    """Answers each request with what ``answer`` returns."""

    def answer(self, request: Any) -> requests.Response:
        """Return the answer to a request."""
        raise NotImplementedError

    def send(self, request: Any, **kwargs: Any) -> Any:
        answer = self.answer(request)
        answer._content = answer._content or b""
        answer.headers["content-length"] = str(len(answer._content))
        return RequestsTransportResponse(request, answer)

    def send_open(self, *_: Any) -> None:
        """Have no connection that is open, so that ``send`` is called."""

    def open(self) -> None:
        """Need nothing."""

    def close(self) -> None:
        """Hold nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *args: object) -> None:
        """Hold nothing."""
