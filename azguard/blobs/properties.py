"""The properties and tags of one blob. For content see ``content``."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from azguard.accounts.account import Target
from azguard.errors import AzguardError, Changed, Gone, NotFound
from azguard.guards.resolve import Conditions
from azguard.requests.calls import read, write_timeouts
from azguard.requests.deadline import Deadline
from azguard.wire import xml
from azguard.wire.answers import Answer
from azguard.wire.call import call
from azguard.wire.failures import Unreadable
from azguard.wire.operations.blobs import BLOB_GET_PROPERTIES, BLOB_GET_TAGS, BLOB_SET_TAGS
from azguard.wire.rows import Condition


def fetch(target: Target, conditions: Conditions, deadline: Deadline) -> Any:
    """Return the properties of a blob, the lineage in its metadata included.

    Source: https://learn.microsoft.com/rest/api/storageservices/get-blob-properties
    """
    return read(
        lambda timeouts: call(BLOB_GET_PROPERTIES, target, timeouts, headers=conditions.request_headers),
        target,
        deadline,
    )


def fetch_whatever_lease(target: Target, lease_id: str | None, deadline: Deadline) -> tuple[Any, bool]:
    """Return the properties of a blob, asked under a lease id as long as that lease is held, and whether it is."""
    from azguard.requests.commits import look_under  # which a read does not need

    return look_under(lease_id, lambda under: fetch(target, Conditions(lease_id=under), deadline))


def fetch_tags(
    target: Target, lease_id: str | None, deadline: Deadline, condition: str | None = None
) -> dict[str, str]:
    """Return a blob's index tags. They have no version: neither ETag nor Last-Modified moves with them.

    Source: https://learn.microsoft.com/rest/api/storageservices/get-blob-tags
    """
    headers = _build_tag_headers(lease_id, condition)
    return read(lambda timeouts: _parse_tags(call(BLOB_GET_TAGS, target, timeouts, headers=headers)), target, deadline)


def set_tags(
    target: Target, tags: Mapping[str, str], lease_id: str | None, deadline: Deadline, condition: str | None = None
) -> None:
    """Replace a blob's index tags: send them once. ``condition`` is on those that are there now.

    Source: https://learn.microsoft.com/rest/api/storageservices/set-blob-tags
    """
    each = (f"<Tag><Key>{xml.escape(key)}</Key><Value>{xml.escape(tags[key])}</Value></Tag>" for key in tags)
    body = xml.build_document(f"<Tags><TagSet>{''.join(each)}</TagSet></Tags>")
    headers = _build_tag_headers(lease_id, condition)
    call(BLOB_SET_TAGS, target, write_timeouts(deadline), headers=headers, body=body)


def _build_tag_headers(lease_id: str | None, condition: str | None) -> dict[str, str]:
    on_tags = {} if condition is None else {Condition.IF_TAGS.header: condition}
    return Conditions(on_tags, lease_id=lease_id).request_headers


def _parse_tags(answer: Answer) -> dict[str, str]:
    tags = xml.parse(answer, "list of tags").find("TagSet")
    if tags is None:
        raise Unreadable("the answer is no list of tags")
    return {each.findtext("Key") or "": each.findtext("Value") or "" for each in tags}


def describe_conflict(error: Changed, target: Target, deadline: Deadline) -> Changed:
    """Add to a failed condition what is there now, if that can be learnt quickly.

    A blob that is gone is said to be gone: the service answers 412 for it as well.
    """
    from azguard.requests.settle import NOTHING_THERE  # which a read does not need

    current = _find_current(error, target, deadline)
    if current is None:
        return error
    if current is NOTHING_THERE:
        if error.expected_etag is None:
            return error.but(detail=(*error.detail, "there is nothing now"))
        return to_gone(target, error.expected_etag, error)
    now = f"now: {current.size:,} bytes, written {current.last_modified:%Y-%m-%d %H:%M:%S} UTC"
    return error.but(current_etag=current.etag, lease_state=current.lease.state, detail=(*error.detail, now))


def _find_current(error: Changed, target: Target, deadline: Deadline) -> Any:
    """Return the current version, ``NOTHING_THERE``, or None if a quick look does not tell."""
    from azguard.requests.settle import NOTHING_THERE

    try:
        return error.seen or fetch(target, Conditions(), deadline.restart(seconds=min(2.0, deadline.seconds)))
    except NotFound:
        return NOTHING_THERE
    except Exception:  # noqa: BLE001  # the explanation is optional; report the conflict even if it fails
        return None


@contextmanager
def explain_stale_read(target: Target, conditions: Conditions, deadline: Deadline) -> Iterator[None]:
    """Add to the error of a failed conditional read the version it was for and the current one."""
    try:
        yield
    except Changed as error:
        if not conditions.headers:
            raise
        from azguard.requests.settle import NOTHING_THERE

        current = _find_current(error, target, deadline)
        if current is None:
            raise
        if current is NOTHING_THERE:
            raise NotFound(f"there is no blob {target}", str(target.address), request_id=error.request_id) from error
        known = error.but(expected_etag=conditions.expected_etag, seen=current)
        raise describe_conflict(known, target, deadline) from error.__cause__


@contextmanager
def explain_gone(target: Target, expected_etag: str | None) -> Iterator[None]:
    """Say of a missing blob that its version is gone, if one is expected."""
    try:
        yield
    except NotFound as error:
        if expected_etag is None or error.service_code == "ContainerNotFound":
            raise
        raise to_gone(target, expected_etag, error) from error


def to_gone(target: Target, expected_etag: str, refusal: AzguardError) -> Gone:
    """Return the error for a write that was refused because the blob is not there any more."""
    return Gone(
        f"{target} is no longer there",
        str(target.address),
        http_status=refusal.http_status,
        service_code=refusal.service_code,
        request_id=refusal.request_id,
        expected_etag=expected_etag,
    )


def type_of(found: Any) -> str | None:
    """Return the type of a blob: BlockBlob, AppendBlob or PageBlob."""
    found_type: str | None = found.blob_type
    return found_type


def find_chosen_tier(found: Any) -> str | None:
    """Return a blob's tier, or None where it is the account's default."""
    return None if found.blob_tier_inferred else found.access_tier
