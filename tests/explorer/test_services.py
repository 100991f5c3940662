"""The services in memory answer as the emulators do, where those are as Azure: the same requests are sent to both."""

import re
import uuid
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from azure.core.exceptions import HttpResponseError
from azure.storage.fileshare import ShareLeaseClient

from azguard.accounts import account as accounts
from azguard.accounts.account import Account, Target
from azguard.address import Address, Kind
from azguard.blobs.content import put_blob
from azguard.errors import AzguardError
from azguard.guards.resolve import Conditions
from azguard.queues import messages
from azguard.requests import service_codes
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import fresh_op
from azguard.resources import lifecycles, properties
from azguard.resources.parts import get_metadata
from azguard.tables import entities, updates
from azguard.wire.answers import Answer as Told
from azguard.wire.client import Limits
from azguard.wire.failures import ServiceRefusal
from azguard.wire.operations.tables import TABLE_ENTITY_INSERT_OR_REPLACE, TABLE_ENTITY_MERGE
from azguard.wire.xml import build_document
from tests.explorer import wire
from tests.explorer.blob_service import BlobService
from tests.explorer.file_service import FileService
from tests.explorer.queue_service import QueueService
from tests.explorer.scenario import Service
from tests.explorer.table_service import TableService
from tests.explorer.wire import Answer, Asked
from tests.support import sdk_clients
from tests.support.answering_client import ask
from tests.support.cli_world import CliWorld

_ONE, _TWO = "0ea5e000-0000-4000-8000-000000000001", "0ea5e000-0000-4000-8000-000000000002"
_PUT = {"x-ms-blob-type": "BlockBlob"}
_APPEND = {"x-ms-blob-type": "AppendBlob"}
_TIMEOUTS = Limits(5, 10)
_TOLD = ("x-ms-lease-state", "x-ms-lease-status", "x-ms-lease-duration", "x-ms-blob-type", "x-ms-blob-append-offset")


class Request(NamedTuple):
    """One request; ``{1}`` in a header is the ETag of the first answer, and so on."""

    method: str
    headers: Mapping[str, str] = {}
    comp: str | None = None
    body: bytes | None = None
    #: The name of a block.
    block: str | None = None


def lease(action: str, lease_id: str = _ONE, **headers: str) -> Request:
    name = "x-ms-proposed-lease-id" if action == "acquire" else "x-ms-lease-id"
    own = {} if action == "break" else {name: lease_id}
    more = {key.replace("_", "-"): value for key, value in headers.items()}
    return Request("PUT", {"x-ms-lease-action": action, **own, **more}, "lease", b"")


ACQUIRE = lease("acquire", x_ms_lease_duration="15")
GET, HEAD = Request("GET", {"x-ms-range": "bytes=0-99"}), Request("HEAD")


def put(body: bytes = b"one", **headers: str) -> Request:
    more = {key.replace("_", "-"): value for key, value in headers.items()}
    return Request("PUT", {**_PUT, **more}, None, body)


def set_metadata(**headers: str) -> Request:
    return Request("PUT", {key.replace("_", "-"): value for key, value in headers.items()}, "metadata", b"")


def stage(name: str, body: bytes, **headers: str) -> Request:
    more = {key.replace("_", "-"): value for key, value in headers.items()}
    return Request("PUT", more, "block", body, put_blob.encode_id(name))


def commit(*blocks: str, **headers: str) -> Request:
    listed = "".join(f"<Latest>{put_blob.encode_id(each)}</Latest>" for each in blocks)
    more = {key.replace("_", "-"): value for key, value in headers.items()}
    return Request("PUT", more, "blocklist", build_document(f"<BlockList>{listed}</BlockList>"))


def _under(lease_id: str) -> Request:
    return Request("HEAD", {"x-ms-lease-id": lease_id})


STORIES: Mapping[str, list[Request]] = {
    "versions": [put(), put(b"two", If_Match="{1}"), put(b"no", If_Match="{1}"), GET, HEAD],
    "create only": [put(If_None_Match="*"), put(If_None_Match="*"), GET],
    "missing": [GET, HEAD, put(If_Match='"0x1"'), set_metadata(), ACQUIRE],
    "metadata": [put(x_ms_meta_a="1"), set_metadata(x_ms_meta_b="2", If_Match="{1}"), set_metadata(), HEAD],
    "delete": [put(), Request("DELETE", {"If-Match": '"0x1"'}), Request("DELETE", {"If-Match": "{1}"}), GET],
    "held": [
        put(), ACQUIRE, HEAD, put(), put(x_ms_lease_id=_TWO), put(x_ms_lease_id=_ONE), Request("DELETE"), GET,
        lease("acquire", _TWO, x_ms_lease_duration="15"), ACQUIRE, lease("renew"), lease("renew", _TWO),
        lease("release", _TWO), lease("release"), lease("release"), HEAD, put(b"after"),
    ],
    "broken": [put(), ACQUIRE, lease("break", x_ms_lease_break_period="0"), HEAD, put(b"free"), HEAD],
    "without end": [put(), lease("acquire", x_ms_lease_duration="-1"), HEAD, lease("release"), HEAD],
    "acquire a version": [put(), lease("acquire", x_ms_lease_duration="15", If_Match='"0x1"'), HEAD],
    "read under a lease": [put(), _under(_ONE), ACQUIRE, _under(_TWO)],
    "tags": [
        put(x_ms_tags="fence=2"), put(b"no", x_ms_if_tags="\"fence\" <= '1'"),
        put(b"yes", x_ms_if_tags="\"fence\" <= '2'"), put(b"no", x_ms_if_tags="\"fence\" <= '2'"), GET,
    ],
    "append": [
        Request("PUT", _APPEND, None, b""),
        Request("PUT", {"x-ms-blob-condition-appendpos": "0"}, "appendblock", b"a"),
        Request("PUT", {"x-ms-blob-condition-appendpos": "0"}, "appendblock", b"b"),
        Request("PUT", {}, "appendblock", b"c"), GET,
    ],
    "blocks": [
        stage("a", b"1"), HEAD, commit("a", "b"), stage("b", b"2"), commit("b", "a", x_ms_meta_a="1"), GET,
        commit("a"), GET, stage("b", b"3"), stage("b", b"4"), stage("a", b"5"), commit("a", "b", If_Match='"0x1"'),
        commit("a", "b"), GET, stage("c", b"6"), set_metadata(), commit("c"), GET, put(), commit("c"),
        commit(If_None_Match="*"), ACQUIRE, stage("e", b"8"), stage("e", b"8", x_ms_lease_id=_ONE), commit("e"),
        commit("e", x_ms_lease_id=_ONE), GET,
    ],
}  # fmt: skip


def test_blobs_are_as_those_of_azurite(cli: CliWorld) -> None:
    emulator = accounts.emulator({"blob": int(cli.port)})
    memory = _Memory(BlobService())
    container = cli.container()
    differences = [
        (name, *pair)
        for name, story in STORIES.items()
        for pair in zip(
            tell(memory.account, container, name, story), tell(emulator, container, name, story), strict=True
        )
        if pair[0] != pair[1]
    ]
    assert differences == []


def test_containers_are_as_those_of_azurite(cli: CliWorld) -> None:
    emulator = accounts.emulator({"blob": int(cli.port)})
    there, missing = cli.container(), uuid.uuid4().hex
    for name, found in ((there, (True, True)), (missing, (404, "ContainerNotFound"))):
        assert [_show_container(each, name) for each in (_Memory(BlobService()).account, emulator)] == [found] * 2


def _show_container(account: Account, name: str) -> object:
    """Return whether a container is told with its version and its time, or how it is refused."""
    found = _try(
        lambda: properties.fetch(Target(account, Address(Kind.CONTAINER, (name,))), Conditions(), Deadline(10))
    )
    return (bool(found.etag), bool(found.last_modified)) if isinstance(found, Told) else found


def test_entities_are_as_those_of_azurite(cli: CliWorld) -> None:
    endpoint = re.search("TableEndpoint=http://127.0.0.1:([0-9]+)", str(cli.connection_string))
    assert endpoint is not None
    emulator = accounts.emulator({"table": int(endpoint[1])})
    name = f"t{uuid.uuid4().hex[:12]}"
    sdk_clients.table_service(emulator).create_table(name)
    assert tell_of_entities(_Memory(TableService()).account, name) == tell_of_entities(emulator, name)


def tell_of_entities(account: Account, table: str) -> list[object]:
    """Read, insert, replace, merge, and write in transactions; return what was answered, without versions and times."""
    target = Target(account, Address(Kind.ENTITY, (table, "p", "r")))
    row = {"PartitionKey": "p", "RowKey": "r"}
    ledger = {"PartitionKey": "p", "RowKey": "~op~1", "a": "1"}
    deadline = Deadline(10)
    version = [""]

    def transact(etag: str) -> str:
        changes = [updates._change(target, {**row, "c": "3"}, etag), updates._change(target, ledger, None)]
        return updates._transact(target, changes, deadline)

    steps: list[Callable[[], object]] = [
        lambda: entities.get(target, deadline).entity,
        lambda: entities.put(target, {**row, "a": "0"}, 'W/"1"', _TIMEOUTS),
        lambda: version.append(entities.put(target, {**row, "a": "1"}, None, _TIMEOUTS)),
        lambda: entities.put(target, {**row, "a": "2"}, None, _TIMEOUTS) and None,
        lambda: version.append(entities.send(TABLE_ENTITY_MERGE, target, {**row, "b": "2"}, _TIMEOUTS, version[-1])),
        lambda: _without_time(entities.get(target, deadline).entity),
        lambda: version.append(entities.put(target, {**row, "c": "3"}, version[-1], _TIMEOUTS)),
        lambda: entities.put(target, row, version[-2], _TIMEOUTS) and None,
        lambda: transact(version[-2]) and None,
        lambda: version.append(transact(version[-1])),
        lambda: transact(version[-1]) and None,
        lambda: _without_time(entities.get(target, deadline).entity),
        lambda: entities.delete(target, version[0] or version[1], _TIMEOUTS),
        lambda: entities.delete(target, "*", _TIMEOUTS),
        lambda: entities.delete(target, "*", _TIMEOUTS),
        lambda: entities.send(TABLE_ENTITY_INSERT_OR_REPLACE, target, {**row, "a": "4"}, _TIMEOUTS) and None,
        lambda: entities.send(TABLE_ENTITY_INSERT_OR_REPLACE, target, {**row, "a": "5"}, _TIMEOUTS) and None,
        lambda: _without_time(entities.get(target, deadline).entity),
    ]
    return [_try(step) for step in steps]


def test_messages_are_as_those_of_azurite(cli: CliWorld) -> None:
    endpoint = re.search("QueueEndpoint=http://127.0.0.1:([0-9]+)", str(cli.connection_string))
    assert endpoint is not None
    emulator = accounts.emulator({"queue": int(endpoint[1])})
    name = f"q{uuid.uuid4().hex[:12]}"
    assert tell_of_messages(_Memory(QueueService()).account, name) == tell_of_messages(emulator, name)


def tell_of_messages(account: Account, name: str) -> list[object]:
    """Make a queue, put, receive, hide and delete messages; return what was answered, without ids and times."""
    queue = Target(account, Address(Kind.QUEUE, (name,)))
    deadline = Deadline(10)
    taken: list[Any] = []
    receipts: list[str] = []

    def receive(number: int) -> list[tuple[str, int]]:
        found = messages.receive(queue, number, 30, "text", deadline)
        taken.extend(each.shown for each in found)
        return [(each.shown.content, each.shown.dequeue_count) for each in found]

    def at(number: int) -> Target:
        return Target(account, Address(Kind.MESSAGE, (name, taken[number].id)))

    def hide(number: int, receipt: str, seconds: int) -> None:
        receipts.append(messages.update(at(number), receipt, None, seconds, deadline).pop_receipt)

    steps: list[Callable[[], object]] = [
        lambda: messages.put(queue, "one", 0, None, deadline).guard,
        lambda: get_metadata(queue, Conditions(), deadline),
        lambda: lifecycles.create(queue, {"m": "1"}, deadline, fresh_op()) and None,
        lambda: lifecycles.create(queue, {"m": "2"}, deadline, fresh_op()) and None,
        lambda: get_metadata(queue, Conditions(), deadline)[0].metadata,
        lambda: receive(1),
        lambda: messages.put(queue, "one", 0, -1, deadline).guard,
        lambda: messages.put(queue, "two & <three>", 0, -1, deadline).guard,
        lambda: receive(1),
        lambda: receive(2),
        lambda: receive(1),
        lambda: hide(0, taken[0].pop_receipt, 0),
        lambda: hide(0, taken[0].pop_receipt, 0),
        lambda: receive(1),
        lambda: messages.delete(at(0), receipts[0], deadline).guard,
        lambda: messages.delete(at(0), taken[-1].pop_receipt, deadline).guard,
        lambda: messages.delete(at(1), taken[1].pop_receipt, deadline).guard,
        lambda: messages.delete(at(1), taken[1].pop_receipt, deadline).guard,
        lambda: receive(1),
    ]
    return [_try(step, with_code=False) for step in steps]


def test_files_are_as_those_of_the_emulator(files_connection_string: str) -> None:
    endpoint = re.search("FileEndpoint=http://127.0.0.1:([0-9]+)", files_connection_string)
    assert endpoint is not None
    emulator = accounts.emulator({"file": int(endpoint[1])})
    name = f"s{uuid.uuid4().hex[:12]}"
    sdk_clients.share(emulator, Address(Kind.SHARE, (name,))).create_share()
    assert tell_of_files(_Memory(FileService()).account, name) == tell_of_files(emulator, name)


def tell_of_files(account: Account, share: str) -> list[object]:
    """Create, write, read, lease, rename and delete files; return what was answered, without versions and times."""

    def at(name: str) -> Any:
        return sdk_clients.file(account, Address(Kind.FILE, (share, name)))

    def under(lease_id: str) -> dict[str, Any]:
        return {"headers": {"x-ms-lease-id": lease_id}}

    def lease(action: str, lease_id: str, *given: Any) -> None:
        client = ShareLeaseClient(at("a"), lease_id)
        if action == "acquire":
            client.acquire(lease_duration=-1)
        else:
            getattr(client, action)(*given)

    def rename(**given: Any) -> None:
        at("b").rename_file("a", **given)

    def show(name: str = "a", **given: Any) -> tuple[object, ...]:
        found = at(name).get_file_properties(**given)
        return found.size, found.metadata, found.lease.state, found.lease.status, found.lease.duration

    def read() -> bytes:
        return bytes(at("a").download_file(offset=0, length=100).readall())

    def list_files() -> list[str]:
        found = sdk_clients.directory(account, Address(Kind.DIR, (share, ""))).list_directories_and_files(
            name_starts_with="a"
        )
        return [each.name for each in found]

    def replace_under(given: str) -> None:
        rename(overwrite=True, destination_lease=given)

    steps: list[Callable[[], object]] = [
        show,
        lambda: at("a").create_file(3, metadata={"m": "1"}) and None,
        lambda: at("a").upload_range(b"one", 0, 3) and None,
        lambda: at("a").upload_range(b"four", 0, 4) and None,
        read,
        lambda: at("a").resize_file(5) and None,
        lambda: at("a").set_file_metadata({"n": "2"}) and None,
        show,
        list_files,
        lambda: show(**under(_ONE)),
        lambda: lease("acquire", _ONE),
        lambda: lease("acquire", _ONE),
        lambda: lease("acquire", _TWO),
        show,
        lambda: show(**under(_ONE)) and None,
        lambda: show(**under(_TWO)),
        lambda: at("a").set_file_metadata({"n": "3"}) and None,
        lambda: at("a").set_file_metadata({"n": "3"}, **under(_TWO)) and None,
        lambda: at("a").set_file_metadata({"n": "3"}, **under(_ONE)) and None,
        lambda: at("a").delete_file(),
        rename,
        lambda: at("b").create_file(1) and None,
        rename,
        lambda: rename(overwrite=True),
        lambda: replace_under(_TWO),
        lambda: replace_under(_ONE),
        lambda: replace_under(_ONE),
        show,
        lambda: lease("release", _ONE),
        lambda: lease("acquire", _TWO),
        lambda: lease("change", _TWO, _ONE),
        lambda: lease("change", _TWO, _ONE),
        lambda: lease("release", _TWO),
        lambda: lease("break_lease", _ONE),
        show,
        lambda: lease("break_lease", _ONE),
        lambda: at("a").delete_file(),
        show,
    ]
    return [_try(step) for step in steps]


def _try(step: Callable[[], object], *, with_code: bool = True) -> object:
    try:
        return step()
    except AzguardError as error:
        # A stale receipt is 404 in Azure, and 400 in Azurite: azguard's word for both is the same.
        return (error.http_status, error.service_code) if with_code else error.reason
    except (HttpResponseError, ServiceRefusal) as error:
        return error.status_code, service_codes.service_code(error)


def _without_time(entity: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in entity.items() if not name.startswith("Timestamp")}


class _Memory:
    """A service in memory behind an account."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.account = wire.make_account(self._answer)

    def _answer(self, asked: Asked) -> Answer:
        self._service, answer = self._service.answer(asked, 0.0)
        return answer


def tell(account: Account, container: str, name: str, story: list[Request]) -> list[object]:
    """Send the requests of a story, and return what was answered, without names of versions and times."""
    address = Address(Kind.BLOB, (container, name.replace(" ", "-")))
    versions: list[str] = []
    told: list[object] = []
    for request in story:
        headers = {key: value.format("", *versions) for key, value in request.headers.items()}
        given = {"comp": request.comp, "blockid": request.block}
        query = {key: value for key, value in given.items() if value is not None}
        try:
            answer = ask(account, request.method, address, headers, query, request.body)
            kept = {key: answer.headers[key] for key in _TOLD if key in answer.headers}
            metadata = {key.lower(): value for key, value in answer.headers.items() if key.startswith("x-ms-meta-")}
            versions.append(answer.headers.get("ETag", ""))
            told.append((request, answer.status, kept, metadata, answer.content))
        except ServiceRefusal as error:
            versions.append("")
            told.append((request, error.status_code, error.response.headers.get("x-ms-error-code")))
    return told
