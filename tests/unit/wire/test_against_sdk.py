"""What azguard sends is what the SDK sends: verb, path, query, headers and body, and so is the signature."""

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from azure.core import MatchConditions
from azure.data.tables import EdmType, UpdateMode
from azure.storage.blob import (
    BlobBlock,
    BlobLeaseClient,
    ContentSettings,
    ImmutabilityPolicy,
    RehydratePriority,
    StandardBlobTier,
    _generated,
)
from azure.storage.fileshare import ShareLeaseClient

from azguard.accounts.account import Account, Auth, Target
from azguard.address import Address, Kind
from azguard.tables import edm
from azguard.wire import xml
from azguard.wire.call import call
from azguard.wire.catalogue import ALL
from azguard.wire.client import Limits
from azguard.wire.connections import Reply
from azguard.wire.identity import sign
from azguard.wire.operations import blobs, containers, queues, shares, tables
from azguard.wire.rows import Operation
from tests.support import sdk_clients, thorough
from tests.support.answering_client import AnsweringClient, Asked, reply
from tests.support.cases import cases

# They name one transmission, or the program.
_PASSING = ("x-ms-date", "date", "user-agent", "authorization", "x-ms-client-request-id")
# The SDK asks a write for JSON or for nothing at all; it reads no body of the answer.
# It names the version of OData on each request to the Table service, and the SDK leaves it out of two.
_OF_TASTE = ("accept", "x-ms-meta", "dataserviceversion")
_ENTITY = {
    "PartitionKey": "a'b",
    "RowKey": "r/1 ü",
    "s": "x",
    "l": "7",
    "l@odata.type": "Edm.Int64",
    "d": 1.5,
    "b": True,
}
_TYPED: dict[str, Any] = {name: (value, EdmType(kind)) for name, kind, value in edm.iterate_properties(_ENTITY)}
_MATCH: dict[str, Any] = {"etag": 'W/"1"', "match_condition": MatchConditions.IfNotModified}


class Recorder(AnsweringClient):
    """Keeps what is asked."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []

    def answer(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        return reply(200, {"ETag": '"1"'})


RECORDER = Recorder()
ACCOUNT = Account(
    "acc",
    {service: f"https://acc.{service}.core.windows.net" for service in ("blob", "table", "queue", "file")},
    Auth.KEY,
    "a2V5",
    {"client": RECORDER},
)


def place(kind: Kind, *parts: str) -> Target:
    return Target(ACCOUNT, Address(kind, parts))


TABLE, ENTITY = place(Kind.TABLE, "jobs"), place(Kind.ENTITY, "jobs", "a'b", "r/1 ü")
QUEUE, MESSAGE = place(Kind.QUEUE, "jobs"), place(Kind.MESSAGE, "jobs", "id-1")
KEYS: tuple[str, str] = ("a'b", "r/1 ü")
BLOB, CONTAINER = place(Kind.BLOB, "site", "a b.txt"), place(Kind.CONTAINER, "site")
MOMENT = "2026-11-25T10:00:00.0000000Z"
SNAPSHOT = BLOB._replace(address=replace(BLOB.address, snapshot=MOMENT))
VERSION = BLOB._replace(address=replace(BLOB.address, version=MOMENT))
_SETTINGS = ContentSettings("text/x", "gzip", "en", "inline", "no-cache", bytearray(b"abc"))
_SENT = {
    "content_type": "text/x",
    "content_encoding": "gzip",
    "content_language": "en",
    "content_disposition": "inline",
    "cache_control": "no-cache",
    "content_md5": "YWJj",
    "metadata": {"a": "b"},
}
_TIME = datetime(2026, 11, 25, 10, 11, 12, 345678, UTC)
_SMB = {
    "attributes": "ReadOnly|Archive",
    "created": _TIME,
    "written": MOMENT,
    "changed": MOMENT,
    "permission_key": "1*1",
}
_SMB_OF_SDK: Any = {
    "file_attributes": "ReadOnly|Archive",
    "file_creation_time": _TIME,
    "file_last_write_time": MOMENT,
    "file_change_time": MOMENT,
    "permission_key": "1*1",
}
_SENT_HEADERS = {name: value for name, value in _SENT.items() if name != "metadata"}
HELD = {"If-Match": '"1"', "x-ms-lease-id": "L"}


def blob() -> Any:
    return sdk_clients.blob(ACCOUNT, BLOB.address)


def container() -> Any:
    return sdk_clients.container(ACCOUNT, CONTAINER.address)


SHARE, FILE = place(Kind.SHARE, "docs"), place(Kind.FILE, "docs", "d/a b.")
DIRECTORY, ROOT = place(Kind.DIR, "docs", "d/a b."), place(Kind.DIR, "docs", "")
_ID, _TAG = "x-ms-lease-id", '"1"'
LEASE_ID, OTHER_ID = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"


def table() -> Any:
    return sdk_clients.table(ACCOUNT, TABLE.address)


def queue() -> Any:
    return sdk_clients.queue(ACCOUNT, QUEUE.address)


def add(header: str, value: str) -> dict[str, Any]:
    """Return the argument that adds a header; the SDK writes its own into the one that it is given."""
    return {"headers": {header: value}}


def client_of(target: Target) -> Any:
    return getattr(sdk_clients, target.kind.noun)(ACCOUNT, target.address)


def lease(target: Target) -> Any:
    """Return the SDK's client of the lease on a resource."""
    kind = BlobLeaseClient if target.kind.service == "blob" else ShareLeaseClient
    return kind(client_of(target), LEASE_ID)


def list_by_sdk(directory: Target) -> None:
    """Have the SDK list a directory."""
    asked = {"include": ["timestamps", "Etag"], "include_extended_info": True, "results_per_page": 3}
    next(client_of(directory).list_directories_and_files("a b", **asked), None)


Case = tuple[Operation, Target, Mapping[str, Any], Callable[[], object]]


def list_lease_cases(target: Target) -> list[Case]:
    """Return what is sent about the lease of a resource, and to change its metadata under it."""
    noun, metadata = target.kind, {"azguardowner": "{}"}

    def ask(name: str, **given: Any) -> object:
        return getattr(client_of(target), name)(**given, **add(_ID, LEASE_ID))

    tied, under_lease = add("If-Match", _TAG), add(_ID, LEASE_ID)
    terms, term = {"proposed_lease_id": LEASE_ID, "lease_duration": -1}, {"lease_duration": -1}
    found: list[Case] = [
        (
            ALL[f"{noun}.lease_acquire"],
            target,
            {**terms, **tied},
            lambda: lease(target).acquire(**term, **add("If-Match", _TAG)),
        ),
        (
            ALL[f"{noun}.lease_change"],
            target,
            {"proposed_lease_id": OTHER_ID, **under_lease},
            lambda: lease(target).change(OTHER_ID),
        ),
        (ALL[f"{noun}.lease_release"], target, under_lease, lambda: lease(target).release()),
        (ALL[f"{noun}.lease_break"], target, tied, lambda: lease(target).break_lease(**add("If-Match", _TAG))),
        (ALL[f"{noun}.get_properties"], target, under_lease, lambda: ask(f"get_{noun}_properties")),
        (
            ALL[f"{noun}.set_metadata"],
            target,
            {"metadata": metadata, **under_lease},
            lambda: ask(f"set_{noun}_metadata", metadata=metadata),
        ),
    ]
    if target is not FILE:
        period = {"lease_break_period": 0}
        found += [
            (ALL[f"{noun}.lease_renew"], target, under_lease, lambda: lease(target).renew()),
            (ALL[f"{noun}.lease_break"], target, period, lambda: lease(target).break_lease(**period)),
        ]
    return found


def file() -> Any:
    return sdk_clients.file(ACCOUNT, FILE.address)


#: An operation on a place, with what is sent; and the SDK's call.
CASES: list[Case] = [
    *(case for target in (BLOB, SHARE, FILE, CONTAINER) for case in list_lease_cases(target)),
    (tables.TABLE_CREATE, TABLE, {"body": json.dumps({"TableName": "jobs"}).encode()}, lambda: table().create_table()),
    (tables.TABLE_DELETE, TABLE, {}, lambda: table().delete_table()),
    (
        tables.TABLE_QUERY_TABLES,
        TABLE,
        {"filter": "TableName ge 'a'", "top": 3},
        lambda: next(sdk_clients.table_service(ACCOUNT).query_tables("TableName ge 'a'", results_per_page=3), None),
    ),
    (tables.TABLE_GET_ACL, TABLE, {}, lambda: table().get_table_access_policy()),
    (tables.TABLE_ENTITY_GET, ENTITY, {"select": "a,b"}, lambda: table().get_entity(*KEYS, select="a,b")),
    (
        tables.TABLE_ENTITY_QUERY,
        TABLE,
        {"filter": "a eq 'b c'", "select": "a,b", "top": 5},
        lambda: next(table().query_entities("a eq 'b c'", select="a,b", results_per_page=5), None),
    ),
    (tables.TABLE_ENTITY_INSERT, ENTITY, {"body": edm.to_body(_ENTITY)}, lambda: table().create_entity(_TYPED)),
    (
        tables.TABLE_ENTITY_UPDATE,
        ENTITY,
        {"body": edm.to_body(_ENTITY), "if_match": 'W/"1"'},
        lambda: table().update_entity(_TYPED, UpdateMode.REPLACE, **_MATCH),
    ),
    (
        tables.TABLE_ENTITY_MERGE,
        ENTITY,
        {"body": edm.to_body(_ENTITY), "if_match": "*"},
        lambda: table().update_entity(_TYPED, UpdateMode.MERGE, match_condition=MatchConditions.Unconditionally),
    ),
    (
        tables.TABLE_ENTITY_INSERT_OR_MERGE,
        ENTITY,
        {"body": edm.to_body(_ENTITY)},
        lambda: table().upsert_entity({**_TYPED, "PartitionKey": KEYS[0], "RowKey": KEYS[1]}, UpdateMode.MERGE),
    ),
    (
        tables.TABLE_ENTITY_INSERT_OR_REPLACE,
        ENTITY,
        {"body": edm.to_body(_ENTITY)},
        lambda: table().upsert_entity({**_TYPED, "PartitionKey": KEYS[0], "RowKey": KEYS[1]}, UpdateMode.REPLACE),
    ),
    (tables.TABLE_ENTITY_DELETE, ENTITY, {"if_match": 'W/"1"'}, lambda: table().delete_entity(*KEYS, **_MATCH)),
    (queues.QUEUE_CREATE, QUEUE, {"metadata": {"a": "b"}}, lambda: queue().create_queue(metadata={"a": "b"})),
    (queues.QUEUE_DELETE, QUEUE, {}, lambda: queue().delete_queue()),
    (queues.QUEUE_GET_METADATA, QUEUE, {}, lambda: queue().get_queue_properties()),
    (queues.QUEUE_SET_METADATA, QUEUE, {"metadata": {"a": "b"}}, lambda: queue().set_queue_metadata({"a": "b"})),
    (queues.QUEUE_GET_ACL, QUEUE, {}, lambda: queue().get_queue_access_policy()),
    (
        queues.QUEUE_LIST,
        QUEUE,
        {"prefix": "a b", "include": "metadata", "maxresults": 3},
        lambda: next(
            sdk_clients.queue_service(ACCOUNT).list_queues("a b", include_metadata=True, results_per_page=3), None
        ),
    ),
    (
        queues.QUEUE_PUT_MESSAGE,
        QUEUE,
        {"body": b"x", "visibilitytimeout": 5, "messagettl": -1},
        lambda: queue().send_message("", visibility_timeout=5, time_to_live=-1),
    ),
    (
        queues.QUEUE_GET_MESSAGES,
        QUEUE,
        {"numofmessages": 3, "visibilitytimeout": 30},
        lambda: next(queue().receive_messages(messages_per_page=3, max_messages=3, visibility_timeout=30), None),
    ),
    (queues.QUEUE_PEEK_MESSAGES, QUEUE, {"numofmessages": 3}, lambda: queue().peek_messages(max_messages=3)),
    (
        queues.QUEUE_UPDATE_MESSAGE,
        MESSAGE,
        {"popreceipt": "AgA+/=", "visibilitytimeout": 3},
        lambda: queue().update_message("id-1", "AgA+/=", visibility_timeout=3),
    ),
    (queues.QUEUE_DELETE_MESSAGE, MESSAGE, {"popreceipt": "AgA+/="}, lambda: queue().delete_message("id-1", "AgA+/=")),
    (queues.QUEUE_CLEAR_MESSAGES, QUEUE, {}, lambda: queue().clear_messages()),
    (
        blobs.BLOB_SET_METADATA,
        BLOB,
        {"headers": HELD, "metadata": {"a": "b", "c": ""}},
        lambda: blob().set_blob_metadata({"a": "b", "c": ""}, headers=dict(HELD)),
    ),
    (
        blobs.BLOB_SET_PROPERTIES,
        BLOB,
        {"headers": HELD, "content_type": "text/x", "content_md5": "YWJj", "cache_control": "no-store"},
        lambda: blob().set_http_headers(
            ContentSettings("text/x", content_md5=bytearray(b"abc"), cache_control="no-store"), headers=dict(HELD)
        ),
    ),
    (blobs.BLOB_RESIZE, BLOB, {"headers": HELD, "size": 1024}, lambda: blob().resize_blob(1024, headers=dict(HELD))),
    *(
        (
            blobs.BLOB_SET_SEQUENCE_NUMBER,
            BLOB,
            {"headers": HELD, "sequence_action": action, "sequence_number": number},
            lambda action=action, number=number: blob().set_sequence_number(action, number, headers=dict(HELD)),
        )
        for action, number in (("max", "7"), ("update", "0"), ("increment", None))
    ),
    (
        blobs.BLOB_SET_TIER,
        VERSION,
        {"access_tier": "Hot", "rehydrate_priority": "High"},
        lambda: sdk_clients.blob(ACCOUNT, VERSION.address).set_standard_blob_tier(
            "Hot", rehydrate_priority=RehydratePriority.HIGH
        ),
    ),
    *(
        (
            blobs.BLOB_SET_LEGAL_HOLD,
            VERSION,
            {"legal_hold": "true" if held else "false"},
            lambda held=held: sdk_clients.blob(ACCOUNT, VERSION.address).set_legal_hold(held),
        )
        for held in (True, False)
    ),
    (
        blobs.BLOB_SET_IMMUTABILITY_POLICY,
        VERSION,
        {"immutability_until": "Wed, 25 Nov 2026 10:11:12 GMT", "immutability_mode": "Locked"},
        lambda: sdk_clients.blob(ACCOUNT, VERSION.address).set_immutability_policy(
            ImmutabilityPolicy(expiry_time=_TIME, policy_mode="Locked")
        ),
    ),
    (
        blobs.BLOB_DELETE_IMMUTABILITY_POLICY,
        VERSION,
        {},
        lambda: sdk_clients.blob(ACCOUNT, VERSION.address).delete_immutability_policy(),
    ),
    (blobs.BLOB_GET_TAGS, VERSION, {}, lambda: sdk_clients.blob(ACCOUNT, VERSION.address).get_blob_tags()),
    (
        blobs.BLOB_SET_TAGS,
        BLOB,
        {"headers": {"x-ms-lease-id": "L", "x-ms-if-tags": "a='1'"}, "body": b"<Tags />"},
        lambda: blob().set_blob_tags({"a": "2"}, lease="L", if_tags_match_condition="a='1'"),
    ),
    (
        blobs.BLOB_SNAPSHOT,
        BLOB,
        {"headers": HELD, "metadata": {"a": "b"}},
        lambda: blob().create_snapshot({"a": "b"}, headers=dict(HELD)),
    ),
    (
        blobs.BLOB_DELETE,
        BLOB,
        {"headers": HELD, "delete_snapshots": "include"},
        lambda: blob().delete_blob("include", headers=dict(HELD)),
    ),
    (blobs.BLOB_DELETE, SNAPSHOT, {}, lambda: sdk_clients.blob(ACCOUNT, SNAPSHOT.address).delete_blob()),
    (blobs.BLOB_UNDELETE, BLOB, {}, lambda: blob().undelete_blob()),
    (
        blobs.BLOB_GET,
        BLOB,
        {"headers": HELD, "range": "bytes=3-7", "range_md5": "true"},
        lambda: blob().download_blob(3, 5, headers={**HELD, "x-ms-range-get-content-md5": "true"}),
    ),
    (
        blobs.BLOB_PUT_BLOCK,
        BLOB,
        {"headers": {"x-ms-lease-id": "L"}, "block_id": "b3A/MDE+", "body": b"abc"},
        lambda: blob().stage_block("op?01>", b"abc", 3, headers={"x-ms-lease-id": "L"}),
    ),
    (
        blobs.BLOB_PUT_BLOCK_LIST,
        BLOB,
        {
            "headers": HELD,
            **_SENT,
            "access_tier": "Cool",
            "tags": "x=y%20z",
            "body": b"<?xml version='1.0' encoding='utf-8'?>\n<BlockList><Latest>YQ==</Latest></BlockList>",
        },
        lambda: blob().commit_block_list(
            [BlobBlock("a")],
            metadata={"a": "b"},
            tags={"x": "y z"},
            standard_blob_tier=StandardBlobTier.COOL,
            content_settings=_SETTINGS,
            headers=dict(HELD),
        ),
    ),
    (
        blobs.BLOB_GET_BLOCK_LIST,
        BLOB,
        {"headers": {"x-ms-lease-id": "L"}, "blocklisttype": "all"},
        lambda: blob().get_block_list("all", headers={"x-ms-lease-id": "L"}),
    ),
    (
        blobs.BLOB_PUT_APPEND_BLOB,
        BLOB,
        {"headers": {"If-None-Match": "*"}, **_SENT},
        lambda: blob().create_append_blob(_SETTINGS, {"a": "b"}, headers={"If-None-Match": "*"}),
    ),
    (
        blobs.BLOB_APPEND_BLOCK,
        BLOB,
        {"headers": {**HELD, "x-ms-blob-condition-appendpos": "3"}, "body": b"abc"},
        lambda: blob().append_block(b"abc", length=3, headers={**HELD, "x-ms-blob-condition-appendpos": "3"}),
    ),
    (
        blobs.BLOB_APPEND_BLOCK_FROM_URL,
        BLOB,
        {"headers": HELD, "copy_source": "https://s/a%20b?c=d", "source_range": "bytes=4-8"},
        lambda: blob().append_block_from_url("https://s/a%20b?c=d", 4, 5, headers=dict(HELD)),
    ),
    (blobs.BLOB_SEAL_APPEND_BLOB, BLOB, {"headers": HELD}, lambda: blob().seal_append_blob(headers=dict(HELD))),
    (
        blobs.BLOB_COPY,
        BLOB,
        {
            "headers": {**HELD, "x-ms-source-if-match": '"1"'},
            "copy_source": "https://s/a%20b?c=d",
            "metadata": {"a": "b"},
            "tags": "x=y%20z",
            "access_tier": "Cool",
        },
        lambda: blob().start_copy_from_url(
            "https://s/a%20b?c=d",
            {"a": "b"},
            tags={"x": "y z"},
            standard_blob_tier=StandardBlobTier.COOL,
            headers={**HELD, "x-ms-source-if-match": '"1"'},
        ),
    ),
    (
        blobs.BLOB_ABORT_COPY,
        BLOB,
        {"headers": {"x-ms-lease-id": "L"}, "copyid": "c-1"},
        lambda: blob().abort_copy("c-1", headers={"x-ms-lease-id": "L"}),
    ),
    (
        blobs.BLOB_PUT_PAGE_BLOB,
        BLOB,
        {"headers": {"If-None-Match": "*"}, "size": 512, **_SENT},
        lambda: blob().create_page_blob(512, _SETTINGS, {"a": "b"}, headers={"If-None-Match": "*"}),
    ),
    (
        blobs.BLOB_PUT_PAGE,
        BLOB,
        {"headers": HELD, "range": "bytes=512-1023", "body": b"a" * 512},
        lambda: blob().upload_page(b"a" * 512, 512, 512, headers=dict(HELD)),
    ),
    (
        blobs.BLOB_CLEAR_PAGE,
        BLOB,
        {"headers": HELD, "range": "bytes=512-1023"},
        lambda: blob().clear_page(512, 512, headers=dict(HELD)),
    ),
    (
        blobs.BLOB_PUT_PAGE_FROM_URL,
        BLOB,
        {
            "headers": HELD,
            "range": "bytes=512-1023",
            "copy_source": "https://s/a%20b?c=d",
            "source_range": "bytes=1024-1535",
        },
        lambda: blob().upload_pages_from_url("https://s/a%20b?c=d", 512, 512, 1024, headers=dict(HELD)),
    ),
    (
        blobs.BLOB_GET_PAGE_RANGES,
        BLOB,
        {"headers": HELD, "range": "bytes=512-1023", "prevsnapshot": MOMENT},
        lambda: next(
            blob().list_page_ranges(offset=512, length=512, previous_snapshot=MOMENT, headers=dict(HELD)), None
        ),
    ),
    (
        containers.CONTAINER_CREATE,
        CONTAINER,
        {"metadata": {"a": "b"}, "public_access": "blob"},
        lambda: container().create_container({"a": "b"}, "blob"),
    ),
    (
        containers.CONTAINER_UNDELETE,
        CONTAINER,
        {"deleted_container_name": "site", "deleted_container_version": "01D6"},
        lambda: sdk_clients.blob_service(ACCOUNT).undelete_container("site", "01D6"),
    ),
    (
        containers.CONTAINER_GET_PROPERTIES,
        CONTAINER,
        {"headers": {"x-ms-lease-id": "L"}},
        lambda: container().get_container_properties(lease="L"),
    ),
    (
        containers.CONTAINER_SET_METADATA,
        CONTAINER,
        {"metadata": {"a": "b"}},
        lambda: container().set_container_metadata({"a": "b"}),
    ),
    (
        containers.CONTAINER_DELETE,
        CONTAINER,
        {"headers": HELD},
        lambda: container().delete_container(headers=dict(HELD)),
    ),
    (
        containers.CONTAINER_LIST,
        CONTAINER,
        {"prefix": "a b", "include": "metadata", "maxresults": 3},
        lambda: next(
            sdk_clients.blob_service(ACCOUNT).list_containers("a b", include_metadata=True, results_per_page=3), None
        ),
    ),
    (
        containers.CONTAINER_LIST_BLOBS,
        CONTAINER,
        {"prefix": "a b", "include": "versions,metadata", "maxresults": 3},
        lambda: next(container().list_blobs("a b", include=["versions", "metadata"], results_per_page=3), None),
    ),
    (
        containers.CONTAINER_LIST_BLOBS,
        CONTAINER,
        {"delimiter": "/", "include": "tags"},
        lambda: next(container().walk_blobs(delimiter="/", include=["tags"]), None),
    ),
]
CASES += [
    (
        shares.DIRECTORY_GET_PROPERTIES,
        DIRECTORY,
        {},
        lambda: sdk_clients.directory(ACCOUNT, DIRECTORY.address).get_directory_properties(),
    ),
    (
        shares.DIRECTORY_GET_PROPERTIES,
        ROOT,
        {},
        lambda: sdk_clients.directory(ACCOUNT, ROOT.address).get_directory_properties(),
    ),
    (
        shares.FILE_GET,
        FILE,
        {"headers": {_ID: LEASE_ID}, "range": "bytes=3-7"},
        lambda: file().download_file(3, 5, **add(_ID, LEASE_ID)),
    ),
    (
        shares.FILE_CREATE,
        FILE,
        {"size": 5, **_SENT, **_SMB},
        lambda: file().create_file(5, metadata={"a": "b"}, content_settings=_SETTINGS, **_SMB_OF_SDK),
    ),
    (shares.FILE_DELETE, FILE, {"headers": {_ID: LEASE_ID}}, lambda: file().delete_file(**add(_ID, LEASE_ID))),
    (
        shares.FILE_PUT_RANGE,
        FILE,
        {
            "headers": {_ID: LEASE_ID},
            "range": "bytes=3-5",
            "write": "update",
            "body_type": "application/octet-stream",
            "body": b"abc",
        },
        lambda: file().upload_range(b"abc", 3, 3, **add(_ID, LEASE_ID)),
    ),
    (
        shares.FILE_PUT_RANGE,
        FILE,
        {"headers": {_ID: LEASE_ID}, "range": "bytes=512-1023", "write": "clear"},
        lambda: file().clear_range(512, 512, **add(_ID, LEASE_ID)),
    ),
    (
        shares.FILE_LIST_RANGES,
        FILE,
        {"headers": {_ID: LEASE_ID}, "range": "bytes=3-7", "prevsharesnapshot": MOMENT},
        lambda: next(file().list_ranges_diff(MOMENT, offset=3, length=5, **add(_ID, LEASE_ID)), None),
    ),
    (shares.FILE_LIST_RANGES, FILE, {}, lambda: next(file().list_ranges(), None)),
    (
        shares.FILE_COPY,
        FILE,
        {"copy_source": "https://s/a%20b?c=d", "permission_copy_mode": "source"},
        lambda: file().start_copy_from_url("https://s/a%20b?c=d", permission_key="source"),
    ),
    (
        shares.FILE_ABORT_COPY,
        FILE,
        {"headers": {_ID: LEASE_ID}, "copyid": "c-1"},
        lambda: file().abort_copy("c-1", **add(_ID, LEASE_ID)),
    ),
    (
        shares.FILE_RENAME,
        FILE,
        {
            "rename_source": "https://acc.file.core.windows.net/docs/d/old%20name.",
            "replace_if_exists": "true",
            "source_lease_id": LEASE_ID,
            "destination_lease_id": OTHER_ID,
            "metadata": {"a": "b"},
            **_SMB,
        },
        lambda: sdk_clients.file(ACCOUNT, Address(Kind.FILE, ("docs", "d/old name."))).rename_file(
            FILE.address.path,
            overwrite=True,
            source_lease=LEASE_ID,
            destination_lease=OTHER_ID,
            metadata={"a": "b"},
            **_SMB_OF_SDK,
        ),
    ),
    (
        shares.DIRECTORY_RENAME,
        DIRECTORY,
        {
            "rename_source": "https://acc.file.core.windows.net/docs/d%2Fold%20name.",
            "replace_if_exists": "false",
            "destination_lease_id": OTHER_ID,
        },
        lambda: sdk_clients.directory(ACCOUNT, Address(Kind.DIR, ("docs", "d/old name."))).rename_directory(
            DIRECTORY.address.path, overwrite=False, destination_lease=OTHER_ID
        ),
    ),
]
CASES += [
    (
        shares.SHARE_CREATE,
        SHARE,
        {"metadata": {"a": "b"}, "quota": 5, "access_tier": "Hot"},
        lambda: client_of(SHARE).create_share(metadata={"a": "b"}, quota=5, access_tier="Hot"),
    ),
    (
        shares.SHARE_LIST,
        SHARE,
        {"prefix": "a b", "include": "metadata,snapshots", "maxresults": 3},
        lambda: next(
            sdk_clients.share_service(ACCOUNT).list_shares(
                "a b", include_metadata=True, include_snapshots=True, results_per_page=3
            ),
            None,
        ),
    ),
    (
        shares.SHARE_DELETE,
        SHARE,
        {"delete_snapshots": "include", **add(_ID, LEASE_ID)},
        lambda: client_of(SHARE).delete_share(delete_snapshots=True, **add(_ID, LEASE_ID)),
    ),
    (
        shares.SHARE_SET_PROPERTIES,
        SHARE,
        {"quota": 5, **add(_ID, LEASE_ID)},
        lambda: client_of(SHARE).set_share_properties(quota=5, **add(_ID, LEASE_ID)),
    ),
    (shares.SHARE_GET_STATS, SHARE, add(_ID, LEASE_ID), lambda: client_of(SHARE).get_share_stats(**add(_ID, LEASE_ID))),
    (
        shares.SHARE_UNDELETE,
        SHARE,
        {"deleted_share_name": "docs", "deleted_share_version": "01D6"},
        lambda: sdk_clients.share_service(ACCOUNT).undelete_share("docs", "01D6"),
    ),
    (
        shares.SHARE_CREATE_PERMISSION,
        SHARE,
        {"body": json.dumps({"permission": "O:SY"}).encode()},
        lambda: client_of(SHARE).create_permission_for_share("O:SY"),
    ),
    (
        shares.SHARE_GET_PERMISSION,
        SHARE,
        {"permission_key": "1*1"},
        lambda: client_of(SHARE).get_permission_for_share("1*1"),
    ),
    (
        shares.SHARE_SNAPSHOT,
        SHARE,
        {"metadata": {"a": "b"}},
        lambda: client_of(SHARE).create_snapshot(metadata={"a": "b"}),
    ),
    (
        shares.DIRECTORY_CREATE,
        DIRECTORY,
        {"metadata": {"a": "b"}},
        lambda: client_of(DIRECTORY).create_directory(metadata={"a": "b"}),
    ),
    (shares.DIRECTORY_DELETE, DIRECTORY, {}, lambda: client_of(DIRECTORY).delete_directory()),
    (
        shares.DIRECTORY_LIST,
        DIRECTORY,
        {"prefix": "a b", "include": "timestamps,Etag", "maxresults": 3},
        lambda: list_by_sdk(DIRECTORY),
    ),
    (
        shares.DIRECTORY_LIST,
        ROOT,
        {"prefix": "a b", "include": "timestamps,Etag", "maxresults": 3},
        lambda: list_by_sdk(ROOT),
    ),
    (shares.DIRECTORY_SET_PROPERTIES, DIRECTORY, _SMB, lambda: client_of(DIRECTORY).set_http_headers(**_SMB_OF_SDK)),
    (
        shares.DIRECTORY_SET_METADATA,
        DIRECTORY,
        {"metadata": {"a": "b"}},
        lambda: client_of(DIRECTORY).set_directory_metadata({"a": "b"}),
    ),
    (
        shares.FILE_SET_PROPERTIES,
        FILE,
        {**_SENT_HEADERS, **_SMB, **add(_ID, LEASE_ID)},
        lambda: client_of(FILE).set_http_headers(_SETTINGS, **_SMB_OF_SDK, **add(_ID, LEASE_ID)),
    ),
    (
        shares.FILE_SET_PROPERTIES,
        FILE,
        {"size": 7, "permission": "preserve", **add(_ID, LEASE_ID)},
        lambda: client_of(FILE).resize_file(7, **add(_ID, LEASE_ID)),
    ),
    (
        shares.FILE_LIST_HANDLES,
        FILE,
        {"recursive": "true", "maxresults": 3},
        lambda: next(
            sdk_clients.directory(ACCOUNT, FILE.address).list_handles(recursive=True, results_per_page=3), None
        ),
    ),
    (
        shares.FILE_FORCE_CLOSE_HANDLES,
        FILE,
        {"handle_id": "*", "recursive": "true"},
        lambda: sdk_clients.directory(ACCOUNT, FILE.address).close_all_handles(recursive=True),
    ),
    (shares.FILE_FORCE_CLOSE_HANDLES, FILE, {"handle_id": "7"}, lambda: client_of(FILE).close_handle("7")),
]
# The bodies of messages and tags are XML of our own, which keeps carriage returns.
_OWN_BODY = {queues.QUEUE_PUT_MESSAGE, blobs.BLOB_SET_TAGS}


def record(ask: Callable[[], object]) -> Asked:
    """Return the first request of a call, whatever is made of the answer."""
    RECORDER.asked.clear()
    try:
        ask()
    except Exception:  # noqa: BLE001  # the answer says nothing that anyone could read
        assert RECORDER.asked
    return RECORDER.asked[0]


def describe(asked: Asked, *, own_body: bool) -> dict[str, object]:
    """Return a request without what differs from one transmission to the next."""
    left_out = (*_PASSING, *_OF_TASTE, *(("content-length",) if own_body else ()))
    headers = {name.lower(): value for name, value in asked.headers.items() if name.lower() not in left_out}
    parts = urlsplit(asked.url)
    return {
        "method": asked.method,
        "path": unquote(parts.path),
        "query": sorted(parse_qsl(parts.query, keep_blank_values=True)),
        "headers": dict(sorted(headers.items())),
        "body": None if own_body else asked.body or None,
    }


_TRIED = thorough.choose_rows(CASES)


@cases("case", *_TRIED, ids=lambda case: case[0].name)
def test_an_operation_is_sent_as_the_sdk_sends_it(case: Case) -> None:
    operation, target, given, by_sdk = case
    own_body = operation in _OWN_BODY
    ours = describe(record(lambda: call(operation, target, Limits(), **given)), own_body=own_body)
    theirs = describe(record(by_sdk), own_body=own_body)
    assert ours == theirs


@cases("case", *_TRIED, ids=lambda case: case[0].name)
def test_a_request_of_the_sdk_is_signed_as_the_sdk_signs_it(case: Case) -> None:
    _, target, _, by_sdk = case
    asked = record(by_sdk)
    headers = {name: value for name, value in asked.headers.items() if name != "Authorization"}
    signature = sign("acc", "a2V5", target.kind.service, asked.method, asked.url, headers)
    assert asked.headers["Authorization"] == f"SharedKey acc:{signature}"


def test_a_body_of_xml_keeps_carriage_returns() -> None:
    assert xml.build_document(f"<a>{xml.escape('1' + chr(13) + '<&>')}</a>").endswith(b"<a>1&#13;&lt;&amp;&gt;</a>")


# The operations of the SDK that have another name than the row.
_NAMES = {
    "get": "download", "set_properties": "set_http_headers", "lease_acquire": "acquire_lease",
    "lease_renew": "renew_lease", "lease_change": "change_lease", "lease_release": "release_lease",
    "lease_break": "break_lease", "snapshot": "create_snapshot", "copy": "start_copy_from_url",
    "abort_copy": "abort_copy_from_url", "put_block_blob": "upload", "put_append_blob": "AppendBlobOperations.create",
    "put_page_blob": "PageBlobOperations.create", "put_block": "stage_block", "put_block_list": "commit_block_list",
    "append_block": "append_block", "seal_append_blob": "seal", "put_page": "upload_pages", "clear_page": "clear_pages",
    "put_page_from_url": "upload_pages_from_url", "set_sequence_number": "update_sequence_number",
}  # fmt: skip


def find_in_sdk(name: str) -> str:
    """Return the source of the operation of the SDK that a row is of."""
    kind, _, called = _NAMES.get(name, name).rpartition(".")
    found = [
        getattr(each, called)
        for each in vars(_generated.operations).values()
        if inspect.isclass(each) and kind in each.__name__ and "Blob" in each.__name__ and hasattr(each, called)
    ]
    assert len(found) == 1, name
    return inspect.getsource(found[0])


def test_the_operations_that_take_a_key_or_a_scope_are_those_of_the_sdk() -> None:
    rows = {name.removeprefix("blob."): row for name, row in ALL.items() if row.noun == "blob"}
    asked = {name: find_in_sdk(name) for name in rows}
    for argument in ("encryption_key", "encryption_scope"):
        taken = {name for name, row in rows.items() if argument in row.http.sends}
        assert taken == {name for name, source in asked.items() if argument in source}
