"""A world for tests of logins: an Azurite that takes tokens over TLS, and who hands them out, as real servers.

The authority and GitHub's token service are one scripted server. It issues tokens of a few seconds, takes an assertion
once only if it is told to, and notes what it was asked.
"""

import base64
import json
import ssl
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from azguard.accounts.endpoints import EMULATOR_NAME
from tests.support import threaded_server
from tests.support.emulator_world import until

TENANT, CLIENT = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
# What a job's request for its OIDC token is signed with; it may never be shown.
REQUEST_TOKEN = "request-token-of-the-job"


@dataclass
class Issuer:
    """Who hands out OIDC tokens to the job, and tokens for the storage in exchange for them."""

    port: int
    #: How long a token for the storage is valid, in seconds.
    seconds: int = 3600
    #: What is answered to a request for an OIDC token, unless it is 200.
    refusal: int = 200
    assertions: list[str] = field(default_factory=list)
    audiences: list[str] = field(default_factory=list)
    exchanged: list[str] = field(default_factory=list)
    #: The tenant and the scope of each token that was asked for.
    asked: list[tuple[str, str]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def oidc(self, query: str) -> tuple[int, dict[str, Any]]:
        """Return a fresh OIDC token."""
        if self.refusal != 200:
            return self.refusal, {"message": "no"}
        self.audiences += parse_qs(query).get("audience", [])
        self.assertions.append(f"assertion-{len(self.assertions)}")
        return 200, {"value": self.assertions[-1], "oidcToken": self.assertions[-1]}

    def token(self, tenant: str, body: str) -> tuple[int, dict[str, Any]]:
        """Return a token for the storage in exchange for an assertion, each of which is taken once."""
        given = parse_qs(body)
        assertion = given["client_assertion"][0]
        self.asked.append((tenant, given["scope"][0]))
        if assertion in self.exchanged:
            return 401, {"error": "invalid_client", "error_description": "AADSTS700024: the assertion has ended"}
        self.exchanged.append(assertion)
        return 200, {"access_token": _jwt(self.seconds), "expires_in": self.seconds, "token_type": "Bearer"}


@dataclass(frozen=True)
class LoginWorld:
    """The issuer and the Azurite that believes it, and the variables by which a job finds both."""

    issuer: Issuer
    endpoint: str
    certificate: Path

    @property
    def trust(self) -> dict[str, str]:
        return {"REQUESTS_CA_BUNDLE": str(self.certificate), "AZURE_AUTHORITY_HOST": self.issuer.url}

    @property
    def github(self) -> dict[str, str]:
        """Return the variables of a job in GitHub Actions."""
        return {
            **self.trust,
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "ACTIONS_ID_TOKEN_REQUEST_URL": f"{self.issuer.url}/oidc?api-version=2.0",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": REQUEST_TOKEN,
            "AZURE_CLIENT_ID": CLIENT,
            "AZURE_TENANT_ID": TENANT,
        }

    @property
    def pipelines(self) -> dict[str, str]:
        """Return the variables of a job in Azure Pipelines."""
        return {
            **self.trust,
            "TF_BUILD": "True",
            "SYSTEM_OIDCREQUESTURI": f"{self.issuer.url}/oidc",
            "SYSTEM_ACCESSTOKEN": REQUEST_TOKEN,
            "AZURESUBSCRIPTION_CLIENT_ID": CLIENT,
            "AZURESUBSCRIPTION_TENANT_ID": TENANT,
            "AZURESUBSCRIPTION_SERVICE_CONNECTION_ID": "33333333-3333-3333-3333-333333333333",
        }

    @property
    def account(self) -> tuple[str, ...]:
        return ("--auth-mode", "login", "--blob-endpoint", self.endpoint)


@contextmanager
def issuing(certificate: Path) -> Iterator[Issuer]:
    """Run the issuer."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.headers["Authorization"] != f"Bearer {REQUEST_TOKEN}":
                self._answer(401, {})
            else:
                self._answer(*made.oidc(urlsplit(self.path).query))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            if urlsplit(self.path).path == "/oidc":
                self.do_GET()
            else:
                self._answer(*made.token(self.path.split("/")[1], body))

        def _answer(self, status: int, content: dict[str, Any]) -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    with _serving(Handler, certificate) as port:
        made = Issuer(port)
        yield made


@contextmanager
def challenging(certificate: Path, challenge: str) -> Iterator[tuple[str, list[str]]]:
    """Answer every request with a challenge; yield the endpoint, and the tokens that were sent to it."""
    tokens: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            tokens.append(self.headers["Authorization"])
            self.send_response_only(401)
            code = "InvalidAuthenticationInfo"
            for name, value in {"x-ms-error-code": code, "x-ms-version": "2025-01-05", "x-ms-request-id": "1",
                                "WWW-Authenticate": challenge, "Content-Length": "0"}.items():  # fmt: skip
                self.send_header(name, value)
            self.end_headers()

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _answer

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    with _serving(Handler, certificate) as port:
        yield f"https://127.0.0.1:{port}/acc", tokens


@contextmanager
def _serving(handler: type[BaseHTTPRequestHandler], certificate: Path) -> Iterator[int]:
    """Serve over TLS; yield the port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with threaded_server.running(server):
        yield server.server_address[1]


@contextmanager
def azurite(folder: Path, script: Path, certificate: Path, node: Sequence[str]) -> Iterator[str]:
    """Run an Azurite that takes tokens over TLS; yield its endpoint of blobs."""
    blob = script.with_name("blob") / "main.js"
    options = ["--blobPort", "0", "--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck"]
    trusted = ["--oauth", "basic", "--cert", str(certificate), "--key", str(certificate.with_name("key.pem"))]
    log = folder / "azurite.log"
    with open(log, "wb") as output:
        process = subprocess.Popen([*node, str(blob), *options, *trusted], cwd=folder, stdout=output, stderr=output)
        try:
            until(lambda: "successfully listens on" in log.read_text() or process.poll() is not None)
            listening = log.read_text().rpartition("listens on https://127.0.0.1:")[2].split()[0]
            yield f"https://127.0.0.1:{listening}/{EMULATOR_NAME}"
        finally:
            process.terminate()
            process.wait()


def certify(folder: Path) -> Path:
    """Make a certificate of this machine, which is its own authority; return its file. Its key is beside it."""
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*made, "-keyout", "key.pem", "-out", "c.pem"], cwd=folder, check=True, capture_output=True)
    return folder / "c.pem"


def _jwt(seconds: int) -> str:
    now = int(time.time())
    claims = {
        "aud": "https://storage.azure.com",
        "iss": f"https://sts.windows.net/{TENANT}/",
        "iat": now,
        "nbf": now - 5,
        "exp": now + seconds,
        "jti": str(time.monotonic_ns()),
    }
    parts = [base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=") for each in ({"alg": "none"}, claims)]
    return b".".join([*parts, base64.urlsafe_b64encode(b"signature").rstrip(b"=")]).decode()
