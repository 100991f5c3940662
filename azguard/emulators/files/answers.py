"""Answers as the service writes them: times, ETags, XML and errors."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import formatdate
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from azguard.emulators.files.errors import ServiceError
from azguard.emulators.files.wire import FileAnswer

_EPOCH_TICKS = 621_355_968_000_000_000
_TICKS_PER_SECOND = 10_000_000
# So many entries, as the service.
_LARGEST_PAGE = 5000
# What a name may have, and a document of XML may not.
_NO_XML = "\ufffe\uffff"


def to_ticks(seconds: float) -> int:
    """Return a time as the service counts: tenths of a microsecond since the year 1."""
    return _EPOCH_TICKS + int(seconds * _TICKS_PER_SECOND)


def format_etag(ticks: int) -> str:
    """Return an ETag as the service writes it, quoted."""
    return f'"0x{ticks:X}"'


def format_date(seconds: float) -> str:
    """Return a time for ``Last-Modified`` and ``Date``."""
    return formatdate(seconds, usegmt=True)


def format_time(seconds: float) -> str:
    """Return a time with seven digits of a second, as file times and snapshots have it."""
    return format_ticks(to_ticks(seconds))


def format_ticks(ticks: int) -> str:
    """Return a time that is counted as the service does: seconds as a float would not tell all of them apart."""
    whole = datetime.fromtimestamp((ticks - _EPOCH_TICKS) // _TICKS_PER_SECOND, UTC)
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{ticks % _TICKS_PER_SECOND:07d}Z"


def version_headers(etag: str, modified: float) -> dict[str, str]:
    """Return the headers that name a version."""
    return {"ETag": etag, "Last-Modified": format_date(modified)}


def metadata_headers(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of metadata."""
    return {f"x-ms-meta-{name}": value for name, value in metadata.items()}


def element(tag: str, *content: str, **attributes: str) -> str:
    """Return an element of XML; its content is XML already."""
    words = "".join(f" {name}={quoteattr(value)}" for name, value in attributes.items())
    inside = "".join(content)
    return f"<{tag}{words}>{inside}</{tag}>" if inside else f"<{tag}{words} />"


def text(tag: str, value: object) -> str:
    """Return an element that holds a text."""
    return element(tag, escape(str(value)))


def name_text(tag: str, name: str) -> str:
    """Return an element that holds a name, percent-encoded if XML has no place for its characters."""
    if any(each in _NO_XML for each in name):
        return element(tag, quote(name), Encoded="true")
    return text(tag, name)


def texts(values: Mapping[str, object]) -> str:
    """Return an element for each value."""
    return "".join(text(tag, value) for tag, value in values.items())


def respond_xml(root: str, headers: Mapping[str, str] | None = None, status: int = 200) -> FileAnswer:
    """Return an answer with a document."""
    body = f'<?xml version="1.0" encoding="utf-8"?>{root}'.encode()
    return FileAnswer(status, {"Content-Type": "application/xml", **(headers or {})}, body)


def respond_error(error: ServiceError, request_id: str, now: float, *, head: bool) -> FileAnswer:
    """Return the answer to a request that is refused; one to HEAD has no body."""
    headers = {"x-ms-error-code": error.code, **error.headers}
    if head:
        return FileAnswer(error.status, headers)
    message = f"{error.message}\nRequestId:{request_id}\nTime:{format_time(now)}"
    detail = text("AuthenticationErrorDetail", error.detail) if error.detail else ""
    root = element("Error", text("Code", error.code), text("Message", message), detail)
    return respond_xml(root, headers, error.status)


def take_page(names: Iterable[str], marker: str | None, limit: str | None) -> tuple[list[str], str]:
    """Return those names, in order, that a page of a listing has, and the marker of the next one, empty at the end.

    Raises:
        ServiceError: the limit is no number from 1 on.
    """
    count = _LARGEST_PAGE
    if limit is not None:
        if not limit.isdecimal() or not int(limit):
            raise ServiceError("OutOfRangeInput")
        count = min(int(limit), _LARGEST_PAGE)
    left = [name for name in sorted(names) if not marker or name >= marker]
    return left[:count], left[count] if len(left) > count else ""
