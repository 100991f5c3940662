"""The outcome of a request, told from real sockets: every way a connection can fail, through the real SDK."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from azguard.accounts.account import Account, Auth, Target
from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME
from azguard.address import Address, Kind
from azguard.errors import Unavailable
from azguard.requests.calls import CallOutcome, read, send_once, write_timeouts
from azguard.requests.deadline import ANSWER_SECONDS
from azguard.wire.call import call
from azguard.wire.client import Limits
from azguard.wire.failures import Refusal
from azguard.wire.operations.blobs import BLOB_PUT_BLOCK_BLOB
from tests.support.cases import cases
from tests.support.fake_resource import Clock
from tests.unit.requests.test_calls import SAY_NO

HOST = "127.0.0.1"
_TIMEOUTS = Limits(2, 2)
Answer = Callable[[socket.socket], None]


def target(port: int, scheme: str = "http", host: str = HOST) -> Target:
    endpoints = {"blob": f"{scheme}://{host}:{port}/{EMULATOR_NAME}"}
    return Target(
        Account(EMULATOR_NAME, endpoints, Auth.KEY, EMULATOR_KEY), Address(Kind.BLOB, ("site", "config.json"))
    )


def put(where: Target, timeouts: Limits = _TIMEOUTS) -> Any:
    return call(BLOB_PUT_BLOCK_BLOB, where, timeouts, body=b"content")


def fate_at(where: Target, timeouts: Limits = _TIMEOUTS) -> CallOutcome:
    return send_once(lambda: put(where, timeouts)).outcome


@contextmanager
def serving(*answers: Answer) -> Iterator[int]:
    """Run a server that gives each connection the next answer; yield its port."""
    with closing(socket.create_server((HOST, 0))) as listening:

        def serve() -> None:
            for answer in answers:
                try:
                    connection, _ = listening.accept()
                    with closing(connection):
                        answer(connection)
                except OSError:
                    return  # The client or the test has gone.

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]


def whole_request(connection: socket.socket) -> None:
    received = b""
    while not received.endswith(b"content"):
        received += connection.recv(65536)


def says(text: str) -> Answer:
    def answer(connection: socket.socket) -> None:
        whole_request(connection)
        connection.sendall(text.replace("\n", "\r\n").encode())

    return answer


def status_of(status: int) -> Answer:
    return says(f"HTTP/1.1 {status} Word\nx-ms-version: 2026-02-06\nContent-Length: 0\nConnection: close\n\n")


def resets(connection: socket.socket) -> None:
    connection.recv(1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def resets_after_the_request(connection: socket.socket) -> None:
    whole_request(connection)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def closes_after_the_request(connection: socket.socket) -> None:
    whole_request(connection)


def never_answers(connection: socket.socket) -> None:
    while connection.recv(65536):
        pass


def speaks_no_tls(connection: socket.socket) -> None:
    connection.recv(65536)
    connection.sendall(b"this is no TLS")


# Not sent


def test_a_refused_connection_is_not_sent() -> None:
    with socket.socket() as silent:
        silent.bind((HOST, 0))
        assert fate_at(target(silent.getsockname()[1])) is CallOutcome.NOT_SENT


def test_a_name_that_does_not_resolve_is_not_sent() -> None:
    assert fate_at(target(80, host="no-such-host.invalid")) is CallOutcome.NOT_SENT


def test_a_name_that_is_looked_up_for_too_long_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    told: list[str] = []

    def look_up(host: bytes, *rest: object) -> list[Any]:
        told.append(f"{host.decode()} is looked up")
        over.wait(60)
        told.append("it has no address")
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    told.append(fate_at(target(80, host="slow.invalid"), Limits(0.3, 5)).name)
    over.set()
    assert told == ["slow.invalid is looked up", "NOT_SENT"]


def test_a_connection_that_is_not_made_in_time_is_not_sent() -> None:
    with closing(socket.socket()) as listening:
        listening.bind((HOST, 0))
        listening.listen(0)
        address = listening.getsockname()
        # A queue that is full makes the system ignore further connections.
        knocking = [socket.socket() for _ in range(4)]
        for each in knocking:
            each.setblocking(False)
            each.connect_ex(address)
        try:
            fate = fate_at(target(address[1]), Limits(0.5, 5))
        finally:
            for each in knocking:
                each.close()
    assert fate is CallOutcome.NOT_SENT


# In doubt


@cases(
    "answer",
    resets,
    resets_after_the_request,
    closes_after_the_request,
    says("HTTP/1.1 2"),
    says('HTTP/1.1 201 Created\nETag: "0x8D'),
    says("nonsense\n\n"),
    says("HTTP/1.1 412 Precondition Failed\nContent-Length: 100\n\n<?xml"),
)
def test_a_connection_that_breaks_leaves_the_write_in_doubt(answer: Answer) -> None:
    with serving(answer) as port:
        assert fate_at(target(port)) is CallOutcome.IN_DOUBT


def test_an_answer_that_does_not_come_in_time_leaves_the_write_in_doubt() -> None:
    with serving(never_answers) as port:
        assert fate_at(target(port), Limits(2, 0.3)) is CallOutcome.IN_DOUBT


def test_a_write_for_which_tls_never_came_to_be_was_not_sent() -> None:
    with serving(speaks_no_tls) as port:
        assert fate_at(target(port, "https")) is CallOutcome.NOT_SENT


@cases("status", 408, 429, 500, 502, 503, 504, 507)
def test_a_status_that_says_later_leaves_the_write_in_doubt(status: int) -> None:
    with serving(status_of(status)) as port:
        assert fate_at(target(port)) is CallOutcome.IN_DOUBT


@cases("leaked", AttributeError("headers"), ValueError("x"), OSError("x"), RuntimeError("x"))
def test_what_the_sdk_leaks_leaves_the_write_in_doubt(leaked: Exception) -> None:
    def call() -> None:
        raise leaked

    assert (send_once(call).outcome, send_once(call).error) == (CallOutcome.IN_DOUBT, leaked)


# Refused and committed


@cases("status", 200, 201, 302, *sorted(SAY_NO - {407}))
def test_what_is_not_said_by_the_service_is_neither_a_success_nor_a_refusal(status: int) -> None:
    page = f"HTTP/1.1 {status} Word\nServer: nginx\nLocation: http://{HOST}/login\nContent-Length: 0\n\n"
    with serving(says(page)) as port:
        assert fate_at(target(port)) is CallOutcome.IN_DOUBT


@cases("status", *sorted(SAY_NO))
def test_a_status_that_says_no_is_a_refusal(status: int) -> None:
    with serving(status_of(status)) as port:
        assert fate_at(target(port)) is CallOutcome.REFUSED


def test_an_answer_is_a_commit() -> None:
    when = "Sat, 21 Nov 2026 10:00:00 GMT"
    head = f'Content-Length: 0\nETag: "1"\nLast-Modified: {when}\nDate: {when}\nx-ms-version: 2026-02-06'
    created = f"HTTP/1.1 201 Created\n{head}\n\n"
    with serving(says(created)) as port:
        sent = send_once(lambda: put(target(port)))
    assert (sent.outcome, sent.answer["etag"] if sent.answer else None) == (CallOutcome.COMMITTED, '"1"')


@cases("status", 200, 503)
def test_a_request_is_sent_once(status: int) -> None:
    count = []

    def counts(connection: socket.socket) -> None:
        count.append(1)
        status_of(status)(connection)

    with serving(counts, counts, counts) as port:
        fate_at(target(port))
    assert count == [1]


def test_ctrl_c_passes_through() -> None:
    def press() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        send_once(press)


# Timeouts, and reads


def test_a_write_is_given_time_to_answer_even_at_the_deadline() -> None:
    clock = Clock()
    deadline = clock.deadline(30)
    early = write_timeouts(deadline)
    clock.sleep(30)
    late = write_timeouts(deadline)
    assert (early, late) == (
        Limits(4.0, ANSWER_SECONDS),
        Limits(0.5, 10.0),
    )


def test_a_read_is_made_again_until_it_answers() -> None:
    failures = [Refusal(503, "ServerBusy"), Refusal(429, "TooMany"), OSError("reset")]

    def call(timeouts: Limits) -> str:
        if failures:
            raise failures.pop()
        return "answer"

    assert read(call, target(1), Clock().deadline(10)) == "answer"


def test_a_read_ends_with_the_deadline() -> None:
    clock = Clock()

    def call(timeouts: Limits) -> str:
        raise Refusal(503, "ServerBusy")

    with pytest.raises(Unavailable):
        read(call, target(1), clock.deadline(10))
    assert 8 < clock.now - 1000 <= 10


def test_a_read_that_is_refused_is_not_made_again() -> None:
    made = []

    def call(timeouts: Limits) -> str:
        made.append(timeouts)
        raise Refusal(404, "BlobNotFound")

    with pytest.raises(Exception, match="there is no blob"):
        read(call, target(1), Clock().deadline(10))
    assert len(made) == 1


def test_a_credential_that_cannot_be_had_is_not_asked_for_again() -> None:
    from azguard.errors import LoginFailed

    made = []

    def call(timeouts: Limits) -> str:
        made.append(timeouts)
        raise LoginFailed("no login")

    with pytest.raises(Exception, match="no login"):
        read(call, target(1), Clock().deadline(10))
    assert len(made) == 1
