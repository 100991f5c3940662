"""An update of metadata of which the service compares no version: azguard compares, then writes.

A write depends on no version, so that its lineage proves only that our write is there, never that it cannot come any
more.
"""

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from http import HTTPStatus
from typing import ClassVar

from azguard.accounts.account import Target
from azguard.documents import metadata as rules
from azguard.documents.metadata import as_json, from_json
from azguard.errors import TransformFailed, UsageError
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.guards.versions import find_metadata_etag
from azguard.requests import commits
from azguard.requests.calls import CallOutcome, outcome_of
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage, drop_lineage, with_lineage
from azguard.updates.resource import Commit, CommittedVersion, CurrentVersion, FencingWrite, Leasable, UpdatableResource
from azguard.wire.answers import Answer
from azguard.wire.failures import Refusal


class RefusedHere(Refusal):
    """What the service would refuse if it compared the version itself."""

    @classmethod
    def as_changed(cls) -> "RefusedHere":
        """Return the refusal of a write over a version that is no longer current."""
        return cls(HTTPStatus.PRECONDITION_FAILED, "ConditionNotMet")


def fence_by_release(
    leases: Leasable,
    read: Callable[[Deadline], CurrentVersion],
    state: CurrentVersion,
    lease_id: str | None,
    deadline: Deadline,
) -> FencingWrite:
    """Return a function that makes a write in doubt impossible: it frees the lease and checks the version.

    The caller's own lease stays, so that it is refused: ``lease_id`` is None.
    """

    def give_up_lease() -> CommittedVersion:
        if lease_id is None:
            raise RefusedHere(HTTPStatus.BAD_REQUEST, "LeaseOfCaller")
        leases.release(lease_id, deadline)
        if read(deadline).etag != state.etag:
            raise RefusedHere.as_changed()
        return CommittedVersion(state.etag)

    return give_up_lease


class SingleWrite:
    """A write that nothing keeps out if it comes late: it is sent again only where the one before surely failed.

    A second one could undo what others write once the first has arrived, or what the caller writes next.
    """

    def __init__(self) -> None:
        self._may_arrive = False

    def check(self) -> None:
        """Refuse to send another while one may still arrive.

        Raises:
            RefusedHere: one may.
        """
        if self._may_arrive:
            raise RefusedHere(HTTPStatus.BAD_REQUEST, "MayStillArrive")

    def send(self, call: FencingWrite) -> CommittedVersion:
        """Send it once, and note whether it may still arrive."""
        self.check()
        self._may_arrive = True
        try:
            committed = call()
        except Exception as error:  # it is raised again
            self._may_arrive = outcome_of(error) is CallOutcome.IN_DOUBT
            raise
        self._may_arrive = False
        return committed


@frozen
class UnboundLineage(Lineage):
    """The lineage of writes that depend on no version: a write over a version that was replaced can still come."""

    binds: ClassVar[bool] = False

    def successor(self, parent: str | None) -> str | None:
        return None

    @property
    def reaches_creation(self) -> bool:
        """Return False: a write that overwrote ours without having seen it carries on a history without ours."""
        return False


@frozen
class ComparedMetadata(UpdatableResource):
    """The metadata of a container, a directory or a queue, as a JSON object of strings."""

    target: Target
    #: Returns the properties: ``properties.fetch``.
    fetch: Callable[[Target, Conditions, Deadline], Answer]
    #: Replaces all metadata once, and lets the errors of the wire through: ``parts.send_metadata``.
    send: Callable[[Target, Mapping[str, str], Conditions, Deadline], Answer]
    lease_id: str | None = None
    single: SingleWrite = field(default_factory=SingleWrite)

    def read(self, deadline: Deadline) -> CurrentVersion:
        found = self.fetch(self.target, Conditions(lease_id=self.lease_id), deadline)
        return CurrentVersion(
            content=as_json(drop_lineage(found.metadata)),
            etag=find_metadata_etag(found, found.metadata),
            lineage=UnboundLineage.find(found.metadata),
            last_modified=found.get("last_modified"),
        )

    def read_unleased(self, deadline: Deadline) -> CurrentVersion:
        return replace(self, lease_id=None).read(deadline)

    def prepare(
        self, state: CurrentVersion, content: bytes, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Commit:
        """Return the write, before which the version is compared once more."""
        stamped = with_lineage(from_json(content), state.carry_on(lineage))
        try:
            rules.check_size(stamped, own=(KEY,) if KEY in stamped else ())
        except UsageError as error:
            raise error.as_kind(TransformFailed) from None

        def send(under: Conditions) -> CommittedVersion:
            answer = self.send(self.target, stamped, under, deadline)
            return CommittedVersion(find_metadata_etag(answer, stamped), answer.get("last_modified"))

        def commit(held: str | None) -> CommittedVersion:
            self.single.check()
            with commits.look_first():
                current = self.read(deadline).etag
            if current != state.etag:
                raise RefusedHere.as_changed()
            return self.single.send(lambda: send(Conditions(lease_id=held)))

        return commit

    def count_room(self, state: CurrentVersion, content: bytes) -> int:
        return rules.count_room(from_json(content), KEY)

    def fence(
        self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> FencingWrite:
        """Return a refusal: nothing keeps a write out that is under way."""

        def refuse() -> CommittedVersion:
            raise RefusedHere(HTTPStatus.BAD_REQUEST, "NothingComparesVersions")

        return refuse

    def canonicalize(self, content: bytes) -> bytes:
        return as_json(from_json(content))
