import asyncio
import http.client
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from azguard.emulators.azurite_process import Azurite
from tests.support import threaded_server
from tests.support.faultproxy import proxy
from tests.support.faultproxy.proxy import Fault, Proxy, Request

_LARGE = bytes(range(256)) * 20_000  # 5 MB: more than any buffer on the way


class _Echo(BaseHTTPRequestHandler):
    """Answers with what it was sent, in the framing that the path asks for."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    peers: list[tuple[str, int]]

    def do_PUT(self) -> None:
        self.peers.append(self.client_address)
        body = self._body()
        self.send_response(201)
        self.send_header("ETag", f'"{len(body)}"')
        if self.path == "/chunked":
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for start in range(0, len(body), 100_000):
                piece = body[start : start + 100_000]
                self.wfile.write(b"%x;extension=1\r\n%b\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\nTrailer: 1\r\n\r\n")
        elif self.path == "/until-closed":
            self.close_connection = True
            self.end_headers()
            self.wfile.write(body)
        else:
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def do_GET(self) -> None:
        self.peers.append(self.client_address)
        self.send_response(int(self.path[1:]))
        self.send_header("Content-Length", "7")
        self.end_headers()
        if self.command == "GET" and self.path == "/200":
            self.wfile.write(b"content")

    do_HEAD = do_GET

    def do_DELETE(self) -> None:
        self.close_connection = True  # the emulator crashed: not a byte

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers["Content-Length"]))
        pieces = []
        while size := int(self.rfile.readline(), 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def log_message(self, *_words: object) -> None:
        pass


class _Upstream(ThreadingHTTPServer):
    """An HTTP server that says nothing of clients that break off."""

    def handle_error(self, request: object, client_address: object) -> None:
        pass


@pytest.fixture
def upstream() -> Iterator[ThreadingHTTPServer]:
    handler = type("Echo", (_Echo,), {"peers": []})
    with threaded_server.running(_Upstream(("127.0.0.1", 0), handler)) as server:
        yield server


def _never(request: Request) -> Fault:
    return Fault.NONE


def _on(path: str) -> proxy.Decide:
    return lambda request: Fault.DROP if request.path == path else Fault.NONE


@contextmanager
def _client(running: Proxy) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
    yield connection
    connection.close()


def _raw(running: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", running.port), timeout=60)


def _ask(
    client: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None, *, chunked: bool = False
) -> tuple[int, bytes]:
    pieces = iter([body[:9], body[9:]]) if chunked and body else body
    headers = {"Transfer-Encoding": "chunked"} if chunked else {}
    client.request(method, path, pieces, headers, encode_chunked=chunked)
    response = client.getresponse()
    return response.status, response.read()


def _truth(running: Proxy) -> list[tuple[str, str, int | None, str | None, bool]]:
    return [(each.request.method, each.request.path, each.status, each.etag, each.dropped) for each in running.log]


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("path", ["/length", "/chunked", "/until-closed"])
def test_a_large_body_goes_through_whole_in_every_framing(
    upstream: ThreadingHTTPServer, path: str, chunked: bool
) -> None:
    with proxy.running(upstream.server_port, _never) as running, _client(running) as client:
        assert _ask(client, "PUT", path, _LARGE, chunked=chunked) == (201, _LARGE)
        assert _truth(running) == [("PUT", path, 201, f'"{len(_LARGE)}"', False)]


def test_answers_without_a_body_leave_the_connection_usable(upstream: ThreadingHTTPServer) -> None:
    with proxy.running(upstream.server_port, _never) as running, _client(running) as client:
        answers = [
            _ask(client, "HEAD", "/200"),
            _ask(client, "GET", "/204"),
            _ask(client, "GET", "/304"),
            _ask(client, "GET", "/200"),
        ]
        assert answers == [(200, b""), (204, b""), (304, b""), (200, b"content")]


def test_one_connection_of_a_client_is_one_connection_to_the_emulator(upstream: ThreadingHTTPServer) -> None:
    with proxy.running(upstream.server_port, _never) as running, _client(running) as client:
        for _ in range(3):
            _ask(client, "GET", "/200")
    assert len(set(upstream.RequestHandlerClass.peers)) == 1  # type: ignore[attr-defined]  # set by the fixture


def test_the_proxy_adds_no_waiting_of_its_own(upstream: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    opening, delayless = asyncio.open_connection, []

    async def opened(*args: Any, **given: Any) -> Any:
        reader, writer = await opening(*args, **given)
        connection = writer.get_extra_info("socket")
        delayless.append(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0)
        return reader, writer

    monkeypatch.setattr(asyncio, "open_connection", opened)
    with proxy.running(upstream.server_port, _never) as running, _client(running) as client:
        _ask(client, "GET", "/200")
    # To the client and to the emulator. With Nagle's algorithm a body waits 40 ms for the word that its head arrived.
    assert delayless == [True, True]


def test_a_dropped_answer_was_given_and_not_a_byte_of_it_arrives(upstream: ThreadingHTTPServer) -> None:
    with proxy.running(upstream.server_port, _on("/lost")) as running:
        with _raw(running) as raw:
            raw.sendall(b"PUT /lost HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi")
            assert raw.recv(1000) == b""
        assert _truth(running) == [("PUT", "/lost", 201, '"2"', True)]


def test_after_a_drop_a_new_connection_works(upstream: ThreadingHTTPServer) -> None:
    with proxy.running(upstream.server_port, _on("/lost")) as running, _client(running) as client:
        with pytest.raises(http.client.RemoteDisconnected):
            _ask(client, "PUT", "/lost", b"hi")
        assert _ask(client, "PUT", "/kept", b"hi") == (201, b"hi")


def test_an_emulator_that_does_not_answer_is_written_down_as_that(upstream: ThreadingHTTPServer) -> None:
    with proxy.running(upstream.server_port, _on("/gone")) as running, _client(running) as client:
        for path in ("/crashed", "/gone"):
            with pytest.raises(http.client.RemoteDisconnected):
                _ask(client, "DELETE", path)
        assert _truth(running) == [("DELETE", "/crashed", None, None, False), ("DELETE", "/gone", None, None, False)]


def test_no_emulator_at_all_closes_the_connection() -> None:
    with socket.socket() as held, ExitStack() as stack:
        held.bind(("127.0.0.1", 0))
        running = stack.enter_context(proxy.running(held.getsockname()[1], _never))
        client = stack.enter_context(_client(running))
        with pytest.raises(http.client.RemoteDisconnected):
            _ask(client, "GET", "/200")
        assert _truth(running) == [("GET", "/200", None, None, False)]


def test_clients_that_break_off_or_talk_nonsense_harm_nobody_else(upstream: ThreadingHTTPServer) -> None:
    broken = [
        b"",
        b"\x16\x03\x01nonsense\r\n\r\n",
        b"PUT /x HTTP/1.1\r\nContent-Length: many\r\n\r\n",
        b"PUT /x HTTP/1.1\r\nContent-Length: 100\r\n\r\nhalf",
        b"PUT /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"x" * 1_000_000,
    ]
    with proxy.running(upstream.server_port, _never) as running, _client(running) as client:
        for said in broken:
            with _raw(running) as raw:
                try:
                    raw.sendall(said)
                except ConnectionError:
                    pass  # it has had enough
        assert _ask(client, "PUT", "/length", b"hi") == (201, b"hi")


def test_a_client_that_says_it_closes_is_not_kept_waiting(upstream: ThreadingHTTPServer) -> None:
    with proxy.running(upstream.server_port, _never) as running, _raw(running) as raw:
        raw.sendall(b"GET /200 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        with raw.makefile("rb") as stream:
            assert stream.read().endswith(b"\r\n\r\ncontent")


def test_continue_is_passed_on_before_the_body_is_sent(upstream: ThreadingHTTPServer) -> None:
    with proxy.running(upstream.server_port, _never) as running, _raw(running) as raw:
        raw.sendall(b"PUT /x HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert raw.recv(1000).startswith(b"HTTP/1.1 100")
        raw.sendall(b"hi")
        assert raw.recv(1000).startswith(b"HTTP/1.1 201")


def test_the_proxy_ends_with_its_block_while_clients_are_connected(upstream: ThreadingHTTPServer) -> None:
    with proxy.running(upstream.server_port, _never) as running:
        raw = _raw(running)
        raw.sendall(b"PUT /x HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n")
        assert raw.recv(1000).startswith(b"HTTP/1.1 100")
    with raw:
        assert raw.recv(1000) == b""
    with pytest.raises(ConnectionRefusedError):
        _raw(running)
    assert [each.name for each in threading.enumerate() if each.name == "proxy"] == []


def test_the_same_seed_loses_the_same_answers() -> None:
    def lost(seed: int, *, only_writes: bool) -> list[int]:
        decide = proxy.losing(0.1, random.Random(seed), only_writes=only_writes)
        requests = [Request("PUT" if number % 2 else "GET", "/x", {}) for number in range(200)]
        return [number for number, each in enumerate(requests) if decide(each) is Fault.DROP]

    assert lost(1, only_writes=False) == lost(1, only_writes=False) != lost(2, only_writes=False)
    assert 5 < len(lost(1, only_writes=False)) < 40
    assert {number % 2 for number in lost(1, only_writes=True)} == {1}


def test_the_sdk_signs_through_the_proxy_and_a_dropped_write_is_in_azurite(azurite: Azurite) -> None:
    from azure.core.exceptions import ServiceResponseError
    from azure.storage.blob import ContainerClient

    def decide(request: Request) -> Fault:
        return Fault.DROP if request.method == "PUT" and request.path.endswith("/lost") else Fault.NONE

    with proxy.running(azurite.ports["blob"], decide) as running:
        text = azurite.connection_string.replace(f":{azurite.ports['blob']}/", f":{running.port}/")
        container = ContainerClient.from_connection_string(text, "through-the-proxy", retry_total=0)
        container.create_container()
        kept = container.upload_blob("kept", _LARGE).get_blob_properties().etag
        with pytest.raises(ServiceResponseError):
            container.upload_blob("lost", b"content")
        assert container.download_blob("lost").readall() == b"content"
        assert container.download_blob("kept").readall() == _LARGE
        assert list(container.list_blob_names()) == ["kept", "lost"]
        container.delete_container()
        told = {each.etag: each.status for each in running.log if each.request.method == "PUT"}
        assert (told[kept], [each.status for each in running.log if each.dropped]) == (201, [201])


def test_stopping_while_clients_keep_coming_is_quiet(
    upstream: ThreadingHTTPServer, capfd: pytest.CaptureFixture[str]
) -> None:
    for _ in range(20):
        with proxy.running(upstream.server_port, _never) as running:
            comers = [threading.Thread(target=_come, args=(running,)) for _ in range(4)]
            for comer in comers:
                comer.start()
        for comer in comers:
            comer.join()
    assert capfd.readouterr().err == ""


def _come(running: Proxy) -> None:
    """Connect and ask until nothing is there any more."""
    try:
        while True:
            with _client(running) as client:
                _ask(client, "GET", "/200")
    except (OSError, http.client.HTTPException):
        pass  # refused, or cut off: the proxy has ended
