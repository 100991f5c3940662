"""Requests over sockets: what is sent, which answers are whole, and which connections are used again."""

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from http import HTTPStatus

import pytest

from azguard.accounts.account import Target
from azguard.requests.calls import CallOutcome, outcome_of
from azguard.wire import network
from azguard.wire.call import call
from azguard.wire.client import Limits, NetworkClient
from azguard.wire.connections import Connections, Exchange, OpenConnection, write_head
from azguard.wire.failures import BrokenAnswer, NotConnected, ServiceRefusal, Stage
from azguard.wire.network import Origin, Way
from azguard.wire.operations.blobs import BLOB_GET
from tests.support.cases import cases
from tests.support.ranged_service import RangeAnswer, serving

WAY = Way(Origin("http", "host", 80), None)
OK = b'HTTP/1.1 206 Partial Content\r\nETag: "0x1"\r\n'
LENGTH = b"Content-Length: 10\r\n\r\n"
CHUNKS = b"Transfer-Encoding: chunked\r\n\r\n"
BODY = b"0123456789"


@contextmanager
def connect(answer: bytes, *, ends: bool = False) -> Iterator[tuple[OpenConnection, socket.socket]]:
    """Yield a connection, with an answer under way, and its other side."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(answer)
        if ends:
            theirs.shutdown(socket.SHUT_WR)
        yield OpenConnection(ours, WAY), theirs


def exchange(
    answer: bytes, method: str = "GET", *, ends: bool = False
) -> tuple[int, str, Mapping[str, str], bytes, bool]:
    with connect(answer, ends=ends) as (connection, _):
        found = connection.exchange(method, b"", None, Exchange(0.2, adds_time=True))
        return found.status_code, found.reason, dict(found.headers.items()), found.content, connection.is_reusable


@cases(
    ("answer", "headers", "content"),
    (OK + LENGTH + BODY, {"ETag": '"0x1"', "Content-Length": "10"}, BODY),
    ((OK + LENGTH).replace(b"\r\n", b"\n") + BODY, {"ETag": '"0x1"', "Content-Length": "10"}, BODY),
    (
        OK + CHUNKS + b"4;a=b\r\n0123\r\n6\r\n456789\r\n0\r\nx-behind: it\r\n\r\n",
        {"ETag": '"0x1"', "Transfer-Encoding": "chunked"},
        BODY,
    ),
    (
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 0\r\n\r\n",
        {"ETag": '"0x1"', "Content-Length": "0"},
        b"",
    ),
    (
        OK + b"x-ms-meta-A: 1\r\n  2\r\nVary: a\r\nvary: b\r\n" + LENGTH + BODY,
        {"ETag": '"0x1"', "x-ms-meta-A": "1 2", "vary": "a, b", "Content-Length": "10"},
        BODY,
    ),
)
def test_a_whole_answer_is_read_and_the_connection_is_used_again(
    answer: bytes, headers: Mapping[str, str], content: bytes
) -> None:
    assert exchange(answer) == (206, "Partial Content", headers, content, True)


@cases(("method", "status"), ("HEAD", 200), ("PUT", 204), ("GET", 304))
def test_an_answer_without_a_body_ends_with_its_head(method: str, status: int) -> None:
    found = exchange(f"HTTP/1.1 {status} Fine\r\n".encode() + LENGTH, method)
    assert (found[0], found[3], found[4]) == (status, b"", True)


@cases(
    "answer",
    OK + b"Connection: Close\r\n" + LENGTH + BODY,
    OK.replace(b"1.1", b"1.0") + LENGTH + BODY,
    OK + LENGTH + BODY + b"HTTP/1.1",
)
def test_a_connection_is_not_used_again_if_its_other_side_does_not_say_so(answer: bytes) -> None:
    assert exchange(answer)[3:] == (BODY, False)


@cases(
    "answer",
    OK + LENGTH + BODY[:-1],
    OK + LENGTH[:-2],
    OK + LENGTH[:-1],
    OK[:-4],
    OK + b"\r\n" + BODY,  # no length at all
    OK + b"Content-Length: -1\r\n\r\n",
    OK + b"Content-Length: 10, 10\r\n\r\n" + BODY,
    OK + b"Transfer-Encoding: gzip\r\n\r\n" + BODY,
    OK + CHUNKS + b"a\r\n" + BODY + b"\r\n",
    OK + CHUNKS + b"a\r\n" + BODY + b"0\r\n\r\n",
    OK + CHUNKS + b"a\r\n" + BODY + b"\r\n0\r\n",
    OK + CHUNKS + b"-a\r\n" + BODY,
    OK + b"no header\r\n" + LENGTH + BODY,
    b"HTTP/1.1 ok\r\n" + LENGTH + BODY,
    b"220 mail ready\r\n\r\n",
    OK + b"x-ms-meta-a: b\r\n" * 5_000,
)
def test_a_cut_or_malformed_answer_is_none(answer: bytes) -> None:
    with connect(answer, ends=True) as (connection, _):
        with pytest.raises(BrokenAnswer, match="cut short"):
            connection.exchange("GET", b"", None, Exchange(5, adds_time=True))
        assert not connection.is_reusable


def test_a_connection_that_ends_before_the_answer_was_closed_by_the_other_side() -> None:
    with pytest.raises(BrokenAnswer, match="closed before"):
        exchange(b"", ends=True)


def test_an_answer_that_does_not_come_in_time_is_none() -> None:
    with pytest.raises(BrokenAnswer, match="timed out"):
        exchange(OK + LENGTH)


def test_a_large_body_arrives_whole() -> None:
    body = bytes(range(256)) * 160
    with connect(OK + LENGTH + BODY) as (connection, theirs):
        head = write_head("PUT", "http://host:1/site/a?comp=x", {"x-ms-a": "ü"}, WAY)
        connection.exchange("PUT", head, body, Exchange(5, adds_time=False))
        theirs.settimeout(60)
        sent = b""
        while len(sent) < len(head) + len(body):
            sent += theirs.recv(1 << 20)
    assert sent == b"PUT /site/a?comp=x HTTP/1.1\r\nHost: host:1\r\nx-ms-a: \xfc\r\n\r\n" + body


@cases("value", "1\r\nx-ms-meta-b: 2", "1\n", "\r", "\N{EURO SIGN}")
def test_a_header_that_would_be_two_or_cannot_be_sent_is_refused(value: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # the two have nothing else in common
        write_head("GET", "http://host/", {"x-ms-meta-a": value}, WAY)


def test_a_connection_that_was_closed_meanwhile_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    with connect(b"") as (open_one, _), connect(b"", ends=True) as (closed_one, _), connect(b"") as (new_one, _):

        def make(*given: object) -> object:
            made.append(given)
            return new_one._socket

        monkeypatch.setattr(network, "connect", make)
        open_one.is_reusable = closed_one.is_reusable = True
        connections = Connections()
        assert connections.take(WAY, 1.0)._socket is new_one._socket
        connections.give(open_one)
        connections.give(closed_one)
        taken = [connections.take(WAY, 1.0)._socket for _ in range(2)]
    assert (taken, len(made)) == ([open_one._socket, new_one._socket], 2)


def get(target: Target) -> object:
    try:
        answer = call(BLOB_GET, target, Limits(answer=5), range="bytes=0-9")
    except ServiceRefusal as error:
        return error.status_code, str(error), error.response.headers["x-ms-error-code"]
    return answer.status, answer.content


def refuse(_: int, answer: RangeAnswer) -> RangeAnswer:
    return RangeAnswer(HTTPStatus.PRECONDITION_FAILED, b"", answer.etag, None, code="ConditionNotMet")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Way]:
    """Return the list that the way of each new connection is added to."""
    found: list[Way] = []
    connect = network.connect

    def note(way: Way, seconds: float) -> object:
        found.append(way)
        return connect(way, seconds)

    monkeypatch.setattr(network, "connect", note)
    return found


@cases("is_refused", False, True)
def test_the_second_request_goes_over_the_connection_of_the_first_and_ends_as_it_did(
    is_refused: bool, opened: list[Way]
) -> None:
    opened.clear()
    with serving(BODY, *([refuse] if is_refused else [])) as service:
        target = service.target
        assert (get(target) == get(target), len(opened)) == (True, 1)


@cases("is_open", False, True)
def test_a_connection_that_gave_the_answer_to_another_request_is_closed(is_open: bool, opened: list[Way]) -> None:
    opened.clear()
    with serving(BODY) as service:
        target, honest = service.target, service.spoil
        if is_open:
            get(target)
        service.spoil = lambda _, answer: replace(answer, request_id="1c2a")
        with pytest.raises(BrokenAnswer, match="belongs to another request"):
            get(target)
        service.spoil = honest
        assert (get(target), len(opened)) == ((206, BODY), 2)


def test_a_handshake_that_fails_has_sent_nothing_of_the_request() -> None:
    heard = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            accepted, _ = listening.accept()
            with accepted, suppress(ConnectionResetError):
                heard.extend(accepted.recv(65536))
                accepted.sendall(b"HTTP/1.1 400 This is no TLS\r\n\r\n")
                while received := accepted.recv(65536):
                    heard.extend(received)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        url = f"https://127.0.0.1:{listening.getsockname()[1]}/site/a"
        with pytest.raises(NotConnected) as raised:
            NetworkClient().send("PUT", url, {"x-ms-blob-type": "BlockBlob"}, b"content", Limits(5, 5))
        thread.join(60)
    handshake = 0x16
    assert (raised.value.stage, heard[0], b"PUT" in heard, outcome_of(raised.value)) == (
        Stage.TLS,
        handshake,
        False,
        CallOutcome.NOT_SENT,
    )
