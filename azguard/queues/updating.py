"""The adapter of safe-update for the metadata of a queue, which have no version in the service: see ``metadata``."""

from collections.abc import Mapping
from dataclasses import dataclass

from azguard.queues import metadata
from azguard.requests.deadline import Deadline
from azguard.updates.compared import ComparedMetadata, StampedMetadata
from azguard.updates.resource import CommittedVersion


@dataclass(frozen=True)
class QueueMetadataUpdate(ComparedMetadata):
    """The metadata of a queue, as a JSON object of strings; their version is azguard's own, of their content."""

    def fetch(self, deadline: Deadline) -> StampedMetadata:
        """Return the metadata and the ETag that azguard makes of them."""
        stamped = metadata.fetch(self.target, deadline)
        return StampedMetadata(stamped, metadata.compute_etag(stamped))

    def send(self, stamped: Mapping[str, str], lease_id: str | None, deadline: Deadline) -> CommittedVersion:
        """Send Set Queue Metadata once; no lease of a queue exists."""
        metadata.send(self.target, stamped, deadline)
        return CommittedVersion(metadata.compute_etag(stamped))
