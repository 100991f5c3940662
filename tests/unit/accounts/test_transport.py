"""The transport: what it asks of the environment, and how often."""

import pytest
import requests

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
