"""A client without a network: the tests say what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass

from azguard.accounts.account import Account, Target
from azguard.address import Address
from azguard.wire.answers import Answer
from azguard.wire.call import call
from azguard.wire.client import Limits
from azguard.wire.connections import Headers, Reply
from azguard.wire.rows import Http, Operation, Write


@dataclass(frozen=True)
class Asked:
    """A request as it was sent."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None
    limits: Limits

    @property
    def query(self) -> str:
        """Return the query of the URL."""
        return self.url.partition("?")[2]


def reply(status: int, headers: Mapping[str, str] | None = None, content: bytes = b"", reason: str = "") -> Reply:
    """Return an answer of Azure Storage."""
    own = {"x-ms-version": "2026-10-06", "Content-Length": str(len(content))}
    given = {name: value for name, value in (headers or {}).items() if name.lower() != "content-length"}
    told = {**own, **given}
    return Reply(status, reason, Headers([f"{name}: {value}" for name, value in told.items()]), content)


class AnsweringClient:
    """Answers each request with what ``answer`` returns."""

    def answer(self, asked: Asked) -> Reply:
        """Return the answer to a request, or raise why there is none."""
        raise NotImplementedError

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, limits: Limits) -> Reply:
        return self.answer(Asked(method, url, dict(headers), body, limits))


def ask(
    account: Account,
    method: str,
    address: Address,
    headers: Mapping[str, str],
    query: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> Answer:
    """Send a request of a test's own, and return its answer.

    Raises:
        Refusal: the service refused it.
    """
    http = Http(method, tuple((query or {}).items()), ok=frozenset(range(200, 400)))
    operation = Operation(Write.FREE, f"{address.kind.noun}.test", "", http=http)
    return call(operation, Target(account, address), Limits(), headers=headers, body=body)
