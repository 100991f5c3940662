"""What the live service answered, as it was recorded, → one of our errors. Azurite gives some other codes."""

from collections.abc import Mapping

import pytest

from azguard.accounts.account import Account, Auth, Target, emulator
from azguard.address import parse
from azguard.requests import service_codes
from azguard.requests.service_codes import is_conflict
from azguard.requests.service_errors import translate
from azguard.wire.call import call
from azguard.wire.client import Limits
from azguard.wire.failures import Response, SentRequest, ServiceRefusal
from azguard.wire.operations.blobs import BLOB_DELETE, BLOB_GET_PROPERTIES, BLOB_PUT_BLOCK_BLOB
from azguard.wire.operations.containers import CONTAINER_CREATE, CONTAINER_GET_PROPERTIES
from tests.support.cases import cases
from tests.support.evidence import EVIDENCE
from tests.support.recorded import Recorded, Replayed, read

URL = "https://acc.blob.core.windows.net"


def recorded(name: str, method: str, code: str) -> Recorded:
    return next(each for each in read("blob") if (each.recording, each.method, each.code) == (name, method, code))


@cases(
    ("name", "method", "code", "kind", "status"),
    ("test_blob_access_conditions.test_delete_blob_with_if_match_fail", "DELETE", "ConditionNotMet", "changed",
     412),
    ("test_common_blob.test_soft_delete_with_leased_blob", "DELETE", "LeaseIdMissing", "locked", 412),
    ("test_container.test_lease_container_break_period", "DELETE", "LeaseLost", "locked", 412),
    ("test_common_blob.test_lease_blob_break_period", "PUT", "LeaseLost", "locked", 412),
    ("test_blob_access_conditions.test_get_blob_with_if_modified_fail", "GET", "ConditionNotMet", "not_modified",
     304),
    ("test_blob_access_conditions.test_get_blob_with_if_match_fail", "GET", "ConditionNotMet", "changed", 412),
    ("test_blob_access_conditions.test_delete_container_with_if_modified", "GET", "ContainerNotFound", "not_found",
     404),
    ("test_container.test_create_container_with_already_existing_container", "PUT", "ContainerAlreadyExists",
     "exists", 409),
)  # fmt: skip
def test_a_live_answer_is_known_by_its_meaning(name: str, method: str, code: str, kind: str, status: int) -> None:
    shared = {"client": Replayed(recorded(name, method, code))}
    account = Account("acc", {"blob": URL}, Auth.ANONYMOUS, None, shared)
    operation = {
        "DELETE": BLOB_DELETE,
        "GET": CONTAINER_GET_PROPERTIES if code == "ContainerNotFound" else BLOB_GET_PROPERTIES,
        "PUT": CONTAINER_CREATE if code == "ContainerAlreadyExists" else BLOB_PUT_BLOCK_BLOB,
    }[method]
    with pytest.raises(ServiceRefusal) as caught:
        call(operation, Target(account, parse("blob:site/a").address), Limits())
    error = translate(caught.value, Target(emulator(), parse("blob:site/a").address), expected_etag='"0x1"')
    assert (error.kind, error.http_status, error.service_code) == (kind, status, code)


# The kind of each code of the evidence with each of its statuses, as far as it is not ``changed`` or ``locked`` by its
# name: a condition that was not met, or a lease.
KINDS = {
    "not_modified": ["ConditionNotMet 304", "CannotVerifyCopySource 304"],
    "changed": ["CannotVerifyCopySource 412", "BlobOverwritten 409", "UpdateConditionNotSatisfied 412"],
    "exists": ["BlobAlreadyExists 409", "UnauthorizedBlobOverwrite 403", "ContainerAlreadyExists 409",
               "EntityAlreadyExists 409", "TableAlreadyExists 409", "QueueAlreadyExists 409", "ShareAlreadyExists 409",
               "ResourceAlreadyExists 409"],
    "locked": ["InfiniteLeaseDurationRequired 412", "PendingCopyOperation 409", "SystemInUse 409",
               "ContainerBeingDeleted 409", "TableBeingDeleted 409", "QueueBeingDeleted 409", "ShareBeingDeleted 409",
               "SharingViolation 409", "DeletePending 409", "FileLockConflict 409", "ClientCacheFlushDelay 408",
               "ClientCacheFlushDelay 500", "ReadOnlyAttribute 412", "ReadOnlyAttribute 409",
               "CannotDeleteFileOrDirectory 409", "FileOpenBySmbClient 409", "ShareSnapshotInProgress 409",
               "DeleteShareWhenSnapshotLeased 409"],
    "not_found": ["CannotVerifyCopySource 404", "EntityNotFound 404", "ResourceNotFound 404", "TableNotFound 404",
                  "MessageNotFound 404", "QueueNotFound 404", "ParentNotFound 404"],
    "forbidden": ["ContainerDisabled 409", "QueueDisabled 409", "ShareDisabled 403"],
    "unavailable": ["CannotVerifyCopySource 500", "SnaphotOperationRateExceeded 409", "OperationTimedOut 500",
                    "ServerBusy 503", "InternalError 500"],
    "bad_request": ["CannotVerifyCopySource 409", "SequenceNumberIncrementTooLarge 409",
                    "MultipleConditionHeadersNotSupported 400", "ConditionHeadersNotSupported 400",
                    "UnsatisfiableCondition 400", "NoPendingCopyOperation 409", "CopyIdMismatch 409",
                    "SnapshotsPresent 409", "SnapshotCountExceeded 409", "ResourceTypeMismatch 409",
                    "BlobBeingRehydrated 409", "BlobArchived 409", "BlobNotArchived 409", "InvalidHeaderValue 400",
                    "MissingRequiredHeader 400", "InvalidQueryParameterValue 400", "InvalidDuplicateRow 400",
                    "InvalidInput 400", "PopReceiptMismatch 400", "QueueNotEmpty 409", "FileGenerationMismatch 409",
                    "ShareSnapshotCountExceeded 409", "ShareSnapshotOperationNotSupported 400", "ShareHasSnapshots 409",
                    "DirectoryNotEmpty 409", "ContainerQuotaDowngradeNotAllowed 409"],
}  # fmt: skip
ANSWERS = [f"{each['code']} {str(status)[:3]}" for each in EVIDENCE["error_codes"] for status in each["http_status"]]


def kind_by_name(answer: str) -> str:
    return "locked" if answer.startswith("Lease") else "changed"


@cases("answer", *ANSWERS)
def test_each_code_of_the_evidence_has_its_kind(answer: str) -> None:
    code, _, status = answer.partition(" ")
    error = refusal(int(status), code, code, {"If-None-Match": "*"})
    expected = next((kind for kind, answers in KINDS.items() if answer in answers), kind_by_name(answer))
    assert translate(error, Target(emulator(), parse("blob:site/a").address)).kind == expected


def refusal(status: int, code: str | None, said: str, asked: Mapping[str, str] | None = None) -> ServiceRefusal:
    """Return the refusal of a Put Blob with these headers."""
    told = {"x-ms-request-id": "1", **({"x-ms-error-code": code} if code else {})}
    body = f"<Error><Message>{said}</Message></Error>".encode()
    return ServiceRefusal(Response(SentRequest("PUT", f"{URL}/site/a", asked or {}), status, "", told, body))


@cases(
    ("status", "code", "kind", "message"),
    (412, "OplogFrozen", "bad_request", "the service refused this for site/a: OplogFrozen"),
    (409, "OplogFrozen", "bad_request", "the service refused this for site/a: OplogFrozen"),
    (412, None, "changed", "site/a changed since you read it"),
)
def test_an_unknown_code_is_named_and_no_conflict(status: int, code: str | None, kind: str, message: str) -> None:
    error = refusal(status, code, "It is frozen.\nRequestId:1\nErrorCode:OplogFrozen")
    found = translate(error, Target(emulator(), parse("blob:site/a").address), expected_etag='"0x1"')
    assert (found.kind, found.message, is_conflict(error)) == (kind, message, kind == "changed")


@cases(
    ("code", "said", "message"),
    ("InvalidInput", "\nRequestId:ab\nTime:2026\nErrorCode:InvalidInput", "InvalidInput"),
    (None, "\nRequestId:ab", "400"),
    ("InvalidInput", "No.\nRequestId:ab", "No."),
)
def test_no_message_is_only_the_id_of_a_request(code: str | None, said: str, message: str) -> None:
    found = translate(refusal(400, code, said), Target(emulator(), parse("blob:site/a").address))
    assert found.message == f"the service refused the request: {message}"


def test_only_what_its_name_tells_is_left_out_of_the_table_of_kinds() -> None:
    listed = {answer for answers in KINDS.values() for answer in answers}
    others = {answer for answer in ANSWERS if not answer.startswith("Lease") and "ConditionNotMet 412" not in answer}
    assert listed == others


def test_an_overwrite_that_a_sas_does_not_allow_is_forbidden() -> None:
    error = refusal(403, "UnauthorizedBlobOverwrite", "no", {"If-Match": '"0x1"'})
    assert translate(error, Target(emulator(), parse("blob:site/a").address)).kind == "forbidden"


# Codes of the error code pages that the enumerations of the SDKs lack.
ON_PAGES_ALONE = (
    "BlobCustomerSpecifiedEncryptionMismatch", "BlobImmutableDueToLegalHold", "BlobImmutableDueToPolicy",
    "BlobOperationNotSupported", "BlobUsesCustomerSpecifiedEncryption", "PublicAccessNotPermitted",
    "AccountProtectedFromDeletion", "CannotConvertToSddlDueToCustomAce", "CannotVerifyFileSnapshotSource",
    "FileGenerationMismatch", "FileInvalidPermission", "FileInvalidPermissionKey",
    "FileShareAccessTierTransitionNotAllowed",
)  # fmt: skip
#: What the service says of a request that was malformed, so that azguard is wrong: its own sentence is shown.
MALFORMED = {
    "BlockListTooLong", "ConditionHeadersNotSupported", "ContentLengthMustBeZero", "EmptyMetadataKey",
    "HostInformationNotPresent", "InvalidBlockId", "InvalidDuplicateRow", "InvalidFileOrDirectoryPathName",
    "InvalidHeaderValue", "InvalidHttpVerb", "InvalidMarker", "InvalidMd5", "InvalidMetadata", "InvalidOperation",
    "InvalidPageRange", "InvalidQueryParameterValue", "InvalidRange", "InvalidResourceName", "InvalidUri",
    "InvalidVersionForPageBlobOperation", "InvalidXmlDocument", "InvalidXmlNodeValue", "JsonFormatNotSupported",
    "Md5Mismatch", "MethodNotAllowed", "MissingContentLengthHeader", "MissingRequiredHeader",
    "MissingRequiredQueryParameter", "MissingRequiredXmlNode", "MultipleConditionHeadersNotSupported",
    "NotImplemented", "OutOfRangeQueryParameterValue", "RequestUrlFailedToParse", "UnsupportedHeader",
    "UnsupportedHttpVerb", "UnsupportedQueryParameter", "UnsupportedXmlNode", "InvalidPropertyName",
    "ResourceTypeMismatch", "InvalidBlobOrBlock", "InvalidInput", "OutOfRangeInput", "PopReceiptMismatch",
    "QueueNotEmpty", "UnsupportedRestVersion", "CannotConvertToSddlDueToCustomAce", "FileInvalidPermission",
    "FileInvalidPermissionKey",
}  # fmt: skip
#: How codes begin that azguard never meets, and why.
NEVER = {
    "AccountAlreadyExists": "accounts are made elsewhere",
    "AccountProtectedFromDeletion": "accounts are deleted elsewhere",
    "DestinationPath": "paths of Data Lake Storage",
    "FileShareAccessTierTransitionNotAllowed": "no tier of a share is changed",
    "Filesystem": "file systems of Data Lake Storage",
    "IncrementalCopy": "no incremental copies are made",
    "InvalidDestinationPath": "paths of Data Lake Storage",
    "InvalidFlushPosition": "paths of Data Lake Storage",
    "InvalidRenameSourcePath": "paths of Data Lake Storage",
    "InvalidSourceBlobUrl": "no page is written from a malformed URL: it is parsed first",
    "InvalidSourceOrDestinationResourceType": "paths of Data Lake Storage",
    "InvalidSourceUri": "paths of Data Lake Storage",
    "LeaseNameMismatch": "paths of Data Lake Storage",
    "OperationNotAllowedOnIncrementalCopyBlob": "no incremental copies are made",
    "Path": "paths of Data Lake Storage",
    "PreviousSnapshot": "only page ranges of blobs are compared with a snapshot that exists",
    "RenameDestinationParentPathNotFound": "paths of Data Lake Storage",
    "SourcePath": "paths of Data Lake Storage",
    "XMethod": "no method is tunnelled through POST",
}
#: The status of each code whose page has another one than 409.
STATUSES = {
    "CannotVerifyCopySource": 412, "InvalidBlockList": 400,
    "CannotVerifyFileSnapshotSource": 500,
    "MessageTooLarge": 400, "OperationTimedOut": 500, "InternalError": 500, "ServerBusy": 503, "MessageNotFound": 404,
    "AccountIsDisabled": 403, "InsufficientAccountPermissions": 403, "ShareDisabled": 403,
}  # fmt: skip


def list_codes() -> list[str]:
    """Return the codes of all services: those of the enumerations of the SDKs, and of the pages."""
    from azure.data.tables import TableErrorCode
    from azure.storage.blob import StorageErrorCode as BlobCode
    from azure.storage.fileshare import StorageErrorCode as FileCode
    from azure.storage.queue import StorageErrorCode as QueueCode

    known = {code.value for codes in (BlobCode, FileCode, QueueCode, TableErrorCode) for code in codes}
    return sorted({*known, *ON_PAGES_ALONE})


def find_status(code: str) -> int:
    if code in service_codes.TABLES or code in service_codes.LIMITS:
        return 400
    if code.startswith("Auth") or code == service_codes.OVERWRITE_DENIED:
        return 403
    by_end = {"NotFound": 404, "ConditionNotMet": 412, "ConditionNotSatisfied": 412}
    return next((status for end, status in by_end.items() if code.endswith(end)), STATUSES.get(code, 409))


def test_each_code_of_the_reference_has_a_meaning_or_is_never_met() -> None:
    target = Target(emulator(), parse("blob:site/a").address)
    table = Target(emulator(), parse("table:Orders").address)
    unclear = []
    for code in list_codes():
        if code in MALFORMED or code.startswith(tuple(NEVER)):
            continue
        error = translate(refusal(find_status(code), code, "no"), table if code in service_codes.TABLES else target)
        if error.reason in ("refusal_unclear", None) and error.kind == "bad_request":
            unclear.append(code)
    assert unclear == []


def test_no_code_is_named_in_vain() -> None:
    codes = list_codes()
    assert [begin for begin in NEVER if not any(code.startswith(begin) for code in codes)] == []
    assert [code for code in codes if code in MALFORMED and code.startswith(tuple(NEVER))] == []


@cases(
    ("body", "is_old"),
    ("<Message>bad</Message><HeaderName>x-ms-version</HeaderName><HeaderValue>2026-10-06</HeaderValue>", True),
    ("", True),
    ("<Message>bad</Message><HeaderName>x-ms-range</HeaderName>", False),
)
def test_a_service_that_is_older_than_azguard_is_known_by_its_refusal(body: str, *, is_old: bool) -> None:
    content = f"<Error><Code>InvalidHeaderValue</Code>{body}</Error>".encode() if body else b""
    told = {"x-ms-error-code": "InvalidHeaderValue", "x-ms-request-id": "1"}
    error = ServiceRefusal(Response(SentRequest("HEAD", f"{URL}/site/a", {}), 400, "", told, content))
    found = translate(error, Target(emulator(), parse("blob:site/a").address))
    assert found.reason == ("service_too_old" if is_old else None)
