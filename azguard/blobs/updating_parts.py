"""The adapters of safe-update for the index tags of a blob, and for the metadata of a container.

The service compares no version of either. Tags are compared under a lease of our own, without which the service writes
none. A lease on a container keeps no writer of its metadata out, so that they are only compared.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

from azguard.accounts.target import Target
from azguard.blobs import containers, properties, tags, update_states
from azguard.blobs.updating import LeasableBlob
from azguard.conditions import fences
from azguard.conditions.resolve import Conditions
from azguard.documents import tags as rules
from azguard.documents.metadata import as_json, flatten, from_json
from azguard.errors import NotFound, TransformFailed, UsageError
from azguard.requests.calls import CallOutcome, outcome_of, read, write_timeouts
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage
from azguard.updates.resource import CommittedVersion, CurrentVersion, Version


class _RefusedHere(Exception):  # it stands for a refusal of the service, whose fields it has
    """What the service would refuse if it compared the version itself."""

    def __init__(self, status: HTTPStatus, code: str) -> None:
        super().__init__(code)
        self.status_code = int(status)
        self.error_code = code
        self.message = code


def _changed() -> _RefusedHere:
    return _RefusedHere(HTTPStatus.PRECONDITION_FAILED, "ConditionNotMet")


@dataclass(frozen=True)
class BlobTags(LeasableBlob):
    """The index tags of a blob, as a JSON object of strings. Their version is azguard's own: see ``tags``."""

    def read(self, deadline: Deadline) -> CurrentVersion:
        """Read the version of the blob, then its tags."""
        try:
            found = properties.fetch(self.target, Conditions(lease_id=self.lease_id), deadline)
            there = properties.fetch_tags(self.target, self.lease_id, deadline)
        except NotFound as error:
            return update_states.to_missing_version(error, b"{}", None)
        fence = None if self.lock_fence is None else fences.read_fence(there, self.target)
        return CurrentVersion(
            content=as_json(there),
            etag=tags.compute_etag(found.etag, there),
            lineage=Lineage(),
            preserved=found.etag,
            lease_duration=found.lease.duration,
            fence=fence,
            must_rewrite=fence != self.lock_fence,
        )

    def acquire(self, state: CurrentVersion, lease_id: str, seconds: int, deadline: Deadline) -> None:
        """Acquire a lease on the version read. Its tags are compared too, since they move no ETag."""
        blob = replace(state, etag=state.preserved)
        super().acquire(blob, lease_id, seconds, deadline)
        if self.read_etag_under_lease(lease_id, deadline) != state.etag:
            raise _changed()

    def read_etag_under_lease(self, lease_id: str, deadline: Deadline) -> str:
        """Return the current version of the tags, which the service tells only to the holder of ``lease_id``."""
        return tags.get(self.target, Conditions(lease_id=lease_id), deadline).etag

    def prepare(
        self, state: CurrentVersion, content: bytes, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Callable[[str | None], CommittedVersion]:
        """Return the Set Blob Tags."""
        if state.etag is None:
            raise NotFound(f"there is no blob {self.target}", address=str(self.target.address))
        wanted: dict[str, str] = json.loads(content)
        if self.lock_fence is not None:
            wanted = fences.with_fence_tag(wanted, self.lock_fence)
        client = self.target.account.blob(self.target.address)

        def commit(held: str | None) -> CommittedVersion:
            client.set_blob_tags(wanted, lease=held, **write_timeouts(deadline))
            return CommittedVersion(tags.compute_etag(state.preserved, wanted))

        return commit

    def fence(
        self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Callable[[], CommittedVersion]:
        """Return what makes a write in doubt impossible: its lease is released, and what it would replace is there."""

        def give_up_lease() -> CommittedVersion:
            if lease_id is None or lease_id == self.lease_id:
                raise _RefusedHere(HTTPStatus.BAD_REQUEST, "LeaseOfCaller")
            self.release(lease_id, deadline)
            if self.read(deadline).etag != state.etag:
                raise _changed()
            return CommittedVersion(state.etag)

        return give_up_lease

    def list_versions(self, deadline: Deadline) -> list[Version]:
        """Return none: what is kept of older versions does not tell who wrote their tags."""
        return []

    def canonicalize(self, content: bytes) -> bytes:
        """Return the tags as indented JSON; numbers, true and false become their text."""
        try:
            return as_json(rules.check(flatten(json.loads(content))))
        except ValueError as error:
            raise TransformFailed(f"the new tags are not JSON: {error}") from None
        except UsageError as error:
            raise error.as_kind(TransformFailed) from None


@dataclass(frozen=True, slots=True)
class _UnboundLineage(Lineage):
    """The lineage of writes that depend on no version: a write over a version that was replaced can still come."""

    def successor(self, parent: str | None) -> str | None:
        """Return nothing."""
        return None

    def after(self, op: str, parent: str | None) -> "Lineage":
        """Return the lineage of the version that ``op`` writes over ``parent``."""
        return _UnboundLineage(Lineage.after(self, op, parent).entries)


@dataclass(frozen=True)
class ContainerMetadata:
    """The metadata of a container, as a JSON object of strings.

    A write depends on no version, so that its lineage proves only that our write is there, never that it cannot come
    any more.
    """

    target: Target
    lease_id: str | None = None
    #: The versions over which a write was sent that may still arrive: a second one could undo what others write then.
    under_way: set[str] = field(default_factory=set)

    @property
    def leases(self) -> None:
        """Return nothing: a lease keeps no writer of metadata out."""
        return

    def read(self, deadline: Deadline) -> CurrentVersion:
        """Read the metadata and ETag from one response."""
        found = self._fetch(deadline)
        stamped = found.metadata or {}
        return CurrentVersion(
            content=as_json(update_states.drop_lineage(stamped)),
            etag=found.etag,
            lineage=_UnboundLineage(Lineage.parse(stamped.get(KEY)).entries),
            last_modified=found.last_modified,
        )

    def prepare(
        self, state: CurrentVersion, content: bytes, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Callable[[str | None], CommittedVersion]:
        """Return the Set Container Metadata, before which the version is compared once more."""
        wanted = {**from_json(content), **update_states.to_lineage_metadata(state, lineage)}
        client = self.target.account.container(self.target.address)

        def commit(held: str | None) -> CommittedVersion:
            if self.under_way:
                raise _RefusedHere(HTTPStatus.BAD_REQUEST, "MayStillArrive")
            if self._fetch(deadline).etag != state.etag:
                raise _changed()
            headers = Conditions(lease_id=held).request_headers
            self.under_way.add(str(state.etag))
            try:
                answer = client.set_container_metadata(wanted, headers=headers, **write_timeouts(deadline))
            except Exception as error:
                if outcome_of(error) is not CallOutcome.IN_DOUBT:
                    self.under_way.clear()
                raise
            self.under_way.clear()
            return CommittedVersion.of(answer)

        return commit

    def fence(
        self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Callable[[], CommittedVersion]:
        """Return a refusal: nothing keeps a write out that is under way."""

        def refuse() -> CommittedVersion:
            raise _RefusedHere(HTTPStatus.BAD_REQUEST, "NothingComparesVersions")

        return refuse

    def list_versions(self, deadline: Deadline) -> list[Version]:
        """Return none: the service keeps no versions of a container."""
        return []

    def canonicalize(self, content: bytes) -> bytes:
        """Return the metadata as indented JSON."""
        return as_json(from_json(content))

    def _fetch(self, deadline: Deadline) -> Any:
        if self.lease_id is None:
            return containers.fetch(self.target, deadline)
        client = self.target.account.container(self.target.address)
        return read(
            lambda timeouts: client.get_container_properties(lease=self.lease_id, **timeouts), self.target, deadline
        )
