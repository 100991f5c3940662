"""The source of a copy on another server: what that says of it, and its content."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException
from types import MappingProxyType
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, build_opener
from urllib.request import Request as UrlRequest

from azguard.emulators.files.answers import ServiceError

#: What goes wrong while a source is read.
UNREADABLE = (URLError, OSError, HTTPException)
_META = "x-ms-meta-"
_NOTHING: Mapping[str, str] = MappingProxyType({})
_ANSWER_SECONDS = 30
_PART = 1024 * 1024
# The answers of a source that a refusal passes on.
_TOLD = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)
_CONTENT = (
    "Content-Type", "Content-Encoding", "Content-Language", "Cache-Control", "Content-MD5", "Content-Disposition",
)  # fmt: skip


class _NoRedirection(HTTPRedirectHandler):
    """Follows no redirection: another host would get the credential that the source is read with."""

    def redirect_request(self, *_: Any) -> None:
        return None


@dataclass(frozen=True)
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
        """Return whether it is still the same version."""
        return look(self.url, self.authorize).etag == self.etag


def look(url: str, authorize: Callable[[str], Mapping[str, str]]) -> ForeignSource:
    """Return what a server says of a source."""
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
        content={name: found[name.lower()] for name in _CONTENT if name.lower() in found},
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
