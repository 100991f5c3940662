"""The metadata of a blob and of a container as the update loop sees them."""

import json
from collections.abc import Mapping
from dataclasses import replace

from azguard.blobs import refusals, updates
from azguard.blobs.content.upload import Settings
from azguard.blobs.updates import LeasableBlob
from azguard.documents.metadata import as_json, count_room, from_json
from azguard.errors import NotFound
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage, drop_lineage
from azguard.resources import parts, properties
from azguard.updates.compared import ComparedMetadata, StampedMetadata
from azguard.updates.resource import Commit, CommittedVersion, CurrentVersion


@frozen
class BlobMetadata(LeasableBlob):
    """A blob's metadata, as a JSON object of strings. Works on every type of blob."""

    def read(self, deadline: Deadline) -> CurrentVersion:
        """Read the metadata and ETag from one response."""
        try:
            found = properties.fetch(self.target, Conditions(lease_id=self.lease_id), deadline)
            fence = self._read_fence(deadline)
        except NotFound as error:
            return updates.to_missing_version(error, b"{}", None)
        rest = (Settings.of_blob(found, {}), found.size, found.content_settings.content_md5)
        state = updates.to_current_version(as_json(drop_lineage(found.metadata)), found, rest)
        return replace(
            state, lineage=replace(state.lineage, tiered=refusals.find_chosen_tier(found) is not None), fence=fence
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
        return count_room(json.loads(content), KEY)

    def canonicalize(self, content: bytes) -> bytes:
        return as_json(from_json(content))

    def _read_fence(self, deadline: Deadline) -> int | None:
        # It is compared only: Set Blob Metadata takes no tags, so that a write of metadata cannot raise it.
        if self.lock_fence is None:
            return None
        fence, _ = refusals.read_standing_fence(self.target, self.lease_id, deadline)
        return fence


@frozen
class ContainerMetadata(ComparedMetadata):
    """The metadata of a container, as a JSON object of strings: see ``compared``."""

    def fetch(self, deadline: Deadline) -> StampedMetadata:
        found = properties.fetch(self.target, Conditions(lease_id=self.lease_id), deadline)
        return StampedMetadata(found.metadata or {}, found.etag, found.last_modified)

    def send(self, stamped: Mapping[str, str], lease_id: str | None, deadline: Deadline) -> CommittedVersion:
        """Send Set Container Metadata once."""
        return CommittedVersion.of(parts.send_metadata(self.target, stamped, Conditions(lease_id=lease_id), deadline))
