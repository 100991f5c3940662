"""All answers of the live services that were recorded, read as azguard reads them: tests/data/answers.

Each answer is given to the row of its operation. Its status and code, each header and each element of its body are then
held to what came out; tests/data/answers/unread.toml names what azguard leaves unread, with the reason. Answers of
files are played against the emulator too, by tests/unit/emulators/test_recordings.py.
"""

import base64
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from datetime import datetime
from email.utils import format_datetime
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from azguard.accounts.account import Account, Auth, Target, emulator
from azguard.address import parse
from azguard.queues.message_format import parse_messages
from azguard.requests.deadline import Deadline
from azguard.requests.service_errors import translate
from azguard.resources.downloads import walk_ranges
from azguard.resources.parts import parse_xml
from azguard.tables.entities import Stored
from azguard.wire import transactions
from azguard.wire.answers import FIELDS, TOGETHER, Answer
from azguard.wire.call import call
from azguard.wire.catalogue import ALL
from azguard.wire.client import Limits
from azguard.wire.failures import ServiceRefusal
from azguard.wire.operations.tables import TABLE_ENTITY_GET
from azguard.wire.rows import Operation
from azguard.wire.xml import parse_page
from tests.support.cases import cases
from tests.support.places import DATA, REPOSITORY
from tests.support.recorded import SERVICES, Recorded, Replayed, read

#: How many answers there are, as docs/guarantees.md says; so that no test passes by finding none. ``others`` are those
#: that each say something which no answer before them said.
COUNTS = {"blob": 463, "file": 213, "queue": 97, "table": 288, "others": 479}
_ADDRESSES = {
    "container": "container:con", "blob": "blob:con/b", "queue": "queue:que", "table": "table:Tab",
    "share": "share:sha", "directory": "dir:sha/d", "file": "file:sha/f",
}  # fmt: skip

_LEFT_OUT = tomllib.loads((DATA / "answers/unread.toml").read_text(encoding="utf-8"))
#: The headers that azguard leaves unread, and why.
UNREAD: Mapping[str, str] = _LEFT_OUT["headers"]
#: The operations that alone leave these unread: a version is read wherever it guards a write.
ALONE = {
    "cache-control": {row.name for row in ALL.values() if row.noun in ("queue", "table")},
    "etag": {"table.entity_get", "file.list_ranges", "blob.get_page_ranges", "share.undelete"},
    "last-modified": {"file.list_ranges", "blob.get_page_ranges", "blob.get_block_list", "share.undelete"},
    "x-ms-blob-sealed": {"blob.seal_append_blob"},
    "x-ms-blob-sequence-number": {"blob.set_properties"},
    "x-ms-creation-time": {"blob.undelete"},
    "x-ms-file-attributes": {
        f"{noun}.{verb}" for noun in ("directory", "file") for verb in ("create", "rename", "set_properties")
    },
    "x-ms-lease-time": {"share.lease_release"},
    "x-ms-lease-id": {row.name for row in ALL.values() if row.name.endswith(("acquire", "renew", "change"))},
}
#: The elements of a body that azguard leaves unread, and why.
UNREAD_ELEMENTS: Mapping[str, str] = _LEFT_OUT["elements"]
#: Successes that azguard takes for none, and why.
NO_SUCCESS = {("queue.create", 204): "a queue with the same metadata was there: the outcome is in doubt"}
#: Requests that azguard never sends.
WITHOUT_ROW = {
    ("PUT", "comp=properties"): "properties of the service",
    ("PUT", "comp=range"): "a range of a file from a URL",
    ("GET", "Tables('"): "one table by its name: the list is filtered",
}


def locate(recorded: Recorded) -> Target:
    """Return a resource of the kind that was asked, of an account that answers what was recorded."""
    account = Account("acc", emulator().endpoints, Auth.KEY, "a2V5", {"client": Replayed(recorded)})
    noun = (recorded.operation or "").partition(".")[0]
    name = "entity:Tab/p/r" if "entity" in (recorded.operation or "") else _ADDRESSES[noun]
    return Target(account, parse(name).address)


def list_rows(service: str) -> Iterator[tuple[Recorded, Operation]]:
    """Yield the answers of a service to what azguard asks, with the row of each."""
    for each in read(service):
        row = ALL.get(each.operation or "")
        if row is not None:
            yield each, row


def list_successes(service: str) -> Iterator[tuple[Recorded, Operation]]:
    """Yield what a service did."""
    return ((e, row) for e, row in list_rows(service) if not e.is_refusal and (row.name, e.status) not in NO_SUCCESS)


def list_bodies(*operations: str) -> Iterator[tuple[Recorded, Operation, Answer]]:
    """Yield what the services did by these operations and whose body was kept whole, and how azguard reads it."""
    for service in SERVICES:
        for each, row in list_successes(service):
            if row.name in operations and not each.is_cut:
                yield each, row, call(row, locate(each), Limits())


def test_all_recorded_answers_are_there() -> None:
    assert {service: len(read(service)) for service in SERVICES} == COUNTS
    told = (REPOSITORY / "docs/guarantees.md").read_text(encoding="utf-8")
    assert [number for number in (sum(COUNTS.values()), *COUNTS.values()) if f"{number:,} " not in told] == []


def test_each_operation_was_recorded() -> None:
    # A copy of a file ended before it was aborted.
    refused = {"file.abort_copy"}
    assert set(ALL) - {row.name for service in SERVICES for _, row in list_successes(service)} == refused
    assert refused <= {row.name for service in SERVICES for _, row in list_rows(service)}


def test_what_was_recorded_is_what_a_row_asks() -> None:
    # SDKs of that time sent MERGE, which the service takes for PATCH.
    other = {
        (each.method, row.http.method)
        for service in SERVICES
        for each, row in list_rows(service)
        if each.method != row.http.method
    }
    without = {
        (each.method, text)
        for service in SERVICES
        for each in read(service)
        if each.operation is None
        for text in (each.query or each.path.lstrip("/"),)
    }
    known = {(method, text) for method, text in without if any(_is_known(method, text, key) for key in WITHOUT_ROW)}
    assert (other, without - known) == ({("MERGE", "PATCH")}, set())


def _is_known(method: str, text: str, key: tuple[str, str]) -> bool:
    return method == key[0] and key[1] in text


@cases("service", *SERVICES)
def test_each_refusal_is_read_with_its_status_and_code(service: str) -> None:
    told, found, internal = [], [], []
    for each, row in list_rows(service):
        if not each.is_refusal:
            continue
        target = locate(each)
        with pytest.raises(ServiceRefusal) as caught:
            call(row, target, Limits())
        told.append((each.recording, each.status, each.code))
        found.append((each.recording, caught.value.status_code, caught.value.code))
        if translate(caught.value, target).kind == "internal":
            internal.append((each.recording, each.code))
    assert (found, internal, bool(found)) == (told, [], True)


@cases("service", *SERVICES)
def test_each_header_of_a_success_is_read_or_named(service: str) -> None:
    wrong = []
    for each, row in list_successes(service):
        answer = call(row, locate(each), Limits())
        heard = {spell(value) for value in _flatten(dict(answer))}
        read_here = list_read(row, each.headers)
        for name, text in each.headers.items():
            if name not in read_here and name in UNREAD and row.name in ALONE.get(name, {row.name}):
                continue
            if name not in read_here or not heard.intersection((text, text.partition("/")[2], _trim(text))):
                wrong.append((each.recording, each.number, row.name, name, text))
    assert wrong == []


def test_nothing_is_named_as_unread_in_vain() -> None:
    done = [each for service in SERVICES for each, _ in list_successes(service)]
    sent = {name for each in done for name in each.headers}
    content = b"".join(each.content for each in done).decode("utf-8-sig", "replace")
    vain = {name for name in UNREAD_ELEMENTS if f"<{name}>" not in content and f'"{name}"' not in content}
    assert (set(UNREAD) - sent, vain) == (set(), set())


def list_read(row: Operation, told: Mapping[str, str]) -> set[str]:
    """Return the headers of an answer that the row reads; the length of a part is that of the body."""
    fields = set(row.http.returns)
    for name in fields.intersection(TOGETHER):
        kind, prefix = TOGETHER[name]
        fields |= {f"{prefix}{each}" for each in kind.__match_args__}
    found = {FIELDS[name].header.lower() for name in fields if name in FIELDS}
    found.update(name for name in told if name.startswith("x-ms-meta-"))
    if "content-range" not in told:
        return found
    return found - {"content-length"} | ({"content-range"} if "size" in fields else set())


def test_a_lease_has_the_id_that_was_proposed() -> None:
    told = [
        (each.headers["x-ms-lease-id"], each.sends.get("x-ms-proposed-lease-id", each.sends.get("x-ms-lease-id")))
        for service in SERVICES
        for each, _ in list_successes(service)
        if "x-ms-lease-id" in each.headers and "x-ms-proposed-lease-id" in each.sends
    ]
    assert (bool(told), [pair for pair in told if pair[0] != pair[1]]) == (True, [])


def _trim(text: str) -> str:
    """Return a time of a file to microseconds: the service tells it to 100 ns."""
    return f"{text[:26]}Z" if re.fullmatch(r"[-\d]{10}T[:\d]{8}\.\d{7}Z", text) else text


def spell(value: Any) -> str:
    """Return a value as the service writes it in a header or an element."""
    if isinstance(value, datetime):
        # Times of files alone have a fraction.
        is_of_file = value.microsecond > 0
        return f"{value:%Y-%m-%dT%H:%M:%S.%fZ}" if is_of_file else format_datetime(value, usegmt=True)
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _flatten(value: Any) -> Iterator[Any]:
    if is_dataclass(value):
        value = vars(value)
    if isinstance(value, dict):
        value = tuple(value.items())
    if not isinstance(value, tuple | list):
        yield value
        return
    for each in value:
        yield from _flatten(each)


def _read_items(answer: Answer, wrapper: str, *tags: str) -> Iterator[Any]:
    page = parse_page(answer, wrapper, *tags)
    yield page.marker
    for item in page.items:
        yield from _flatten(dict(vars(item)))


def _read_ranges(recorded: Recorded, row: Operation) -> list[Any]:
    found = walk_ranges(row, locate(recorded), {}, Deadline(0))
    return [value for each in found for value in (each.start, each.end)]


#: How the body of each answer in XML is read: into values.
READERS: dict[str, Callable[[Recorded, Operation, Answer], Any]] = {
    "container.list": lambda each, row, answer: _read_items(answer, "Containers", "Container"),
    "container.list_blobs": lambda each, row, answer: _read_items(answer, "Blobs", "Blob", "BlobPrefix"),
    "container.get_acl": lambda each, row, answer: _flatten(dict(parse_xml(answer.content.decode("utf-8-sig")))),
    "table.get_acl": lambda each, row, answer: _flatten(dict(parse_xml(answer.content.decode("utf-8-sig")))),
    "queue.get_acl": lambda each, row, answer: _flatten(dict(parse_xml(answer.content.decode("utf-8-sig")))),
    "directory.list": lambda each, row, answer: _read_items(answer, "Entries", "Directory", "File"),
    "share.get_acl": lambda each, row, answer: _flatten(dict(parse_xml(answer.content.decode("utf-8-sig")))),
    "share.list": lambda each, row, answer: _read_items(answer, "Shares", "Share"),
    "queue.list": lambda each, row, answer: _read_items(answer, "Queues", "Queue"),
    "file.list_handles": lambda each, row, answer: _read_items(answer, "Entries", "Handle"),
    "file.list_ranges": lambda each, row, answer: _read_ranges(each, row),
    "queue.put_message": lambda each, row, answer: _flatten(parse_messages(answer)),
    "queue.get_messages": lambda each, row, answer: _flatten(parse_messages(answer)),
    "queue.peek_messages": lambda each, row, answer: _flatten(parse_messages(answer)),
}


@cases("operation", *sorted(READERS))
def test_each_element_of_a_body_is_read_or_named(operation: str) -> None:
    count, wrong = 0, []
    for each, row, answer in list_bodies(operation):
        count += 1
        heard = {spell(value) for value in READERS[operation](each, row, answer)}
        for leaf in ET.fromstring(each.content).iter():
            text = leaf.text or ""
            spelled = (text, f'"{text}"') if leaf.tag == "Etag" else (text, _trim(text))
            is_unheard = not heard.intersection(spelled)
            if len(leaf) == 0 and text and leaf.tag not in UNREAD_ELEMENTS and is_unheard:
                wrong.append((each.recording, leaf.tag, text))
    assert (bool(count), wrong) == (True, [])


def test_content_is_read_as_it_was_sent() -> None:
    bodies = list(list_bodies("blob.get", "file.get"))
    wrong = [each.recording for each, _, answer in bodies if answer.content != each.content]
    assert (len(bodies), wrong) == (45, [])


def _read_entities(told: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each entity of an answer as it was written, and as azguard prints it."""
    for each in told["value"] if "value" in told and isinstance(told["value"], list) else [told]:
        stored = Stored.of(each)
        yield each, {**stored.entity, "odata.etag": stored.etag}


def test_each_property_of_an_entity_is_read_with_its_type() -> None:
    count, wrong = 0, []
    for each, _, _ in list_bodies("table.entity_get", "table.entity_query"):
        # azguard never asks for an entity without its metadata, nor for all of it.
        if b"odata.etag" not in each.content or b"odata.id" in each.content:
            continue
        for told, found in _read_entities(json.loads(each.content)):
            count += 1
            for name, value in told.items():
                if name not in UNREAD_ELEMENTS and found.get(name) != value:
                    wrong.append((each.recording, name, value, found.get(name)))
    assert (count, wrong) == (81, [])


def test_each_part_of_a_transaction_is_read() -> None:
    count = 0
    for each, _, _ in list_bodies("table.batch"):
        # An empty one, which azguard never sends, has no answers inside.
        statuses = [int(line.split()[1]) for line in each.content.decode().splitlines() if line.startswith("HTTP/1.1")]
        if not statuses:
            continue
        target = locate(each)
        parts = [transactions.TransactionPart(TABLE_ENTITY_GET, target, None)] * len(statuses)
        count += len(statuses)
        if max(statuses) < 300:
            assert [answer.status for answer in transactions.send(target, parts, Limits())] == statuses
            continue
        with pytest.raises(ServiceRefusal) as caught:
            transactions.send(target, parts, Limits())
        assert (caught.value.status_code, caught.value.code) == (statuses[0], each.code)
    assert count == 79
