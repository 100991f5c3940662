"""The answers of a service about a lease, one after the other, without a network."""

from collections.abc import Mapping

from azguard.accounts.account import Account, Auth, Target
from azguard.address import Address, Kind
from azguard.wire.connections import Reply
from tests.support.answering_client import AnsweringClient, Asked, reply

#: What the service answers: its status, its code, its headers.
Answer = tuple[int, str | None, dict[str, str]]

#: The name under which the headers of an answer have the text of a refusal, or the body of a success.
MESSAGE = "message"

#: The ETag of ``now_is``.
ETAG = '"0x8D6D418B6C08663"'


class Scripted(AnsweringClient):
    """Answers with what was recorded or is stated, one after the other, and keeps what was asked."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        #: The method of each request, and its action on the lease.
        self.asked: list[tuple[str, str | None]] = []
        #: The URL of each request.
        self.urls: list[str] = []
        #: The headers of each request.
        self.headers: list[dict[str, str]] = []

    def answer(self, asked: Asked) -> Reply:
        self.asked.append((asked.method, asked.headers.get("x-ms-lease-action")))
        self.urls.append(asked.url)
        self.headers.append({name.lower(): str(value) for name, value in asked.headers.items()})
        status, code, headers = self._answers.pop(0)
        told = {**headers, **({"x-ms-error-code": code} if code else {})}
        message = told.pop(MESSAGE, "")
        content = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>" if code and message else message
        return reply(status, told, b"" if asked.method == "HEAD" else content.encode())


def scripted(kind: Kind, *answers: Answer) -> tuple[Target, Scripted]:
    """Return a blob or a container of a service that gives these answers, and what it was asked."""
    client = Scripted(*answers)
    account = Account("acc", {"blob": "https://acc.blob.core.windows.net"}, Auth.ANONYMOUS, None, {"client": client})
    parts = ("site", "a") if kind is Kind.BLOB else ("site",)
    return Target(account, Address(kind, parts)), client


def now_is(state: str, metadata: Mapping[str, str] | None = None, **headers: str) -> Answer:
    """Return the live service's answer to a look at a lease; ``headers`` replace some of its own."""
    locked = "locked" if state in ("leased", "breaking") else "unlocked"
    told = {"etag": ETAG, "last-modified": "Thu, 09 May 2019 00:53:12 GMT", **headers}
    told |= {f"x-ms-meta-{name}": value for name, value in (metadata or {}).items()}
    return 200, None, {**told, "x-ms-lease-state": state, "x-ms-lease-status": locked}


def it_is(moment: str) -> Answer:
    """Return a refusal that tells the service's time, such as ``2026-11-21T12:00:00.0000000Z``."""
    return 404, "BlobNotFound", {MESSAGE: f"The specified blob does not exist.\nRequestId:0\nTime:{moment}"}
