"""What azguard sends is what the SDK sends: verb, path, query, headers and body, and so is the signature."""

import inspect
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from azure.core import MatchConditions
from azure.core.paging import ItemPaged
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
from azguard.wire.operations import blobs, queues
from azguard.wire.rows import Operation
from azguard.wire.signing import sign
from tests.support import sdk_clients, thorough
from tests.support.answering_client import AnsweringClient, Asked, reply
from tests.support.cases import cases

# They name one transmission, or the program.
_PASSING = ("x-ms-date", "date", "user-agent", "authorization", "x-ms-client-request-id")
# The SDK asks a write for JSON or for nothing at all; it reads no body of the answer.
# Only azguard tells caches on the way to ask the service.
# It names the version of OData on each request to the Table service, and the SDK leaves it out of two.
_OF_TASTE = ("accept", "cache-control", "x-ms-meta", "dataserviceversion")
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
_KEYS = {"PartitionKey": KEYS[0], "RowKey": KEYS[1]}
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


SHARE, FILE = place(Kind.SHARE, "docs"), place(Kind.FILE, "docs", "d/a b.")
DIRECTORY, ROOT = place(Kind.DIR, "docs", "d/a b."), place(Kind.DIR, "docs", "")
LEASE_ID, OTHER_ID = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
OLD_FILE, OLD_DIRECTORY = place(Kind.FILE, "docs", "d/old name."), place(Kind.DIR, "docs", "d/old name.")
META, URL, BODY = {"a": "b"}, "https://s/a%20b?c=d", edm.to_body(_ENTITY)
NONE: Mapping[str, str] = {}
LEASED, CREATES, TIED = {"x-ms-lease-id": LEASE_ID}, {"If-None-Match": "*"}, {"If-Match": '"1"'}


class Case(NamedTuple):
    """An operation on a place, with what is sent; and the SDK's call."""

    operation: Operation
    target: Target
    given: Mapping[str, Any]
    by_sdk: Callable[[], object]


def row(
    name: str,
    target: Target,
    headers: Mapping[str, str],
    given: Mapping[str, Any],
    method: str,
    *arguments: Any,
    by: Target | None = None,
    more: Mapping[str, str] = NONE,
    **settings: Any,
) -> Case:
    """Return a case in which both get these headers; the SDK's call is a method of its client, or of a lease on it.

    That client is of ``by`` where it is another place, and gets ``more`` headers.
    """
    both: dict[str, Any] = {"headers": headers} if headers else {}

    def call_sdk() -> object:
        found = find_method(by or target, method)(*arguments, headers={**headers, **more}, **settings)
        return next(found, None) if isinstance(found, ItemPaged) else found

    return Case(ALL[name], target, {**both, **given}, call_sdk)


def find_method(target: Target, name: str) -> Callable[..., object]:
    kind = {Kind.ENTITY: "table", Kind.MESSAGE: "queue"}.get(target.kind, target.kind.noun)
    client = getattr(sdk_clients, kind)(ACCOUNT, target.address)
    if name.startswith("lease."):
        of_lease = BlobLeaseClient if target.kind.service == "blob" else ShareLeaseClient
        client, name = of_lease(client, LEASE_ID), name.removeprefix("lease.")
    found: Callable[..., object] = getattr(client, name, None) or getattr(_SERVICES[target.kind.service](ACCOUNT), name)
    return found


_SERVICES: Mapping[str, Callable[[Account], object]] = {
    "blob": sdk_clients.blob_service,
    "file": sdk_clients.share_service,
    "queue": sdk_clients.queue_service,
    "table": sdk_clients.table_service,
}


def list_lease_cases(target: Target) -> list[Case]:
    """Return what is sent about the lease of a resource, and to change its metadata under it."""
    noun, under = target.kind, {"headers": LEASED}
    metadata: Any = {"metadata": {"azguardowner": "{}"}}
    term: Any = {"lease_duration": -1}
    period: Any = {"lease_break_period": 0}
    found = [
        row(f"{noun}.lease_acquire", target, TIED, {"proposed_lease_id": LEASE_ID, **term}, "lease.acquire", **term),
        row(f"{noun}.lease_change", target, NONE, {"proposed_lease_id": OTHER_ID, **under}, "lease.change", OTHER_ID),
        row(f"{noun}.lease_release", target, NONE, under, "lease.release"),
        row(f"{noun}.lease_break", target, TIED, {}, "lease.break_lease"),
        row(f"{noun}.get_properties", target, LEASED, {}, f"get_{noun}_properties"),
        row(f"{noun}.set_metadata", target, LEASED, metadata, f"set_{noun}_metadata", **metadata),
    ]
    if target is not FILE:
        found += [
            row(f"{noun}.lease_renew", target, NONE, under, "lease.renew"),
            row(f"{noun}.lease_break", target, NONE, period, "lease.break_lease", **period),
        ]
    return found


CASES = [
    *(each for target in (BLOB, SHARE, FILE, CONTAINER) for each in list_lease_cases(target)),
    row("table.create", TABLE, NONE, {"body": json.dumps({"TableName": "jobs"}).encode()}, "create_table"),
    row("table.delete", TABLE, NONE, {}, "delete_table"),
    row("table.query_tables", TABLE, NONE, {"filter": "TableName ge 'a'", "top": 3}, "query_tables",
        "TableName ge 'a'", results_per_page=3),
    row("table.get_acl", TABLE, NONE, {}, "get_table_access_policy"),
    row("table.set_acl", TABLE, NONE, {"body": b"<a/>"}, "set_table_access_policy", {"a": None}),
    row("table.entity_get", ENTITY, NONE, {"select": "a,b"}, "get_entity", *KEYS, select="a,b"),
    row("table.entity_query", TABLE, NONE, {"filter": "a eq 'b c'", "select": "a,b", "top": 5}, "query_entities",
        "a eq 'b c'", select="a,b", results_per_page=5),
    row("table.entity_insert", ENTITY, NONE, {"body": BODY}, "create_entity", _TYPED),
    row("table.entity_update", ENTITY, NONE, {"body": BODY, "if_match": 'W/"1"'}, "update_entity", _TYPED,
        UpdateMode.REPLACE, **_MATCH),
    row("table.entity_merge", ENTITY, NONE, {"body": BODY, "if_match": "*"}, "update_entity", _TYPED,
        UpdateMode.MERGE, match_condition=MatchConditions.Unconditionally),
    row("table.entity_insert_or_merge", ENTITY, NONE, {"body": BODY}, "upsert_entity", _TYPED | _KEYS,
        UpdateMode.MERGE),
    row("table.entity_insert_or_replace", ENTITY, NONE, {"body": BODY}, "upsert_entity", _TYPED | _KEYS,
        UpdateMode.REPLACE),
    row("table.entity_delete", ENTITY, NONE, {"if_match": 'W/"1"'}, "delete_entity", *KEYS, **_MATCH),
    row("queue.create", QUEUE, NONE, {"metadata": META}, "create_queue", metadata=META),
    row("queue.delete", QUEUE, NONE, {}, "delete_queue"),
    row("queue.get_metadata", QUEUE, NONE, {}, "get_queue_properties"),
    row("queue.set_metadata", QUEUE, NONE, {"metadata": META}, "set_queue_metadata", META),
    row("queue.get_acl", QUEUE, NONE, {}, "get_queue_access_policy"),
    row("queue.set_acl", QUEUE, NONE, {"body": b"<a/>"}, "set_queue_access_policy", {"a": None}),
    row("queue.list", QUEUE, NONE, {"prefix": "a b", "include": "metadata", "maxresults": 3}, "list_queues", "a b",
        include_metadata=True, results_per_page=3),
    row("queue.put_message", QUEUE, NONE, {"body": b"x", "visibilitytimeout": 5, "messagettl": -1}, "send_message",
        "", visibility_timeout=5, time_to_live=-1),
    row("queue.get_messages", QUEUE, NONE, {"numofmessages": 3, "visibilitytimeout": 30}, "receive_messages",
        messages_per_page=3, max_messages=3, visibility_timeout=30),
    row("queue.peek_messages", QUEUE, NONE, {"numofmessages": 3}, "peek_messages", max_messages=3),
    row("queue.update_message", MESSAGE, NONE, {"popreceipt": "AgA+/=", "visibilitytimeout": 3}, "update_message",
        "id-1", "AgA+/=", visibility_timeout=3),
    row("queue.delete_message", MESSAGE, NONE, {"popreceipt": "AgA+/="}, "delete_message", "id-1", "AgA+/="),
    row("queue.clear_messages", QUEUE, NONE, {}, "clear_messages"),
    row("blob.put_block_blob", BLOB, NONE, {"body": b"x"}, "upload_blob", b"x", overwrite=True),
    row("blob.set_metadata", BLOB, HELD, {"metadata": {"a": "b", "c": ""}}, "set_blob_metadata", {"a": "b", "c": ""}),
    row("blob.set_properties", BLOB, HELD, {"content_type": "text/x", "content_md5": "YWJj",
        "cache_control": "no-store"}, "set_http_headers", ContentSettings("text/x", content_md5=bytearray(b"abc"),
        cache_control="no-store")),
    row("blob.resize", BLOB, HELD, {"size": 1024}, "resize_blob", 1024),
    *(row("blob.set_sequence_number", BLOB, HELD, {"sequence_action": action, "sequence_number": number},
        "set_sequence_number", action, number) for action, number in (("max", "7"), ("update", "0"), ("increment",
        None))),
    row("blob.set_tier", VERSION, NONE, {"access_tier": "Hot", "rehydrate_priority": "High"},
        "set_standard_blob_tier", "Hot", rehydrate_priority=RehydratePriority.HIGH),
    *(row("blob.set_legal_hold", VERSION, NONE, {"legal_hold": "true" if held else "false"}, "set_legal_hold",
        held) for held in (True, False)),
    row("blob.set_immutability_policy", VERSION, NONE, {"immutability_until": "Wed, 25 Nov 2026 10:11:12 GMT",
        "immutability_mode": "Locked"}, "set_immutability_policy", ImmutabilityPolicy(expiry_time=_TIME,
        policy_mode="Locked")),
    row("blob.delete_immutability_policy", VERSION, NONE, {}, "delete_immutability_policy"),
    row("blob.get_tags", VERSION, NONE, {}, "get_blob_tags"),
    row("blob.set_tags", BLOB, NONE, {"headers": {"x-ms-lease-id": "L", "x-ms-if-tags": "a='1'"},
        "body": b"<Tags />"}, "set_blob_tags", {"a": "2"}, lease="L", if_tags_match_condition="a='1'"),
    row("blob.snapshot", BLOB, HELD, {"metadata": META}, "create_snapshot", META),
    row("blob.delete", BLOB, HELD, {"delete_snapshots": "include"}, "delete_blob", "include"),
    row("blob.delete", SNAPSHOT, NONE, {}, "delete_blob"),
    row("blob.undelete", BLOB, NONE, {}, "undelete_blob"),
    row("blob.get", BLOB, HELD, {"range": "bytes=3-7", "range_md5": "true"}, "download_blob", 3, 5,
        more={"x-ms-range-get-content-md5": "true"}),
    row("blob.put_block", BLOB, LEASED, {"block_id": "b3A/MDE+", "body": b"abc"}, "stage_block", "op?01>", b"abc", 3),
    row("blob.put_block_list", BLOB, HELD, {**_SENT, "access_tier": "Cool", "tags": "x=y%20z",
        "body": b"<?xml version='1.0' encoding='utf-8'?>\n<BlockList><Latest>YQ==</Latest></BlockList>"},
        "commit_block_list", [BlobBlock("a")], metadata=META, tags={"x": "y z"},
        standard_blob_tier=StandardBlobTier.COOL, content_settings=_SETTINGS),
    row("blob.get_block_list", BLOB, LEASED, {"blocklisttype": "all"}, "get_block_list", "all"),
    row("blob.put_append_blob", BLOB, CREATES, _SENT, "create_append_blob", _SETTINGS, META),
    row("blob.append_block", BLOB, {**HELD, "x-ms-blob-condition-appendpos": "3"}, {"body": b"abc"}, "append_block",
        b"abc", length=3),
    row("blob.append_block_from_url", BLOB, HELD, {"copy_source": URL, "source_range": "bytes=4-8"},
        "append_block_from_url", URL, 4, 5),
    row("blob.seal_append_blob", BLOB, HELD, {}, "seal_append_blob"),
    row("blob.copy", BLOB, {**HELD, "x-ms-source-if-match": '"1"'}, {"copy_source": URL, "metadata": META,
        "tags": "x=y%20z", "access_tier": "Cool"}, "start_copy_from_url", URL, META, tags={"x": "y z"},
        standard_blob_tier=StandardBlobTier.COOL),
    row("blob.abort_copy", BLOB, LEASED, {"copyid": "c-1"}, "abort_copy", "c-1"),
    row("blob.put_page_blob", BLOB, CREATES, {"size": 512, **_SENT}, "create_page_blob", 512, _SETTINGS, META),
    row("blob.put_page", BLOB, HELD, {"range": "bytes=512-1023", "body": b"a" * 512}, "upload_page", b"a" * 512, 512,
        512),
    row("blob.clear_page", BLOB, HELD, {"range": "bytes=512-1023"}, "clear_page", 512, 512),
    row("blob.put_page_from_url", BLOB, HELD, {"range": "bytes=512-1023", "copy_source": URL,
        "source_range": "bytes=1024-1535"}, "upload_pages_from_url", URL, 512, 512, 1024),
    row("blob.get_page_ranges", BLOB, HELD, {"range": "bytes=512-1023", "prevsnapshot": MOMENT}, "list_page_ranges",
        offset=512, length=512, previous_snapshot=MOMENT),
    row("container.create", CONTAINER, NONE, {"metadata": META, "public_access": "blob"}, "create_container", META,
        "blob"),
    row("container.undelete", CONTAINER, NONE, {"deleted_container_name": "site",
        "deleted_container_version": "01D6"}, "undelete_container", "site", "01D6"),
    row("container.get_properties", CONTAINER, NONE, {"headers": {"x-ms-lease-id": "L"}}, "get_container_properties",
        lease="L"),
    row("container.set_metadata", CONTAINER, NONE, {"metadata": META}, "set_container_metadata", META),
    row("container.get_acl", CONTAINER, LEASED, {}, "get_container_access_policy"),
    row("container.set_acl", CONTAINER, LEASED, {"body": b"<a/>", "public_access": "blob"},
        "set_container_access_policy", {"a": None}, public_access="blob"),
    row("container.delete", CONTAINER, HELD, {}, "delete_container"),
    row("container.list", CONTAINER, NONE, {"prefix": "a b", "include": "metadata", "maxresults": 3},
        "list_containers", "a b", include_metadata=True, results_per_page=3),
    row("container.list_blobs", CONTAINER, NONE, {"prefix": "a b", "include": "versions,metadata", "maxresults": 3},
        "list_blobs", "a b", include=["versions", "metadata"], results_per_page=3),
    row("container.list_blobs", CONTAINER, NONE, {"delimiter": "/", "include": "tags"}, "walk_blobs", delimiter="/",
        include=["tags"]),
    row("directory.get_properties", DIRECTORY, NONE, {}, "get_directory_properties"),
    row("directory.get_properties", ROOT, NONE, {}, "get_directory_properties"),
    row("file.get", FILE, LEASED, {"range": "bytes=3-7"}, "download_file", 3, 5),
    row("file.create", FILE, NONE, {"size": 5, **_SENT, **_SMB}, "create_file", 5, metadata=META,
        content_settings=_SETTINGS, **_SMB_OF_SDK),
    row("file.delete", FILE, LEASED, {}, "delete_file"),
    row("file.put_range", FILE, LEASED, {"range": "bytes=3-5", "write": "update",
        "body_type": "application/octet-stream", "body": b"abc"}, "upload_range", b"abc", 3, 3),
    row("file.put_range", FILE, LEASED, {"range": "bytes=512-1023", "write": "clear"}, "clear_range", 512, 512),
    row("file.list_ranges", FILE, LEASED, {"range": "bytes=3-7", "prevsharesnapshot": MOMENT}, "list_ranges_diff",
        MOMENT, offset=3, length=5),
    row("file.list_ranges", FILE, NONE, {}, "list_ranges"),
    row("file.copy", FILE, NONE, {"copy_source": URL, "permission_copy_mode": "source"}, "start_copy_from_url", URL,
        permission_key="source"),
    row("file.abort_copy", FILE, LEASED, {"copyid": "c-1"}, "abort_copy", "c-1"),
    row("file.rename", FILE, NONE, {"rename_source": "https://acc.file.core.windows.net/docs/d/old%20name.",
        "replace_if_exists": "true", "source_lease_id": LEASE_ID, "destination_lease_id": OTHER_ID, "metadata": META,
        **_SMB}, "rename_file", FILE.address.path, overwrite=True, source_lease=LEASE_ID, destination_lease=OTHER_ID,
        metadata=META, **_SMB_OF_SDK, by=OLD_FILE),
    row("directory.rename", DIRECTORY, NONE,
        {"rename_source": "https://acc.file.core.windows.net/docs/d%2Fold%20name.", "replace_if_exists": "false",
        "destination_lease_id": OTHER_ID}, "rename_directory", DIRECTORY.address.path, overwrite=False,
        destination_lease=OTHER_ID, by=OLD_DIRECTORY),
    row("share.create", SHARE, NONE, {"metadata": META, "quota": 5, "access_tier": "Hot"}, "create_share",
        metadata=META, quota=5, access_tier="Hot"),
    row("share.list", SHARE, NONE, {"prefix": "a b", "include": "metadata,snapshots", "maxresults": 3}, "list_shares",
        "a b", include_metadata=True, include_snapshots=True, results_per_page=3),
    row("share.delete", SHARE, LEASED, {"delete_snapshots": "include"}, "delete_share", delete_snapshots=True),
    row("share.set_properties", SHARE, LEASED, {"quota": 5}, "set_share_properties", quota=5),
    row("share.get_acl", SHARE, LEASED, {}, "get_share_access_policy"),
    row("share.set_acl", SHARE, LEASED, {"body": b"<a/>"}, "set_share_access_policy", {"a": None}),
    row("share.get_stats", SHARE, LEASED, {}, "get_share_stats"),
    row("share.undelete", SHARE, NONE, {"deleted_share_name": "docs", "deleted_share_version": "01D6"},
        "undelete_share", "docs", "01D6"),
    row("share.create_permission", SHARE, NONE, {"body": json.dumps({"permission": "O:SY"}).encode()},
        "create_permission_for_share", "O:SY"),
    row("share.get_permission", SHARE, NONE, {"permission_key": "1*1"}, "get_permission_for_share", "1*1"),
    row("share.snapshot", SHARE, NONE, {"metadata": META}, "create_snapshot", metadata=META),
    row("directory.create", DIRECTORY, NONE, {"metadata": META}, "create_directory", metadata=META),
    row("directory.delete", DIRECTORY, NONE, {}, "delete_directory"),
    row("directory.list", DIRECTORY, NONE, {"prefix": "a b", "include": "timestamps,Etag", "maxresults": 3},
        "list_directories_and_files", "a b", include=["timestamps", "Etag"], include_extended_info=True,
        results_per_page=3),
    row("directory.list", ROOT, NONE, {"prefix": "a b", "include": "timestamps,Etag", "maxresults": 3},
        "list_directories_and_files", "a b", include=["timestamps", "Etag"], include_extended_info=True,
        results_per_page=3),
    row("directory.set_properties", DIRECTORY, NONE, _SMB, "set_http_headers", **_SMB_OF_SDK),
    row("directory.set_metadata", DIRECTORY, NONE, {"metadata": META}, "set_directory_metadata", META),
    row("file.set_properties", FILE, LEASED, {**_SENT_HEADERS, **_SMB}, "set_http_headers", _SETTINGS, **_SMB_OF_SDK),
    row("file.set_properties", FILE, LEASED, {"size": 7, "permission": "preserve"}, "resize_file", 7),
    row("file.list_handles", FILE, NONE, {"recursive": "true", "maxresults": 3}, "list_handles", recursive=True,
        results_per_page=3, by=DIRECTORY),
    row("file.force_close_handles", FILE, NONE, {"handle_id": "*", "recursive": "true"}, "close_all_handles",
        recursive=True, by=DIRECTORY),
    row("file.force_close_handles", FILE, NONE, {"handle_id": "7"}, "close_handle", "7"),
]  # fmt: skip
# The bodies of messages and tags are XML of our own, which keeps carriage returns.
_OWN_BODY = {
    queues.QUEUE_PUT_MESSAGE,
    blobs.BLOB_SET_TAGS,
    *(ALL[f"{noun}.set_acl"] for noun in ("container", "queue", "share", "table")),
}


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


def test_every_row_but_that_of_transactions_is_compared() -> None:
    """Each operation inside a transaction has a row of its own, which is."""
    assert set(ALL.values()) - {case.operation for case in CASES} == {ALL["table.batch"]}


_TRIED = thorough.choose_rows(CASES)


@cases("case", *_TRIED, ids=lambda case: case.operation.name)
def test_an_operation_is_sent_as_the_sdk_sends_it(case: Case) -> None:
    operation, target, given, by_sdk = case
    own_body = operation in _OWN_BODY
    ours = describe(record(lambda: call(operation, target, Limits(), **given)), own_body=own_body)
    theirs = describe(record(by_sdk), own_body=own_body)
    assert ours == theirs


@cases("case", *_TRIED, ids=lambda case: case.operation.name)
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
    for argument in ("encryption_key", "encryption_scope", "source_encryption_key", "source_encryption_algorithm"):
        taken = {name for name, row in rows.items() if argument in row.http.sends}
        assert taken == {name for name, source in asked.items() if re.search(rf"\b{argument}\b", source)}
