"""The adapters of safe-update for a blob's content and a blob's metadata."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from azguard.accounts.target import Target
from azguard.blobs import fenced_writes, properties, uploads
from azguard.blobs.downloads import Download
from azguard.blobs.upload import Settings, Upload
from azguard.conditions import fences
from azguard.conditions.etags import quote
from azguard.conditions.resolve import Conditions
from azguard.documents.metadata import as_json, from_json
from azguard.errors import BadRequest, Changed, NotFound
from azguard.requests.calls import read, write_timeouts
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage, new_op
from azguard.updates.resource import CommittedVersion, CurrentVersion, Leasable, Version


@dataclass(frozen=True)
class _Blob:
    """What content and metadata have in common: the blob, its lease, the caller's fence, and its versions."""

    target: Target
    lease_id: str | None = None
    lock_fence: int | None = None

    @property
    def leases(self) -> Leasable:
        """Return how it is leased."""
        return self

    def acquire(self, state: CurrentVersion, lease_id: str, seconds: int, deadline: Deadline) -> None:
        """Acquire a lease on the version read (https://learn.microsoft.com/rest/api/storageservices/lease-blob)."""
        self._lease(lease_id).acquire(seconds, headers={"If-Match": state.etag or "*"}, **write_timeouts(deadline))

    def release(self, lease_id: str, deadline: Deadline) -> None:
        """Release a lease; nothing waits long for it, since it ends by itself."""
        self._lease(lease_id).release(**write_timeouts(deadline, at_least=1.0))

    def read_etag_under_lease(self, lease_id: str, deadline: Deadline) -> str:
        """Return the current ETag, which the service tells only to the holder of ``lease_id``."""
        return str(properties.fetch(self.target, Conditions(lease_id=lease_id), deadline).etag)

    def is_leased(self, deadline: Deadline) -> bool:
        """Return whether the blob is locked by a lease; one that is breaking still is."""
        return bool(properties.fetch(self.target, Conditions(), deadline).lease.status == "locked")

    def list_versions(self, deadline: Deadline) -> list[Version]:
        """Return the blob's kept versions, oldest first."""
        container = self.target.account.container(self.target.address)
        name = self.target.address.name

        def listing(timeouts: Any) -> list[Any]:
            found = container.list_blobs(name_starts_with=name, include=["versions", "metadata"], **timeouts)
            return [item for item in found if item.name == name and item.version_id]

        items = sorted(read(listing, self.target, deadline), key=lambda item: item.version_id)
        return [Version(quote(item.etag), Lineage.parse((item.metadata or {}).get(KEY))) for item in items]

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
        stamped = {**metadata, **_stamp(state, lineage)}
        headers = _only_over(state, lease_id).request_headers
        return CommittedVersion.of(client.set_blob_metadata(stamped, headers=headers, **write_timeouts(deadline)))


@dataclass(frozen=True)
class _Preserved:
    """What a write of the content leaves as it is."""

    #: The tags are among them only where the fence was asked for.
    settings: Settings
    tag_count: int | None = None


@dataclass(frozen=True)
class BlobContent(_Blob):
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
                return _nothing(error, b"", _Preserved(_for_new(self.target)))
            found = download.properties
            _refuse_other_types(self.target, found)
            try:
                content = b"".join(download)
            except Changed:
                if deadline.passed:
                    raise
                continue
            settings = _settings(found, _without_key(found.metadata or {}))
            state = _state(content, found, _Preserved(settings, found.tag_count), settings.content_type)
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
        tags, tier = self._tags(kept, deadline), self._tier(state, lease_id, deadline)
        settings = replace(kept.settings, tags=tags, tier=tier)
        if lineage is not None:
            lineage = replace(lineage, tiered=settings.tier is not None)
        stamp = _stamp(state, lineage).get(KEY)
        upload = Upload(self.target, settings, _only_over(state, lease_id), deadline, new_op(os.urandom(12)), stamp)
        commit = uploads.prepare(upload, content)
        return lambda held: CommittedVersion.of(commit(_only_over(state, held)))

    def fence(
        self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Callable[[], CommittedVersion]:
        """Return a Set Blob Metadata that changes nothing but the ETag and the lineage."""
        kept: _Preserved = state.preserved
        if lineage is not None and not state.lineage.entries:
            lineage = replace(lineage, tiered=True)  # not known: let the next writer ask
        return lambda: self._set_metadata(state, kept.settings.metadata or {}, lineage, lease_id, deadline)

    def canonicalize(self, content: bytes) -> bytes:
        """Return the content: a blob takes any."""
        return content

    def _tier(self, state: CurrentVersion, lease_id: str | None, deadline: Deadline) -> str | None:
        """Return the tier to send, None for the account's default; asked only where it may have been chosen.

        Raises:
            Changed: the blob is no longer the version read.
        """
        if state.etag is None or (state.lineage.entries and not state.lineage.tiered):
            return None
        return _chosen_tier(properties.fetch(self.target, _only_over(state, lease_id), deadline))

    def _tags(self, kept: _Preserved, deadline: Deadline) -> Mapping[str, str] | None:
        """Return the tags to send, ours among them; read as late as possible where they hold no fence."""
        if self.lock_fence is not None:
            return fences.with_fence_tag(kept.settings.tags or {}, self.lock_fence)
        return properties.tags(self.target, self.lease_id, deadline) if kept.tag_count else None

    def _add_fence(self, state: CurrentVersion, deadline: Deadline) -> CurrentVersion:
        """Return the state with the fence on it, and its other tags among what is kept.

        The fence is read after the content, and belongs to that version although tags have none: a write under a
        fence changes ETag and tag in one request. A holder with a higher fence who writes after our read makes our
        If-Match fail, and the next read finds that fence. The count of tags is no substitute: it may be withheld.
        """
        theirs, others = fenced_writes.read_standing_fence(self.target, self.lease_id, deadline)
        kept = _Preserved(replace(state.preserved.settings, tags=others or None))
        # A write, even of the same content: a holder that found all well must not be overtaken from below.
        return replace(state, preserved=kept, fence=theirs, must_rewrite=theirs != self.lock_fence)


@dataclass(frozen=True)
class BlobMetadata(_Blob):
    """A blob's metadata, as a JSON object of strings. Works on every type of blob."""

    def read(self, deadline: Deadline) -> CurrentVersion:
        """Read the metadata and ETag from one response."""
        try:
            found = properties.fetch(self.target, Conditions(lease_id=self.lease_id), deadline)
            fence = self._fence(deadline)
        except NotFound as error:
            return _nothing(error, b"{}", None)
        rest = (_settings(found, {}), found.size, found.content_settings.content_md5)
        state = _state(as_json(_without_key(found.metadata or {})), found, rest)
        return replace(state, lineage=replace(state.lineage, tiered=_chosen_tier(found) is not None), fence=fence)

    def prepare(
        self, state: CurrentVersion, content: bytes, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Callable[[str | None], CommittedVersion]:
        """Return the Set Blob Metadata."""
        if state.etag is None:
            raise NotFound(f"there is no blob {self.target}", address=str(self.target.address))
        metadata = from_json(content)
        return lambda held: self._set_metadata(state, metadata, lineage, held, deadline)

    def fence(
        self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Callable[[], CommittedVersion]:
        """Return a Set Blob Metadata that changes nothing but the ETag and the lineage."""
        metadata: dict[str, str] = json.loads(state.content)
        return lambda: self._set_metadata(state, metadata, lineage, lease_id, deadline)

    def canonicalize(self, content: bytes) -> bytes:
        """Return the metadata as indented JSON."""
        return as_json(from_json(content))

    def _fence(self, deadline: Deadline) -> int | None:
        # It is compared only: Set Blob Metadata takes no tags, so that a write of metadata cannot raise it.
        return (
            None
            if self.lock_fence is None
            else fenced_writes.read_standing_fence(self.target, self.lease_id, deadline)[0]
        )


def _only_over(state: CurrentVersion, lease_id: str | None) -> Conditions:
    headers = {"If-None-Match": "*"} if state.etag is None else {"If-Match": state.etag}
    return Conditions(headers, "if-match", state.etag, lease_id)


def _state(content: bytes, found: Any, preserved: object, content_type: str | None = None) -> CurrentVersion:
    return CurrentVersion(
        content=content,
        etag=found.etag,
        lineage=Lineage.parse((found.metadata or {}).get(KEY)),
        preserved=preserved,
        version_id=found.version_id,
        last_modified=found.last_modified,
        lease_duration=found.lease.duration,
        content_type=content_type,
    )


def _nothing(error: NotFound, content: bytes, preserved: object) -> CurrentVersion:
    """Return the state of a blob that is not there; without its container nothing can be."""
    if error.service_code == "ContainerNotFound":
        raise error
    return CurrentVersion(content, None, Lineage(), preserved)


def _settings(found: Any, metadata: Mapping[str, str]) -> Settings:
    headers = found.content_settings
    return Settings(
        content_type=headers.content_type,
        content_encoding=headers.content_encoding,
        content_language=headers.content_language,
        content_disposition=headers.content_disposition,
        cache_control=headers.cache_control,
        metadata=metadata,
    )


def _chosen_tier(found: Any) -> str | None:
    """Return a blob's tier, or None where it is the account's default."""
    is_default = found.blob_tier is None or found.blob_tier_inferred
    return None if is_default else str(getattr(found.blob_tier, "value", found.blob_tier))


def _without_key(metadata: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in metadata.items() if key != KEY}


def _stamp(state: CurrentVersion, lineage: Lineage | None) -> dict[str, str]:
    """Return the lineage to carry: the new one, or the one that is there if none is to be stamped."""
    kept = str(state.lineage if lineage is None else lineage)
    return {KEY: kept} if kept else {}


def _for_new(target: Target) -> Settings:
    import mimetypes

    return Settings(mimetypes.guess_type(target.address.name)[0] or "application/octet-stream", metadata={})


def _refuse_other_types(target: Target, found: Any) -> None:
    kind = str(getattr(found.blob_type, "value", found.blob_type))
    if kind != "BlockBlob":
        raise BadRequest(
            f"{target} is of type {kind}; safe-update rewrites block blobs",
            address=str(target.address),
            reason="no_block_blob_to_update",
        )
