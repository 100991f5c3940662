"""Answers as the service writes them: times, ETags, XML and errors with their status.

Source: https://learn.microsoft.com/rest/api/storageservices/file-service-error-codes
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import formatdate
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

#: Each code that the emulator answers with: the status, and the message.
CODES: Mapping[str, tuple[int, str]] = {
    "AuthenticationFailed": (
        403,
        "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly.",
    ),
    "AuthorizationPermissionMismatch": (
        403,
        "This request is not authorized to perform this operation using this permission.",
    ),
    "AuthorizationResourceTypeMismatch": (
        403,
        "This request is not authorized to perform this operation using this resource type.",
    ),
    "AuthorizationServiceMismatch": (
        403,
        "This request is not authorized to perform this operation using this service.",
    ),
    "CannotDeleteFileOrDirectory": (
        409,
        "The file or directory could not be deleted because it is in use by an SMB client.",
    ),
    "CannotVerifyCopySource": (
        409,
        "The source request body for copy source does not match requested length to write on target.",
    ),
    "ClientCacheFlushDelay": (
        408,
        "The specified resource state could not be flushed from an SMB client in the specified time.",
    ),
    "CopyIdMismatch": (409, "Specified copy ID did not match the copy ID for the pending copy operation."),
    "DeleteShareWhenSnapshotLeased": (
        409,
        "Unable to delete share because one or more share snapshots have active leases.",
    ),
    "DeletePending": (409, "The specified resource is marked for deletion by an SMB client."),
    "DirectoryNotEmpty": (409, "The specified directory is not empty."),
    "FileGenerationMismatch": (409, "The file has been recreated since the previous snapshot was taken."),
    "FileInvalidPermission": (400, "The specified file permission is not valid."),
    "FileInvalidPermissionKey": (400, "The specified file permission key does not exist in the share."),
    "FileLockConflict": (409, "A portion of the specified file is locked by an SMB client."),
    "FileTooLarge": (400, "The specified file size is larger than the largest file that is allowed."),
    "InternalError": (500, "The server encountered an internal error. Please retry the request."),
    "InvalidFileOrDirectoryPathName": (400, "The path of the file or directory is too long."),
    "InvalidHeaderValue": (400, "The value for one of the HTTP headers is not in the correct format."),
    "InvalidInput": (400, "One of the request inputs is not valid."),
    "InvalidMetadata": (400, "The specified metadata is invalid. It includes characters that are not permitted."),
    "InvalidQueryParameterValue": (
        400,
        "Value for one of the query parameters specified in the request URI is invalid.",
    ),
    "InvalidRange": (416, "The range specified is invalid for the current size of the resource."),
    "InvalidResourceName": (400, "The specified resource name contains invalid characters."),
    "InvalidXmlDocument": (400, "XML specified is not syntactically valid."),
    "LeaseAlreadyPresent": (409, "There is already a lease present."),
    "LeaseIdMismatchWithContainerOperation": (
        412,
        "The lease ID specified did not match the lease ID for the file share.",
    ),
    "LeaseIdMismatchWithFileOperation": (412, "The lease ID specified did not match the lease ID for the file."),
    "LeaseIdMismatchWithLeaseOperation": (
        409,
        "The lease ID specified did not match the lease ID for the file, file share or share snapshot.",
    ),
    "LeaseIdMissing": (
        412,
        "There is currently a lease on the resource and no lease ID was specified in the request.",
    ),
    "LeaseIsBreakingAndCannotBeAcquired": (409, "The lease ID matched, but the lease is currently in breaking state."),
    "LeaseIsBreakingAndCannotBeChanged": (409, "The lease ID matched, but the lease is currently in breaking state."),
    "LeaseIsBrokenAndCannotBeRenewed": (409, "The lease ID matched, but the lease has been broken explicitly."),
    "LeaseLost": (412, "A lease ID was specified, but the lease for the file or file share has expired."),
    "LeaseNotPresentWithContainerOperation": (412, "There is currently no lease on the file share."),
    "LeaseNotPresentWithFileOperation": (412, "There is currently no lease on the file."),
    "LeaseNotPresentWithLeaseOperation": (
        409,
        "There is currently no lease on the file, file share or share snapshot.",
    ),
    "MetadataTooLarge": (400, "The metadata specified exceeds the maximum permissible limit (8KB)."),
    "Md5Mismatch": (400, "The MD5 value specified in the request did not match with the MD5 calculated by the server."),
    "MissingContentLengthHeader": (411, "The Content-Length header was not specified."),
    "MissingRequiredHeader": (400, "An HTTP header that's mandatory for this request is not specified."),
    "NoPendingCopyOperation": (409, "There is currently no pending copy operation."),
    "NoAuthenticationInformation": (
        401,
        "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.",
    ),
    "OutOfRangeInput": (400, "One of the request inputs is out of range."),
    "ParentNotFound": (404, "The specified parent path does not exist."),
    "PendingCopyOperation": (409, "There is currently a pending copy operation."),
    "ReadOnlyAttribute": (412, "The specified resource is read-only and cannot be modified at this time."),
    "RequestBodyTooLarge": (413, "The request body is too large and exceeds the maximum permissible limit."),
    "ResourceAlreadyExists": (409, "The specified resource already exists."),
    "ResourceNotFound": (404, "The specified resource does not exist."),
    "ResourceTypeMismatch": (409, "The specified resource type does not match the type of the existing resource."),
    "ShareAlreadyExists": (409, "The specified share already exists."),
    "ShareHasSnapshots": (409, "The share has snapshots and the operation requires no snapshots."),
    "ShareNotFound": (404, "The specified share does not exist."),
    # Not in that table: https://github.com/Azure/azure-storage-azcopy/pull/2895
    "ShareSizeLimitReached": (403, "The share has reached its limit of size."),
    "ShareSnapshotCountExceeded": (409, "The maximum number of share snapshots has been reached."),
    "ShareSnapshotOperationNotSupported": (400, "Share snapshot of the share is not supported for this operation."),
    "SharingViolation": (409, "The specified resource may be in use by an SMB client."),
    "UnsupportedHeader": (400, "One of the HTTP headers specified in the request is not supported."),
    "UnsupportedHttpVerb": (405, "The resource doesn't support specified Http Verb."),
}
_EPOCH_TICKS = 621_355_968_000_000_000
_TICKS_PER_SECOND = 10_000_000
# So many entries, as the service.
_LARGEST_PAGE = 5000
# What a name may have, and a document of XML may not.
_NO_XML = "\ufffe\uffff"


@dataclass(frozen=True)
class FileAnswer:
    """What is answered."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    #: The body in parts, where it is long; its length stands in the headers.
    stream: Iterable[bytes] | None = None


class ServiceError(Exception):
    """A request is refused, with an error code of the service."""

    def __init__(self, code: str, *, status: int | None = None, detail: str = "", **headers: str) -> None:
        self.code = code
        #: Why a request was not authenticated; empty for other errors.
        self.detail = detail
        known, self.message = CODES[code]
        #: The status of the answer; some codes come with several.
        self.status = status or known
        #: Headers of the answer, by their names with underscores.
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        super().__init__(code)


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
    """Return those names, in order, that a page of a listing has, and the marker of the next one, empty at the end."""
    count = _LARGEST_PAGE
    if limit is not None:
        if not limit.isdecimal() or not int(limit):
            raise ServiceError("OutOfRangeInput")
        count = min(int(limit), _LARGEST_PAGE)
    left = [name for name in sorted(names) if not marker or name >= marker]
    return left[:count], left[count] if len(left) > count else ""
