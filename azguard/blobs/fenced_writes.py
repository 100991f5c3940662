"""A blob write that the storage refuses once a holder with a higher fence has written.

The request writes our fence to a tag and has one condition: the current tag is no higher. So no version has to be read
before it. The condition also fails where there is no such tag: on a blob that was written without a fence, or if there
is no blob. Then we read, and bind the next request to what was read: to that version, or to no blob. The storage checks
each request, so a change between the read and the request is noticed; the read only decides which request to send. The
condition on tags is always the only one: its combination with others is not documented, and the emulator then ignores
it.
"""

from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from typing import TypeVar

from azguard.accounts.account import Target
from azguard.blobs import properties
from azguard.errors import AzguardError, BadRequest, Changed, Exists, Forbidden, GaveUp, NotFound
from azguard.guards import fences
from azguard.guards.resolve import Conditions
from azguard.requests.deadline import Deadline
from azguard.requests.settle import Settled
from azguard.wire.rows import Condition

T = TypeVar("T")
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


def write_fenced(
    target: Target,
    conditions: Conditions,
    deadline: Deadline,
    attempt: Callable[[Conditions], Settled[T]],
    *,
    creates: bool,
) -> tuple[Settled[T], Conditions]:
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
                raise _build_gave_up(target, refused) from error
        else:
            return settled._replace(attempts=settled.attempts + refused), conditions


def bind_to_what_is_there(target: Target, conditions: Conditions, deadline: Deadline, *, creates: bool) -> Conditions:
    """Look, and return the conditions that bind the next request to the standing fence, the version, or no blob."""
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
    try:
        tags = properties.fetch_tags(target, lease_id, deadline)
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


def _build_gave_up(target: Target, refused: int) -> GaveUp:
    return GaveUp(
        f"{target} was written or deleted by others without a fence between each look at it and the write, "
        f"{refused} times; nothing was applied",
        address=str(target.address),
        reason="written_without_fence",
    )
