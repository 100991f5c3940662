"""What a conflict means: an answer 409 or 412, which are of leases, conditions, states and administrators alike.

Source: Blob, File, Queue and Table service error codes in the REST reference.
"""

from http import HTTPStatus
from typing import Any

from azguard import errors
from azguard.accounts.target import Target
from azguard.address import Kind
from azguard.requests import service_codes

_BEING_DELETED = service_codes.Refusal("{0} is busy: {1}", reason="busy")
# The blob was made anew, which is a change like any other.
_OVERWRITTEN = "BlobOverwritten"


def explain(
    status: int, code: str, target: Target, expected_etag: str | None, facts: dict[str, Any]
) -> errors.AzguardError:
    """Return our error for a conflict, by its code and then by its status; ``facts`` are fields of every error."""
    known = _find_known(code, target, facts)
    if known is not None:
        return known
    if status == HTTPStatus.PRECONDITION_FAILED or code == _OVERWRITTEN:
        return errors.Changed(_describe_change(target, expected_etag), expected_etag=expected_etag, **facts)
    if code == service_codes.TYPE_MISMATCH:
        return _build_type_mismatch(target, facts)
    state = service_codes.STATES.get(code)
    why = code or str(status) if state is None else state.words.format(target)
    reason = None if state is None else state.reason
    values = {"container": target.address.container}
    return errors.BadRequest(f"the service refused this for {target}: {why}", reason=reason, values=values, **facts)


def _find_known(code: str, target: Target, facts: dict[str, Any]) -> errors.AzguardError | None:
    """Return the error of a code that means the same with either status, or None."""
    container = target.address.container
    for beginning, refusal in service_codes.LEASES.items():
        if code.startswith(beginning):
            return errors.Locked(refusal.words.format(target, code), reason=refusal.reason, **facts)
    if code.endswith("AlreadyExists"):
        return errors.Exists(f"{target} exists already", **facts)
    if (parent := service_codes.PARENTS.get(code)) is not None:
        return errors.Locked(parent.words.format(container), reason=parent.reason, **facts)
    if code in service_codes.BUSY or code.endswith("BeingDeleted"):
        busy = service_codes.BUSY.get(code, _BEING_DELETED)
        return errors.Locked(busy.words.format(target, code), reason=busy.reason, **facts)
    if (throttled := service_codes.THROTTLED.get(code)) is not None:
        return errors.Unavailable(throttled.words.format(target), reason=throttled.reason, **facts)
    if (forbidden := service_codes.FORBIDDEN.get(code)) is not None:
        return errors.Forbidden(forbidden.words.format(container), reason=forbidden.reason, **facts)
    if code == "BlobImmutableDueToPolicy":
        return errors.Forbidden(f"{target} is immutable by policy", **facts)
    return None


def _build_type_mismatch(target: Target, facts: dict[str, Any]) -> errors.BadRequest:
    found, wanted = ("file", "directory") if target.kind is Kind.DIR else ("directory", "file")
    values = {"found": found, "container": target.address.container}
    return errors.BadRequest(
        f"{target} is a {found}, not a {wanted}", reason="path_of_other_type", values=values, **facts
    )


def _describe_change(target: Target, expected_etag: str | None) -> str:
    if expected_etag is None:
        return f"the condition did not hold for {target}"
    return f"{target} changed since you read it"
