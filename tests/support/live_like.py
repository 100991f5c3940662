"""A service like the live one: the emulator, with its refusals repaired, and one deviation where a test asks for one.

A client between the product and the network plays it, so that no proxy has to run. What it changes in a request it
signs anew.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any

from azguard.accounts.account import Account
from azguard.wire import client, signing
from azguard.wire.client import REQUEST_ID, Limits, NetworkClient
from azguard.wire.connections import Headers, Reply

_REQUEST_ID = REQUEST_ID.lower()
# A test may put a service like this in its place.
_SEND = NetworkClient.send


@dataclass(frozen=True)
class Asked:
    """A request on its way."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None
    limits: Limits

    def has(self, name: str) -> bool:
        """Return whether it has a header, whatever the case of its name."""
        return any(each.lower() == name.lower() for each in self.headers)


Forward = Callable[[Asked], Reply]
Deviation = Callable[["LiveLike", Asked, Forward], Reply]


@dataclass
class LiveLike:
    """Sends requests to the emulator, and answers as the live service does, but for one deviation."""

    account: Account
    deviate: Deviation = lambda service, asked, forward: forward(asked)
    #: What a deviation remembers.
    memory: dict[str, Any] = field(default_factory=dict)
    _network: NetworkClient = field(default_factory=NetworkClient)

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, limits: Limits) -> Reply:
        """Send a request, and return the answer as it arrives: one to another request is none."""
        reply = self.deviate(self, Asked(method, url, headers, body, limits), self._forward)
        client.check_echo(headers, reply.headers)
        return reply

    def without(self, asked: Asked, *names: str, **more: str) -> Asked:
        """Return a request without some headers and with others, signed anew."""
        left = {*(name.lower() for name in names), "authorization"}
        headers = {name: value for name, value in asked.headers.items() if name.lower() not in left}
        headers |= {name.replace("_", "-"): value for name, value in more.items()}
        service = next(each for each, end in self.account.endpoints.items() if asked.url.startswith(end))
        url = signing.prove(self.account, service, asked.method, asked.url, headers)
        return Asked(asked.method, url, headers, asked.body, asked.limits)

    def _forward(self, asked: Asked) -> Reply:
        reply = _SEND(self._network, asked.method, asked.url, asked.headers, asked.body, asked.limits)
        if reply.headers.get("x-ms-error-code") == "PopReceiptMismatch":
            reply = change(reply, 404, x_ms_error_code="MessageNotFound")
        return name(reply, asked)


def name(reply: Reply, asked: Asked) -> Reply:
    """Return an answer that names a request."""
    return change(reply, x_ms_client_request_id=asked.headers[REQUEST_ID])


def change(reply: Reply, status: int | None = None, *, drop: tuple[str, ...] = (), **headers: str) -> Reply:
    """Return an answer with another status, without some headers, and with other values of some."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    kept = {name: value for name, value in reply.headers.items() if name.lower() not in {*named, *drop}}
    lines = [f"{name}: {value}" for name, value in {**kept, **named}.items()]
    return reply._replace(status_code=status or reply.status_code, headers=Headers(lines))


# The deviations: each is what some gateway, account or emulator does.


def ignore_version(service: LiveLike, asked: Asked, forward: Forward) -> Reply:
    """Ignore If-Match on a write of metadata."""
    is_meant = asked.method == "PUT" and "comp=metadata" in asked.url and asked.has("If-Match")
    return forward(service.without(asked, "If-Match") if is_meant else asked)


def move_date(_: LiveLike, asked: Asked, forward: Forward) -> Reply:
    """Tell a time two hours ahead."""
    reply = forward(asked)
    moved = parsedate_to_datetime(reply.headers["Date"]) + timedelta(hours=2)
    return change(reply, date=format_datetime(moved, usegmt=True))


def drop_ids(_: LiveLike, asked: Asked, forward: Forward) -> Reply:
    """Take the name of the request out of each answer."""
    return change(forward(asked), drop=(_REQUEST_ID,))


def replay_answers(service: LiveLike, asked: Asked, forward: Forward) -> Reply:
    """Give the first answer to a method once more, in the place of the third."""
    reply = forward(asked)
    count = service.memory[asked.method] = service.memory.get(asked.method, 0) + 1
    first = service.memory.setdefault(f"first {asked.method}", reply)
    return first if count == 3 else reply


def send_twice(_: LiveLike, asked: Asked, forward: Forward) -> Reply:
    """Pass on each creation of a blob twice, like a proxy that lost the first answer."""
    if asked.has("If-None-Match") and asked.method == "PUT":
        forward(asked)
    return forward(asked)


def refuse_tags(_: LiveLike, asked: Asked, forward: Forward) -> Reply:
    """Have no index tags, as an account with a hierarchical namespace."""
    reply = forward(asked)
    if "comp=tags" not in asked.url:
        return reply
    return change(reply, 400, x_ms_error_code="FeatureNotYetSupportedForHierarchicalNamespaceAccounts")


def rename_code(_: LiveLike, asked: Asked, forward: Forward) -> Reply:
    """Refuse a condition by another code."""
    reply = forward(asked)
    is_meant = reply.status_code == 412 and reply.headers.get("x-ms-error-code") == "ConditionNotMet"
    return change(reply, 409, x_ms_error_code="Conflict") if is_meant and "comp=metadata" in asked.url else reply


def cache_reads(service: LiveLike, asked: Asked, forward: Forward) -> Reply:
    """Keep the first content of each blob, and give it again."""
    if asked.method != "GET" or "?" in asked.url:
        return forward(asked)
    kept = service.memory.setdefault(asked.url, None) or forward(asked)
    service.memory[asked.url] = kept
    return name(kept, asked)


def ignore_lease(service: LiveLike, asked: Asked, forward: Forward) -> Reply:
    """Accept a write of metadata under any lease."""
    reply = forward(asked)
    place = asked.url.partition("?")[0]
    if "x-ms-lease-id" in reply.headers and "comp=lease" in asked.url:
        service.memory[place] = reply.headers["x-ms-lease-id"]
    if reply.headers.get("x-ms-error-code", "").startswith("LeaseId") and "comp=metadata" in asked.url:
        return forward(service.without(asked, "x-ms-lease-id", x_ms_lease_id=service.memory[place]))
    return reply


def apply_refused(service: LiveLike, asked: Asked, forward: Forward) -> Reply:
    """Refuse a write of metadata, and apply it all the same."""
    reply = forward(asked)
    if reply.headers.get("x-ms-error-code") == "ConditionNotMet" and "comp=metadata" in asked.url:
        forward(service.without(asked, "If-Match"))
    return reply


def ignore_create_only(service: LiveLike, asked: Asked, forward: Forward) -> Reply:
    """Replace a blob that is to be created only."""
    is_meant = asked.method == "PUT" and dict(asked.headers).get("If-None-Match") == "*"
    return forward(service.without(asked, "If-None-Match") if is_meant else asked)
