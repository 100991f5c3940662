"""Ask a service that is not Azure Storage, such as that of a CI system, within a wall-clock limit."""

from dataclasses import dataclass
from typing import Any

from azguard.accounts import exchanges
from azguard.accounts.proxies import request_settings

_CONNECT_SECONDS = 4.0


@dataclass(frozen=True)
class Answered:
    """An answer: its status, its type and its whole content."""

    status: int
    content_type: str
    content: bytes


def get(url: str, authorization: str | None, seconds: float) -> Answered:
    """Ask once for JSON, and follow no redirect; ``authorization`` is the value of that header, None sends none.

    Raises:
        OSError: there is no whole answer in time.
    """
    import requests
    from urllib3.exceptions import HTTPError

    from azguard.accounts.sessions import Adapter

    def sign(request: Any) -> Any:
        # As an auth, because requests would add what stands in a .netrc.
        if authorization is not None:
            request.headers["Authorization"] = authorization
        return request

    token = exchanges.CURRENT.set(exchanges.Exchange(seconds, adds_time=False))
    try:
        with requests.Session() as session:
            adapter = Adapter()
            session.mount("https://", adapter)
            session.mount("http://", adapter)
            answer = session.get(
                url,
                auth=sign,
                headers={"Accept": "application/json"},
                timeout=(min(_CONNECT_SECONDS, seconds), seconds),
                allow_redirects=False,
                **request_settings(url),
            )
            return Answered(answer.status_code, answer.headers.get("Content-Type", ""), answer.content)
    # Without retries, urllib3's own errors are not translated by requests; a host that is no name is a UnicodeError.
    except (OSError, HTTPError, UnicodeError) as error:
        raise OSError(type(error).__name__) from error
    finally:
        exchanges.CURRENT.reset(token)
