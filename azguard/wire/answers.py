"""What an operation sends and what its answer tells: names of azguard's → headers and parts of the query.

Source: the page of each operation in the REST reference.
"""

from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, NamedTuple

from azguard.wire.failures import Unreadable
from azguard.wire.rows import Operation

METADATA = "x-ms-meta-"
#: Where each argument goes: into a header, or behind ``?`` into the query.
ARGUMENTS = {
    "range": "x-ms-range",
    "content_type": "x-ms-blob-content-type",
    "content_encoding": "x-ms-blob-content-encoding",
    "content_language": "x-ms-blob-content-language",
    "content_disposition": "x-ms-blob-content-disposition",
    "cache_control": "x-ms-blob-cache-control",
    "content_md5": "x-ms-blob-content-md5",
    "access_tier": "x-ms-access-tier",
    "rehydrate_priority": "x-ms-rehydrate-priority",
    "tags": "x-ms-tags",
    "body_type": "Content-Type",
    "body_md5": "Content-MD5",
    "block_id": "?blockid",
    "blocklisttype": "?blocklisttype",
    "prefix": "?prefix",
    "delimiter": "?delimiter",
    "marker": "?marker",
    "maxresults": "?maxresults",
    "include": "?include",
    "lease_action": "x-ms-lease-action",
    "lease_duration": "x-ms-lease-duration",
    "lease_break_period": "x-ms-lease-break-period",
    "proposed_lease_id": "x-ms-proposed-lease-id",
    "delete_snapshots": "x-ms-delete-snapshots",
}


class Field(NamedTuple):
    """Where a field of an answer stands, and how it is read."""

    header: str
    read: Callable[[str], Any] = str


@lru_cache(maxsize=256)
def parse_date(text: str) -> datetime:
    """Parse a date of a header; those of a listing repeat.

    Raises:
        ValueError: it is none.
    """
    found = parsedate_to_datetime(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _read_flag(text: str) -> bool:
    return text.lower() == "true"


FIELDS = {
    "etag": Field("ETag"),
    "last_modified": Field("Last-Modified", parse_date),
    "size": Field("Content-Length", int),
    "content_range": Field("Content-Range"),
    "content_type": Field("Content-Type"),
    "content_encoding": Field("Content-Encoding"),
    "content_language": Field("Content-Language"),
    "content_disposition": Field("Content-Disposition"),
    "cache_control": Field("Cache-Control"),
    "content_md5": Field("Content-MD5", b64decode),
    "blob_content_md5": Field("x-ms-blob-content-md5", b64decode),
    "blob_type": Field("x-ms-blob-type"),
    "creation_time": Field("x-ms-creation-time", parse_date),
    "version_id": Field("x-ms-version-id"),
    "is_current_version": Field("x-ms-is-current-version", _read_flag),
    "snapshot": Field("x-ms-snapshot"),
    "access_tier": Field("x-ms-access-tier"),
    "access_tier_inferred": Field("x-ms-access-tier-inferred", _read_flag),
    "archive_status": Field("x-ms-archive-status"),
    "rehydrate_priority": Field("x-ms-rehydrate-priority"),
    "tag_count": Field("x-ms-tag-count", int),
    "is_sealed": Field("x-ms-blob-sealed", _read_flag),
    "sequence_number": Field("x-ms-blob-sequence-number", int),
    "committed_blocks": Field("x-ms-blob-committed-block-count", int),
    "append_offset": Field("x-ms-blob-append-offset", int),
    "lease_id": Field("x-ms-lease-id"),
    "lease_time": Field("x-ms-lease-time", int),
    "lease_status": Field("x-ms-lease-status"),
    "lease_state": Field("x-ms-lease-state"),
    "lease_duration": Field("x-ms-lease-duration"),
    "copy_id": Field("x-ms-copy-id"),
    "copy_source": Field("x-ms-copy-source"),
    "copy_status": Field("x-ms-copy-status"),
    "copy_progress": Field("x-ms-copy-progress"),
    "copy_description": Field("x-ms-copy-status-description"),
    "copy_completed": Field("x-ms-copy-completion-time", parse_date),
    "delete_type_permanent": Field("x-ms-delete-type-permanent", _read_flag),
    "date": Field("Date", parse_date),
}


class Answer:
    """A whole answer of the service: the fields that the row of its operation names, see ``FIELDS``.

    A field that the answer does not tell is None.

    Raises:
        Unreadable: a field is told in a form that is none.
    """

    __slots__ = ("_fields", "_operation", "content", "headers", "status")

    def __init__(self, operation: Operation, status: int, headers: Mapping[str, str], content: bytes) -> None:
        self._operation = operation
        self.status = status
        #: Their names in any case.
        self.headers = headers
        self.content = content
        returned = frozenset() if operation.http is None else operation.http.returns
        self._fields = {name: _read_field(name, headers) for name in returned}

    def __getattr__(self, name: str) -> Any:
        try:
            return self._fields[name]
        except KeyError:
            raise AttributeError(f"{self._operation.name} returns no {name}") from None

    @property
    def request_id(self) -> str | None:
        """Return the service's name of the exchange."""
        return self.headers.get("x-ms-request-id")


def _read_field(name: str, headers: Mapping[str, str]) -> Any:
    if name == "metadata":
        start = len(METADATA)
        return {key[start:]: value for key, value in headers.items() if key.lower().startswith(METADATA)}
    field = FIELDS[name]
    text = headers.get(field.header)
    try:
        return None if text is None else field.read(text)
    except (ValueError, OverflowError) as error:
        raise Unreadable(f"{field.header} is {text!r}") from error


def build_headers(operation: Operation, given: Mapping[str, Any]) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Return the headers and the query of what is given; None is not sent.

    Raises:
        TypeError: the row of the operation does not send it.
    """
    http = operation.http
    headers: dict[str, str] = {}
    query: list[tuple[str, str]] = []
    for name, value in given.items():
        if http is None or name not in http.sends:
            raise TypeError(f"{operation.name} sends no {name}")
        if value is None:
            continue
        if name == "metadata":
            headers |= {f"{METADATA}{key}": text for key, text in value.items()}
        elif (place := ARGUMENTS[name]).startswith("?"):
            query.append((place[1:], str(value)))
        else:
            headers[place] = str(value)
    return headers, query
