"""What a failed request says → one of our errors, by status *and* service code.

A 409 or a 412 can be of leases, conditions, states and administrators alike.
Source: Blob, File, Queue and Table service error codes in the REST reference.
"""

from dataclasses import replace
from math import ceil
from typing import Any

from azguard import errors, times
from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.requests import service_codes
from azguard.requests.commits import NotSent
from azguard.wire import client
from azguard.wire.failures import NoAnswer, NotOfTheService, Refusal, Unreadable, says_later

_NOT_MODIFIED = 304
_BAD_REQUEST = 400
_FORBIDDEN = 403
_NOT_FOUND = 404
_BY_A_PROXY = 407
_CONFLICTS = (409, 412)
# What stands below the service's sentence.
_NO_SENTENCE = ("RequestId:", "Time:", "ErrorCode:")
# The blob was made anew, which is a change like any other.
_OVERWRITTEN = "BlobOverwritten"
_QUOTE = '"'
# Of a code that is not known here.
_UNCLEAR = "refusal_unclear"


def build_wrong_range(target: Target, detail: str) -> errors.Unavailable:
    """Return the error for an answer with another part or version of the content than the one asked for."""
    return errors.Unavailable(
        f"{target} was answered with another part or version than the one asked for",
        address=str(target.address),
        detail=(detail,),
        reason="wrong_range",
    )


def translate(error: BaseException, target: Target, *, expected_etag: str | None = None) -> errors.AzguardError:
    """Return the error of azguard for what a request raised; one that is that already passes through."""
    if isinstance(error, NotSent):
        return error.error
    if isinstance(error, errors.AzguardError):
        return error
    if not isinstance(error, Refusal):
        return _explain_no_answer(error, target)
    translated = _translate_refusal(error, target, expected_etag)
    translated.__cause__ = error
    return translated


def _translate_refusal(error: Refusal, target: Target, expected_etag: str | None) -> errors.AzguardError:
    found, code, response = error.status_code, error.code, error.response
    facts: dict[str, Any] = {
        "address": str(target.address),
        "http_status": found,
        "service_code": code,
        "request_id": None if response is None else response.headers.get("x-ms-request-id"),
    }
    if code in service_codes.AUTHENTICATION or found in (401, 403):
        return _build_denial(error, code, target, facts)
    meaning = service_codes.find_meaning(code or "", target)
    if meaning is not None:
        return _build_meant(meaning, error, target, facts)
    if found in _CONFLICTS:
        return _build_conflict(error, target, expected_etag, facts)
    return _by_status(found, code, error, target, facts)


def build_unreadable(target: Target, why: str, **facts: Any) -> errors.Unavailable:
    """Return the error of an answer of which nothing can be made, although it was a success."""
    facts = {"address": str(target.address), **facts}
    return errors.Unavailable(
        f"the answer of {target.endpoint} cannot be read: {why}", reason="answer_unreadable", **facts
    )


def _by_status(
    found: int, code: str | None, error: Refusal, target: Target, facts: dict[str, Any]
) -> errors.AzguardError:
    if found == _NOT_MODIFIED:
        return errors.NotModified(f"{target} is unchanged", **facts)
    if found == _BAD_REQUEST and code in service_codes.CONFLICTING_BLOCKS:
        return errors.Changed(f"{target} was written by another writer while this upload ran", **facts)
    if found == _BY_A_PROXY:
        return _build_no_answer(NotOfTheService(found, {}), target, **facts)
    if found == _NOT_FOUND:
        return errors.NotFound(f"there is no {target.kind.noun} {target}", **facts)
    if code in service_codes.NOT_IMPLEMENTED:
        return errors.BadRequest(
            f"the emulator cannot do this to {target}; nothing was done", reason="not_in_emulator", **facts
        )
    if says_later(found):
        has_words = error.response is not None and error.response.content
        return _build_unavailable(found, code, _first_line(error) if has_words else None, target, facts)
    return _build_bad_request(error, facts)


def _describe_asked_wait(target: Target) -> tuple[str, dict[str, object]]:
    """Return how long the service asks to be left alone, for people and for the JSON error; empty if it does not."""
    seconds = ceil(client.find_pause_seconds(target.endpoint))
    return (f" and asks to be left alone for {times.span(seconds)}", {"retry_after": seconds}) if seconds else ("", {})


def _build_unavailable(
    found: int, code: str | None, said: str | None, target: Target, facts: dict[str, Any]
) -> errors.Unavailable:
    answered = " ".join(filter(None, ("the service answered", str(found), code)))
    # It tells which limit is reached, or what took too long.
    facts["detail"] = () if said in (None, code, str(found)) else (said,)
    asked, wait = _describe_asked_wait(target)
    if asked:
        return errors.Unavailable(f"{answered}{asked}", reason="service_asks_to_wait", facts=wait, **facts)
    return errors.Unavailable(f"{answered} until the time was up", reason="service_unavailable", **facts)


def _build_denial(error: Refusal, code: str | None, target: Target, facts: dict[str, Any]) -> errors.AzguardError:
    from azguard.requests import denials  # which a read that succeeds does not need

    creates = error.response is not None and error.response.request.headers.get("If-None-Match") == "*"
    if creates and code == service_codes.OVERWRITE_DENIED:
        return errors.Exists(f"{target} exists already", **facts)
    is_known = facts["http_status"] == _FORBIDDEN and code not in service_codes.AUTHENTICATION
    kind = errors.Forbidden if is_known else errors.Unauthenticated
    return denials.explain(error, code, target, _first_line(error)).build(kind, **facts)


def _build_bad_request(error: Refusal, facts: dict[str, Any]) -> errors.BadRequest:
    said, is_of_header = str(error), error.code == "InvalidHeaderValue"
    is_of_emulator = is_of_header and "API version" in said
    # An answer to a HEAD does not say which header.
    is_bare = error.response is None or not error.response.content
    is_of_version = is_of_header and (is_bare or "x-ms-version" in said.lower())
    return errors.BadRequest(
        f"the service refused the request: {_first_line(error)}",
        reason="emulator_too_old" if is_of_emulator else "service_too_old" if is_of_version else None,
        **facts,
    )


def _explain_no_answer(error: BaseException, target: Target) -> errors.AzguardError:
    if isinstance(error, Unreadable):
        return build_unreadable(target, _first_line(error))
    if isinstance(error, NoAnswer):
        return _build_no_answer(error, target)
    return errors.AzguardError(f"{type(error).__name__}: {_first_line(error)}", address=str(target.address))


def _build_no_answer(error: NoAnswer, target: Target, **facts: Any) -> errors.Unavailable:
    from azguard.wire import unreachable

    cause, wait = unreachable.explain(error, target.endpoint, target.kind.service), dict[str, object]()
    if isinstance(error, NotOfTheService):
        facts["http_status"] = error.status
    if cause.reason == "not_azure_storage":
        asked, wait = _describe_asked_wait(target)
        cause = replace(cause, message=f"{cause.message}{asked}")
    return cause.build(errors.Unavailable, **{"address": str(target.address), "facts": wait, **facts})


def _first_line(error: BaseException) -> str:
    """Return the service's sentence. Some answers have none: then their code, or their status."""
    lines = [line.strip() for line in str(error).splitlines()]
    sentence = next((line for line in lines if line and not line.startswith(_NO_SENTENCE)), None)
    return sentence or service_codes.service_code(error) or str(service_codes.status(error) or type(error).__name__)


def _build_meant(
    meaning: service_codes.Meaning, error: Refusal, target: Target, facts: dict[str, Any]
) -> errors.AzguardError:
    """Return the error of a code that is known."""
    words, values = meaning.words, service_codes.name_parents(target)
    if error.code == "ShareNotFound" and (snapshot := target.address.snapshot):
        words = f"{words}, or it has no snapshot {snapshot}"
        return errors.NotFound(words, reason="share_snapshot_not_found", values=values, **facts)
    if meaning.kind is errors.BadRequest:
        words = f"the service refused this for {target}: {words}"
        facts["detail"] = () if error.status_code in _CONFLICTS else (_first_line(error),)
    return meaning.kind(words, reason=meaning.reason, values=values, **facts)


def _build_conflict(
    error: Refusal, target: Target, expected_etag: str | None, facts: dict[str, Any]
) -> errors.AzguardError:
    """Return the error of a conflict that no known code explains."""
    code = error.code or ""
    if service_codes.is_of_condition(error.status_code, code) or code == _OVERWRITTEN:
        return errors.Changed(_describe_change(target, expected_etag), expected_etag=expected_etag, **facts)
    if code == service_codes.TYPE_MISMATCH:
        return _build_type_mismatch(target, facts)
    return errors.BadRequest(
        f"the service refused this for {target}: {code or error.status_code}",
        detail=(_first_line(error),),
        reason=_UNCLEAR,
        expected_etag=expected_etag,
        **facts,
    )


def judge_unclear(refusal: errors.AzguardError, target: Target, found_etag: str | None) -> errors.AzguardError:
    """Return the error for a refusal with an unknown code, after a read: a conflict only if the version moved."""
    expected = refusal.expected_etag
    is_unclear = refusal.reason == _UNCLEAR and expected is not None and found_etag is not None
    if not is_unclear or str(found_etag).strip(_QUOTE) == str(expected).strip(_QUOTE):
        return refusal
    return refusal.as_kind(errors.Changed, message=_describe_change(target, expected), reason=None)


def _build_type_mismatch(target: Target, facts: dict[str, Any]) -> errors.BadRequest:
    if target.kind is Kind.BLOB:
        message = f"{target} is a directory of a hierarchical namespace, not a blob"
        return errors.BadRequest(
            message, reason="blob_is_directory", values={"container": target.address.container}, **facts
        )
    found, wanted = ("file", "directory") if target.kind is Kind.DIR else ("directory", "file")
    values = {"found": found, "container": target.address.container}
    return errors.BadRequest(
        f"{target} is a {found}, not a {wanted}", reason="path_of_other_type", values=values, **facts
    )


def _describe_change(target: Target, expected_etag: str | None) -> str:
    if expected_etag is None:
        return f"the condition did not hold for {target}"
    return f"{target} changed since you read it"
