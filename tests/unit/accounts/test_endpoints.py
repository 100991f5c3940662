"""Endpoints, however they are spelt."""

from azguard.accounts.endpoints import plain
from tests.support.cases import cases


@cases(
    ("one", "other", "same"),
    ("http://127.0.0.1:10000/devstoreaccount1", "http://localhost:10000/devstoreaccount1/", True),
    ("http://127.0.0.1:10000/devstoreaccount1", "http://127.0.0.1:10001/devstoreaccount1", False),
    ("https://acc.blob.core.windows.net", "HTTPS://ACC.blob.core.windows.net:443/", True),
    ("https://acc.blob.core.windows.net", "http://acc.blob.core.windows.net:80", True),
    ("https://acc.blob.core.windows.net", "https://acc.blob.core.windows.net:8443", False),
    ("https://acc.blob.core.windows.net", "https://acc-secondary.blob.core.windows.net", True),
    ("https://acc.blob.core.windows.net", "https://acc.privatelink.blob.core.windows.net", True),
    ("https://acc.blob.core.windows.net", "https://prod.blob.core.windows.net", False),
    ("https://acc.blob.core.windows.net", "https://acc.blob.core.chinacloudapi.cn", False),
)
def test_an_endpoint_has_one_plain_spelling(one: str, other: str, same: bool) -> None:
    assert (plain(one) == plain(other)) is same
