"""Wait until a blob is there, is gone, has changed or is not leased any more."""

from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.account import Target
from azguard.blobs import refusals
from azguard.errors import GaveUp, NotFound, NotModified, UsageError
from azguard.frozen import frozen
from azguard.guards import versions
from azguard.guards.resolve import Conditions
from azguard.guards.versions import SeenVersion
from azguard.leases import shown
from azguard.leases.state import LeaseState
from azguard.requests.deadline import Deadline, poll
from azguard.resources import properties
from azguard.resources.lifecycles import is_nowhere
from azguard.times import span
from azguard.wire.rows import Part

# A file of another job is often waited for longer than a lease, which seldom lasts for more than a minute.
_LONGEST_PAUSE_SECONDS = 5.0


class Until(StrEnum):
    """What a blob is waited for."""

    EXISTS = "exists"
    ABSENT = "absent"
    CHANGED = "changed"
    UNLEASED = "unleased"


_STILL = {
    Until.EXISTS: "does not exist",
    Until.ABSENT: "still exists",
    Until.CHANGED: "is unchanged",
}


@frozen
class BlobWaited:
    """What was waited for, and the blob as it was then."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.UNTIL, columns.LAST_MODIFIED, columns.ETAG, columns.LEASE_STATE)

    address: str
    until: str
    exists: bool
    #: This and the others are None where there is no blob.
    etag: str | None = None
    last_modified: datetime | None = None
    lease_state: str | None = None


@frozen
class Waiting:
    """How to wait."""

    patience: Deadline
    #: Is called once if there is something to wait for, before the first pause.
    tell: Callable[[], None]
    #: Is called with the state of the lease that is waited for, and again whenever its holder changes.
    tell_lease: Callable[[LeaseState], None]
    #: Draws a random number between two others.
    uniform: Callable[[float, float], float]

    def poll(self, look: Callable[[Deadline], BlobWaited | None]) -> BlobWaited | None:
        """Return the first finding of ``look``, or None if the time is up before ``look`` finds anything."""
        told = False

        def look_once(deadline: Deadline) -> BlobWaited | None:
            nonlocal told
            found = look(deadline)
            if found is None and not told:
                told = True
                self.tell()
            return found

        return poll(look_once, self.patience, self.uniform, longest_pause_seconds=_LONGEST_PAUSE_SECONDS)


def wait(target: Target, until: Until, conditions: Conditions, waiting: Waiting) -> BlobWaited:
    """Wait, and return the blob as it was found.

    ``conditions`` are for ``changed``: the service answers 304 as long as the blob is the version that they name.
    Each look is one HEAD. Not guaranteed: what came and went between two looks is not noticed, and the blob may be
    another when this returns.

    Raises:
        GaveUp: the time is up.
        NotFound: there is no blob that could change or whose lease could end, or no container that it is absent from.
        UsageError: it is a snapshot or a version, which stays as it is.
    Source: https://learn.microsoft.com/rest/api/storageservices/get-blob-properties
    """
    if until in (Until.CHANGED, Until.UNLEASED):
        _check_can_change(target)
    if until is Until.UNLEASED:
        state = shown.wait_until_free(target, waiting.patience, waiting.tell_lease, waiting.uniform)
        return BlobWaited(
            address=state.address,
            until=until.value,
            exists=True,
            etag=state.etag,
            last_modified=state.last_modified,
            lease_state=state.state,
        )
    looks = {Until.EXISTS: _look_for_presence, Until.ABSENT: _look_for_absence, Until.CHANGED: _look_for_change}
    found = waiting.poll(lambda deadline: looks[until](target, conditions, deadline))
    if found is None:
        raise GaveUp(
            f"{target} {_STILL[until]} after {span(waiting.patience.seconds)}",
            address=str(target.address),
            reason="blob_wait_over",
        )
    return found


def check_was_read(target: Target, last: SeenVersion | None) -> None:
    """Check that there is a version to compare with: the one that was last read.

    Raises:
        Changed: none was.
    """
    if last is None:
        raise versions.never_read(target, Part.WHOLE, reason="never_read_before_wait")


def _check_can_change(target: Target) -> None:
    if target.address.snapshot or target.address.version:
        raise UsageError(
            f"{target} is a snapshot or version: it never changes and cannot be leased",
            address=str(target.address),
            reason="waited_for_snapshot",
        )


def _look_for_presence(target: Target, _: Conditions, deadline: Deadline) -> BlobWaited | None:
    found = properties.find(target, deadline)
    return None if found is None else _to_waited(target, Until.EXISTS, found)


def _look_for_absence(target: Target, _: Conditions, deadline: Deadline) -> BlobWaited | None:
    try:
        properties.fetch(target, Conditions(), deadline)
    except NotFound as error:
        if is_nowhere(target, error):
            raise
        return BlobWaited(str(target.address), Until.ABSENT.value, exists=False)
    return None


def _look_for_change(target: Target, conditions: Conditions, deadline: Deadline) -> BlobWaited | None:
    try:
        with refusals.explain_stale_read(target, conditions, deadline):
            return _to_waited(target, Until.CHANGED, properties.fetch(target, conditions, deadline))
    except NotModified:
        return None


def _to_waited(target: Target, until: Until, found: Any) -> BlobWaited:
    return BlobWaited(
        **properties.describe_version(target.address, found),
        until=until.value,
        exists=True,
        lease_state=found.lease.state,
    )
