"""A request of our own: what is sent, what proves the caller, and what a refusal says."""

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from azure.storage.blob import BlobServiceClient, ContentSettings
from hypothesis import given
from hypothesis import strategies as st

from azguard.accounts.account import Account, Auth, Target
from azguard.address import Address, Kind
from azguard.errors import ConfigError
from azguard.wire import transactions
from azguard.wire.answers import Answer
from azguard.wire.call import API_VERSIONS, call
from azguard.wire.client import Limits
from azguard.wire.connections import Reply
from azguard.wire.failures import ServiceRefusal, Unreadable
from azguard.wire.operations import blobs, containers, shares, tables
from azguard.wire.operations.blobs import BLOB_GET
from azguard.wire.rows import Operation
from azguard.wire.signing import sign
from tests.support import sdk_transport
from tests.support.answering_client import AnsweringClient, Asked, reply
from tests.support.cases import cases

KEY = "a2V5a2V5"
ENDPOINT = "https://acct.blob.core.windows.net"
ADDRESS = Address(Kind.BLOB, ("site", "a b/\u00fc.txt"))
REFUSAL = (
    b"<?xml version='1.0'?><Error><Code>ConditionNotMet</Code><Message>The condition is not met.</Message>"
    b"<Detail>more</Detail></Error>"
)
CHALLENGE = {
    "WWW-Authenticate": "Bearer authorization_uri=https://login.example/tenant/oauth2 resource_id=https://storage.azure.com"
}


class Answering(AnsweringClient):
    """Answers with one reply after the other, the last one for ever, and keeps what was asked."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.sent: list[Asked] = []

    def answer(self, asked: Asked) -> Reply:
        self.sent.append(asked)
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


def build(auth: Auth, secret: str | None, answering: Answering, login: Any = None) -> Account:
    """Return an account whose requests are answered so."""
    return Account("acct", {"blob": ENDPOINT}, auth, secret, {"client": answering, "login": login})


def get(account: Account, headers: Mapping[str, str] | None = None) -> Answer:
    return call(BLOB_GET, Target(account, ADDRESS), Limits(), headers=headers)


@given(
    name=st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=20),
    content=st.binary(max_size=3),
    headers=st.dictionaries(
        st.sampled_from(["If-Match", "If-None-Match", "If-Modified-Since", "x-ms-if-tags", "x-ms-lease-id"]),
        st.text("abc123*\"'<= ", min_size=1).map(str.strip).filter(bool),
    ),
    kind=st.sampled_from([None, "text/html; charset=utf-8"]),
    metadata=st.dictionaries(st.from_regex("[a-z_][a-zA-Z0-9_]{0,6}", fullmatch=True), st.just("1"), max_size=5),
)
def test_a_request_is_signed_as_the_sdk_signs_it(
    name: str, content: bytes, headers: dict[str, str], kind: str | None, metadata: dict[str, str]
) -> None:
    answering = Answering(reply(201))
    client = BlobServiceClient(
        ENDPOINT,
        credential={"account_name": "acct", "account_key": KEY},
        transport=sdk_transport.make_transport(build(Auth.KEY, KEY, answering)),
    )
    client.get_blob_client("site", name).upload_blob(
        content,
        overwrite=True,
        metadata={key.lower(): value for key, value in metadata.items()},
        headers=headers,
        content_settings=ContentSettings(content_type=kind, cache_control="no-cache"),
        standard_blob_tier=None,
    )
    sent = dict(answering.sent[0].headers)
    told = sent.pop("Authorization")
    signature = sign("acct", KEY, "blob", "PUT", answering.sent[0].url, sent)
    assert told == f"SharedKey acct:{signature}"


def test_a_blob_has_the_url_that_the_sdk_gives_it() -> None:
    answering = Answering(reply(206, content=b"content"))
    answer = get(build(Auth.ANONYMOUS, None, answering))
    client = BlobServiceClient(ENDPOINT).get_blob_client("site", ADDRESS.name)
    assert (answering.sent[0].url, answer.status, answer.content) == (client.url, 206, b"content")


def test_a_sas_stands_in_the_url_and_nothing_else_proves_the_caller() -> None:
    answering = Answering(reply(206))
    get(build(Auth.SAS, "?sv=1&sig=x%2B", answering))
    request = answering.sent[0]
    assert (request.query, "Authorization" in request.headers) == ("sv=1&sig=x%2B", False)


def login(asked: list[tuple[str, object]]) -> Any:
    """Return a login that gives away numbered tokens, and notes what it is asked for."""

    def give_token(scope: str, options: object = None) -> Any:
        asked.append((scope, options))
        return SimpleNamespace(token=f"t{len(asked)}")  # no secret

    return SimpleNamespace(get_token_info=give_token)


def test_a_login_sends_its_token_and_another_one_where_the_service_names_its_tenant() -> None:
    asked: list[tuple[str, object]] = []
    answering = Answering(reply(401, CHALLENGE), reply(206))
    get(build(Auth.LOGIN, None, answering, login(asked)))
    sent = [each.headers["Authorization"] for each in answering.sent]
    ids = {each.headers["x-ms-client-request-id"] for each in answering.sent}
    storage = "https://storage.azure.com/.default"
    assert (sent, asked, len(ids)) == (
        ["Bearer t1", "Bearer t2"],
        [(storage, None), (storage, {"tenant_id": "tenant"})],
        2,
    )


@cases("challenge", {}, {"WWW-Authenticate": "Basic"}, {"WWW-Authenticate": "Bearer error=x"})
def test_a_login_whose_token_is_refused_without_a_tenant_is_refused(challenge: dict[str, str]) -> None:
    answering = Answering(reply(401, challenge))
    with pytest.raises(ServiceRefusal):
        get(build(Auth.LOGIN, None, answering, login([])))
    assert len(answering.sent) == 1


@cases(
    ("body", "words"),
    (REFUSAL, "The condition is not met.\nErrorCode:ConditionNotMet\nDetail:more"),
    (b"", "the service answered 412 Because\nErrorCode:ConditionNotMet"),
    (b"<html>", "the service answered 412 Because\nErrorCode:ConditionNotMet"),
    (b'{"odata.error": {"code": "A", "message": {"value": "No."}}}', "No.\nErrorCode:A"),
    (b'{"odata.error": 1}', "the service answered 412 Because\nErrorCode:ConditionNotMet"),
)
def test_a_refusal_says_what_its_body_says(body: bytes, words: str) -> None:
    answering = Answering(reply(412, {"x-ms-error-code": "ConditionNotMet"}, body, "Because"))
    with pytest.raises(ServiceRefusal) as raised:
        get(build(Auth.KEY, KEY, answering))
    assert (raised.value.status_code, str(raised.value)) == (412, words)


def test_the_version_of_the_service_is_the_one_that_the_sdk_speaks() -> None:
    assert BlobServiceClient(ENDPOINT).api_version == API_VERSIONS["blob"]


_AT = {Kind.BLOB: ADDRESS, Kind.TABLE: Address(Kind.TABLE, ("t",)), Kind.FILE: Address(Kind.FILE, ("s", "f"))}


def send_in(version: str | None, operation: Operation, kind: Kind = Kind.BLOB, **given: Any) -> list[str]:
    """Send an operation in a version of the service; return the versions of the requests that arrive."""
    answering = Answering(reply(next(iter(operation.http.ok)), {"ETag": "1"}))
    places = dict.fromkeys(("blob", "table", "file"), ENDPOINT)
    account = Account("acct", places, Auth.KEY, KEY, {"client": answering}, api_version=version)
    address = replace(_AT[kind], version=given.pop("of", None))
    call(operation, Target(account, address), Limits(), **given)
    return [each.headers["x-ms-version"] for each in answering.sent]


@cases(
    ("version", "operation", "kind", "spoken"),
    (None, blobs.BLOB_GET, Kind.BLOB, "2026-10-06"),
    ("2019-07-07", blobs.BLOB_GET, Kind.BLOB, "2019-07-07"),
    ("2019-07-07", tables.TABLE_GET_ACL, Kind.TABLE, "2019-02-02"),
    ("2018-11-09", tables.TABLE_GET_ACL, Kind.TABLE, "2018-11-09"),
    ("2022-11-02", shares.FILE_GET_PROPERTIES, Kind.FILE, "2022-11-02"),
)
def test_a_service_is_asked_in_that_version(version: str | None, operation: Operation, kind: Kind, spoken: str) -> None:
    assert send_in(version, operation, kind) == [spoken]


@cases(
    ("operation", "kind", "given", "what", "since"),
    (blobs.BLOB_GET_TAGS, Kind.BLOB, {}, "Get Blob Tags", "2019-12-12"),
    (blobs.BLOB_SEAL_APPEND_BLOB, Kind.BLOB, {}, "Append Blob Seal", "2019-12-12"),
    (blobs.BLOB_PUT_BLOCK_BLOB, Kind.BLOB, {"tags": "a=1"}, "x-ms-tags", "2019-12-12"),
    (blobs.BLOB_PUT_BLOCK_BLOB, Kind.BLOB, {"access_tier": "Cold"}, "x-ms-access-tier: Cold", "2021-12-02"),
    (blobs.BLOB_GET, Kind.BLOB, {"headers": {"x-ms-if-tags": "a = 1"}}, "x-ms-if-tags", "2019-12-12"),
    (blobs.BLOB_GET, Kind.BLOB, {"of": "2026-01-01T00:00:00Z"}, "versionid", "2019-12-12"),
    (blobs.BLOB_GET_PAGE_RANGES, Kind.BLOB, {"marker": "x"}, "marker of Get Page Ranges", "2020-10-02"),
    (containers.CONTAINER_LIST_BLOBS, Kind.BLOB, {"include": "metadata,tags"}, "include=tags", "2019-12-12"),
    (containers.CONTAINER_LIST, Kind.BLOB, {"include": "deleted"}, "include=deleted of List Containers", "2019-12-12"),
    (blobs.BLOB_SET_LEGAL_HOLD, Kind.BLOB, {}, "Set Blob Legal Hold", "2020-06-12"),
    (shares.FILE_GET_PROPERTIES, Kind.FILE, {}, "x-ms-allow-trailing-dot", "2022-11-02"),
)
def test_what_the_version_that_was_chosen_lacks_is_not_sent(
    operation: Operation, kind: Kind, given: dict[str, Any], what: str, since: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        send_in("2019-07-07", operation, kind, **given)
    told = f"version 2019-07-07 of the service does not know {what}, which came with {since}; it was not sent"
    assert (caught.value.message, caught.value.reason) == (told, "version_lacks")
    assert send_in(since, operation, kind, **given) == [since]


def test_what_each_version_has_is_not_refused_in_the_oldest() -> None:
    assert send_in("2018-11-09", blobs.BLOB_GET_PAGE_RANGES) == ["2018-11-09"]
    assert send_in("2018-11-09", blobs.BLOB_PUT_BLOCK_BLOB, access_tier="Cool") == ["2018-11-09"]


PART = "Content-Type: application/http\r\n\r\n"


@cases(
    ("kind", "content", "why"),
    ("application/json", "{}", "no parts"),
    ("multipart/mixed; boundary=a", "", "no status"),
    ("multipart/mixed; boundary=a", f"--a\r\n{PART}HTTP/1.1 what\r\n\r\n--a--", "no status"),
    ("multipart/mixed; boundary=a", f"--a\r\n{PART}HTTP/1.1 204 No Content\r\n\r\n\r\n--a--", "1 of 2"),
)
def test_an_answer_to_a_transaction_that_is_none_is_not_believed(kind: str, content: str, why: str) -> None:
    answering = Answering(reply(202, {"Content-Type": kind}, content.encode()))
    account = Account("acct", {"table": ENDPOINT}, Auth.KEY, "a2V5", {"client": answering})
    entity = Target(account, Address(Kind.ENTITY, ("Orders", "a", "b")))
    parts = [transactions.TransactionPart(tables.TABLE_ENTITY_DELETE, entity, None, "*")] * 2
    with pytest.raises(Unreadable, match=why):
        transactions.send(Target(account, Address(Kind.TABLE, ("Orders",))), parts, Limits())
