"""What an update reads of a blob, and what a write of it carries on."""

from collections.abc import Mapping
from typing import Any

from azguard.accounts.target import Target
from azguard.blobs import properties
from azguard.blobs.upload import Settings
from azguard.conditions.resolve import Conditions
from azguard.errors import BadRequest, NotFound
from azguard.requests.lineage import Lineage, with_lineage
from azguard.updates.resource import CurrentVersion


def condition_on(state: CurrentVersion, lease_id: str | None) -> Conditions:
    """Return the condition that the blob is still the version read, or still missing."""
    headers = {"If-None-Match": "*"} if state.etag is None else {"If-Match": state.etag}
    return Conditions(
        headers=headers,
        guard="if-match",
        expected_etag=state.etag,
        lease_id=lease_id,
    )


def to_current_version(
    content: bytes, found: Any, preserved: object, content_type: str | None = None
) -> CurrentVersion:
    """Return the version that the SDK's properties describe."""
    return CurrentVersion(
        content=content,
        etag=found.etag,
        lineage=Lineage.find(found.metadata),
        preserved=preserved,
        version_id=found.version_id,
        last_modified=found.last_modified,
        lease_duration=found.lease.duration,
        content_type=content_type,
    )


def to_missing_version(error: NotFound, content: bytes, preserved: object) -> CurrentVersion:
    """Return the state of a blob that does not exist.

    Raises:
        NotFound: its container does not exist either.
    """
    if error.service_code == "ContainerNotFound":
        raise error
    return CurrentVersion(
        content=content,
        etag=None,
        lineage=Lineage(),
        preserved=preserved,
    )


def to_settings(found: Any, metadata: Mapping[str, str]) -> Settings:
    """Return the settings that a write has to send again."""
    headers = found.content_settings
    return Settings(
        content_type=headers.content_type,
        content_encoding=headers.content_encoding,
        content_language=headers.content_language,
        content_disposition=headers.content_disposition,
        cache_control=headers.cache_control,
        metadata=metadata,
    )


def find_chosen_tier(found: Any) -> str | None:
    """Return a blob's tier, or None where it is the account's default."""
    return None if found.blob_tier_inferred else properties.name_of(found.blob_tier)


def add_lineage(metadata: Mapping[str, str], state: CurrentVersion, lineage: Lineage | None) -> dict[str, str]:
    """Return metadata with the lineage: the new one, or the current one if ``lineage`` is None."""
    return with_lineage(metadata, state.carry_on(lineage))


def guess_settings(target: Target) -> Settings:
    """Return the settings of a new blob, with the content type that its name suggests."""
    import mimetypes

    return Settings(mimetypes.guess_type(target.address.name)[0] or "application/octet-stream", metadata={})


def refuse_other_types(target: Target, found: Any) -> None:
    """Refuse a blob that is not a block blob.

    Raises:
        BadRequest: it is an append or page blob.
    """
    kind = properties.type_of(found)
    if kind != "BlockBlob":
        raise BadRequest(
            f"{target} is of type {kind}; safe-update rewrites block blobs",
            address=str(target.address),
            reason="no_block_blob_to_update",
            values={"blob_type": kind},
        )
