"""The adapters of safe-update for a blob's content and a blob's metadata."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from azguard.accounts.target import Target
from azguard.blobs import properties, update_states, uploads
from azguard.blobs.download import Download
from azguard.blobs.upload import Settings, Upload
from azguard.conditions.etags import quote
from azguard.conditions.resolve import Conditions
from azguard.errors import Changed, NotFound
from azguard.requests.calls import page_timeouts, pages, write_timeouts
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage, drop_lineage, fresh_op
from azguard.updates.resource import CommittedVersion, CurrentVersion, KeptVersion, Leasable

if TYPE_CHECKING:
    from azguard.blobs.kept_versions import VersionKeeper


@dataclass(frozen=True)
class LeasableBlob(ABC):
    """What content and metadata have in common: the blob, its lease, the caller's fence, and its versions."""

    target: Target
    lease_id: str | None = None
    lock_fence: int | None = None
    #: Keeps each version that a write is about to replace.
    keeper: "VersionKeeper | None" = None

    @abstractmethod
    def read(self, deadline: Deadline) -> CurrentVersion:
        """Return the current version."""

    def read_unleased(self, deadline: Deadline) -> CurrentVersion:
        """Read as ``read`` does, without the caller's lease id, whose lease may have ended."""
        return replace(self, lease_id=None).read(deadline)

    @property
    def leases(self) -> Leasable:
        """Return how it is leased."""
        return self

    def acquire(self, state: CurrentVersion, lease_id: str, seconds: int, deadline: Deadline) -> None:
        """Acquire a lease on the version read (https://learn.microsoft.com/rest/api/storageservices/lease-blob)."""
        self._lease(lease_id).acquire(seconds, headers={"If-Match": state.etag or "*"}, **write_timeouts(deadline))

    def release(self, lease_id: str, deadline: Deadline) -> None:
        """Release a lease. Bounded: if the release fails, the lease expires on its own."""
        self._lease(lease_id).release(**write_timeouts(deadline, at_least=1.0))

    def read_etag_under_lease(self, lease_id: str, deadline: Deadline) -> str:
        """Return the current ETag, which the service tells only to the holder of ``lease_id``."""
        return str(properties.fetch(self.target, Conditions(lease_id=lease_id), deadline).etag)

    def is_leased(self, deadline: Deadline) -> bool:
        """Return whether the blob is locked by a lease; one that is breaking still is."""
        return bool(properties.fetch(self.target, Conditions(), deadline).lease.status == "locked")

    def list_versions(self, deadline: Deadline) -> list[KeptVersion]:
        """Return the blob's kept versions, oldest first."""
        container = self.target.account.container(self.target.address)
        name = self.target.address.name
        include = ["versions", "metadata"]
        found = container.list_blobs(name_starts_with=name, include=include, **page_timeouts(deadline))
        items = [item for item in pages(found, self.target, deadline) if item.name == name and item.version_id]
        items.sort(key=lambda item: item.version_id)
        return [KeptVersion(quote(item.etag), Lineage.find(item.metadata)) for item in items]

    def _keep(self, state: CurrentVersion, lease_id: str | None, deadline: Deadline) -> None:
        if self.keeper is not None and state.etag is not None:
            self.keeper.keep(state.etag, lease_id, deadline)

    def _lease(self, lease_id: str) -> Any:
        from azure.storage.blob import BlobLeaseClient

        return BlobLeaseClient(self.target.account.blob(self.target.address), lease_id)

    def _set_metadata(
        self,
        state: CurrentVersion,
        metadata: Mapping[str, str],
        lineage: Lineage | None,
        lease_id: str | None,
        deadline: Deadline,
    ) -> CommittedVersion:
        client = self.target.account.blob(self.target.address)
        stamped = update_states.add_lineage(metadata, state, lineage)
        headers = update_states.condition_on(state, lease_id).request_headers
        return CommittedVersion.of(client.set_blob_metadata(stamped, headers=headers, **write_timeouts(deadline)))


class _Preserved(NamedTuple):
    """What a write of the content leaves as it is."""

    #: The tags are among them only where the fence was asked for.
    settings: Settings
    tag_count: int | None = None


@dataclass(frozen=True)
class BlobContent(LeasableBlob):
    """A block blob's content. Headers, metadata, index tags and tier survive a write.

    A read of the content does not tell the tier. The service is documented to keep it, and Azurite to the contrary
    forgets it, so it is asked for and sent: one more request where the last write was not azguard's, or chose a tier.
    Source: https://learn.microsoft.com/azure/storage/blobs/access-tiers-overview

    Not guaranteed: tags have no version, so a change of tags between our reading them and our write is undone. That
    does not touch the fence, which is a tag too: see ``_add_fence``.
    """

    def read(self, deadline: Deadline) -> CurrentVersion:
        """Read content, ETag and lineage from one response; a large blob in ranges pinned to its ETag.

        Raises:
            BadRequest: it is an append or page blob.
            Changed: it is overwritten faster than it can be read before the deadline.
        """
        while True:
            try:
                download = Download(self.target, Conditions(lease_id=self.lease_id), lambda: deadline)
            except NotFound as error:
                return update_states.to_missing_version(
                    error, b"", _Preserved(update_states.guess_settings(self.target))
                )
            found = download.properties
            update_states.refuse_other_types(self.target, found)
            try:
                content = b"".join(download)
            except (Changed, NotFound):
                # Another version, or none any more: that is read next.
                if deadline.passed:
                    raise
                continue
            settings = update_states.to_settings(found, drop_lineage(found.metadata))
            state = update_states.to_current_version(
                content, found, _Preserved(settings, found.tag_count), settings.content_type
            )
            if self.lock_fence is None:
                return state
            try:
                return self._add_fence(state, deadline)
            except NotFound:
                continue

    def prepare(
        self, state: CurrentVersion, content: bytes, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Callable[[str | None], CommittedVersion]:
        """Return the Put Blob, or the Put Block List after the blocks were staged."""
        kept: _Preserved = state.preserved
        tags = self._find_tags(kept, deadline)
        tier = self._find_tier(state, lease_id, deadline)
        settings = replace(kept.settings, tags=tags, tier=tier)
        if lineage is not None:
            lineage = replace(lineage, tiered=settings.tier is not None)
        stamp = update_states.add_lineage(settings.metadata or {}, state, lineage).get(KEY)
        upload = Upload(
            target=self.target,
            settings=settings,
            conditions=update_states.condition_on(state, lease_id),
            deadline=deadline,
            op=fresh_op(),
            stamp=stamp,
        )
        commit = uploads.prepare(upload, content)
        self._keep(state, lease_id, deadline)
        return lambda held: CommittedVersion.of(commit(update_states.condition_on(state, held)))

    def fence(
        self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Callable[[], CommittedVersion]:
        """Return a Set Blob Metadata that changes nothing but the ETag and the lineage."""
        mark = self.mark(state, lineage, lease_id, deadline)
        return lambda: mark(lease_id)

    def mark(
        self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Callable[[str | None], CommittedVersion]:
        """Return a Set Blob Metadata that changes nothing but the ETag and the lineage."""
        kept: _Preserved = state.preserved
        if lineage is not None and not state.lineage.entries:
            lineage = replace(lineage, tiered=True)  # unknown here, so the next writer asks
        return lambda held: self._set_metadata(state, kept.settings.metadata or {}, lineage, held, deadline)

    def count_room(self, state: CurrentVersion, content: bytes) -> int:
        """Return how many characters the lineage may have beside the metadata."""
        kept: _Preserved = state.preserved
        from azguard.documents.metadata import count_room

        return count_room(kept.settings.metadata or {}, KEY)

    def canonicalize(self, content: bytes) -> bytes:
        """Return the content: a blob takes any."""
        return content

    def _find_tier(self, state: CurrentVersion, lease_id: str | None, deadline: Deadline) -> str | None:
        """Return the tier to send, None for the account's default; asked only where it may have been chosen.

        Raises:
            Changed: the blob is no longer the version read.
        """
        if state.etag is None or (state.lineage.entries and not state.lineage.tiered):
            return None
        return update_states.find_chosen_tier(
            properties.fetch(self.target, update_states.condition_on(state, lease_id), deadline)
        )

    def _find_tags(self, kept: _Preserved, deadline: Deadline) -> Mapping[str, str] | None:
        """Return the tags to send, ours among them; read as late as possible where they hold no fence."""
        if self.lock_fence is not None:
            from azguard.conditions import fences

            return fences.with_fence_tag(kept.settings.tags or {}, self.lock_fence)
        return properties.fetch_tags(self.target, self.lease_id, deadline) if kept.tag_count else None

    def _add_fence(self, state: CurrentVersion, deadline: Deadline) -> CurrentVersion:
        """Return the state with the fence on it, and its other tags among what is kept.

        The fence is read after the content, and belongs to that version although tags have none: a write under a
        fence changes ETag and tag in one request. A holder with a higher fence who writes after our read makes our
        If-Match fail, and the next read finds that fence. The count of tags is no substitute: it may be withheld.
        """
        from azguard.blobs import fenced_writes

        theirs, others = fenced_writes.read_standing_fence(self.target, self.lease_id, deadline)
        kept = _Preserved(replace(state.preserved.settings, tags=others or None))
        # Write even the same content: it records our fence, so that a holder with a lower one is refused.
        return replace(state, preserved=kept, fence=theirs, must_rewrite=theirs != self.lock_fence)


@dataclass(frozen=True)
class BlobMetadata(LeasableBlob):
    """A blob's metadata, as a JSON object of strings. Works on every type of blob."""

    def read(self, deadline: Deadline) -> CurrentVersion:
        """Read the metadata and ETag from one response."""
        from azguard.documents.metadata import as_json

        try:
            found = properties.fetch(self.target, Conditions(lease_id=self.lease_id), deadline)
            fence = self._read_fence(deadline)
        except NotFound as error:
            return update_states.to_missing_version(error, b"{}", None)
        rest = (update_states.to_settings(found, {}), found.size, found.content_settings.content_md5)
        state = update_states.to_current_version(as_json(drop_lineage(found.metadata)), found, rest)
        return replace(
            state, lineage=replace(state.lineage, tiered=update_states.find_chosen_tier(found) is not None), fence=fence
        )

    def prepare(
        self, state: CurrentVersion, content: bytes, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Callable[[str | None], CommittedVersion]:
        """Return the Set Blob Metadata."""
        from azguard.documents.metadata import from_json

        if state.etag is None:
            raise NotFound(f"there is no blob {self.target}", address=str(self.target.address))
        metadata = from_json(content)
        self._keep(state, lease_id, deadline)
        return lambda held: self._set_metadata(state, metadata, lineage, held, deadline)

    def fence(
        self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Callable[[], CommittedVersion]:
        """Return a Set Blob Metadata that changes nothing but the ETag and the lineage."""
        mark = self.mark(state, lineage, lease_id, deadline)
        return lambda: mark(lease_id)

    def mark(
        self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Callable[[str | None], CommittedVersion]:
        """Return a Set Blob Metadata that changes nothing but the ETag and the lineage."""
        metadata: dict[str, str] = json.loads(state.content)
        return lambda held: self._set_metadata(state, metadata, lineage, held, deadline)

    def count_room(self, state: CurrentVersion, content: bytes) -> int:
        """Return how many characters the lineage may have beside the metadata."""
        from azguard.documents.metadata import count_room

        return count_room(json.loads(content), KEY)

    def canonicalize(self, content: bytes) -> bytes:
        """Return the metadata as indented JSON."""
        from azguard.documents.metadata import as_json, from_json

        return as_json(from_json(content))

    def _read_fence(self, deadline: Deadline) -> int | None:
        # It is compared only: Set Blob Metadata takes no tags, so that a write of metadata cannot raise it.
        if self.lock_fence is None:
            return None
        from azguard.blobs import fenced_writes

        fence, _ = fenced_writes.read_standing_fence(self.target, self.lease_id, deadline)
        return fence
