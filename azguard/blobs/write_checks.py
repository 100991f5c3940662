"""What can refuse a write of a blob: what is there already, and its type; asked before, or explained after.

A Put Blob replaces an append or page blob by a block blob without an error. A version keeps its type. So a write that
is guarded by a version needs no request to learn its type; any other write needs one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from azguard.accounts.account import Target
from azguard.blobs import properties
from azguard.errors import BadRequest, Changed, Exists, Forbidden, GaveUp, Locked, NotFound
from azguard.guards.resolve import Conditions
from azguard.guards.versions import BLOCK_BLOB
from azguard.requests.deadline import Deadline
from azguard.requests.results import Written

if TYPE_CHECKING:
    from azguard.blobs.content.upload import Upload


_SAME_ON_A_READ = ("If-Match", "If-Unmodified-Since", "x-ms-if-tags")
_WORDS = {BLOCK_BLOB: "a block blob", "AppendBlob": "an append blob", "PageBlob": "a page blob"}


def describe_type(found: str | None) -> str:
    """Return a type of blob in words."""
    return _WORDS.get(str(found), str(found))


def check_type(target: Target, conditions: Conditions, deadline: Deadline) -> None:
    """Refuse to put a block blob in the place of a blob of another type.

    Not guaranteed: where the write is for no version, another may change the type between the look and the write.
    """
    if conditions.creates_only:
        return
    _refuse_type(target, conditions.blob_type or _fetch_type(target, deadline))


def _refuse_type(target: Target, found: str | None) -> None:
    if found in (None, BLOCK_BLOB):
        return
    raise BadRequest(
        f"{target} is {describe_type(found)}, and a put would make it a block blob; nothing was written",
        address=str(target.address),
        reason="other_blob_type",
    )


def _fetch_type(target: Target, deadline: Deadline) -> str | None:
    try:
        found = properties.fetch(target, Conditions(), deadline)
    except NotFound:
        return None
    except Forbidden as error:
        raise error.but(
            message=f"{error.message}: so it is not known whether {target} is a block blob", reason="blob_type_unknown"
        ) from error
    return properties.type_of(found)


def check_creatable(target: Target, conditions: Conditions, missing: NotFound) -> None:
    """Refuse to create a blob for a write whose conditions only a blob that exists could fulfil."""
    if conditions.expected_etag is not None:
        raise properties.to_gone(target, conditions.expected_etag, missing) from missing
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
        from azguard.blobs import fenced_writes

        fenced_writes.bind_to_what_is_there(upload.target, conditions, upload.deadline, creates=True)
        return
    # Those that mean on a read what they mean on the commit: they fail with 412 there.
    headers = {key: value for key, value in conditions.headers.items() if key in _SAME_ON_A_READ}
    try:
        found = properties.fetch(upload.target, replace(conditions, headers=headers), upload.deadline)
    except NotFound as error:
        if error.service_code == "ContainerNotFound":
            raise
        if conditions.expected_etag is not None:
            raise properties.to_gone(upload.target, conditions.expected_etag, error) from error
        return
    except Changed as error:
        if conditions.expected_etag is None:
            raise
        told = f"{upload.target} changed since you read it"
        raise replace(error, message=told, expected_etag=conditions.expected_etag) from error
    if conditions.creates_only:
        raise Exists(f"{upload.target} exists already", address=str(upload.target.address))
    if not upload.any_type:
        _refuse_type(upload.target, properties.type_of(found))


@contextmanager
def explain_refusal(target: Target, conditions: Conditions, deadline: Deadline) -> Iterator[None]:
    """Add to the refusal of a write what is there now, or that this scope never read it."""
    try:
        yield
    except Changed as error:
        raise properties.describe_conflict(error, target, deadline) from error
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


def to_gave_up(target: Target, refused: int) -> GaveUp:
    """Return the error of a write that named no version, and met another one at each of ``refused`` attempts."""
    return GaveUp(
        f"{target} was written by others between each look at it and the request after it, {refused} times; "
        "nothing was applied",
        address=str(target.address),
        reason="written_in_between",
    )


def find_blob(target: Target, op: str, deadline: Deadline) -> Written:
    """Find the blob that is there already, for a write that only creates."""
    from azguard.resources.existence import find_existing  # which other writes do not need

    return find_existing(target, op, lambda: properties.fetch(target, Conditions(), deadline.fresh()))
