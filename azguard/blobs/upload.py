"""One upload: what it writes, under which conditions, and what it wrote."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.target import Target
from azguard.conditions.operations import BLOB_PUT_BLOCK_BLOB
from azguard.conditions.requested import CREATE_ONLY
from azguard.conditions.resolve import Conditions, resolve
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, UNSEEN, Lineage, with_lineage


@dataclass(frozen=True)
class Settings:
    """The properties of a blob that a put sets besides its content."""

    content_type: str | None = None
    content_encoding: str | None = None
    content_language: str | None = None
    content_disposition: str | None = None
    cache_control: str | None = None
    #: What the caller says the content's MD5 is, in base64.
    content_md5: str | None = None
    tier: str | None = None
    metadata: Mapping[str, str] | None = None
    tags: Mapping[str, str] | None = None

    def for_sdk(self) -> dict[str, Any]:
        """Return the SDK's keyword arguments."""
        from azure.storage.blob import ContentSettings, StandardBlobTier

        return {
            "content_settings": ContentSettings(
                content_type=self.content_type,
                content_encoding=self.content_encoding,
                content_language=self.content_language,
                content_disposition=self.content_disposition,
                cache_control=self.cache_control,
                content_md5=decode_md5(self.content_md5),
            ),
            "standard_blob_tier": None if self.tier is None else StandardBlobTier(self.tier),
        }


@dataclass(frozen=True)
class BlobPut:
    """What a put wrote."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.CONTENT_LENGTH, columns.ETAG)

    address: str
    #: None where a lost answer was settled, but later writes hide the ETag.
    etag: str | None
    last_modified: datetime | None
    version_id: str | None
    content_length: int
    content_type: str | None
    content_hash: str
    guard: str
    attempts: int
    conflicts: int
    outcome: str
    created: bool | None
    #: The bytes of the version that was replaced, if this scope knows them.
    replaced_length: int | None = field(default=None, metadata=columns.UNPRINTED)


@dataclass(frozen=True)
class Upload:
    """One put that is not sent yet: what it writes to, under which conditions, as which op."""

    target: Target
    settings: Settings
    conditions: Conditions
    deadline: Deadline
    op: str
    #: The lineage that it carries; None without one.
    stamp: str | None = None
    #: That of the content, if one Put Blob writes it: then the service stores it.
    md5: bytes | None = None
    #: Whether it may replace an append or page blob.
    any_type: bool = False
    #: What is done right before the request that commits, with the conditions of that request.
    before_commit: Callable[[Conditions], None] | None = None

    def add_lineage(self, *, wanted: bool = True) -> "Upload":
        """Return the upload with the lineage of the version it is guarded by, carried on, if that is ``wanted``."""
        if not wanted:
            return self
        parent = self.conditions.expected_etag
        if parent is None and not self.conditions.creates_only:
            parent = UNSEEN
        lineage = Lineage.parse(self.conditions.lineage).after(self.op, parent)
        lineage = replace(lineage, tiered=lineage.tiered or self.settings.tier is not None)
        return replace(self, stamp=with_lineage(self.settings.metadata or {}, lineage)[KEY])

    @property
    def metadata(self) -> dict[str, str]:
        """Return the metadata the new version carries, the lineage included."""
        return {**(self.settings.metadata or {}), **({KEY: self.stamp} if self.stamp else {})}

    @property
    def tags(self) -> dict[str, str] | None:
        """Return the index tags the new version carries, the fence included."""
        tags = self.settings.tags or {}
        fence = self.conditions.fence
        if fence is None:
            return dict(tags) or None
        from azguard.conditions import fences

        return fences.with_fence_tag(tags, fence) or None


def create_only(target: Target) -> Conditions:
    """Return the conditions of a put that only creates, even if this scope has read a version."""
    return resolve(BLOB_PUT_BLOCK_BLOB, CREATE_ONLY, target)


def decode_md5(md5: str | None) -> bytearray | None:
    """Return the digest as the SDK takes it."""
    import base64

    return None if md5 is None else bytearray(base64.b64decode(md5))
