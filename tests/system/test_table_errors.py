"""What the live Table service answered, as it was recorded, and what azguard makes of it."""

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from azguard.accounts.account import Target, emulator
from azguard.address import parse
from azguard.cli.words.hints import in_words
from azguard.errors import AzguardError, BadRequest, Exists, Locked, NotFound, Unavailable
from azguard.guards.resolve import Conditions
from azguard.requests.deadline import Deadline
from azguard.requests.service_errors import translate
from azguard.resources import parts
from azguard.tables import entities, tables
from azguard.wire.client import Limits
from tests.support import threaded_server
from tests.support.recorded import read

Answering = Callable[[str, int, str], Target]


class Handler(BaseHTTPRequestHandler):
    """Answers every request with one answer."""

    answer = (500, "")

    def respond(self) -> None:
        status, body = self.answer
        content = body.encode()
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(status)
        kind = "application/xml" if body.startswith("<") else "application/json;odata=minimalmetadata"
        self.send_header("x-ms-version", "2019-02-02")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_DELETE = respond

    def log_message(self, *args: object) -> None:
        """Keep quiet."""


@pytest.fixture
def answering() -> Iterator[Answering]:
    """Return what makes a resource of which every request gets one answer, over HTTP."""
    with threaded_server.running(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:

        def answer(address: str, status: int, body: str) -> Target:
            Handler.answer = (status, body)
            return Target(emulator({"table": server.server_address[1]}), parse(address).address)

        yield answer


def recorded(name: str, method: str, status: int) -> str:
    return next(
        each.content.decode()
        for each in read("table")
        if (each.recording, each.method, each.status) == (name, method, status) and each.content
    )


@pytest.mark.parametrize(
    ("name", "method", "status", "address", "call", "kind", "words"),
    [
        ("test_table.test_create_table_with_already_existing_table", "POST", 409, "table:Orders",
         lambda target: tables.create(target, Deadline(0)), Exists, "Orders exists already"),
        ("test_table.test_delete_table_with_non_existing_table_fail_not_exist", "DELETE", 404, "table:Orders",
         lambda target: tables.delete(target, Conditions(), Deadline(0)), NotFound, "there is no table Orders"),
        ("test_table_entity.test_get_entity_not_existing", "GET", 404, "entity:Orders/eu/1",
         lambda target: entities.get(target, Deadline(0)), NotFound, "there is no entity Orders/eu/1"),
    ],
)  # fmt: skip
def test_a_refusal_of_the_live_service_is_told_by_its_meaning(
    answering: Answering,
    name: str,
    method: str,
    status: int,
    address: str,
    call: Callable[[Target], object],
    kind: type,
    words: str,
) -> None:
    with pytest.raises(AzguardError) as refused:
        call(answering(address, status, recorded(name, method, status)))
    assert (type(refused.value), refused.value.message, refused.value.http_status) == (kind, words, status)


@pytest.mark.parametrize(
    ("status", "code", "kind", "words", "hint"),
    [
        (404, "TableNotFound", NotFound, "there is no table Orders", "check the name: azguard table list"),
        (409, "TableBeingDeleted", Locked, "Orders is still being deleted", "wait 40 seconds"),
        (400, "InvalidInput", BadRequest, "a value or the filter is not what the service understands", "check the f"),
        (400, "PropertyLimitExceeded", BadRequest, "the entity has more than 252 properties", "put some of them into"),
        (400, "EntityTooLarge", BadRequest, "the entity has more than 1 MiB", "keep large values in a blob"),
        (400, "PropertyValueTooLarge", BadRequest, "a property has more than 64 KiB", "keep large values in a blob"),
        (400, "KeyValueTooLarge", BadRequest, "a key has more than 1 KiB", "make the partition or row key shorter"),
        (413, "RequestBodyTooLarge", BadRequest, "the request is too large", "keep large values in a blob"),
        (400, "OutOfRangeInput", BadRequest, "a value is beyond what its type takes", "DateTimes begin with the year"),
    ],
)  # fmt: skip
def test_a_code_of_the_table_service_has_words_and_a_way_out(
    answering: Answering, status: int, code: str, kind: type, words: str, hint: str
) -> None:
    body = json.dumps({"odata.error": {"code": code, "message": {"lang": "en-US", "value": "As the service says."}}})
    target = answering("entity:Orders/eu/1", status, body)
    with pytest.raises(Exception) as caught:  # noqa: PT011  # which class the SDK picks is what must not matter
        entities.put(target, {"PartitionKey": "eu", "RowKey": "1"}, None, Limits())
    error = in_words(translate(caught.value, target))
    told = (type(error), error.service_code, words in error.message, (error.hint or "").startswith(hint))
    assert told == (kind, code, True, True)


def test_special_doubles_are_read_as_the_live_service_writes_them(answering: Answering) -> None:
    body = recorded("test_table_entity.test_get_entity_with_special_doubles", "GET", 200)
    stored = entities.get(answering("entity:Orders/eu/1", 200, body), Deadline(0))
    assert entities.as_printed(stored, ("inf", "nan")) == {
        "odata.etag": "W/\"datetime'2017-11-10T02%3A46%3A53.636692Z'\"",
        "PartitionKey": "pk65ff1655", "RowKey": "rk65ff1655",
        "inf": "Infinity", "inf@odata.type": "Edm.Double", "nan": "NaN", "nan@odata.type": "Edm.Double",
    }  # fmt: skip


def test_access_policies_are_the_same_however_the_service_spells_their_times(answering: Answering) -> None:
    body = recorded("test_table.test_set_table_acl_with_signed_identifiers", "GET", 200)
    found = parts.get_policies(answering("table:Orders", 200, body), Conditions(), Deadline(0))
    times = {"start": "2011-10-11T00:00:00.0000000Z", "expiry": "2011-10-12T00:00:00.0000000Z", "permission": "r"}
    assert found.policies == {"testid": times}
    assert found.etag == parts.compute_policies_etag(
        {"testid": {"start": "2011-10-11", "expiry": "2011-10-12T00:00Z", "permission": "r"}}
    )
    assert found.etag != parts.compute_policies_etag({"testid": {**times, "permission": "ra"}})


@pytest.mark.parametrize("body", ["{}", "[]", "null", '{"value": {}}', '{"value": [{"PartitionKey": "eu"}]}'])
def test_what_holds_no_entities_is_neither_an_entity_nor_an_empty_list(answering: Answering, body: str) -> None:
    with pytest.raises(Unavailable, match="cannot be read"):
        entities.get(answering("entity:Orders/eu/1", 200, body), Deadline(0))
    with pytest.raises(Unavailable, match="cannot be read"):
        list(entities.query(answering("table:Orders", 200, body), None, (), None, Deadline(0)))
