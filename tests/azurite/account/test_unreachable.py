"""Why no answer came, from real sockets: each reason has its own words and its own way out."""

import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from tests.support.cli_world import CliWorld
from tests.support.raw_server import answering, serving

_KEY = "a2V5a2V5"


def account(endpoint: str, name: str = "acc") -> tuple[str, str]:
    return ("--connection-string", f"BlobEndpoint={endpoint};AccountName={name};AccountKey={_KEY}")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with a certificate of other.example, which no authority signed, and its key."""
    folder = tmp_path_factory.mktemp("certificate")
    subject = ["-subj", "/CN=other.example", "-addext", "subjectAltName=DNS:other.example"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*made, "-keyout", "key.pem", "-out", "c.pem"], cwd=folder, check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_text((folder / "c.pem").read_text() + (folder / "key.pem").read_text())
    return both


@contextmanager
def tls(certificate: Path) -> Iterator[int]:
    """Run a server that shakes hands with this certificate; yield its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with serving(lambda accepted: context.wrap_socket(accepted, server_side=True).close()) as port:
        yield port


@pytest.mark.parametrize("command", [("show", "site/a"), ("put", "site/a", "--if-none-match", "*", "-f", "new")])
def test_a_host_that_is_not_known_is_no_matter_of_time(
    offline: CliWorld, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    offline.file("new", "text")

    def look_up(*_words: object) -> NoReturn:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    ran = offline.call("blob", *command, *account("https://acc.blob.core.windows.invalid"), "--timeout", "1s")
    told = "the host name acc.blob.core.windows.invalid is not known" in ran.err
    assert (ran.code, told, "--endpoint-suffix" in ran.err, "--timeout" in ran.err) == (53, True, True, False), ran.err


@pytest.mark.parametrize("command", [("show", "site/a"), ("put", "site/a", "--if-none-match", "*", "-f", "new")])
def test_a_certificate_that_is_not_trusted_is_named_and_nothing_was_sent(
    offline: CliWorld, certificate: Path, command: tuple[str, ...]
) -> None:
    offline.file("new", "text")
    with tls(certificate) as port:
        ran = offline.call("blob", *command, *account(f"https://127.0.0.1:{port}/acc"))
    told = "error: the TLS certificate of 127.0.0.1 is not trusted: self-signed certificate" in ran.err
    assert (ran.code, told, "REQUESTS_CA_BUNDLE" in ran.err, "--timeout" in ran.err) == (53, True, True, False), ran.err


def test_a_certificate_of_another_host_is_named(offline: CliWorld, certificate: Path) -> None:
    with tls(certificate) as port:
        environ = {"REQUESTS_CA_BUNDLE": str(certificate)}
        ran = offline.call("blob", "show", "site/a", *account(f"https://127.0.0.1:{port}/acc"), env=environ)
    assert (ran.code, "is of another host" in ran.err, "--timeout" in ran.err) == (53, True, False), ran.err


def test_a_bundle_that_is_not_there_is_named(offline: CliWorld, tmp_path: Path) -> None:
    environ = {"REQUESTS_CA_BUNDLE": str(tmp_path / "none.pem")}
    ran = offline.call("blob", "show", "site/a", *account("https://127.0.0.1:9/acc"), env=environ)
    assert (ran.code, "REQUESTS_CA_BUNDLE" in ran.err, "--timeout" in ran.err) == (53, True, False), ran.err


def test_a_server_without_tls_is_named(offline: CliWorld) -> None:
    with answering(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n") as port:
        ran = offline.call("blob", "show", "site/a", *account(f"https://127.0.0.1:{port}/acc"), "--timeout", "1s")
    assert (ran.code, "speaks no TLS there" in ran.err, "--timeout" in ran.err) == (53, True, False), ran.err


def test_an_emulator_that_does_not_run_is_told_how_to_be_started(offline: CliWorld) -> None:
    where = account("http://127.0.0.1:9/devstoreaccount1", "devstoreaccount1")
    ran = offline.call("blob", "show", "site/a", *where, "--timeout", "1s")
    assert (ran.code, ran.err.splitlines()) == (
        53,
        [
            "error: the emulator is not running at http://127.0.0.1:9/devstoreaccount1",
            'hint: type azguard emulator start, then eval "$(azguard emulator env)"',
        ],
    )


def test_a_port_at_which_nothing_listens_is_no_matter_of_time(offline: CliWorld) -> None:
    ran = offline.call("blob", "show", "site/a", *account("http://127.0.0.1:9/acc"), "--timeout", "1s")
    assert (ran.code, ran.err.splitlines()) == (
        53,
        [
            "error: no answer from http://127.0.0.1:9/acc: connection refused: nothing listens there",
            "hint: check the host and the port of the endpoint",
        ],
    )


def test_silence_is_a_matter_of_time(offline: CliWorld) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = account(f"http://127.0.0.1:{silent.getsockname()[1]}/acc")
        ran = offline.call("blob", "show", "site/a", *where, "--timeout", "0.6s")
    assert (ran.code, "timed out" in ran.err, "--timeout 60s" in ran.err) == (53, True, True), ran.err
