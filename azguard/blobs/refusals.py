"""What can refuse a read or a write of a blob, asked before or explained after; and the fence of a lock.

**Version.** A refusal gets what is there now, and what is gone is said to be gone: the service answers 412 for it too.

**Type.** A Put Blob replaces an append or page blob by a block blob without an error. A version keeps its type. So a
write that is guarded by a version needs no request to learn its type; any other write needs one.

**Fence.** The storage refuses a write once a holder with a higher fence has written. The request writes our fence to a
tag and has one condition: the current tag is no higher. So no version has to be read before it. The condition also
fails where there is no such tag: on a blob that was written without a fence, or if there is no blob. Then we read, and
bind the next request to what was read: to that version, or to no blob. The storage checks each request, so a change
between the read and the request is noticed; the read only decides which request to send. The condition on tags is
always the only one: its combination with others is not documented, and the emulator then ignores it.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

from azguard.accounts.account import Target
from azguard.errors import AzguardError, BadRequest, Changed, Exists, Forbidden, GaveUp, Gone, Locked, NotFound
from azguard.guards.resolve import Conditions
from azguard.guards.versions import BLOCK_BLOB
from azguard.requests.calls import read, write_timeouts
from azguard.requests.deadline import Deadline
from azguard.requests.service_codes import is_of_encryption
from azguard.resources import properties
from azguard.times import say_count
from azguard.wire import xml
from azguard.wire.answers import Answer
from azguard.wire.call import call
from azguard.wire.failures import Unreadable
from azguard.wire.operations.blobs import BLOB_GET_TAGS, BLOB_SET_TAGS
from azguard.wire.rows import Condition

if TYPE_CHECKING:
    from azguard.blobs.content.upload import Upload
    from azguard.requests.settle import Settled

T = TypeVar("T")
_SAME_ON_A_READ = ("If-Match", "If-Unmodified-Since", "x-ms-if-tags")
_WORDS = {BLOCK_BLOB: "a block blob", "AppendBlob": "an append blob", "PageBlob": "a page blob"}
# A write by a holder of a fence never needs a second read: the tag is there then. So each further read means one more
# write without a fence, or a deletion, between a read and the request after it.
_LOOKS = 5
_NO_PERMISSION = "AuthorizationPermissionMismatch"
# Service codes of accounts without index tags; the last is what a hierarchical namespace says to Get Blob Tags.
_NO_TAGS = {
    "FeatureNotYetSupportedForHierarchicalNamespaceAccounts",
    "BlobApiNotYetSupportedForHierarchicalNamespaceAccounts",
    "BlobTagsNotSupportedForAccountType",
    "InvalidQueryParameterValue",
}


def describe_conflict(error: Changed, target: Target, deadline: Deadline) -> Changed:
    """Add to a failed condition what is there now, if that can be learnt quickly.

    A blob that is gone is said to be gone: the service answers 412 for it as well.
    """
    from azguard.requests.settle import NOTHING_THERE  # which a read does not need

    is_told = isinstance(error, Gone) or error.current_etag is not None
    current = None if is_told else _find_current(error, target, deadline)
    if current is None:
        return error
    if current is NOTHING_THERE:
        if error.expected_etag is None:
            return error.but(detail=(*error.detail, "there is nothing now"))
        return to_gone(target, error.expected_etag, error)
    now = f"now: {say_count(current.size, 'byte')}, written {current.last_modified:%Y-%m-%d %H:%M:%S} UTC"
    return error.but(current_etag=current.etag, lease_state=current.lease.state, detail=(*error.detail, now))


def _find_current(error: Changed, target: Target, deadline: Deadline) -> Any:
    """Return the current version, ``NOTHING_THERE``, or None if a quick look does not tell."""
    from azguard.requests.settle import NOTHING_THERE

    try:
        return error.seen or properties.fetch(target, Conditions(), deadline.briefly())
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


def find_chosen_tier(found: Any) -> str | None:
    """Return a blob's tier, or None where it is the account's default."""
    return None if found.blob_tier_inferred else found.access_tier


def describe_type(found: str | None) -> str:
    """Return a type of blob in words."""
    return _WORDS.get(str(found), str(found))


def check_type(target: Target, conditions: Conditions, deadline: Deadline) -> None:
    """Refuse to put a block blob in the place of a blob of another type, or of a version that is not there any more.

    Not guaranteed: where the write is for no version, another may change the type between the look and the write.
    """
    if conditions.creates_only:
        return
    try:
        _refuse_type(target, conditions.blob_type or _fetch_type(target, conditions, deadline))
    except NotFound as error:
        if conditions.expected_etag is not None and error.service_code != "ContainerNotFound":
            raise to_gone(target, conditions.expected_etag, error) from error


def _refuse_type(target: Target, found: str | None) -> None:
    if found in (None, BLOCK_BLOB):
        return
    raise BadRequest(
        f"{target} is {describe_type(found)}, and a put would make it a block blob; nothing was written",
        address=str(target.address),
        reason="other_blob_type",
    )


def _fetch_type(target: Target, conditions: Conditions, deadline: Deadline) -> str | None:
    # Of the version that the write is for: where that is gone, nothing is sent whose outcome could be in doubt.
    headers = {key: value for key, value in conditions.headers.items() if key == "If-Match"}
    version = replace(conditions, headers=headers, lease_id=None)
    try:
        found: str | None = _fetch_under(target, version, deadline).blob_type
    except Forbidden as error:
        raise error.but(
            message=f"{error.message}: so it is not known whether {target} is a block blob", reason="blob_type_unknown"
        ) from error
    return found


def check_creatable(target: Target, conditions: Conditions, missing: NotFound) -> None:
    """Refuse to create a blob for a write whose conditions only a blob that exists could fulfil."""
    if conditions.expected_etag is not None:
        raise to_gone(target, conditions.expected_etag, missing) from missing
    if not conditions.need_existing:
        return
    nothing = f"there is no blob {target}, and none was created"
    if not conditions.headers:
        raise missing.as_kind(Locked, message=f"the lease is not held any more: {nothing}") from missing
    raise missing.as_kind(
        Changed, message=f"the condition did not hold: {nothing}", reason="created_for_condition"
    ) from missing


def check_early(upload: "Upload") -> None:
    """Raise before the first block what the commit would raise."""
    conditions = upload.conditions
    if conditions.fence is not None:
        bind_to_what_is_there(upload.target, conditions, upload.deadline, creates=True)
        return
    try:
        found = _look_early(upload)
    except NotFound as error:
        if error.service_code == "ContainerNotFound":
            raise
        if conditions.expected_etag is not None:
            raise to_gone(upload.target, conditions.expected_etag, error) from error
        return
    if conditions.creates_only:
        raise Exists(f"{upload.target} exists already", address=str(upload.target.address))
    if found is not None and not upload.any_type:
        _refuse_type(upload.target, found.blob_type)


def _look_early(upload: "Upload") -> Any:
    """Return the blob that is there; None if it is encrypted with another key: the put replaces it as well."""
    conditions = upload.conditions
    # Those that mean on a read what they mean on the commit: they fail with 412 there.
    headers = {key: value for key, value in conditions.headers.items() if key in _SAME_ON_A_READ}
    try:
        return _fetch_under(upload.target, replace(conditions, headers=headers), upload.deadline)
    except BadRequest as error:
        if not is_of_encryption(error):
            raise
        return None


def _fetch_under(target: Target, conditions: Conditions, deadline: Deadline) -> Any:
    """Return the properties of the version that the conditions name; where it is gone, say so as the write would."""
    try:
        return properties.fetch(target, conditions, deadline)
    except Changed as error:
        if conditions.expected_etag is None:
            raise
        told = f"{target} changed since you read it"
        raise replace(error, message=told, expected_etag=conditions.expected_etag) from error


@contextmanager
def explain_refusal(target: Target, conditions: Conditions, deadline: Deadline) -> Iterator[None]:
    """Add to the refusal of a write what is there now, or that this scope never read it."""
    try:
        yield
    except Changed as error:
        if error.facts.get("side") == "source":
            raise
        raise describe_conflict(error, target, deadline) from error
    except Exists as error:
        if not conditions.never_read:
            raise
        message = f"{target} exists, and this scope never read it"
        raise error.but(message=message, reason="put_never_read", address=str(target.address)) from error
    except Locked as error:
        # The live service looks at the lease before it looks whether the blob exists.
        if not conditions.never_read:
            raise
        raise error.but(detail=(*error.detail, "and it was never read here: read it before you write")) from error


def to_gave_up(target: Target, refused: int, *, under_fence: bool = False) -> GaveUp:
    """Return the error of a write that named no version, and met another one at each of ``refused`` attempts."""
    met = "written by others between each look at it and the request after it"
    if under_fence:
        met = "written or deleted by others without a fence between each look at it and the write"
    return GaveUp(
        f"{target} was {met}, {say_count(refused, 'time')}; nothing was applied",
        address=str(target.address),
        reason="written_without_fence" if under_fence else "written_in_between",
    )


def write_fenced(
    target: Target,
    conditions: Conditions,
    deadline: Deadline,
    attempt: "Callable[[Conditions], Settled[T]]",
    *,
    creates: bool,
) -> "tuple[Settled[T], Conditions]":
    """Make a write under its fence, if it has one, and return it with the conditions under which it was committed.

    ``attempt`` makes it under the conditions given and settles its own doubt: what it raises must mean that it was
    not applied, and never will be. ``creates`` says that it may make the blob.
    """
    if conditions.fence is None:
        return attempt(conditions), conditions
    refused = 0
    while True:
        try:
            settled = attempt(conditions)
        except (Forbidden, BadRequest) as error:
            raise explain_fence(error) from error
        except (Changed, Exists, NotFound) as error:
            if error.facts.get("side") == "source":
                raise
            conditions = bind_to_what_is_there(target, conditions, deadline, creates=creates)
            if error.http_status == HTTPStatus.BAD_REQUEST:
                raise  # The blocks that were to be committed are gone.
            refused += 1
            if refused > _LOOKS or deadline.passed:
                raise to_gave_up(target, refused, under_fence=True) from error
        else:
            return replace(settled, attempts=settled.attempts + refused), conditions


def bind_to_what_is_there(target: Target, conditions: Conditions, deadline: Deadline, *, creates: bool) -> Conditions:
    """Look, and return the conditions that bind the next request to the standing fence, the version, or no blob."""
    from azguard.guards import fences  # which a write without one does not need

    fence = conditions.fence
    assert fence is not None
    try:
        found = properties.fetch(target, Conditions(lease_id=conditions.lease_id), deadline)
        # After the ETag, never before: a write under a fence changes both at once, so if that version is still
        # there when our request arrives, so is this tag.
        theirs, _ = read_standing_fence(target, conditions.lease_id, deadline)
    except NotFound as error:
        if not creates or error.service_code == "ContainerNotFound":
            raise
        return replace(conditions, headers={Condition.IF_NONE_MATCH.header: "*"}, expected_etag=None)
    fences.refuse_higher(target, fence, theirs)
    if theirs is None:
        return replace(conditions, headers={Condition.IF_MATCH.header: found.etag}, expected_etag=found.etag)
    return replace(conditions, headers=fences.condition(fence), expected_etag=None)


def read_standing_fence(target: Target, lease_id: str | None, deadline: Deadline) -> tuple[int | None, dict[str, str]]:
    """Return the fence under which a blob was last written, None where there is none, and its other tags."""
    from azguard.guards import fences

    try:
        tags = fetch_tags(target, lease_id, deadline)
    except (Forbidden, BadRequest) as error:
        raise explain_fence(error) from error
    theirs = fences.read_fence(tags, target)
    return theirs, {key: value for key, value in tags.items() if key != fences.TAG}


def explain_fence(error: AzguardError) -> AzguardError:
    """Add to a refusal what a fence needs, if the refusal may mean that it is missing."""
    if error.service_code == _NO_PERMISSION:
        return error.but(reason="fence_needs_permission")
    if error.service_code in _NO_TAGS:
        return error.but(reason="fence_needs_tags")
    return error


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
    tags = xml.parse(answer, "list of tags")
    if tags.find("TagSet") is None:
        raise Unreadable("the answer is no list of tags")
    return xml.read_tags(tags)
