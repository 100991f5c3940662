"""Answers as the service writes them: times, ETags, XML and errors with their status.

Source: https://learn.microsoft.com/rest/api/storageservices/file-service-error-codes
"""

from collections.abc import Iterable, Mapping
from dataclasses import field
from datetime import UTC, datetime
from email.utils import formatdate
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from azguard.frozen import frozen

# The message of each code, by the status.
_MESSAGES: Mapping[int, Mapping[str, str]] = {
    400: {
        "FileInvalidPermission": "The specified file permission is not valid.",
        "FileInvalidPermissionKey": "The specified file permission key does not exist in the share.",
        "FileTooLarge": "The specified file size is larger than the largest file that is allowed.",
        "InvalidFileOrDirectoryPathName": "The path of the file or directory is too long.",
        "InvalidHeaderValue": "The value for one of the HTTP headers is not in the correct format.",
        "InvalidInput": "One of the request inputs is not valid.",
        "InvalidMetadata": "The specified metadata is invalid. It includes characters that are not permitted.",
        "InvalidQueryParameterValue": "Value for one of the query parameters specified in the request URI is invalid.",
        "InvalidResourceName": "The specified resource name contains invalid characters.",
        "InvalidXmlDocument": "XML specified is not syntactically valid.",
        "MetadataTooLarge": "The metadata specified exceeds the maximum permissible limit (8KB).",
        "Md5Mismatch": "The MD5 value specified in the request did not match with the MD5 calculated by the server.",
        "MissingRequiredHeader": "An HTTP header that's mandatory for this request is not specified.",
        "OutOfRangeInput": "One of the request inputs is out of range.",
        "ShareSnapshotOperationNotSupported": "Share snapshot of the share is not supported for this operation.",
        "UnsupportedHeader": "One of the HTTP headers specified in the request is not supported.",
    },
    401: {
        "NoAuthenticationInformation": (
            "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."
        ),
    },
    403: {
        "AuthenticationFailed": (
            "Server failed to authenticate the request. Make sure the value of Authorization header is "
            "formed correctly."
        ),
        "AuthorizationPermissionMismatch": (
            "This request is not authorized to perform this operation using this permission."
        ),
        "AuthorizationResourceTypeMismatch": (
            "This request is not authorized to perform this operation using this resource type."
        ),
        "AuthorizationServiceMismatch": "This request is not authorized to perform this operation using this service.",
        # Not in that table: https://github.com/Azure/azure-storage-azcopy/pull/2895
        "ShareSizeLimitReached": "The share has reached its limit of size.",
    },
    404: {
        "ParentNotFound": "The specified parent path does not exist.",
        "ResourceNotFound": "The specified resource does not exist.",
        "ShareNotFound": "The specified share does not exist.",
    },
    405: {
        "UnsupportedHttpVerb": "The resource doesn't support specified Http Verb.",
    },
    408: {
        "ClientCacheFlushDelay": (
            "The specified resource state could not be flushed from an SMB client in the specified time."
        ),
    },
    409: {
        "CannotDeleteFileOrDirectory": (
            "The file or directory could not be deleted because it is in use by an SMB client."
        ),
        "CannotVerifyCopySource": (
            "The source request body for copy source does not match requested length to write on target."
        ),
        "CopyIdMismatch": "Specified copy ID did not match the copy ID for the pending copy operation.",
        "DeleteShareWhenSnapshotLeased": (
            "Unable to delete share because one or more share snapshots have active leases."
        ),
        "DeletePending": "The specified resource is marked for deletion by an SMB client.",
        "DirectoryNotEmpty": "The specified directory is not empty.",
        "FileGenerationMismatch": "The file has been recreated since the previous snapshot was taken.",
        "FileLockConflict": "A portion of the specified file is locked by an SMB client.",
        "LeaseAlreadyPresent": "There is already a lease present.",
        "LeaseIdMismatchWithLeaseOperation": (
            "The lease ID specified did not match the lease ID for the file, file share or share snapshot."
        ),
        "LeaseIsBreakingAndCannotBeAcquired": "The lease ID matched, but the lease is currently in breaking state.",
        "LeaseIsBreakingAndCannotBeChanged": "The lease ID matched, but the lease is currently in breaking state.",
        "LeaseIsBrokenAndCannotBeRenewed": "The lease ID matched, but the lease has been broken explicitly.",
        "LeaseNotPresentWithLeaseOperation": "There is currently no lease on the file, file share or share snapshot.",
        "NoPendingCopyOperation": "There is currently no pending copy operation.",
        "PendingCopyOperation": "There is currently a pending copy operation.",
        "ResourceAlreadyExists": "The specified resource already exists.",
        "ResourceTypeMismatch": "The specified resource type does not match the type of the existing resource.",
        "ShareAlreadyExists": "The specified share already exists.",
        "ShareBeingDeleted": "The specified share is being deleted. Try operation later.",
        "ShareHasSnapshots": "The share has snapshots and the operation requires no snapshots.",
        "ShareSnapshotCountExceeded": "The maximum number of share snapshots has been reached.",
        "SharingViolation": "The specified resource may be in use by an SMB client.",
    },
    411: {
        "MissingContentLengthHeader": "The Content-Length header was not specified.",
    },
    412: {
        "LeaseIdMismatchWithContainerOperation": (
            "The lease ID specified did not match the lease ID for the file share."
        ),
        "LeaseIdMismatchWithFileOperation": "The lease ID specified did not match the lease ID for the file.",
        "LeaseIdMissing": "There is currently a lease on the resource and no lease ID was specified in the request.",
        "LeaseLost": "A lease ID was specified, but the lease for the file or file share has expired.",
        "LeaseNotPresentWithContainerOperation": "There is currently no lease on the file share.",
        "LeaseNotPresentWithFileOperation": "There is currently no lease on the file.",
        "ReadOnlyAttribute": "The specified resource is read-only and cannot be modified at this time.",
    },
    413: {
        "RequestBodyTooLarge": "The request body is too large and exceeds the maximum permissible limit.",
    },
    416: {
        "InvalidRange": "The range specified is invalid for the current size of the resource.",
    },
    500: {
        "InternalError": "The server encountered an internal error. Please retry the request.",
    },
}
#: Each code that the emulator answers with: the status, and the message.
CODES: Mapping[str, tuple[int, str]] = {
    code: (status, message) for status, messages in _MESSAGES.items() for code, message in messages.items()
}
_EPOCH_TICKS = 621_355_968_000_000_000
_TICKS_PER_SECOND = 10_000_000
# So many entries, as the service.
_LARGEST_PAGE = 5000
# What a name may have, and a document of XML may not.
_NO_XML = "\ufffe\uffff"


@frozen
class FileAnswer:
    """What is answered."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    #: The body in parts, where it is long; its length stands in the headers.
    stream: Iterable[bytes] | None = None


class ServiceError(Exception):
    """A request is refused, with an error code of the service."""

    def __init__(self, code: str, *, status: int | None = None, details: str = "", **headers: str) -> None:
        self.code = code
        #: Elements that stand behind the message, as XML.
        self.details = details
        known, self.message = CODES[code]
        #: The status of the answer; some codes come with several.
        self.status = status or known
        #: Headers of the answer, by their names with underscores.
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        super().__init__(code)


def to_ticks(seconds: float) -> int:
    """Return a time as the service counts: tenths of a microsecond since the year 1."""
    return _EPOCH_TICKS + int(seconds * _TICKS_PER_SECOND)


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
    root = element("Error", texts({"Code": error.code, "Message": message}), error.details)
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
