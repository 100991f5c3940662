"""The adapters of safe-update for metadata and index tags of a blob, and for the metadata of a container.

The service compares no version of tags, nor of a container. Tags are compared under a lease of our own, without which
the service writes none. A lease on a container keeps no writer of its metadata out, so that they are only compared.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from azguard.blobs import containers, fenced_writes, properties, tags, update_content
from azguard.blobs.content.upload import Settings
from azguard.blobs.update_content import Commit, LeasableBlob
from azguard.documents import metadata as rules
from azguard.documents.metadata import as_json, count_room, flatten, from_json
from azguard.errors import NotFound, TransformFailed, UsageError
from azguard.guards import fences
from azguard.guards.resolve import Conditions
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage, drop_lineage
from azguard.updates.compared import ComparedMetadata, RefusedHere, SingleWrite, StampedMetadata, fence_by_release
from azguard.updates.recording import ReadRecords
from azguard.updates.resource import CommittedVersion, CurrentVersion, KeptVersion


@dataclass(frozen=True)
class BlobMetadata(LeasableBlob):
    """A blob's metadata, as a JSON object of strings. Works on every type of blob."""

    def read(self, deadline: Deadline) -> CurrentVersion:
        """Read the metadata and ETag from one response."""
        try:
            found = properties.fetch(self.target, Conditions(lease_id=self.lease_id), deadline)
            fence = self._read_fence(deadline)
        except NotFound as error:
            return update_content.to_missing_version(error, b"{}", None)
        rest = (Settings.of_blob(found, {}), found.size, found.content_settings.content_md5)
        state = update_content.to_current_version(as_json(drop_lineage(found.metadata)), found, rest)
        return replace(
            state, lineage=replace(state.lineage, tiered=properties.find_chosen_tier(found) is not None), fence=fence
        )

    def prepare(
        self, state: CurrentVersion, content: bytes, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Commit:
        """Return the Set Blob Metadata."""
        if state.etag is None:
            raise NotFound(f"there is no blob {self.target}", address=str(self.target.address))
        metadata = from_json(content)
        self._keep(state, lease_id, deadline)
        return lambda held: self._set_metadata(state, metadata, lineage, held, deadline)

    def mark(self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline) -> Commit:
        """Return a Set Blob Metadata that changes nothing but the ETag and the lineage."""
        metadata: dict[str, str] = json.loads(state.content)
        return lambda held: self._set_metadata(state, metadata, lineage, held, deadline)

    def count_room(self, state: CurrentVersion, content: bytes) -> int:
        """Return how many characters the lineage may have beside the metadata."""
        return count_room(json.loads(content), KEY)

    def canonicalize(self, content: bytes) -> bytes:
        """Return the metadata as indented JSON."""
        return as_json(from_json(content))

    def _read_fence(self, deadline: Deadline) -> int | None:
        # It is compared only: Set Blob Metadata takes no tags, so that a write of metadata cannot raise it.
        if self.lock_fence is None:
            return None
        fence, _ = fenced_writes.read_standing_fence(self.target, self.lease_id, deadline)
        return fence


@dataclass(frozen=True)
class BlobTags(LeasableBlob):
    """The index tags of a blob, as a JSON object of strings. Their version is azguard's own: see ``tags``."""

    #: For a write under the caller's lease, which does not end with the update.
    single: SingleWrite = field(default_factory=SingleWrite)
    #: The tags that were sent under a fence.
    fenced: list[Mapping[str, str]] = field(default_factory=list)
    #: What this scope has read; None records nothing.
    reads: ReadRecords | None = None

    def read(self, deadline: Deadline) -> CurrentVersion:
        """Read the version of the blob, then its tags."""
        try:
            found = properties.fetch(self.target, Conditions(lease_id=self.lease_id), deadline)
            there = properties.fetch_tags(self.target, self.lease_id, deadline)
        except NotFound as error:
            return update_content.to_missing_version(error, b"{}", None)
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
        if tags.get(self.target, Conditions(lease_id=lease_id), deadline).etag != state.etag:
            raise RefusedHere.as_changed()

    def read_etag_under_lease(self, lease_id: str, deadline: Deadline) -> str:
        """Return the current version of the tags, which the service tells only to the holder of ``lease_id``."""
        found = tags.get(self.target, Conditions(lease_id=lease_id), deadline)
        return self._exclude_lower_fences(found.etag, lease_id, deadline) if found.tags in self.fenced else found.etag

    def prepare(
        self, state: CurrentVersion, content: bytes, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Commit:
        """Return the Set Blob Tags."""
        if state.etag is None:
            raise NotFound(f"there is no blob {self.target}", address=str(self.target.address))
        wanted: dict[str, str] = json.loads(content)
        if self.lock_fence is not None:
            wanted = fences.with_fence_tag(wanted, self.lock_fence)

        def send(held: str | None) -> CommittedVersion:
            if self.lock_fence is not None:
                self.fenced.append(wanted)
            properties.set_tags(self.target, wanted, held, deadline)
            made = tags.compute_etag(state.preserved, wanted)
            return CommittedVersion(self._exclude_lower_fences(made, held, deadline) if self.fenced else made)

        return send if self.lease_id is None else lambda held: self.single.send(lambda: send(held))

    def mark(self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline) -> Commit:
        """Return the write of the same tags, which hold no lineage."""
        return self.prepare(state, state.content, lineage, lease_id, deadline)

    def count_room(self, state: CurrentVersion, content: bytes) -> int:
        """Return 0: tags hold no lineage."""
        return 0

    def _exclude_lower_fences(self, etag: str, lease_id: str | None, deadline: Deadline) -> str:
        moved = tags.move_version(self.target, lease_id, deadline)
        if self.reads is not None:
            self.reads.follow(self.target, moved.before, moved.after, moved.lineage)
        return tags.move_etag(etag, str(moved.after))

    def fence(
        self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Callable[[], CommittedVersion]:
        """Return a function that makes a write in doubt impossible: it frees the lease and checks the version."""
        own = None if lease_id == self.lease_id else lease_id
        return fence_by_release(self, self.read, state, own, deadline)

    def list_versions(self, deadline: Deadline) -> list[KeptVersion]:
        """Return none: what is kept of older versions does not tell who wrote their tags."""
        return []

    def canonicalize(self, content: bytes) -> bytes:
        """Return the tags as indented JSON; numbers, true and false become their text."""
        try:
            return as_json(rules.check_tags(flatten(json.loads(content))))
        except ValueError as error:
            raise TransformFailed(f"the new tags are not JSON: {error}") from None
        except UsageError as error:
            raise error.as_kind(TransformFailed) from None


@dataclass(frozen=True)
class ContainerMetadata(ComparedMetadata):
    """The metadata of a container, as a JSON object of strings: see ``compared``."""

    def fetch(self, deadline: Deadline) -> StampedMetadata:
        """Return the metadata and the ETag of the container."""
        found = containers.fetch(self.target, Conditions(lease_id=self.lease_id), deadline)
        return StampedMetadata(found.metadata or {}, found.etag, found.last_modified)

    def send(self, stamped: Mapping[str, str], lease_id: str | None, deadline: Deadline) -> CommittedVersion:
        """Send Set Container Metadata once."""
        return CommittedVersion.of(
            properties.set_metadata(self.target, stamped, Conditions(lease_id=lease_id), deadline)
        )
