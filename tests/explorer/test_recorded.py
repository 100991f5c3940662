"""The services in memory answer as the live ones did: what was recorded is asked again."""

import json
import re
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from urllib.parse import parse_qsl, unquote

import pytest

from tests.explorer.blob_service import BlobService
from tests.explorer.queue_service import QueueService
from tests.explorer.scenario import Service
from tests.explorer.table_service import TableService
from tests.explorer.wire import Answer, Asked
from tests.support.recorded import Recorded, group

_BEGIN: Mapping[str, Callable[[], Service]] = {"blob": BlobService, "table": TableService, "queue": QueueService}
_LEASES = ("acquire", "renew", "release", "break", "change")
#: The rows of the operations that the services in memory have.
KNOWN = {
    *("blob.put_block_blob", "blob.put_append_blob", "blob.append_block", "blob.get_properties", "blob.get"),
    *("blob.put_block", "blob.put_block_list", "blob.get_block_list"),
    *("blob.set_metadata", "blob.delete", "blob.copy", *(f"blob.lease_{action}" for action in _LEASES)),
    *("container.list_blobs", "container.get_properties"),
    *("table.entity_insert", "table.entity_get", "table.entity_update", "table.entity_merge"),
    *("queue.create", "queue.put_message", "queue.get_messages", "queue.update_message", "queue.delete_message"),
    "queue.get_metadata",
}
#: What makes a thing that is there without it in memory.
MADE = {"container.create", "table.create", "table.delete"}
#: The recordings of what azguard, or no scenario, asks for.
OTHERS = {
    "test_blob_access_conditions.test_append_block_with_if_match_fail": "azguard sends each ETag in quotes",
    "azure-cli test_storage_blob_append": "azguard reads nothing on the condition that it is not there",
}
# Conditions that the core never sends.
_DATES = {"if-modified-since", "if-unmodified-since"}
_COMPARED = (
    "x-ms-lease-state",
    "x-ms-lease-status",
    "x-ms-lease-duration",
    "x-ms-lease-time",
    "x-ms-blob-append-offset",
)


def find_known(service: str) -> dict[str, list[Recorded]]:
    """Return the recordings all of whose requests a service in memory has."""
    return {
        name: asked
        for name, answers in group(service).items()
        if (asked := [each for each in answers if each.operation not in MADE])
        and all(each.operation in KNOWN and not _DATES & each.sends.keys() for each in asked)
    }


class _Replay:
    """A recording that is asked again, at the times that it was asked then."""

    def __init__(self, service: str, first: Recorded) -> None:
        self._kind = service
        self._service = _BEGIN[service]()
        self._began = _read_date(first)
        #: Our names of versions, leases, messages and receipts, by those of the live service.
        self._ours: dict[str, str] = {}
        self._keys = ""
        self._blocks: list[str] = []

    def ask(self, recorded: Recorded) -> Answer:
        now = _read_date(recorded) - self._began
        headers = [(name.lower(), self._translate(value)) for name, value in recorded.sends.items()]
        if recorded.sends.get("x-ms-lease-action") == "acquire" and "x-ms-lease-id" in recorded.headers:
            headers.append(("x-ms-proposed-lease-id", recorded.headers["x-ms-lease-id"]))
        asked = Asked(
            recorded.method,
            self._kind,
            self._translate(unquote(recorded.path).strip("/")),
            tuple((name, self._translate(value)) for name, value in parse_qsl(recorded.query)),
            tuple(dict(headers).items()),
            self._make_body(recorded),
        )
        self._service, answer = self._service.answer(asked, now)
        self._learn(recorded, answer)
        return answer

    def _make_body(self, recorded: Recorded) -> bytes:
        """Return a content in place of the one that was not kept."""
        if self._kind == "table":
            keys = re.search(r"PartitionKey='(.*)',RowKey='(.*)'\)", unquote(recorded.headers.get("location", "")))
            self._keys = json.dumps({"PartitionKey": keys[1], "RowKey": keys[2]}) if keys else self._keys
            return (self._keys if recorded.method == "POST" else "{}").encode()
        # All that were staged are committed.
        self._blocks += [value for name, value in parse_qsl(recorded.query) if name == "blockid"]
        if recorded.operation == "blob.put_block_list":
            return "".join(f"<Latest>{each}</Latest>" for each in self._blocks).encode()
        size = int(recorded.sends.get("content-length", 0))
        return b"x" * size if self._kind == "blob" else b"<MessageText>x</MessageText>" * (size > 0)

    def _translate(self, value: str) -> str:
        for theirs, ours in self._ours.items():
            value = value.replace(theirs, ours)
        return value

    def _learn(self, recorded: Recorded, answer: Answer) -> None:
        for theirs, ours in (("etag", "ETag"), ("x-ms-popreceipt", "x-ms-popreceipt")):
            if theirs in recorded.headers:
                self._ours[recorded.headers[theirs]] = answer.header(ours) or ""
        for tag in (b"MessageId", b"PopReceipt"):
            pattern = rb"<%s>([^<]*)</%s>" % (tag, tag)
            found = zip(re.findall(pattern, recorded.content), re.findall(pattern, answer.body), strict=False)
            self._ours |= {theirs.decode(): ours.decode() for theirs, ours in found}


def _read_date(recorded: Recorded) -> float:
    return parsedate_to_datetime(recorded.headers["date"]).timestamp()


def _describe(answer: Answer, recorded: Recorded) -> dict[str, object]:
    compared = [name for name in _COMPARED if name in recorded.headers]
    code = re.search(rb'"code": *"(\w+)"', answer.body) if answer.status >= 300 else None
    return {
        "status": answer.status,
        "code": answer.header("x-ms-error-code") or (code[1].decode() if code else None),
        **{name: answer.header(name) for name in compared},
    }


def _compare(service: str, answers: list[Recorded]) -> list[tuple[str | None, object, object]]:
    """Return the operations that memory answers otherwise: with its answer, and that of the live service."""
    replay = _Replay(service, answers[0])
    differences: list[tuple[str | None, object, object]] = []
    for each in answers:
        told = {name: each.headers[name] for name in _COMPARED if name in each.headers}
        theirs, ours = {"status": each.status, "code": each.code, **told}, _describe(replay.ask(each), each)
        if ours != theirs:
            differences.append((each.operation, ours, theirs))
    return differences


@pytest.mark.parametrize(("service", "number"), [("blob", 41), ("table", 48), ("queue", 15)])
def test_a_service_in_memory_answers_as_the_live_one_did(service: str, number: int) -> None:
    found = {name: _compare(service, answers) for name, answers in find_known(service).items()}
    assert len(found) == number
    assert {name: differences for name, differences in found.items() if differences and name not in OTHERS} == {}
    assert {name for name in OTHERS if name in found and not found[name]} == set()


def test_what_no_scenario_asks_for_was_recorded() -> None:
    assert OTHERS.keys() <= {name for service in _BEGIN for name in find_known(service)}
