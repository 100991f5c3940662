"""The error codes of the Files service, with their status.

Source: https://learn.microsoft.com/rest/api/storageservices/file-service-error-codes
"""

from collections.abc import Mapping

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
