"""Answers that end too soon, from a real socket, through the real SDK."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from azguard.account import EMULATOR_KEY, EMULATOR_NAME, Account, Auth, Target
from azguard.address import Address, Kind
from azguard.transmission import Fate, send
from azguard.whole_answers import CUT_SHORT

_DATE = b"Date: Sat, 21 Nov 2026 10:00:00 GMT\r\n"
_ETAG = b'ETag: "0x8DC1234567890AB"\r\nLast-Modified: Sat, 21 Nov 2026 10:00:00 GMT\r\n'
_EMPTY = b"Content-Length: 0\r\n"


@contextmanager
def _answering(said: bytes) -> Iterator[Target]:
    """Run a service that says this to one request, then closes."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            accepted, _ = listening.accept()
            with accepted:
                asked = b""
                # Whole, else closing the connection would reset it.
                while not asked.endswith(b"content" if asked.startswith(b"PUT") else b"\r\n\r\n"):
                    asked += accepted.recv(65536)
                accepted.sendall(said)

        thread = threading.Thread(target=serve)
        thread.start()
        endpoint = f"http://127.0.0.1:{listening.getsockname()[1]}/{EMULATOR_NAME}"
        account = Account(EMULATOR_NAME, {"blob": endpoint}, Auth.KEY, EMULATOR_KEY)
        yield Target(account, Address(Kind.BLOB, ("site", "config.json")))
        thread.join()


@pytest.mark.parametrize(
    ("said", "fate"),
    [
        (b"HTTP/1.1 201 Created\r\n" + _EMPTY + _ETAG + _DATE + b"\r\n", Fate.COMMITTED),
        (b"HTTP/1.1 201 Created\r\n" + _ETAG + _DATE + b"Connection: close\r\n\r\n", Fate.COMMITTED),
        (b"HTTP/1.1 201 Created\r\n" + _EMPTY + _ETAG, Fate.IN_DOUBT),  # as the service orders them
        (b"HTTP/1.1 201 Created\r\n" + _ETAG + _DATE, Fate.IN_DOUBT),  # as Azurite orders them
        (b'HTTP/1.1 201 Created\r\nETag: "0x8DC12', Fate.IN_DOUBT),
        (b"HTTP/1.1 412 Precondition Failed\r\n" + _EMPTY + b"\r\n", Fate.REFUSED),
    ],
)
def test_a_write_is_committed_only_by_a_whole_answer(said: bytes, fate: Fate) -> None:
    with _answering(said) as target:
        blob = target.account.blob(target.address)
        assert send(lambda: blob.upload_blob(b"content", overwrite=True)).fate is fate


def test_a_delete_is_done_by_its_status_alone() -> None:
    with _answering(b"HTTP/1.1 202 Accepted\r\nx-ms-req") as target:
        assert send(target.account.blob(target.address).delete_blob).fate is Fate.COMMITTED


def test_properties_come_without_a_length_but_never_without_a_date() -> None:
    told = []
    for said in (_ETAG + _DATE, _ETAG):
        with _answering(b"HTTP/1.1 200 OK\r\n" + said + b"\r\n") as target:
            sent = send(target.account.blob(target.address).get_blob_properties)
            told.append((sent.fate, CUT_SHORT in str(sent.error)))
    assert told == [(Fate.COMMITTED, False), (Fate.IN_DOUBT, True)]
