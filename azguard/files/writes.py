"""One write of a share, a directory or a file, under the guard that its conditions name.

It is sent once, and settled if its answer is lost. What a lost answer means is told by the lineage in the metadata, or
by our own lease: what changed while only we could write, changed by us.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from azguard.accounts.account import Target
from azguard.errors import BadRequest, Locked, NotFound
from azguard.files import guarding, handles
from azguard.files.guarding import Guarding, Held
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.guards.versions import describe_write
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import Lineage
from azguard.requests.results import Written
from azguard.requests.settle import NOTHING_THERE, Finding, WriteRequest, send_until_settled
from azguard.resources import lifecycles, properties
from azguard.wire.answers import Answer
from azguard.wire.rows import Operation

# A path cannot be looked at for these reasons, with or without our write.
_TELL_NOTHING = ("path_of_other_type", "file_delete_pending")


@frozen(kw_only=True)
class FileWrite:
    """A write of a share, a directory or a file."""

    target: Target
    conditions: Conditions
    operation: Operation
    #: What it sends, besides the lease id; see ``call``.
    given: Mapping[str, Any] = field(default_factory=dict)
    #: The op in the lineage that it leaves in the metadata, if it leaves one.
    op: str | None = None
    #: Of a delete: the properties of what is there, where they were just read.
    before: Answer | None = None


def perform(
    operation: Operation,
    target: Target,
    conditions: Conditions,
    guarding_by: Guarding,
    deadline: Deadline,
    **given: Any,
) -> Written:
    """Write under the guard that the conditions name; ``given`` is what the operation sends, besides the lease id."""
    conditions = guarding.take_over(target, conditions, guarding_by, deadline)
    write = FileWrite(target=target, conditions=conditions, operation=operation, given=given)
    if conditions.expected_etag is None:
        return send(write, None, deadline)
    with guarding.hold(target, conditions, guarding_by, deadline) as held:
        done = send(write, held, held.lease.patience)
        if operation.deletes:
            held.lease.end_with_resource()
            return done
        return guarding.finish(target, held, done, deadline)


def send(write: FileWrite, held: Held | None, deadline: Deadline) -> Written:
    """Send a write, under the lease that is held, until its outcome is known."""
    lease_id = write.conditions.lease_id if held is None else held.lease.lease_id
    headers = Conditions(lease_id=lease_id).request_headers
    with handles.tell_holders(write.target, deadline):
        before = _look_before(write, held, deadline) if write.operation.deletes else None
        request = WriteRequest[Any](
            operation=write.operation,
            target=write.target,
            given={"headers": headers, **write.given},
            look=lambda patience: _find_outcome(write, held, before, patience),
            expected_etag=write.conditions.expected_etag,
            # Under our own lease, a copy that comes late is refused once the lease is given back.
            resend=held is not None and held.lease.is_own,
        )
        settled = send_until_settled(request, deadline)
    return Written(**describe_write(write.target, write.conditions.guard, settled))


def _look_before(write: FileWrite, held: Held | None, deadline: Deadline) -> Any | None:
    """Look at the resource before a delete is sent, since a deleted one tells nothing."""
    if held is not None:
        return held.found
    if write.before is not None:
        return write.before
    return lifecycles.look_before(
        lambda: properties.fetch(write.target, Conditions(lease_id=write.conditions.lease_id), deadline)
    )


def _find_outcome(write: FileWrite, held: Held | None, before: Any | None, patience: Deadline) -> Finding[Any]:
    is_alone = held is not None and held.lease.is_running
    try:
        lease_id = None if held is None else held.lease.lease_id
        found, is_held = properties.fetch_whatever_lease(write.target, lease_id, patience)
    except NotFound:
        # Only the holder of the lease could delete it.
        verdict = Verdict.COMMITTED if write.operation.deletes and is_alone else Verdict.UNKNOWN
        return Finding(verdict, seen=NOTHING_THERE, may_be_ours=before is not None)
    except (BadRequest, Locked) as error:
        # A directory is there where a file was meant, or a file that no request may read until a program closes it:
        # that tells nothing of the write, so that its own refusal stands.
        if error.reason not in _TELL_NOTHING:
            raise
        return Finding(Verdict.UNKNOWN)
    version = {"etag": found.etag, "last_modified": found.last_modified}
    if write.op is not None:
        history = Lineage.find(found.metadata)
        if write.op in history:
            # Without our lease another program may have written since, and have kept the lineage.
            is_newest = is_alone and is_held and history.entries[0][0] == write.op
            return Finding(Verdict.COMMITTED, version if is_newest else {"etag": None})
    # If the lease was broken meanwhile, others could write, too.
    if held is None or not is_alone or not is_held:
        return Finding(Verdict.UNKNOWN, may_be_ours=before is not None and before.etag != found.etag)
    if found.etag == held.found.etag:
        return Finding(Verdict.NOT_YET)
    is_ours = write.op is None and not write.operation.deletes
    return Finding(Verdict.COMMITTED, version) if is_ours else Finding(Verdict.UNKNOWN)
