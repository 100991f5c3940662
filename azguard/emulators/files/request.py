"""A request as the emulator reads it, with its headers; and the source of a copy on another server, which it asks."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from http.client import HTTPException
from types import MappingProxyType
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit
from urllib.request import HTTPRedirectHandler, build_opener
from urllib.request import Request as UrlRequest

from azguard.emulators.files.answers import ServiceError
from azguard.frozen import frozen

#: What goes wrong while a source is read.
UNREADABLE = (URLError, OSError, HTTPException)

_NOTHING: Mapping[str, str] = MappingProxyType({})
_ANSWER_SECONDS = 30
_PART = 1024 * 1024
# The answers of a source that a refusal passes on.
_TOLD = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)
#: The headers that set content properties, and their names in answers.
CONTENT = {
    "x-ms-content-type": "Content-Type",
    "x-ms-content-encoding": "Content-Encoding",
    "x-ms-content-language": "Content-Language",
    "x-ms-cache-control": "Cache-Control",
    "x-ms-content-md5": "Content-MD5",
    "x-ms-content-disposition": "Content-Disposition",
}
#: The same, as a SAS sets them for the answer.
_OVERRIDES = {
    "rscc": "Cache-Control",
    "rscd": "Content-Disposition",
    "rsce": "Content-Encoding",
    "rscl": "Content-Language",
    "rsct": "Content-Type",
}
# Of names and values together.
_METADATA_BYTES = 8192
_RANGE = re.compile(r"bytes=(\d+)-(\d*)\Z")
_META = "x-ms-meta-"
#: Without this header, the service takes the dots at the end of names away; so it does for the source of a copy.
KEEP_DOTS = "x-ms-allow-trailing-dot"
KEEP_SOURCE_DOTS = "x-ms-source-allow-trailing-dot"


class _NoRedirection(HTTPRedirectHandler):
    """Follows no redirection: another host would get the credential that the source is read with."""

    def redirect_request(self, *_: Any) -> None:
        return None


@frozen
class ForeignSource:
    """A source on another server, as its properties were when the copy began."""

    url: str
    #: Returns the headers that authorize a request with this method.
    authorize: Callable[[str], Mapping[str, str]]
    etag: str
    size: int
    #: The headers that tell of the content, by their names in answers.
    content: Mapping[str, str]
    metadata: Mapping[str, str]
    #: The headers that tell of attributes and times, in lower case.
    smb: Mapping[str, str]

    def read(self) -> Iterator[bytes]:
        """Yield the content."""
        with _open(self.url, "GET", self.authorize) as answer:
            while part := answer.read1(_PART):
                yield part

    def read_range(self, start: int, end: int) -> bytes:
        """Return the content from ``start`` up to ``end``, or up to its end."""
        with _open(self.url, "GET", self.authorize, {"Range": f"bytes={start}-{end - 1}"}) as answer:
            # Some servers know no ranges.
            skipped = 0 if answer.status == HTTPStatus.PARTIAL_CONTENT else start
            answer.read(skipped)
            content: bytes = answer.read(end - start)
        return content

    def is_unchanged(self) -> bool:
        return look_at_source(self.url, self.authorize).etag == self.etag


def look_at_source(url: str, authorize: Callable[[str], Mapping[str, str]]) -> ForeignSource:
    """Return the facts that a server tells about a source."""
    try:
        with _open(url, "HEAD", authorize) as answer:
            headers = list(answer.headers.items())
    except HTTPError as error:
        status = error.code if error.code in _TOLD else HTTPStatus.BAD_REQUEST
        raise refuse_source(int(status), error.headers.get("x-ms-error-code", "")) from None
    except UNREADABLE:
        raise refuse_source(int(HTTPStatus.BAD_REQUEST)) from None
    found = {name.lower(): value for name, value in headers}
    return ForeignSource(
        url=url,
        authorize=authorize,
        etag=found.get("etag", ""),
        size=int(found.get("content-length", 0)),
        content={name: found[name.lower()] for name in CONTENT.values() if name.lower() in found},
        metadata={name[len(_META) :]: value for name, value in headers if name.lower().startswith(_META)},
        smb={name: value for name, value in found.items() if name.startswith("x-ms-file-")},
    )


def refuse_source(status: int, code: str = "") -> ServiceError:
    """Return the refusal of a request whose source answers so."""
    told = {"x_ms_copy_source_status_code": str(status), "x_ms_copy_source_error_code": code} if code else {}
    return ServiceError("CannotVerifyCopySource", status=status, **told)


def _open(
    url: str, method: str, authorize: Callable[[str], Mapping[str, str]], more: Mapping[str, str] = _NOTHING
) -> Any:
    asked = UrlRequest(url, headers={**authorize(method), **more}, method=method)  # noqa: S310  # copies take http and https only
    return build_opener(_NoRedirection).open(asked, timeout=_ANSWER_SECONDS)


@frozen
class FileRequest:
    """One request; header and query names are in lower case."""

    method: str
    #: The path as it was sent, percent-encoded.
    raw_path: str
    #: The query as it was sent: names and decoded values.
    raw_query: tuple[tuple[str, str], ...]
    account: str
    #: Empty for a request to the account.
    share: str
    #: The path in the share, decoded, without slashes at its ends; empty for the root directory.
    path: str
    #: The same, with the dots at the end of names that the service takes away unless it is told to keep them.
    path_as_sent: str
    headers: Mapping[str, str]
    #: The metadata in its headers, with names as they were sent.
    metadata: Mapping[str, str]
    body: bytes = b""
    #: The host and port that the client named.
    host: str = ""
    #: The source of a copy, if it is on another server.
    foreign: ForeignSource | None = None

    @property
    def query(self) -> Mapping[str, str]:
        """Return the query; the first of equal names counts."""
        return {name.lower(): value for name, value in reversed(self.raw_query)}

    @property
    def lease_id(self) -> str | None:
        return self.headers.get("x-ms-lease-id")

    def flag(self, name: str) -> bool:
        return self.headers.get(name, "").lower() == "true"

    def require(self, name: str) -> str:
        """Return a header that must be there.

        Raises:
            ServiceError: it is not.
        """
        found = self.headers.get(name)
        if not found:
            raise ServiceError("MissingRequiredHeader")
        return found


def split_target(target: str, accounts: Iterable[str], host: str) -> tuple[str, str, str]:
    """Return account, share and decoded path of a target, in path style or with the account as the host's name."""
    path, _, _ = target.partition("?")
    parts = path.lstrip("/").split("/", 1)
    first = unquote(parts[0])
    if first in accounts:
        rest = parts[1] if len(parts) > 1 else ""
        account = first
    else:
        rest = path.lstrip("/")
        account = host.partition(":")[0].partition(".")[0]
    share, _, inside = rest.partition("/")
    return account, unquote(share), unquote(inside)


def read_request(
    method: str, target: str, raw_headers: Iterable[tuple[str, str]], body: bytes, accounts: Iterable[str]
) -> FileRequest:
    """Return a request from the parts of its head and its body."""
    pairs = list(raw_headers)
    headers = {name.lower(): value.strip() for name, value in reversed(pairs)}
    metadata = {name[len(_META) :]: value for name, value in pairs if name.lower().startswith(_META)}
    host = headers.get("host", "")
    account, share, inside = split_target(target, accounts, host)
    path = _clean(inside)
    keeps_dots = headers.get(KEEP_DOTS, "").lower() == "true"
    raw_path, _, query = target.partition("?")
    return FileRequest(
        method=method,
        raw_path=raw_path,
        raw_query=tuple(parse_qsl(query, keep_blank_values=True)),
        account=account,
        share=share,
        path=path if keeps_dots else _drop_dots(path),
        path_as_sent=path,
        headers=headers,
        metadata=metadata,
        body=body,
        host=host,
    )


def _split_url(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        raise ServiceError("InvalidHeaderValue") from None


def is_here(request: FileRequest, url: str) -> bool:
    """Return whether a URL, or a path, is one of the account that a request is for, on this host or in the cloud.

    ``az`` names the account in the cloud, whatever its endpoint is.
    """
    parts = _split_url(url)
    if parts.netloc.startswith(f"{request.account}.file."):
        return True
    begins = f"/{request.account}/"
    return parts.netloc in ("", request.host) and parts.path.startswith(begins) == request.raw_path.startswith(begins)


def ask_source(request: FileRequest, url: str) -> FileRequest:
    """Return a read of what a request names as its source, in the same account."""
    parts = _split_url(url)
    head = [("Host", parts.netloc or request.host), (KEEP_DOTS, request.headers.get(KEEP_SOURCE_DOTS, ""))]
    return read_request("GET", f"{parts.path}?{parts.query}", head, b"", [request.account])


def _drop_dots(path: str) -> str:
    names = [name.rstrip(".") for name in path.split("/")]
    if path and not all(names):
        raise ServiceError("InvalidResourceName")
    return "/".join(names)


def _clean(path: str) -> str:
    parts = [part for part in path.split("/") if part]
    if any(part in (".", "..") for part in parts):
        raise ServiceError("InvalidResourceName")
    return "/".join(parts)


def read_content(request: FileRequest) -> dict[str, str]:
    """Return the content properties that a request sets, by their names in answers."""
    headers = request.headers
    return {shown: headers[name] for name, shown in CONTENT.items() if headers.get(name)}


def read_overrides(request: FileRequest) -> dict[str, str]:
    """Return the content properties that a SAS sets for the answer, by their names there."""
    return {shown: request.query[name] for name, shown in _OVERRIDES.items() if request.query.get(name)}


def check_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return metadata that may be kept."""
    names = [name.lower() for name in metadata]
    if not all(name.isidentifier() for name in names):
        raise ServiceError("InvalidMetadata")
    if len(set(names)) < len(names):
        raise ServiceError("InvalidMetadata")
    if sum(len(name) + len(value) for name, value in metadata.items()) > _METADATA_BYTES:
        raise ServiceError("MetadataTooLarge")
    return dict(metadata)


def read_range(request: FileRequest) -> tuple[int, int | None] | None:
    """Return the first byte of a request's range and the one past its end, None if it is open; None if there is none.

    Raises:
        ServiceError: it is not valid.
    """
    value = request.headers.get("x-ms-range") or request.headers.get("range")
    if value is None:
        return None
    found = _RANGE.match(value)
    if found is None:
        raise ServiceError("InvalidHeaderValue")
    start = int(found[1])
    if not found[2]:
        return start, None
    end = int(found[2]) + 1
    if end <= start:
        raise ServiceError("InvalidHeaderValue")
    return start, end
