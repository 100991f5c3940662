"""An account whose listings a test writes down: containers, the blobs in them, and which of them may not be listed."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import islice
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from azguard.accounts.account import Account, Auth
from azguard.wire.connections import Reply
from tests.support.answering_client import AnsweringClient, Asked, reply

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
_PAGE = 1000
_DATE = {"Date": "Sun, 22 Nov 2026 12:00:00 GMT"}


class Item(NamedTuple):
    """A blob, or a container, of a listing."""

    name: str
    state: str
    metadata: Mapping[str, str]
    duration: str | None
    age_seconds: float
    blob_type: str

    def write(self, tag: str) -> str:
        """Return it as the service lists it."""
        status = "locked" if self.state in ("leased", "breaking") else "unlocked"
        facts = {
            "Last-Modified": format_datetime(NOW - timedelta(seconds=self.age_seconds), usegmt=True),
            "Etag": '"0x1"',
            "LeaseStatus": status,
            "LeaseState": self.state,
            "LeaseDuration": self.duration or ("fixed" if self.state == "leased" else ""),
            "BlobType": self.blob_type,
        }
        name, properties, metadata = _write({"Name": self.name}), _write(facts), _write(self.metadata)
        return f"<{tag}>{name}<Properties>{properties}</Properties><Metadata>{metadata}</Metadata></{tag}>"


def item(
    name: str,
    state: str = "available",
    *,
    metadata: Mapping[str, str] | None = None,
    duration: str | None = None,
    age_seconds: float = 0,
    blob_type: str = "BlockBlob",
) -> Item:
    """Return a blob, or a container, of a listing."""
    return Item(name, state, metadata or {}, duration, age_seconds, blob_type)


def refusal(status: int, code: str) -> Reply:
    """Return a refusal of the service."""
    text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}</Message></Error>"
    return reply(status, {**_DATE, "x-ms-error-code": code}, text.encode())


class ListedAccount(AnsweringClient):
    """The account: what is in each container, in order of name."""

    def __init__(
        self,
        blobs: Mapping[str, Iterable[Item]],
        *,
        errors: Mapping[str, Reply] | None = None,
        leased_containers: Mapping[str, Item] | None = None,
        contents: Mapping[str, bytes] | None = None,
    ) -> None:
        self._blobs = blobs
        # The answer instead of the listing of a container.
        self._errors = errors or {}
        self._leased_containers = leased_containers or {}
        self._contents = contents or {}
        # What of a container is not listed yet.
        self._rest: dict[str, Iterator[Item]] = {}
        #: The containers whose blobs were asked for.
        self.asked: list[str] = []
        endpoints = {"blob": "https://acc.blob.core.windows.net"}
        self.account = Account("acc", endpoints, Auth.ANONYMOUS, None, {"client": self})

    def answer(self, asked: Asked) -> Reply:
        parts = urlsplit(asked.url)
        path = unquote(parts.path).strip("/")
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if "comp" not in query:
            return reply(206, _DATE, self._contents.get(path, b""))
        return self._list_blobs(path, query) if path else self._list_containers(query.get("prefix", ""))

    def _list_containers(self, prefix: str) -> Reply:
        names = sorted(name for name in self._blobs if name.startswith(prefix))
        found = [self._leased_containers.get(name) or item(name) for name in names]
        return _build_page("Container", found)

    def _list_blobs(self, container: str, query: Mapping[str, str]) -> Reply:
        if "marker" not in query:
            self.asked.append(container)
            begins = query.get("prefix", "")
            self._rest[container] = (each for each in self._blobs[container] if each.name.startswith(begins))
        if container in self._errors:
            return self._errors[container]
        found = list(islice(self._rest[container], _PAGE))
        return _build_page("Blob", found, found[-1].name if len(found) == _PAGE else "")


def _build_page(tag: str, items: Iterable[Item], marker: str = "") -> Reply:
    listed = "".join(each.write(tag) for each in items)
    text = f"<EnumerationResults><{tag}s>{listed}</{tag}s>{_write({'NextMarker': marker})}</EnumerationResults>"
    return reply(200, _DATE, text.encode())


def _write(facts: Mapping[str, str]) -> str:
    return "".join(f"<{name}>{escape(value)}</{name}>" for name, value in facts.items())
