"""The session below the SDK: what it sends is what requests itself would send."""

from typing import Any

import pytest
import requests

from azguard.accounts.sessions import Adapter, SdkSession
from tests.support.cases import cases

URL = "https://acct.blob.core.windows.net/site/a%20b/%C3%BC?comp=metadata&x=%2F"


@cases("body", [None, b"", b"content"])
@cases("method", ["GET", "HEAD", "PUT", "DELETE", "POST"])
def test_a_request_has_the_headers_that_requests_gives_it(
    monkeypatch: pytest.MonkeyPatch, method: str, body: bytes | None
) -> None:
    sent: list[Any] = []

    def note(self: Adapter, request: Any, **settings: Any) -> requests.Response:
        sent.append((request.method, request.url, dict(request.headers), request.body or None))
        assert settings == {
            "timeout": (1, 2),
            "stream": True,
            "verify": True,
            "cert": None,
            "proxies": {"http": "", "https": ""},
        }
        return requests.Response()

    monkeypatch.setattr(Adapter, "send", note)
    headers = {"x-ms-version": "2026-02-06", "accept": "application/xml"}
    settings: dict[str, Any] = {"proxies": {"http": "", "https": ""}, "verify": True, "cert": None, "stream": True}
    session = SdkSession()
    session.trust_env = False
    session.request(method, URL, headers=headers, data=body, timeout=(1, 2), allow_redirects=False, **settings)
    as_prepared = session.prepare_request(requests.Request(method, URL, headers=headers, data=body))
    wanted = {name.lower(): value for name, value in as_prepared.headers.items()}
    found = {name.lower(): value for name, value in sent[0][2].items()}
    assert (sent[0][:2], found, sent[0][3]) == ((method, as_prepared.url), wanted, as_prepared.body or None)


def test_a_header_that_would_be_two_is_refused() -> None:
    with pytest.raises(requests.exceptions.InvalidHeader):
        SdkSession().request("GET", URL, headers={"x-ms-meta-a": "1\r\nx-ms-meta-b: 2"}, allow_redirects=False)
