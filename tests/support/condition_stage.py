"""The stage of the walk over conditions: what a command is done to, and what it sent."""

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from email.utils import format_datetime, parsedate_to_datetime
from functools import cached_property
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qs, urlencode, urlsplit

from azure.core.exceptions import ResourceNotFoundError
from jsonschema import Draft202012Validator

from azguard.accounts import account
from azguard.address import Kind, parse
from azguard.blobs.content import put_blob
from azguard.wire.answers import Answer
from azguard.wire.client import Limits, NetworkClient
from azguard.wire.connections import Headers, Reply
from azguard.wire.failures import ServiceRefusal
from tests.support import places, sdk_clients
from tests.support.answering_client import ask
from tests.support.cli_world import CliWorld, Ran
from tests.support.evidence import find_operation, find_service
from tests.support.faultproxy import proxy
from tests.support.scenarios import Scenario

LEASE = "6dd2b9e3-5c17-4a0e-a2f1-8f4c1b7d9e01"
OTHER_LEASE = "0e6e2a5b-3f0d-4a53-9f6e-2f1d8a7c6b02"
LONG_AGO = "Wed, 01 Jan 2020 00:00:00 GMT"
_ERROR = Draft202012Validator(json.loads((places.SCHEMAS / "error.json").read_text(encoding="utf-8")))
# One page, so that pages can be made of it.
_OLD = b"old " * 128
_TAGS = {"stage": "live"}
_EVERYTHING = "copy,metadata,snapshots,tags,uncommittedblobs"
_OF_CONTAINER = ("etag", "last-modified", "x-ms-meta-", "x-ms-lease-", "x-ms-blob-public-access")
# Of so many bytes is content that goes in blocks, where a step says so.
_SMALL = 2 * 1024


@dataclass(frozen=True)
class Sent:
    """A request that went out: its operation, and its headers in lower case."""

    operation: str
    headers: Mapping[str, str]
    path: str = ""

    @property
    def receipt(self) -> str:
        """Return the receipt of a message that it names."""
        return parse_qs(urlsplit(self.path).query)["popreceipt"][0]


@dataclass
class Stage:
    """A container with a blob and a source for copies, and a scenario whose command is done to them."""

    scenario: Scenario
    cli: CliWorld
    direct: account.Account
    through: proxy.Proxy
    stack: ExitStack
    facts: dict[str, str] = field(default_factory=dict)
    #: Requests that did not reach the emulator, because a script answered.
    scripted: list[Sent] = field(default_factory=list)
    #: How many requests there were before the last run.
    begun: int = 0

    def prepare(self) -> None:
        """Make what the scenario needs."""
        container = f"w{uuid.uuid4().hex[:20]}"
        self.facts |= {
            "container": container,
            "blob": f"{container}/b",
            "source": f"{container}/s",
            "lease": LEASE,
        }
        self._send("PUT", container, {}, {})
        for name in ("b", "s") if "{source}" in self.scenario.line else ("b",):
            self._upload(f"{container}/{name}", {"x-ms-meta-owner": "ops"})
        for step in self.scenario.before:
            getattr(self, step)()

    # What a scenario may name in ``before``.

    def small_blocks(self) -> None:
        """Send what is longer than a few bytes in blocks."""
        self.stack.enter_context(patch.object(put_blob, "SINGLE_BYTES", 2 * _SMALL))
        self.stack.enter_context(patch.object(put_blob, "BLOCK_BYTES", _SMALL))

    def leased(self) -> None:
        """Lease the blob."""
        self.blob.acquire_lease(-1, LEASE)

    def leased_container(self) -> None:
        """Lease the container."""
        self.container.acquire_lease(-1, LEASE)

    def append_blob(self) -> None:
        """Make the blob an append blob."""
        self.remove()
        self.blob.create_append_blob(tags=_TAGS)
        self.blob.append_block(b"old")

    def page_blob(self) -> None:
        """Make the blob a page blob with a sequence number."""
        self.remove()
        self.blob.create_page_blob(4 * 512, sequence_number="5", tags=_TAGS)
        self.blob.upload_page(bytes(512), 0, 512)

    def snapshot(self) -> None:
        """Take a snapshot of the blob, which is then the source of the copy."""
        self.facts["snapshot"] = self.blob.create_snapshot()["snapshot"]
        self.facts["source"] = f"{self.facts['blob']}?snapshot={self.facts['snapshot']}"

    def staged_block(self) -> None:
        """Stage a block."""
        self.blob.stage_block("block", b"new")  # whose id is YmxvY2s=

    # The play.

    @cached_property
    def container(self) -> Any:
        """Return the SDK's client of the container, past the proxy."""
        return sdk_clients.container(self.direct, parse(self.facts["container"], Kind.CONTAINER).address)

    @cached_property
    def blob(self) -> Any:
        """Return the SDK's client of the blob, past the proxy."""
        return sdk_clients.blob(self.direct, parse(self.facts["blob"], Kind.BLOB).address)

    def run(self, *options: str) -> Ran:
        """Run the scenario's command with options."""
        self.begun = len(self.through.log)
        self.scripted.clear()
        words = self.scenario.words(self.facts)
        return self.cli.call(*words, *options, "-o", "json", stdin=self.scenario.stdin)

    def sent(self) -> list[Sent]:
        """Return the requests of the last run, those that a script answered last."""
        asked = [each.request for each in self.through.log[self.begun :]]
        log = [
            Sent(self.find_operation(each.method, each.path, each.headers), each.headers, each.path) for each in asked
        ]
        return [*log, *self.scripted]

    def find_operation(self, method: str, path: str, headers: Mapping[str, str]) -> str:
        """Return the name of the operation that a request performs, or nothing."""
        return find_operation(method, path, headers, find_service(self.scenario.operation))

    def look(self) -> Any:
        """Return everything that is there: the container, and its blobs with all that they carry."""
        container = self.facts["container"]
        try:
            found = self._send("GET", container, {}, {}).headers
        except ResourceNotFoundError:
            return None
        listed = self._send("GET", container, {}, {"comp": "list", "include": _EVERYTHING})
        kept = {name.lower(): value for name, value in found.items()}
        return {name: value for name, value in kept.items() if name.startswith(_OF_CONTAINER)}, listed.content

    def subject(self, *, source: bool = False) -> Any:
        """Return the properties of what a condition is about: the blob, the container, or the source of a copy."""
        is_container = self.scenario.noun == "container" and not source
        name = self.facts["source" if source else "container" if is_container else "blob"]
        name, _, snapshot = name.partition("?snapshot=")
        query = {"snapshot": snapshot} if snapshot else {}
        found = self._send("HEAD", name, {}, query).headers
        return SimpleNamespace(
            etag=found["ETag"],
            last_modified=parsedate_to_datetime(found["Last-Modified"]),
            size=int(found.get("Content-Length", 0)),
        )

    def find_etag(self) -> str | None:
        """Return the version of what the command is for; None where nothing is."""
        try:
            return str(self.subject().etag)
        except ResourceNotFoundError:
            return None

    def remove(self) -> None:
        """Delete the blob that the command is for."""
        self.blob.delete_blob("include")

    def start_without_blob(self) -> None:
        """Take the blob away, and take the steps of the scenario that go with it again."""
        self.remove()
        self._stage_again()

    @contextmanager
    def absent(self) -> Iterator[None]:
        """Take the blob that the command is for away for a while."""
        self.start_without_blob()
        yield
        self._upload(self.facts["blob"], {})
        self._stage_again()

    def _upload(self, name: str, headers: Mapping[str, str]) -> None:
        tags = {"x-ms-tags": urlencode(_TAGS)}
        self._send("PUT", name, {"x-ms-blob-type": "BlockBlob", **tags, **headers}, {}, _OLD)

    def _send(
        self, method: str, name: str, headers: Mapping[str, str], query: Mapping[str, str], body: bytes = b""
    ) -> Answer:
        """Send a request past the proxy, in a fifth of the time that the SDK takes."""
        address = parse(name, Kind.BLOB if "/" in name else Kind.CONTAINER).address
        content = body if method == "PUT" else None
        try:
            return ask(self.direct, method, address, headers, query, content)
        except ServiceRefusal as error:
            if error.status_code == HTTPStatus.NOT_FOUND:
                raise ResourceNotFoundError from error
            raise

    def _stage_again(self) -> None:
        if "staged_block" in self.scenario.before:
            self.staged_block()

    @contextmanager
    def answering(self, status: int, headers: Mapping[str, str]) -> Iterator[None]:
        """Answer the requests of the scenario's operation by a script; the others reach the emulator."""
        send = NetworkClient.send

        def scripted(
            sender: NetworkClient, method: str, url: str, named: Mapping[str, str], body: bytes | None, limits: Limits
        ) -> Reply:
            asked = {name.lower(): value for name, value in named.items()}
            operation = self.find_operation(method, url, asked)
            if operation != self.scenario.operation:
                return send(sender, method, url, named, body, limits)
            self.scripted.append(Sent(operation, asked))
            lines = [f"{name}: {value}" for name, value in {"Content-Length": "0", **headers}.items()]
            return Reply(status, "", Headers(lines), b"")

        with patch.object(NetworkClient, "send", scripted):
            yield


def find_flaws(ran: Ran) -> list[str]:
    """Return what is missing in the JSON of an error, or too much."""
    told = ran.error if "{" in ran.err else {}
    flaws = [each.message for each in _ERROR.iter_errors({"error": told})]
    return flaws if told.get("address") else [*flaws, "it names no address"]


def http_date(when: Any) -> str:
    """Return a time as a header has it."""
    return format_datetime(when, usegmt=True)


Value = Callable[[Any], str]
# Each condition that is not of a source: a value that holds for what is there, and one that does not.
VALUES: Mapping[str, tuple[Value, Value]] = {
    "--if-match": (lambda seen: str(seen.etag), lambda _: '"0x8D0000000000000"'),
    "--if-none-match": (lambda _: '"0x8D0000000000000"', lambda seen: str(seen.etag)),
    "--if-modified-since": (lambda _: LONG_AGO, lambda seen: http_date(seen.last_modified)),
    "--if-unmodified-since": (lambda seen: http_date(seen.last_modified), lambda _: LONG_AGO),
    "--if-tags": (lambda _: "\"stage\" = 'live'", lambda _: "\"stage\" = 'dead'"),
    "--append-position": (lambda seen: str(seen.size), lambda seen: str(seen.size + 1)),
    "--max-size": (lambda seen: str(seen.size + 1000), lambda seen: str(seen.size)),
    "--if-sequence-number-le": (lambda _: "5", lambda _: "4"),
    "--if-sequence-number-lt": (lambda _: "6", lambda _: "5"),
    "--if-sequence-number-eq": (lambda _: "5", lambda _: "6"),
}
