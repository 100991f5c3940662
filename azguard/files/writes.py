"""One write of a share, a directory or a file: sent once, and settled if its answer is lost.

What a lost answer means is told by the lineage in the metadata, or by our own lease: what changed while only we could
write, changed by us.
"""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Any

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.errors import BadRequest, Locked, NotFound
from azguard.files import handles
from azguard.frozen import frozen
from azguard.guards import versions
from azguard.guards.resolve import Conditions
from azguard.guards.versions import describe_write, quote_etag
from azguard.leases.guard import GuardLease
from azguard.requests.calls import write_timeouts
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import Lineage
from azguard.requests.results import Written
from azguard.requests.settle import NOTHING_THERE, Finding, WriteRequest, send_until_settled
from azguard.resources import copies, lifecycles, properties
from azguard.wire.answers import Answer
from azguard.wire.call import call
from azguard.wire.operations.shares import (
    DIRECTORY_RENAME,
    FILE_RENAME,
)
from azguard.wire.rows import Operation

# Why a path cannot be looked at, whatever was written to it.
_TELL_NOTHING = ("path_of_other_type", "file_delete_pending")


@frozen
class Held:
    """The version that is there while a lease is held on it."""

    lease: GuardLease
    found: Answer
    #: Whether the metadata tell who holds the lease.
    has_note: bool = False
    #: The service's clock when the properties were read; None if its answer did not say.
    answered_at: datetime | None = None
    #: Whether a copy of an earlier request under the lease may come late. It could undo what is written next, and
    #: another version would not prove that ours was written: see ``guarding.exclude_late``.
    may_move: bool = False

    @property
    def etag(self) -> str:
        """Return the ETag in quotes."""
        return quote_etag(self.found.etag)


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


def rename_once(
    source: Target, target: Target, deadline: Deadline, *, overwrite: bool = False, **settings: Any
) -> Answer:
    """Send one rename of a file or a directory inside its share, and return the version that its answer tells."""
    operation = DIRECTORY_RENAME if source.kind is Kind.DIR else FILE_RENAME
    replaces = "true" if overwrite else "false"
    timeouts, from_url = write_timeouts(deadline), copies.to_url(source)
    return call(operation, target, timeouts, rename_source=from_url, replace_if_exists=replaces, **settings)


def describe_range(start: int, length: int, content: bytes | None) -> Mapping[str, Any]:
    """Return the arguments of ``FILE_PUT_RANGE`` that write content over a range; None clears the range."""
    is_clear = content is None
    return {
        "body": content,
        "range": f"bytes={start}-{start + length - 1}",
        "write": "clear" if is_clear else "update",
        "body_type": None if is_clear else "application/octet-stream",
    }


def describe_size(size: int) -> Mapping[str, Any]:
    """Return the arguments of ``FILE_SET_PROPERTIES`` that set the length of a file."""
    return {"size": size, "permission": "preserve"}


def send(write: FileWrite, held: Held | None, deadline: Deadline) -> Written:
    """Send a write, under the lease that is held, until its outcome is known."""
    lease_id = write.conditions.lease_id if held is None else held.lease.lease_id
    headers = Conditions(lease_id=lease_id).request_headers
    with handles.tell_holders(write.target, deadline):
        before = _look_before(write, held, deadline) if write.operation.deletes else None
        request = WriteRequest[Any](
            target=write.target,
            send=lambda: call(write.operation, write.target, write_timeouts(deadline), headers=headers, **write.given),
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
            return Finding(Verdict.COMMITTED, version if history.entries[0][0] == write.op else {"etag": None})
    # If the lease was broken meanwhile, others could write, too.
    if held is None or not is_alone or not is_held:
        return Finding(Verdict.UNKNOWN, may_be_ours=before is not None and before.etag != found.etag)
    if quote_etag(found.etag) == held.etag:
        return Finding(Verdict.NOT_YET)
    is_ours = write.op is None and not write.operation.deletes
    return Finding(Verdict.COMMITTED, version) if is_ours else Finding(Verdict.UNKNOWN)


def require_version(target: Target, conditions: Conditions, deadline: Deadline) -> Any | None:
    """Compare the version with the one that the conditions name, and return its properties; None if they name none.

    Not guaranteed: another writer can come between this and the write.
    """
    if conditions.expected_etag is None:
        return None
    found = properties.fetch(target, Conditions(), deadline)
    versions.require_version(target, conditions.expected_etag, quote_etag(found.etag), reason="share_or_file_changed")
    return found
