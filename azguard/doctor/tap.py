"""A client between the doctor and the network: it counts, and it loses or doubles one request where it is told to."""

from collections.abc import Mapping
from enum import StrEnum

from azguard.wire.client import REQUEST_ID, Client, Limits
from azguard.wire.connections import Reply
from azguard.wire.failures import Broken, BrokenAnswer
from azguard.wire.rows import Operation

_DONE = range(200, 300)


class Damage(StrEnum):
    """What is done to one request."""

    #: It is carried out, and its answer does not arrive.
    LOST = "answer lost"
    #: It is carried out twice, and the second answer arrives: a proxy that lost the first one does so.
    DOUBLED = "sent twice"


class Misnamed(StrEnum):
    """What can be wrong with the name of a request in an answer, the worst first."""

    OF_ANOTHER = "some are those of other requests: a gateway repeats answers"
    UNNAMED = "some name no request: a repeated answer is not noticed"
    UNNAMED_REFUSAL = "refusals name no request: a repeated one is not noticed"


def find_origin(url: str) -> str:
    """Return the beginning of a URL, up to its path."""
    return "/".join(url.split("/", 3)[:3])


class Tap:
    """Passes requests on to another client."""

    def __init__(self, inner: Client) -> None:
        self._inner = inner
        self._damage: Damage | None = None
        self._watched: tuple[Operation, str] | None = None
        #: How many requests were sent.
        self.requests = 0
        #: What went wrong with the names of requests in the answers, by the beginning of the URL.
        self.misnamed: dict[str, set[Misnamed]] = {}
        #: How many requests of the operation that is watched the service says it did, whatever the caller was told.
        self.done = 0
        #: By the beginning of the URL: what answers there, as it calls itself.
        self.servers: dict[str, str] = {}

    def damage_next(self, damage: Damage, operation: Operation, url: str = "") -> None:
        """Damage the next request of an operation, and count from now on how many of them are done.

        ``url`` is how the URL of the request begins, where that matters.
        """
        self._damage, self._watched, self.done = damage, (operation, url), 0

    def stop_watching(self) -> int:
        """Return how many requests of the watched operation are done; damage and count no more."""
        self._damage = self._watched = None
        return self.done

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, limits: Limits) -> Reply:
        """Send a request as the inner client does, damaged if it is the one that is meant."""
        damage = self._take_damage(method, url, headers)
        reply = self._pass_on(method, url, headers, body, limits)
        if damage is Damage.LOST:
            raise BrokenAnswer(Broken.CLOSED)
        if damage is Damage.DOUBLED:
            reply = self._pass_on(method, url, headers, body, limits)
        return reply

    def _take_damage(self, method: str, url: str, headers: Mapping[str, str]) -> Damage | None:
        if self._damage is None or not self._is_watched(method, url, headers):
            return None
        damage, self._damage = self._damage, None
        return damage

    def _is_watched(self, method: str, url: str, headers: Mapping[str, str]) -> bool:
        if self._watched is None:
            return False
        operation, beginning = self._watched
        return url.startswith(beginning) and _is_of(operation, method, url, headers)

    def _pass_on(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, limits: Limits) -> Reply:
        self.requests += 1
        misnamed = self.misnamed.setdefault(find_origin(url), set())
        try:
            reply = self._inner.send(method, url, headers, body, limits)
        except BrokenAnswer as error:
            if error.how is Broken.OF_ANOTHER_REQUEST:
                misnamed.add(Misnamed.OF_ANOTHER)
            raise
        self.servers[find_origin(url)] = reply.headers.get("Server", "")
        if REQUEST_ID not in reply.headers:
            misnamed.add(Misnamed.UNNAMED if reply.status_code in _DONE else Misnamed.UNNAMED_REFUSAL)
        if self._is_watched(method, url, headers) and _is_done(reply):
            self.done += 1
        return reply


def _is_done(reply: Reply) -> bool:
    """Return whether the service did it: a transaction that it refused is accepted, and refused in a part."""
    return reply.status_code in _DONE and b"\nHTTP/1.1 4" not in reply.content


def _is_of(operation: Operation, method: str, url: str, headers: Mapping[str, str]) -> bool:
    http = operation.http
    if method != http.method:
        return False
    query = url.partition("?")[2].split("&")
    asked = [f"{name}={value}" for name, value in http.query]
    is_whole = bool(asked) or not any(each.startswith("comp=") for each in query)
    fixed = {name: value for name, value in http.headers if name.startswith("x-ms-")}
    return is_whole and all(each in query for each in asked) and fixed.items() <= dict(headers).items()
