"""What the live service answered, as it was recorded, → one of our errors. Azurite gives some other codes."""

import tomllib
from collections.abc import Mapping

import pytest

from azguard.accounts.account import Account, Auth, Target, emulator
from azguard.address import parse
from azguard.errors import AzguardError
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
from tests.support.places import DATA
from tests.support.recorded import SERVICES, Recorded, Replayed, read

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
    ("status", "code", "kind", "message"),
    (409, "ContainerHasLegalHold", "forbidden", "the container site is under a legal hold"),
    (409, "ContainerImmutabilityPolicyLocked", "forbidden", "the container site has a locked policy"),
    (400, "HandleLimitExceeded", "locked", "site/a is open as often as it can be"),
    (413, "RequestBodyTooLarge", "bad_request", "the service refused this for site/a: a message has at most 64 KiB"),
)
def test_a_state_is_told_by_its_words(status: int, code: str, kind: str, message: str) -> None:
    found = translate(refusal(status, code, "no"), Target(emulator(), parse("blob:site/a").address))
    assert (found.kind, found.message) == (kind, message)


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


#: The codes of the pages of the REST reference, each with its status, and where they were seen.
PAGES = tomllib.loads((DATA / "error_codes.toml").read_text(encoding="utf-8"))
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
    "FileInvalidPermissionKey", "AtomFormatNotSupported", "Crc64Mismatch", "InvalidContinuationToken", "InvalidCrc64",
    "JsonVerboseFormatNotSupported", "MediaTypeNotSupported", "UnsatisfiableCondition",
}  # fmt: skip
#: How codes begin that azguard never meets, and why.
NEVER = {
    "AccountAlreadyExists": "accounts are made elsewhere",
    "AccountProtectedFromDeletion": "accounts are deleted elsewhere",
    "DestinationPath": "paths of Data Lake Storage",
    "FileShareAccessTierTransitionNotAllowed": "no tier of a share is changed",
    "FileSnapshot": "snapshots are taken of shares, not of files",
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


def list_answers() -> dict[str, set[int]]:
    """Return the codes of all services with their statuses: of the pages, and of the enumerations of the SDKs."""
    from azure.data.tables import TableErrorCode
    from azure.storage.blob import StorageErrorCode as BlobCode
    from azure.storage.fileshare import StorageErrorCode as FileCode
    from azure.storage.queue import StorageErrorCode as QueueCode

    found: dict[str, set[int]] = {}
    for page in PAGES.values():
        for each in page["codes"]:
            code, _, status = each.partition(" ")
            found.setdefault(code, set()).add(int(status))
    for code in (each.value for codes in (BlobCode, FileCode, QueueCode, TableErrorCode) for each in codes):
        found.setdefault(code, {find_status(code)})
    return found


def find_status(code: str) -> int:
    """Return the status of a code that is on no page."""
    if code in service_codes.TABLES:
        return 400
    return 404 if code.endswith("NotFound") else 409


def is_clear(code: str, status: int) -> bool:
    """Return whether a code has a meaning, for a blob or for a table."""
    places = (parse("blob:site/a").address, parse("table:Orders").address)
    found = [translate(refusal(status, code, "no"), Target(emulator(), place)) for place in places]
    return any(each.kind not in ("bad_request", "forbidden") or has_reason(each) for each in found)


def has_reason(error: AzguardError) -> bool:
    return error.reason not in ("refusal_unclear", None)


def test_each_code_of_the_reference_has_a_meaning_or_is_never_met() -> None:
    # What blames a SAS or a login has its words in test_denials.py.
    of_credentials = ("Authorization", service_codes.OVERWRITE_DENIED)
    unclear = [
        (code, status)
        for code, statuses in list_answers().items()
        if code not in MALFORMED and not code.startswith((*NEVER, *of_credentials))
        for status in statuses
        if not is_clear(code, status)
    ]
    assert unclear == []


def test_each_code_that_was_recorded_is_on_the_list() -> None:
    recorded_codes = {each.code for service in SERVICES for each in read(service) if each.code}
    assert (len(recorded_codes) > 50, recorded_codes - set(list_answers())) == (True, set())


def test_no_code_is_named_in_vain() -> None:
    codes = list_answers()
    assert [begin for begin in NEVER if not any(code.startswith(begin) for code in codes)] == []
    assert MALFORMED - set(codes) == set()
    assert [code for code in codes if code in MALFORMED and code.startswith(tuple(NEVER))] == []


def test_the_pages_that_could_be_seen_whole_are_these() -> None:
    assert {
        page: len({each.split()[0] for each in told["codes"]}) for page, told in PAGES.items() if told["is_whole"]
    } == {
        "common": 46,
        "queue": 9,
        "table": 24,
    }


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
