"""What a failed request says → one of our errors, by status *and* service code.

The SDK's exception classes are no guide: it turns every 409 into ResourceExistsError, lease conflicts included.
Source: Blob, File, Queue and Table service error codes in the REST reference.
"""

from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from azguard import errors
from azguard.accounts import proxies, unreachable
from azguard.accounts.target import Target
from azguard.accounts.transport import NotOfTheService, not_of_the_service
from azguard.requests import denials

_AUTHENTICATION = {
    "AuthenticationFailed", "InvalidAuthenticationInfo", "NoAuthenticationInformation", "MissingAuthenticationHeader",
}  # fmt: skip
_CONFLICTING_BLOCKS = {"InvalidBlockList", "InvalidBlobOrBlock"}
# Refusals of a conditional write that say what 412 says: it was created, deleted, or our blocks were discarded.
_FOREIGN_WRITE = {
    "BlobAlreadyExists", "BlobNotFound", "EntityAlreadyExists", "EntityNotFound", "ResourceNotFound",
    *_CONFLICTING_BLOCKS,
}  # fmt: skip
_BUSY = {
    "SharingViolation", "DeletePending", "SMBDeletePending", "FileLockConflict", "PendingCopyOperation", "SystemInUse",
    "CannotDeleteFileOrDirectory", "ShareSnapshotInProgress",
}  # fmt: skip
# What the Table service means by a 400 or 413 that its message does not tell, and what to do.
_TABLES = {
    "InvalidInput": ("a value or the filter is not what the service understands",
                     "check the filter: azguard entity query --help shows one"),
    "PropertyLimitExceeded": ("the entity has more than 252 properties", "put some into an entity of their own"),
    "TooManyProperties": ("the entity has more than 252 properties", "put some into an entity of their own"),
    "EntityTooLarge": ("the entity has more than 1 MiB", "keep large values in a blob, and its address here"),
    "RequestBodyTooLarge": ("the request is too large", "keep large values in a blob, and its address here"),
    "PropertyValueTooLarge": ("a property has more than 64 KiB", "keep large values in a blob, and its address here"),
    "KeyValueTooLarge": ("a key has more than 1 KiB", "make the partition or row key shorter"),
    "PropertyNameTooLong": ("the name of a property has more than 255 characters", "make it shorter"),
    "PropertyNameInvalid": ("the name of a property is not valid",
                            "letters, digits and underscores, the first no digit"),
    "PropertiesNeedValue": ("a key is missing", "an entity has a PartitionKey and a RowKey"),
    "DuplicatePropertiesSpecified": ("a property is given twice", "give each one value"),
    "InvalidValueType": ("a value does not have the type of its property", 'check each "NAME@odata.type"'),
    "OutOfRangeInput": ("a value is beyond what its type takes", "DateTimes begin with the year 1601"),
}  # fmt: skip
_SAYS_LATER = (408, 429)
# Without its container nothing can have been written.
_NOWHERE = ("ContainerNotFound", "TableNotFound")
_SHOW = "azguard lease show"
# What a refusal because of a lease means, and the way out, by how its code begins; the first that fits holds.
_LEASES = (
    ("LeaseIdMissing", "{0} is leased, and no lease id was given",
     "name the lease with --lease-id, or wait until its holder releases it"),
    ("LeaseAlreadyPresent", "{0} is leased by somebody else",
     "wait until it is free: azguard lease wait {1}"),
    # Also where nothing is leased at all: the service calls that a mismatch too.
    ("LeaseIdMismatchWithLeaseOperation", "that lease on {0} is not held",
     f"it was released or lost, or the id is wrong: {_SHOW} {{1}}"),
    ("LeaseIdMismatch", "{0} is leased under another id", f"check the id, or see who holds it: {_SHOW} {{1}}"),
    ("LeaseNotPresentWithLeaseOperation", "there is no lease on {0}", "take one: azguard lease acquire {1}"),
    ("LeaseNotPresent", "the lease on {0} is not held any more",
     "it expired or was broken: read again before you write, or leave --lease-id out"),
    ("LeaseLost", "the lease on {0} is not held any more",
     "it expired or was broken: read again before you write, or leave --lease-id out"),
    ("LeaseIsBreakingAndCannotBeAcquired", "the lease on {0} is being broken, so it cannot be acquired",
     "wait until it is free: azguard lease wait {1}"),
    ("LeaseIsBreakingAndCannotBeChanged", "the lease on {0} is being broken, and its id cannot be changed any more",
     "release it, or finish under the id it has"),
    ("LeaseIsBrokenAndCannotBeRenewed", "the lease on {0} was broken, and cannot be renewed",
     "stop what it protects, and release it; then acquire anew"),
    ("LeaseAlreadyBroken", "the lease on {0} is broken already", f"{_SHOW} {{1}}"),
    ("Lease", "the lease on {0} does not allow it: {2}", f"see what is the case: {_SHOW} {{1}}"),
    ("InfiniteLeaseDurationRequired", "the lease on {0} must be infinite for this",
     "acquire it with --infinite: what it protects may take longer than any term"),
)  # fmt: skip


def service_code(error: BaseException) -> str | None:
    """Return the service's error code, such as ``ConditionNotMet``, as a plain string."""
    code = getattr(error, "error_code", None)
    if code is None and (response := getattr(error, "response", None)) is not None:
        code = response.headers.get("x-ms-error-code") or _code_in_body(response)
    if code is None:
        return None
    return str(getattr(code, "value", code))


def _code_in_body(response: Any) -> str | None:
    """Return the code in the body of an answer: the Table service puts it nowhere else."""
    try:
        found = response.json()["odata.error"]["code"]
    # Whatever is wrong with the body of a refusal, the status still says what happened.
    except Exception:  # noqa: BLE001
        return None
    # A transaction's names the item first: ``1:UpdateConditionNotSatisfied``.
    return str(found).rpartition(":")[2] or None


def status(error: BaseException) -> int | None:
    """Return the HTTP status of the answer, or None where there was none."""
    found = getattr(error, "status_code", None)
    return found if isinstance(found, int) else None


def is_lease_problem(error: BaseException) -> bool:
    """Return whether the service refused because of a lease: held by another, lost, wrong or missing id."""
    code = service_code(error) or ""
    return code.startswith("Lease") and status(error) in (409, 412)


def is_conflict(error: BaseException) -> bool:
    """Return whether somebody else's write came first, so that reading again and retrying is the answer."""
    code = service_code(error) or ""
    if status(error) == HTTPStatus.PRECONDITION_FAILED:
        return not code.startswith("Lease")
    return code in _FOREIGN_WRITE


def is_perhaps_ours(error: BaseException, target: Target) -> bool:
    """Return whether a write may be refused for the very reason that an earlier copy of it was committed.

    A proxy may send a request again when its connection to the service broke after the first time.
    """
    code = service_code(error)
    if code in _NOWHERE and len(target.address.parts) > 1:
        return False
    return code in _CONFLICTING_BLOCKS or status(error) in (404, 409, 412)


def translate(  # noqa: C901  # the service decides how many cases there are
    error: BaseException, target: Target, *, expected_etag: str | None = None
) -> errors.AzguardError:
    """Return our error for one that the SDK raised; our own errors pass through."""
    if isinstance(error, errors.AzguardError):
        return error
    found = status(error)
    code = service_code(error)
    response = getattr(error, "response", None)
    facts: dict[str, Any] = {
        "address": str(target.address),
        "http_status": found,
        "service_code": code,
        "request_id": response.headers.get("x-ms-request-id") if response is not None else None,
    }
    if found is None:
        return _without_status(error, target, facts)
    if found == HTTPStatus.NOT_MODIFIED:
        return errors.NotModified(f"{target} is unchanged", **facts)
    if found == HTTPStatus.BAD_REQUEST and code in _CONFLICTING_BLOCKS:
        return errors.Changed(f"{target} was written by somebody else while this upload ran", **facts)
    if found == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        return _not_asked(NotOfTheService(found, {}), target, facts)
    if code in _AUTHENTICATION or found in (401, 403):
        denial = denials.explain(error, code, target)
        kind = (
            errors.Forbidden
            if found == HTTPStatus.FORBIDDEN and code not in _AUTHENTICATION
            else errors.Unauthenticated
        )
        return kind(denial.message, hint=denial.hint, **facts)
    if found == HTTPStatus.NOT_FOUND:
        return errors.NotFound(_missing(target, code), hint=_missing_hint(target, code), **facts)
    if found in (409, 412):
        return _conflict(found, code or "", target, expected_etag, facts)
    if found >= HTTPStatus.INTERNAL_SERVER_ERROR or found in _SAYS_LATER:
        return errors.Unavailable(
            f"the service answered {found} {code or ''} until the time was up".replace("  ", " "),
            hint="try again, or give it longer: --timeout 60s",
            **facts,
        )
    if target.kind.service == "table" and code in _TABLES:
        words, way_out = _TABLES[code]
        return errors.BadRequest(
            f"the service refused this for {target}: {words}", hint=way_out, detail=(_first_line(error),), **facts
        )
    return errors.BadRequest(
        f"the service refused the request: {_first_line(error)}", hint=_bad_request_hint(code, error), **facts
    )


def _not_asked(foreign: NotOfTheService, target: Target, facts: dict[str, Any]) -> errors.AzguardError:
    """Return what an answer means that does not come from the service."""
    facts = {**facts, "http_status": foreign.status}
    host, proxy = urlsplit(target.endpoint).hostname or "", proxies.between(target.endpoint)
    if proxy is not None and foreign.status in (401, 403, 407):
        reason = unreachable.refused_by(proxy, host, foreign.status)
        return errors.Unavailable(reason.message, hint=reason.hint, **facts)
    through = "" if proxy is None else f", through the proxy {proxy.address}"
    return errors.Unavailable(
        f"what answered for {target.endpoint}{through} is not Azure Storage: {foreign.described}",
        hint="a proxy, a firewall or a login page stands in between, or the endpoint is wrong",
        **facts,
    )


def _conflict(
    found: int, code: str, target: Target, expected_etag: str | None, facts: dict[str, Any]
) -> errors.AzguardError:
    for beginning, words, way_out in _LEASES:
        if code.startswith(beginning):
            where = (target, target.address, code)
            return errors.Locked(words.format(*where), hint=way_out.format(*where), **facts)
    if code.endswith("AlreadyExists"):
        return errors.Exists(f"{target} exists already", **facts)
    if code == "TableBeingDeleted":
        return errors.Locked(
            f"{target.address.container} is still being deleted",
            hint="that takes the service 40 seconds or more; then try again",
            **facts,
        )
    if code in _BUSY or code.endswith("BeingDeleted"):
        return errors.Locked(f"{target} is busy: {code}", hint="wait a moment, then try again", **facts)
    if code == "BlobImmutableDueToPolicy":
        return errors.Forbidden(f"{target} is immutable by policy", **facts)
    if found == HTTPStatus.PRECONDITION_FAILED:
        return errors.Changed(_changed_words(target, expected_etag), expected_etag=expected_etag, **facts)
    hint = "add --delete-snapshots include, or only" if code == "SnapshotsPresent" else None
    return errors.BadRequest(f"the service refused this for {target}: {code or found}", hint=hint, **facts)


def _changed_words(target: Target, expected_etag: str | None) -> str:
    if expected_etag is None:
        return f"the condition did not hold for {target}"
    return f"{target} changed since you read it"


def _missing(target: Target, code: str | None) -> str:
    if code == "TableNotFound":
        return f"there is no table {target.address.container}"
    if code == "ContainerNotFound" and len(target.address.parts) > 1:
        return f"there is no container {target.address.container}"
    return f"there is no {target.kind} {target}"


def _missing_hint(target: Target, code: str | None) -> str | None:
    if code == "ContainerNotFound":
        return f"azguard container create {target.address.container}"
    if code == "TableNotFound":
        return f"azguard table create {target.address.container}"
    return None


def _bad_request_hint(code: str | None, error: BaseException) -> str | None:
    if code == "InvalidHeaderValue" and "API version" in str(error):
        return "this emulator is older than the SDK: use azguard emulator start, or azurite --skipApiVersionCheck"
    return None


def _without_status(error: BaseException, target: Target, facts: dict[str, Any]) -> errors.AzguardError:
    from azure.core.exceptions import AzureError

    if (foreign := not_of_the_service(error)) is not None:
        return _not_asked(foreign, target, facts)
    if isinstance(error, (AzureError, OSError)):
        reason = unreachable.explain(error, target.endpoint, target.kind.service)
        return errors.Unavailable(reason.message, hint=reason.hint, **facts)
    return errors.AzguardError(f"{type(error).__name__}: {_first_line(error)}", **facts)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
