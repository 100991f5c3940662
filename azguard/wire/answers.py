"""What an operation sends and what its answer tells: names of azguard's → headers and parts of the query.

Source: the page of each operation in the REST reference.
"""

from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from azguard import times
from azguard.frozen import frozen
from azguard.wire.failures import Response, Unreadable
from azguard.wire.rows import Operation
from azguard.wire.signing import CLOCK_SKEW

METADATA = "x-ms-meta-"
_QUOTE = '"'
_QUERIES = (
    "prevsnapshot prevsharesnapshot copyid blocklisttype prefix delimiter marker maxresults include "
    "numofmessages visibilitytimeout messagettl popreceipt"
)
_OF_BLOBS = (
    "content_type content_encoding content_language content_disposition cache_control content_md5 "
    "sequence_number public_access"
)
_OF_FILES = "attributes permission permission_key permission_copy_mode rename_source"


def _name_all(names: str, prefix: str) -> dict[str, str]:
    return {name: prefix + name.replace("_", "-") for name in names.split()}


#: Where an argument goes, into a header or behind ``?`` into the query; the others have the name of their header.
ARGUMENTS = {
    **_name_all(_QUERIES, "?"),
    **_name_all(_OF_BLOBS, "x-ms-blob-"),
    **_name_all(_OF_FILES, "x-ms-file-"),
    "range_md5": "x-ms-range-get-content-md5",
    "size": "x-ms-blob-content-length",
    "sequence_action": "x-ms-sequence-number-action",
    "created": "x-ms-file-creation-time",
    "written": "x-ms-file-last-write-time",
    "changed": "x-ms-file-change-time",
    "replace_if_exists": "x-ms-file-rename-replace-if-exists",
    "body_type": "Content-Type",
    "block_id": "?blockid",
    "immutability_until": "x-ms-immutability-policy-until-date",
    "immutability_mode": "x-ms-immutability-policy-mode",
    "if_match": "If-Match",
    "quota": "x-ms-share-quota",
    "filter": "?$filter",
    "select": "?$select",
    "top": "?$top",
    "next_partition": "?NextPartitionKey",
    "next_row": "?NextRowKey",
    "next_table": "?NextTableName",
}

#: The first version of the service that takes an argument, or a value of it; all versions take the others.
SINCE = {
    "x-ms-rehydrate-priority": "2019-02-02",
    "x-ms-encryption-key": "2019-02-02",
    "x-ms-encryption-scope": "2019-07-07",
    **dict.fromkeys(("x-ms-tags", "x-ms-if-tags", "x-ms-source-if-tags"), "2019-12-12"),
    **dict.fromkeys(("?versionid", "?include=tags", "?include=versions"), "2019-12-12"),
    **dict.fromkeys((f"?include=deleted of List {each}" for each in ("Containers", "Shares")), "2019-12-12"),
    "?marker of Get Page Ranges": "2020-10-02",
    "x-ms-access-tier: Cold": "2021-12-02",
    **dict.fromkeys(("x-ms-allow-trailing-dot", "x-ms-file-request-intent"), "2022-11-02"),
    "x-ms-source-encryption-key": "2026-02-06",
}
#: The headers by which an answer says how a blob is encrypted, where that was asked for.
ENCRYPTED_BY = ("x-ms-encryption-key-sha256", "x-ms-encryption-scope")


class Field(NamedTuple):
    """Where a field of an answer stands, and how it is read."""

    #: Empty if only listings have it.
    header: str
    read: Callable[[str], Any] = str
    #: Of an item of a listing; empty if listings do not have it.
    element: str = ""


@lru_cache(maxsize=256)
def parse_date(text: str) -> datetime:
    """Parse a date of a header; those of a listing repeat.

    Raises:
        ValueError: it is none.
    """
    return times.read_http_date(text)


def parse_moment(text: str) -> datetime:
    """Parse a time of a file, which is in UTC, to microseconds.

    Raises:
        ValueError: it is none.
    """
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def read_etag(text: str) -> str | None:
    """Return an ETag in quotes, which some listings leave out; the weak one of an entity as it is."""
    if not text or text.startswith("W/"):
        return text or None
    return f'"{text.strip(_QUOTE)}"'


def read_flag(text: str) -> bool:
    """Return the value of a flag."""
    return text.lower() == "true"


def read_list(text: str) -> tuple[str, ...]:
    """Return the words that commas part."""
    return tuple(word.strip() for word in text.split(","))


@frozen
class LeaseFields:
    """What a lease on a resource is."""

    status: str | None
    state: str | None
    duration: str | None


@frozen
class CopyFields:
    """What a copy into a resource is; all None where no copy wrote it last."""

    id: str | None
    source: str | None
    status: str | None
    progress: str | None
    status_description: str | None
    completion_time: datetime | None


@frozen
class ContentFields:
    """What content is to be delivered as."""

    content_type: str | None
    content_encoding: str | None
    content_language: str | None
    content_disposition: str | None
    cache_control: str | None
    content_md5: bytes | None


#: Where each field of an answer stands, in its headers and in a listing. Those of ``GROUPS`` have several.
FIELDS = {
    "etag": Field("ETag", read_etag, "Etag"),
    "last_modified": Field("Last-Modified", parse_date, "Last-Modified"),
    "size": Field("Content-Length", int, "Content-Length"),
    "content_range": Field("Content-Range"),
    "content_type": Field("Content-Type", str, "Content-Type"),
    "content_encoding": Field("Content-Encoding", str, "Content-Encoding"),
    "content_language": Field("Content-Language", str, "Content-Language"),
    "content_disposition": Field("Content-Disposition", str, "Content-Disposition"),
    "cache_control": Field("Cache-Control", str, "Cache-Control"),
    "content_md5": Field("Content-MD5", b64decode, "Content-MD5"),
    "blob_content_md5": Field("x-ms-blob-content-md5", b64decode),
    "blob_type": Field("x-ms-blob-type", str, "BlobType"),
    "creation_time": Field("x-ms-creation-time", parse_date, "Creation-Time"),
    "version_id": Field("x-ms-version-id", str, "VersionId"),
    "is_current_version": Field("x-ms-is-current-version", read_flag, "IsCurrentVersion"),
    "snapshot": Field("x-ms-snapshot", str, "Snapshot"),
    "blob_tier_inferred": Field("x-ms-access-tier-inferred", read_flag),
    "archive_status": Field("x-ms-archive-status"),
    "rehydrate_priority": Field("x-ms-rehydrate-priority"),
    "tag_count": Field("x-ms-tag-count", int, "TagCount"),
    "is_append_blob_sealed": Field("x-ms-blob-sealed", read_flag),
    "page_blob_sequence_number": Field("x-ms-blob-sequence-number", int),
    "append_blob_committed_block_count": Field("x-ms-blob-committed-block-count", int),
    "append_offset": Field("x-ms-blob-append-offset", int),
    "lease_status": Field("x-ms-lease-status", str, "LeaseStatus"),
    "lease_state": Field("x-ms-lease-state", str, "LeaseState"),
    "lease_duration": Field("x-ms-lease-duration", str, "LeaseDuration"),
    "lease_time": Field("x-ms-lease-time", int),
    "copy_id": Field("x-ms-copy-id", str, "CopyId"),
    "copy_source": Field("x-ms-copy-source", str, "CopySource"),
    "copy_status": Field("x-ms-copy-status", str, "CopyStatus"),
    "copy_progress": Field("x-ms-copy-progress", str, "CopyProgress"),
    "copy_status_description": Field("x-ms-copy-status-description", str, "CopyStatusDescription"),
    "copy_completion_time": Field("x-ms-copy-completion-time", parse_date, "CopyCompletionTime"),
    "approximate_message_count": Field("x-ms-approximate-messages-count", int),
    "popreceipt": Field("x-ms-popreceipt"),
    "time_next_visible": Field("x-ms-time-next-visible", parse_date),
    "attributes": Field("x-ms-file-attributes", str, "Attributes"),
    "created": Field("x-ms-file-creation-time", parse_moment, "CreationTime"),
    "written": Field("x-ms-file-last-write-time", parse_moment, "LastWriteTime"),
    "changed": Field("x-ms-file-change-time", parse_moment, "ChangeTime"),
    "permission_key": Field("x-ms-file-permission-key", str, "PermissionKey"),
    "file_id": Field("x-ms-file-id", str, "FileId"),
    "parent_id": Field("x-ms-file-parent-id", str, "ParentId"),
    "quota": Field("x-ms-share-quota", int, "Quota"),
    "access_tier": Field("x-ms-access-tier", str, "AccessTier"),
    "protocols": Field("x-ms-enabled-protocols", read_list, "EnabledProtocols"),
    "root_squash": Field("x-ms-root-squash", str, "RootSquash"),
    "handles_closed": Field("x-ms-number-of-handles-closed", int),
    "handles_failed": Field("x-ms-number-of-handles-failed", int),
    "next_marker": Field("x-ms-marker"),
    "public_access": Field("x-ms-blob-public-access", str, "PublicAccess"),
    "has_immutability_policy": Field("x-ms-has-immutability-policy", read_flag, "HasImmutabilityPolicy"),
    "has_legal_hold": Field("x-ms-has-legal-hold", read_flag, "HasLegalHold"),
    "legal_hold": Field("x-ms-legal-hold", read_flag, "LegalHold"),
    "immutability_until": Field("x-ms-immutability-policy-until-date", parse_date, "ImmutabilityPolicyUntilDate"),
    "immutability_mode": Field("x-ms-immutability-policy-mode", str, "ImmutabilityPolicyMode"),
    "next_partition": Field("x-ms-continuation-NextPartitionKey"),
    "next_row": Field("x-ms-continuation-NextRowKey"),
    "next_table": Field("x-ms-continuation-NextTableName"),
    "deleted": Field("", read_flag, "Deleted"),
    "deleted_version": Field("", str, "Version"),
    "remaining_retention_days": Field("", int, "RemainingRetentionDays"),
    "resource_type": Field("", str, "ResourceType"),
    "handle_id": Field("", str, "HandleId"),
    "session_id": Field("", str, "SessionId"),
    "client": Field("", str, "ClientIp"),
    "client_name": Field("", str, "ClientName"),
    "opened": Field("", parse_date, "OpenTime"),
    "reconnected": Field("", parse_date, "LastReconnectTime"),
}


def _read(field: Field, told: Mapping[str, str]) -> Any:
    """Return a field of what the headers tell, by their names in lower case."""
    text = told.get(field.header.lower())
    return None if text is None else _parse(field, text)


def _parse(field: Field, text: str) -> Any:
    try:
        return field.read(text)
    except (ValueError, OverflowError) as error:
        raise Unreadable(f"{field.header} is {text!r}") from error


def _read_metadata(headers: Mapping[str, str]) -> dict[str, str]:
    start = len(METADATA)
    return {name[start:]: value for name, value in headers.items() if name.lower().startswith(METADATA)}


def _read_size(told: Mapping[str, str]) -> int | None:
    """Return the length of the whole, of which the answer may be a range."""
    _, slash, whole = told.get("content-range", "").partition("/")
    size: int | None = int(whole) if slash and whole.isdecimal() else _read(FIELDS["size"], told)
    return size


#: The fields that are several in one value, and how the names of those begin.
TOGETHER: Mapping[str, tuple[Any, str]] = {
    "lease": (LeaseFields, "lease_"),
    "copy": (CopyFields, "copy_"),
    "content_settings": (ContentFields, ""),
}


def _gather(kind: Any, prefix: str) -> Callable[[Mapping[str, str]], Any]:
    fields = [FIELDS[prefix + name] for name in kind.__match_args__]
    nothing, names = kind(*[None] * len(fields)), frozenset(each.header.lower() for each in fields)
    # Most answers tell none of them.
    return lambda told: nothing if names.isdisjoint(told) else kind(*(_read(each, told) for each in fields))


#: The fields that are read from several headers, besides the metadata, whose names are in the headers as they are.
GROUPS: Mapping[str, Callable[[Mapping[str, str]], Any]] = {
    "size": _read_size,
    **{name: _gather(*parts) for name, parts in TOGETHER.items()},
}


class Answer(Mapping[str, Any]):
    """A whole answer of the service: the fields that the row of its operation names, see ``FIELDS``.

    A field that the answer does not tell is None.

    Raises:
        Unreadable: a field is told in a form that is none.
    """

    __slots__ = ("_fields", "_operation", "_request", "content", "headers", "status")

    def __init__(self, operation: Operation, response: Response) -> None:
        self._operation = operation
        self._request, self.status, _, self.headers, self.content = response
        told = {name.lower(): value for name, value in self.headers.items()}
        groups, single = _sort_fields(operation.http.returns)
        self._fields = {
            name: None if (text := told.get(header)) is None else _parse(field, text) for name, header, field in single
        } | {name: GROUPS[name](told) for name in groups}
        if "metadata" in operation.http.returns:
            # Most answers have none.
            self._fields["metadata"] = _read_metadata(self.headers) if METADATA in "\n".join(told) else {}

    def __getattr__(self, name: str) -> Any:
        try:
            return self._fields[name]
        except KeyError:
            raise AttributeError(f"{self._operation.name} returns no {name}") from None

    def __getitem__(self, name: str) -> Any:
        return self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __bool__(self) -> bool:
        return True

    def but(self, **fields: Any) -> "Answer":
        """Return this answer with other values of some fields."""
        found = Answer(self._operation, Response(self._request, self.status, "", self.headers, self.content))
        found._fields |= fields
        return found

    def take_content(self) -> bytes:
        """Return the content and let go of it, so that whatever keeps the fields does not keep that."""
        content, self.content = self.content, b""
        return content

    @property
    def request_id(self) -> str | None:
        """Return the service's name of the exchange."""
        return self.headers.get("x-ms-request-id")

    @property
    def date(self) -> datetime | None:
        """Return the Date of the answer, in whole seconds; None if it has none, or one that is proved wrong.

        It can be that of a gateway with a wrong clock, so that it is good enough to be shown. See ``ServiceClock`` for
        what takes something from another because of its age.
        """
        date, sent = (times.find_http_date(each) for each in (self.headers.get("Date"), self._sent("x-ms-date")))
        if date is None or sent is None or not self._sent("Authorization").startswith("SharedKey"):
            return date
        return date if abs(date - sent) <= CLOCK_SKEW else None

    def _sent(self, name: str) -> str:
        return self._request.headers.get(name, "")


@lru_cache(maxsize=256)
def _sort_fields(names: frozenset[str]) -> tuple[list[str], list[tuple[str, str, Field]]]:
    """Return the fields that are read from several headers, and the others, each with its header in lower case."""
    groups = [name for name in names if name in GROUPS]
    single = names.difference(GROUPS, ["metadata"])
    return groups, [(name, FIELDS[name].header.lower(), FIELDS[name]) for name in single]


def build_headers(operation: Operation, given: Mapping[str, Any]) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Return the headers and the query of what is given; None is not sent.

    Raises:
        TypeError: the row of the operation does not send it.
    """
    headers: dict[str, str] = {}
    query: list[tuple[str, str]] = []
    for name, value in given.items():
        if name not in operation.http.sends:
            raise TypeError(f"{operation.name} sends no {name}")
        if value is None:
            continue
        if name == "metadata":
            headers |= {f"{METADATA}{key}": text for key, text in value.items()}
        elif (place := ARGUMENTS.get(name) or f"x-ms-{name.replace('_', '-')}").startswith("?"):
            query.append((place[1:], str(value)))
        else:
            headers[_name_header(operation, place)] = _spell(value)
    return headers, query


def _name_header(operation: Operation, header: str) -> str:
    """Return a header by its name for files, which is that for blobs without the word."""
    return header.replace("x-ms-blob-", "x-ms-") if operation.noun == "file" else header


def _spell(value: object) -> str:
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}0Z"
    return str(value)
