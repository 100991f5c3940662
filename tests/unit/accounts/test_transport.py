"""The transport: what it asks of the environment, and how often."""

from types import SimpleNamespace
from typing import Any

import pytest
import requests
from azure.core.pipeline.transport import HttpRequest, RequestsTransport

from azguard.accounts.transport import transport


def test_the_proxies_of_the_environment_are_read_once_for_each_host(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def read(self: requests.Session, url: str, proxies: object, *settings: object) -> dict[str, object]:
        asked.append(url)
        return {"proxies": {"https": f"proxy of {len(asked)}"}}

    monkeypatch.setattr(requests.Session, "merge_environment_settings", read)
    made = transport()
    made.open()
    merge = made.session.merge_environment_settings
    urls = ("https://a.example/x", "https://a.example/y?z=1", "https://b.example/x", "http://a.example/x")
    found = [merge(url, {}, False, True, None)["proxies"]["https"] for url in urls]
    assert found == ["proxy of 1", "proxy of 1", "proxy of 2", "proxy of 3"]
    # Other settings are another question.
    merge(urls[0], {"https": ""}, False, True, None)
    assert len(asked) == 4


@pytest.mark.parametrize(("authorization", "is_new"), [("Bearer token", True), (None, True), ("SharedKey a:b", False)])
def test_what_is_sent_again_has_another_id_unless_a_key_has_signed_it(
    monkeypatch: pytest.MonkeyPatch, authorization: str | None, is_new: bool
) -> None:
    ids: list[str] = []

    def send(self: RequestsTransport, request: Any, **settings: object) -> object:
        ids.append(request.headers["x-ms-client-request-id"])
        return SimpleNamespace(status_code=401, headers={"x-ms-version": "1"})

    monkeypatch.setattr(RequestsTransport, "send", send)
    headers = {"x-ms-client-request-id": "1c2a", **({"Authorization": authorization} if authorization else {})}
    request, made = HttpRequest("GET", "https://a.example/x", headers=headers), transport()
    for _ in range(2):
        made.send(request)
    assert (len(set(ids)) == 2, "1c2a" not in ids) == (is_new, is_new)
