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
_QUOTE = '"'
# A code that is not known here.
_UNCLEAR = service_codes.Refusal("the service refused this for {0}: {1}", reason="refusal_unclear")


def is_of_condition(status: int | None, code: str | None) -> bool:
    """Return whether an answer says that a condition of the request did not hold; one without a code says it, too."""
    return status == HTTPStatus.PRECONDITION_FAILED and (not code or code in service_codes.CONDITIONS)


def explain(
    status: int, code: str, target: Target, expected_etag: str | None, facts: dict[str, Any], said: str
) -> errors.AzguardError:
    """Return our error for a conflict, by its code and then by its status.

    ``facts`` are fields of every error; ``said`` is the service's own sentence, for a code that is not known.
    """
    known = _find_known(code, target, facts)
    if known is not None:
        return known
    if is_of_condition(status, code) or code == _OVERWRITTEN:
        return errors.Changed(_describe_change(target, expected_etag), expected_etag=expected_etag, **facts)
    if code == service_codes.TYPE_MISMATCH:
        return _build_type_mismatch(target, facts)
    state = service_codes.STATES.get(code)
    values = {"container": target.address.container}
    if state is not None:
        message = f"the service refused this for {target}: {state.words.format(target)}"
        return errors.BadRequest(message, reason=state.reason, values=values, **facts)
    return errors.BadRequest(
        _UNCLEAR.words.format(target, code or status),
        detail=(said,),
        reason=_UNCLEAR.reason,
        expected_etag=expected_etag,
        **facts,
    )


def judge_unclear(refusal: errors.AzguardError, target: Target, found_etag: str | None) -> errors.AzguardError:
    """Return what a refusal with an unknown code is, once it was read which version is there: a conflict only if that
    moved.
    """
    expected = refusal.expected_etag
    is_unclear = refusal.reason == _UNCLEAR.reason and expected is not None and found_etag is not None
    if not is_unclear or str(found_etag).strip(_QUOTE) == str(expected).strip(_QUOTE):
        return refusal
    return refusal.as_kind(errors.Changed, message=_describe_change(target, expected), reason=None)


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
        return errors.Forbidden(
            forbidden.words.format(container, target.account.name), reason=forbidden.reason, **facts
        )
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
