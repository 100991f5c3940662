"""Requests without the SDK's client: signed as the SDK signs, and refused as the SDK words it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient, ContentSettings
from hypothesis import given
from hypothesis import strategies as st

from azguard.accounts import direct
from azguard.accounts.account import Account, Auth
from azguard.accounts.direct import ChallengeReceived
from azguard.address import Address, Kind
from tests.support.answering_transport import AnsweringTransport
from tests.support.cases import cases

KEY = "bm90IGEgc2VjcmV0"
ENDPOINT = "https://acct.blob.core.windows.net"
REFUSAL = (
    b"<?xml version='1.0'?><Error><Code>ConditionNotMet</Code><Message>The condition is not met.</Message>"
    b"<Detail>more</Detail></Error>"
)


class Noting(AnsweringTransport):
    """Keeps the last request, and answers it with 201."""

    def __init__(self) -> None:
        self.request: Any = None

    def answer(self, request: Any) -> requests.Response:
        self.request = request
        answer = requests.Response()
        answer.status_code = 201
        return answer


@dataclass
class Answering:
    """Stands for our transport: answers with one status and body."""

    status: int
    body: bytes = b""
    sent: list[Any] = field(default_factory=list)

    def send_open(self, *_: Any) -> None:
        """Have no open connection."""

    def send(self, request: Any, **_: Any) -> Any:
        self.sent.append(request)
        raw = SimpleNamespace(read=lambda decode_content: self.body)
        return SimpleNamespace(
            status_code=self.status,
            reason="Because",
            headers={"x-ms-error-code": "ConditionNotMet"},
            body=lambda: self.body,
            text=lambda encoding=None: self.body.decode(),
            internal_response=SimpleNamespace(raw=raw),
        )


def build(auth: Auth, secret: str | None, answering: Answering, login: Any = None) -> Account:
    """Return an account whose requests are answered so."""
    shared = {"transport": answering, "login": login}
    return Account("acct", {"blob": ENDPOINT}, auth, secret, shared)


def send(account: Account, headers: Mapping[str, str] | None = None) -> direct.DirectAnswer:
    return direct.send(account, "GET", Address(Kind.BLOB, ("site", "a b/ü.txt")), headers or {}, {})


@given(
    name=st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=20),
    content=st.binary(max_size=3),
    headers=st.dictionaries(
        st.sampled_from(["If-Match", "If-None-Match", "If-Modified-Since", "x-ms-if-tags", "x-ms-lease-id"]),
        st.text("abc123*\"'<= ", min_size=1).map(str.strip).filter(bool),
    ),
    kind=st.sampled_from([None, "text/html; charset=utf-8"]),
)
def test_a_request_is_signed_as_the_sdk_signs_it(
    name: str, content: bytes, headers: dict[str, str], kind: str | None
) -> None:
    noting = Noting()
    client = BlobServiceClient(f"{ENDPOINT}", credential={"account_name": "acct", "account_key": KEY}, transport=noting)
    client.get_blob_client("site", name).upload_blob(
        content,
        overwrite=True,
        metadata={"azguardlineage": "1"},
        headers=headers,
        content_settings=ContentSettings(content_type=kind, cache_control="no-cache"),
        standard_blob_tier=None,
    )
    sent = dict(noting.request.headers)
    told = sent.pop("Authorization")
    signature = direct.sign("acct", KEY, "PUT", urlsplit(noting.request.url).path, sent)
    assert told == f"SharedKey acct:{signature}"


def test_a_blob_has_the_url_that_the_sdk_gives_it() -> None:
    answering = Answering(206, b"content")
    answer = send(build(Auth.ANONYMOUS, None, answering))
    client = BlobServiceClient(ENDPOINT).get_blob_client("site", "a b/ü.txt")
    assert (answering.sent[0].url, answer.status, answer.content) == (client.url, 206, b"content")


def test_a_sas_stands_in_the_url_and_nothing_else_proves_the_caller() -> None:
    answering = Answering(206)
    send(build(Auth.SAS, "?sv=1&sig=x%2B", answering))
    request = answering.sent[0]
    assert (request.url.partition("?")[2], "Authorization" in request.headers) == ("sv=1&sig=x%2B", False)


def test_a_login_sends_its_token() -> None:
    answering = Answering(206)
    asked: list[str] = []

    def give_token(*scopes: str) -> Any:
        asked.extend(scopes)
        return SimpleNamespace(token="t0k")  # no secret

    send(build(Auth.LOGIN, None, answering, SimpleNamespace(get_token=None, get_token_info=give_token)))
    assert (answering.sent[0].headers["Authorization"], asked) == ("Bearer t0k", ["https://storage.azure.com/.default"])


def test_a_login_whose_token_is_refused_leaves_the_challenge_to_the_sdk() -> None:
    login = SimpleNamespace(get_token=None, get_token_info=lambda *_: SimpleNamespace(token="t0k"))  # no secret
    with pytest.raises(ChallengeReceived):
        send(build(Auth.LOGIN, None, Answering(401), login))


@cases(
    ("body", "words"),
    [
        (REFUSAL, "The condition is not met.\nErrorCode:ConditionNotMet\nDetail:more"),
        (b"", "Operation returned an invalid status 'Because'\nErrorCode:ConditionNotMet"),
        (b"<html>", "Operation returned an invalid status 'Because'\nErrorCode:ConditionNotMet"),
    ],
)
def test_a_refusal_says_what_its_body_says(body: bytes, words: str) -> None:
    with pytest.raises(HttpResponseError) as raised:
        send(build(Auth.KEY, KEY, Answering(412, body)))
    assert (raised.value.status_code, raised.value.message) == (412, words)


def test_the_version_of_the_service_is_the_one_that_the_sdk_speaks() -> None:
    assert BlobServiceClient(ENDPOINT).api_version == direct.API_VERSION
