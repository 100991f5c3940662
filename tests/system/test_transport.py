"""Answers that end too soon, are not the service's or never end, from a real socket, through the real SDK."""

import gzip
import signal
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from azguard.accounts.account import Account, Auth, Target
from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME
from azguard.address import Address, Kind
from azguard.blobs import refusals
from azguard.blobs.content.download import BlobDownload
from azguard.errors import Unavailable
from azguard.guards.resolve import Conditions
from azguard.requests.calls import CallOutcome, send_once
from azguard.requests.deadline import Deadline
from azguard.resources import properties
from azguard.wire import client
from azguard.wire.call import call
from azguard.wire.client import Limits
from azguard.wire.operations.blobs import BLOB_DELETE, BLOB_PUT_BLOCK_BLOB
from tests.support import scripted_service
from tests.support.cases import cases
from tests.support.cli_world import CliWorld

_TIMEOUTS = Limits()
_DATE = b"Date: Sat, 21 Nov 2026 10:00:00 GMT\r\n"
_ETAG = b'ETag: "0x8DC1234567890AB"\r\nLast-Modified: Sat, 21 Nov 2026 10:00:00 GMT\r\n'
_EMPTY = b"Content-Length: 0\r\n"
_SERVICE = b"x-ms-version: 2026-02-06\r\n"
_CREATED = b"HTTP/1.1 201 Created\r\n" + _SERVICE
_FOUND = b"HTTP/1.1 200 OK\r\n" + _SERVICE + b"x-ms-blob-type: BlockBlob\r\n" + _ETAG
_CHUNKS = b"Transfer-Encoding: chunked\r\n\r\n"

Answer = Callable[[socket.socket], None]


def _say(said: bytes) -> Answer:
    return lambda connection: connection.sendall(said)


@contextmanager
def _serving(*answers: Answer) -> Iterator[Target]:
    """Run a service that gives each connection the next answer to one request, then closes it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            for answer in answers:
                accepted, _ = listening.accept()
                with accepted:
                    try:
                        asked = b""
                        # Whole, else closing the connection would reset it.
                        while not asked.endswith(b"content" if asked.startswith(b"PUT") else b"\r\n\r\n"):
                            asked += accepted.recv(65536)
                        answer(accepted)
                    except OSError:
                        pass  # The client has had enough.

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        endpoint = f"http://127.0.0.1:{listening.getsockname()[1]}/{EMULATOR_NAME}"
        account = Account(EMULATOR_NAME, {"blob": endpoint}, Auth.KEY, EMULATOR_KEY)
        yield Target(account, Address(Kind.BLOB, ("site", "config.json")))


def _fate(target: Target, timeouts: Limits = _TIMEOUTS) -> CallOutcome:
    return send_once(lambda: call(BLOB_PUT_BLOCK_BLOB, target, timeouts, body=b"content")).outcome


# Heads


@pytest.mark.parametrize(
    ("said", "fate"),
    [
        (_CREATED + _EMPTY + _ETAG + _DATE + b"\r\n", CallOutcome.COMMITTED),
        (_CREATED + _ETAG + _DATE + b"Connection: close\r\n\r\n", CallOutcome.COMMITTED),
        (_CREATED + _EMPTY + _ETAG, CallOutcome.IN_DOUBT),
        (_CREATED + _EMPTY + _ETAG + _DATE, CallOutcome.IN_DOUBT),
        (_CREATED + _DATE + _EMPTY + _ETAG + b"\r", CallOutcome.IN_DOUBT),
        (_CREATED + b'ETag: "0x8DC12', CallOutcome.IN_DOUBT),
        (b"HTTP/1.1 201 Created\r\n" + _EMPTY + _ETAG + _DATE + b"\r\n", CallOutcome.IN_DOUBT),  # by whom?
        (b"HTTP/1.1 412 Precondition Failed\r\n" + _SERVICE + _EMPTY + b"\r\n", CallOutcome.REFUSED),
        (b"HTTP/1.1 412 Precondition Failed\r\n" + _SERVICE + _EMPTY, CallOutcome.IN_DOUBT),
        (b"HTTP/1.1 412 Precondition Failed\r\n" + _EMPTY + b"\r\n", CallOutcome.IN_DOUBT),
        (_CREATED + _EMPTY + _ETAG.partition(b"\r\n")[2] + b"\r\n", CallOutcome.IN_DOUBT),  # without its ETag
        (b"HTTP/1.1 100 Continue\r\n\r\n" + _CREATED + _EMPTY + _ETAG + b"\r\n", CallOutcome.COMMITTED),
    ],
)
def test_a_write_is_committed_or_refused_only_by_a_whole_answer_of_the_service(said: bytes, fate: CallOutcome) -> None:
    with _serving(_say(said)) as target:
        assert _fate(target) is fate


def test_a_delete_is_not_done_by_its_status_alone() -> None:
    with _serving(_say(b"HTTP/1.1 202 Accepted\r\n" + _SERVICE + b"x-ms-req")) as target:
        assert send_once(lambda: call(BLOB_DELETE, target, Limits())).outcome is CallOutcome.IN_DOUBT


_METADATA = _FOUND + _DATE + b"Content-Length: 4\r\nx-ms-meta-a: 1\r\nx-ms-meta-b: 2\r\n"


@cases("end", _METADATA.index(b"x-ms-meta-b"), len(_METADATA) - 2, len(_METADATA))
def test_properties_behind_a_server_that_sends_the_date_first_are_asked_for_again_if_they_are_cut(end: int) -> None:
    with _serving(_say(_METADATA[:end]), _say(_METADATA + b"\r\n")) as target:
        assert properties.fetch(target, Conditions(), Deadline()).metadata == {"a": "1", "b": "2"}


def test_a_head_may_have_more_than_a_hundred_headers() -> None:
    keys = {f"key{number}": "x" for number in range(250)}
    lines = "".join(f"x-ms-meta-{key}: {value}\r\n" for key, value in keys.items()).encode()
    with _serving(_say(_FOUND + _EMPTY + lines + b"\r\n")) as target:
        assert properties.fetch(target, Conditions(), Deadline()).metadata == keys


def test_a_head_that_never_ends_is_no_answer() -> None:
    with _serving(_say(_CREATED + b"x-ms-meta-a: b\r\n" * 10_000)) as target:
        assert _fate(target) is CallOutcome.IN_DOUBT


# Bodies

_RANGE = b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-9/10\r\n" + _FOUND.partition(b"\r\n")[2]
_WHOLE = _RANGE + b"Content-Length: 10\r\n\r\n0123456789"


@cases(
    "cut",
    _WHOLE[:-1],
    _WHOLE[:-10],
    _RANGE + b"Connection: close\r\n\r\n01234",  # no length at all
    _RANGE + _CHUNKS + b"5\r\n01234\r\n",
    _RANGE + _CHUNKS + b"5\r\n01234\r\n0",
    _RANGE + _CHUNKS + b"5\r\n01234\r\n0\r\n",
    _RANGE + b"Content-Encoding: gzip\r\nContent-Length: 10\r\n\r\n01234",
)
def test_a_cut_body_is_read_again(cut: bytes) -> None:
    with _serving(_say(cut), _say(_WHOLE)) as target:
        assert b"".join(BlobDownload(target, Conditions(), Deadline)) == b"0123456789"


def test_a_body_in_chunks_is_read_to_its_last() -> None:
    with _serving(_say(_RANGE + _CHUNKS + b"5\r\n01234\r\n5;a=b\r\n56789\r\n0\r\n\r\n")) as target:
        assert b"".join(BlobDownload(target, Conditions(), Deadline)) == b"0123456789"


# Not the service


def test_a_cache_is_told_to_ask_the_service(tmp_path: Path) -> None:
    answer = scripted_service.Answer(
        200, headers={"ETag": '"1"', "Last-Modified": "Sat, 21 Nov 2026 10:00:00 GMT", "Age": "1"}
    )
    with scripted_service.running(answer) as service:
        assert CliWorld(tmp_path, service.connection_string).call("blob", "exists", "site/a").code == 0
    assert [(method, headers["cache-control"]) for method, headers in service.asked] == [("HEAD", "no-cache")]


def test_a_page_is_no_blob_and_says_where_it_comes_from() -> None:
    page = b"HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: 2\r\n\r\nhi"
    words = "is not Azure Storage: 200 text/html by nginx"
    with _serving(_say(page)) as target, pytest.raises(Unavailable, match=words):
        BlobDownload(target, Conditions(), Deadline)


@cases(
    ("found", "why"),
    (_FOUND.replace(b"ETag", b"Was"), "it has no ETag"),
    (_FOUND.replace(b"ETag: ", b"ETag: W/"), "its ETag is weak"),
    (_FOUND + b"Age: 60\r\n", "a cache had kept it for 60s"),
    (_FOUND.replace(b"200 OK", b"404 Not Found") + b"Age: 2\r\n", "a cache had kept it for 2s"),
)
def test_an_answer_without_the_version_that_is_there_now_is_none(found: bytes, why: str) -> None:
    with _serving(_say(found + _EMPTY + b"\r\n")) as target, pytest.raises(Unavailable, match=why):
        properties.fetch(target, Conditions(), Deadline())


@pytest.mark.parametrize(
    ("noun", "told"),
    [("container", {"ETag": '"1"'}), ("share", {})],
)
def test_access_policies_without_the_version_they_are_of_are_unavailable(
    tmp_path: Path, noun: str, told: dict[str, str]
) -> None:
    answer = scripted_service.Answer(
        200, headers={"Content-Type": "application/xml", **told}, body=b"<SignedIdentifiers />"
    )
    with scripted_service.running(answer) as service:
        ran = CliWorld(tmp_path, service.connection_string).call(noun, "acl", "get", "site", "-o", "json")
    assert (ran.code, ran.error["kind"]) == (53, "unavailable")


def test_a_container_whose_last_change_is_not_told_is_not_deleted(tmp_path: Path) -> None:
    answers = [
        scripted_service.Answer(201, headers={"ETag": '"1"'}),
        scripted_service.Answer(200, headers={"ETag": '"1"'}),
    ]
    with scripted_service.running(*answers) as service:
        cli = CliWorld(tmp_path, service.connection_string)
        ran = cli.call("container", "delete", "site", "--etag", "1", "--with-contents", "-o", "json")
    assert (ran.code, ran.error["kind"], [method for method, _ in service.asked]) == (
        53,
        "unavailable",
        ["PUT", "GET", "PUT"],
    )


def test_a_list_in_html_is_no_empty_list() -> None:
    page = b"HTTP/1.1 200 OK\r\n" + _SERVICE + b"Content-Type: text/html\r\nContent-Length: 13\r\n\r\n<html></html>"
    with _serving(_say(page)) as target, pytest.raises(Unavailable, match="it is a page of HTML"):
        refusals.fetch_tags(target, None, Deadline())


_TAGS = b'<?xml version="1.0" encoding="utf-8"?><Tags><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tags>'


def _list_tags(body: bytes) -> Answer:
    head = b"HTTP/1.1 200 OK\r\n%sContent-Type: application/xml\r\nContent-Length: %d\r\n\r\n" % (_SERVICE, len(body))
    return _say(head + body)


def test_what_the_sdk_cannot_read_is_read_again_and_is_no_fault_of_azguard() -> None:
    cut = _list_tags(_TAGS[:-20])
    with _serving(cut, _list_tags(_TAGS)) as target:
        assert refusals.fetch_tags(target, None, Deadline()) == {"a": "1"}
    with _serving(cut) as target, pytest.raises(Unavailable, match="cannot be read: "):
        refusals.fetch_tags(target, None, Deadline(0))


@cases("origin", b"", _SERVICE)
@cases("status", 300, 301, 302, 303, 307, 308)
def test_a_redirection_is_not_followed(status: int, origin: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as login:
        login.settimeout(0)
        port = login.getsockname()[1]
        where = b"Location: http://user:word@127.0.0.1:%d/login?sig=secret#x\r\n" % port
        page = b"HTTP/1.1 %d Elsewhere\r\n" % status + origin + where + _EMPTY + b"\r\n"
        words = rf"answered {status}, a redirection to http://127.0.0.1:{port}/login; it was not followed"
        with _serving(_say(page)) as target, pytest.raises(Unavailable, match=words):
            properties.fetch(target, Conditions(), Deadline())
        with _serving(_say(page)) as target:
            assert _fate(target) is CallOutcome.IN_DOUBT
        with pytest.raises(BlockingIOError):
            login.accept()


def test_a_gateway_that_cannot_reach_the_service_is_asked_again() -> None:
    with _serving(_say(b"HTTP/1.1 502 Bad Gateway\r\n" + _EMPTY + b"\r\n"), _say(_METADATA + b"\r\n")) as target:
        assert properties.fetch(target, Conditions(), Deadline()).metadata == {"a": "1", "b": "2"}


# Of another request

_OTHER = b"x-ms-client-request-id: 1c2a\r\n"


def test_an_answer_to_another_request_is_asked_for_again() -> None:
    with _serving(_say(_METADATA + _OTHER + b"\r\n"), _say(_METADATA + b"\r\n")) as target:
        assert properties.fetch(target, Conditions(), Deadline()).metadata == {"a": "1", "b": "2"}
    with _serving(_say(_METADATA + _OTHER + b"\r\n")) as target, pytest.raises(Unavailable, match="another request"):
        properties.fetch(target, Conditions(), Deadline(0))


@pytest.mark.parametrize("said", [_CREATED + _ETAG, b"HTTP/1.1 412 Precondition Failed\r\n" + _SERVICE])
def test_a_write_is_in_doubt_after_an_answer_to_another_request(said: bytes) -> None:
    with _serving(_say(said + _EMPTY + _OTHER + b"\r\n")) as target:
        assert _fate(target) is CallOutcome.IN_DOUBT


# Without an end

_LIST = b"HTTP/1.1 200 OK\r\n" + _SERVICE + b"Content-Type: application/xml\r\n"
_ERROR = b"HTTP/1.1 503 Server Busy\r\n" + _SERVICE + b"Content-Type: application/xml\r\n"
_CHUNK = b"10000\r\n" + bytes(65536) + b"\r\n"


@cache
def _make_bomb() -> bytes:
    packed = gzip.compress(bytes(70_000_000))
    return b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%b" % (len(packed), packed)


def _explode(head: bytes) -> Answer:
    """Say what is short, and long once it is unpacked; it is made when it is asked for, not by each worker."""
    return lambda connection: connection.sendall(head + _make_bomb())


def _repeat(head: bytes, piece: bytes, pause: float = 0) -> Answer:
    def answer(connection: socket.socket) -> None:
        connection.sendall(head)
        while not (pause and _GONE.wait(pause)):
            connection.sendall(piece)

    return answer


@pytest.mark.parametrize(
    "answer",
    [
        _repeat(_ERROR + _CHUNKS, _CHUNK),
        _repeat(_LIST + _CHUNKS, _CHUNK),
        _repeat(_LIST + _CHUNKS + b"0\r\n", b"a: %s\r\n" % (b"b" * 60_000)),
        _explode(_LIST),
        _explode(_ERROR),
    ],
    ids=["error", "list", "trailers", "list in gzip", "error in gzip"],
)
def test_no_answer_is_longer_than_any_of_the_service(answer: Answer) -> None:
    with _serving(answer) as target, pytest.raises(Unavailable, match="is longer than any of Azure Storage"):
        refusals.fetch_tags(target, None, Deadline(30))


def test_a_service_that_is_not_azure_storage_is_not_listened_to_for_ever_either() -> None:
    with _serving(_repeat(_LIST + _CHUNKS, _CHUNK)) as target, pytest.raises(OSError, match="longer than any"):
        client.get(target.endpoint, None, 30)


def test_a_refusal_to_deliver_content_is_no_longer_than_another() -> None:
    with _serving(_explode(_ERROR)) as target, pytest.raises(Unavailable, match="is longer than any"):
        BlobDownload(target, Conditions(), lambda: Deadline(30))


@pytest.mark.parametrize(
    "answer",
    [_repeat(_LIST + _CHUNKS, _CHUNK, 0.05), _repeat(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100, 0.01)],
    ids=["list", "continue"],
)
def test_what_keeps_coming_ends_with_the_time_that_was_asked_for(answer: Answer) -> None:
    began = time.monotonic()
    with _serving(answer) as target, pytest.raises(Unavailable):
        refusals.fetch_tags(target, None, Deadline.strict(0.6))
    assert time.monotonic() - began < 20


@cases("coding", "gzip", "deflate")
def test_a_list_may_be_compressed_but_in_no_way_that_was_not_asked_for(coding: str) -> None:
    body = gzip.compress(_TAGS) if coding == "gzip" else zlib.compress(_TAGS)
    head = _LIST + b"Content-Encoding: %b\r\nContent-Length: %d\r\n\r\n"
    with _serving(_say(head % (coding.encode(), len(body)) + body)) as target:
        assert refusals.fetch_tags(target, None, Deadline()) == {"a": "1"}
    for said in (head % (b"gzip, gzip", len(body)) + body, head % (coding.encode(), len(body) - 9) + body[:-9]):
        with _serving(_say(said)) as target, pytest.raises(Unavailable, match="cut short"):
            refusals.fetch_tags(target, None, Deadline(0))


# Peers that are slow


def _drip(said: bytes) -> Answer:
    """Say something, then one byte after the other, until the client has gone."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(said)
        while not _GONE.wait(0.05):
            connection.sendall(b"x")

    return answer


_GONE = threading.Event()


@pytest.mark.parametrize("said", [b"HTTP/1.1 2", _CREATED, _CREATED + _ETAG + b"Content-Length: 9999\r\n\r\n"])
def test_a_write_whose_answer_drips_is_in_doubt_once_its_time_is_up(said: bytes) -> None:
    with _serving(_drip(said)) as target:
        assert _fate(target, Limits(1, 0.5)) is CallOutcome.IN_DOUBT


def test_a_read_whose_answer_drips_ends_with_the_deadline() -> None:
    with _serving(_drip(_RANGE + b"Content-Length: 10000\r\n\r\n")) as target, pytest.raises(Unavailable):
        BlobDownload(target, Conditions(), lambda: Deadline(0.6))


@pytest.mark.parametrize("words", ["blob get site/config.json", "blob list site"])
def test_ctrl_c_ends_a_read_whose_answer_drips_at_once(tmp_path: Path, words: str) -> None:
    dripping = threading.Event()

    def answer(connection: socket.socket) -> None:
        dripping.set()
        _drip(_RANGE + b"Content-Length: 10000\r\n\r\n")(connection)

    with _serving(answer) as target:
        secret = f"AccountName={EMULATOR_NAME};AccountKey={EMULATOR_KEY};BlobEndpoint={target.endpoint}"
        running = CliWorld(tmp_path, secret).begin_fork(*words.split(), "--timeout", "1h")
        assert dripping.wait(60)
        running.send_signal(signal.SIGINT)
        assert running.wait(60) in (130, -signal.SIGINT)


def test_a_peer_that_reads_nothing_ends_an_upload() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        endpoint = f"http://127.0.0.1:{listening.getsockname()[1]}/{EMULATOR_NAME}"
        account = Account(EMULATOR_NAME, {"blob": endpoint}, Auth.KEY, EMULATOR_KEY)
        target = Target(account, Address(Kind.BLOB, ("site", "config.json")))
        timeouts = Limits(1, 0.5)
        sent = send_once(lambda: call(BLOB_PUT_BLOCK_BLOB, target, timeouts, body=bytes(8_000_000)))
        assert sent.outcome is CallOutcome.IN_DOUBT


def test_what_moves_may_take_longer_than_the_limit() -> None:
    def slowly(connection: socket.socket) -> None:
        connection.sendall(_RANGE.replace(b"0-9/10", b"0-399999/400000") + b"Content-Length: 400000\r\n\r\n")
        for _ in range(20):
            connection.sendall(bytes(20_000))
            _GONE.wait(0.05)

    with _serving(slowly) as target:
        assert b"".join(BlobDownload(target, Conditions(), lambda: Deadline(0.5))) == bytes(400_000)
