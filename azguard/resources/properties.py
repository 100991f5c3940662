"""Properties that resources of several services have: content headers, the lease, the copy that wrote the content."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from azguard.requests.results import MetadataShown


@dataclass(frozen=True)
class ContentHeaders:
    """The content headers of a blob or a file; None is not set."""

    content_type: str | None = None
    content_encoding: str | None = None
    content_language: str | None = None
    content_disposition: str | None = None
    cache_control: str | None = None
    #: In base64.
    content_md5: str | None = None

    @classmethod
    def of(cls, found: Any) -> Self:
        """Return those of the properties that were found."""
        settings = found.content_settings
        return cls(
            settings.content_type or None,
            settings.content_encoding or None,
            settings.content_language or None,
            settings.content_disposition or None,
            settings.cache_control or None,
            encode_md5(settings.content_md5),
        )

    @property
    def given(self) -> dict[str, Any]:
        """Return those that are set."""
        values = {each.name: getattr(self, each.name) for each in fields(ContentHeaders)}
        return {name: value for name, value in values.items() if value is not None}

    def over(self, found: Any) -> "ContentHeaders":
        """Return these, and those that were found where none is set here: what is not sent is cleared."""
        return ContentHeaders(**{**ContentHeaders.of(found).given, **self.given})


def encode_md5(digest: bytes | bytearray | None) -> str | None:
    """Return a digest as the service writes it."""
    if not digest:
        return None
    import base64

    return base64.b64encode(bytes(digest)).decode()


@dataclass(frozen=True, kw_only=True)
class ContentShown(MetadataShown):
    """Content, and its headers."""

    content_length: int
    content_type: str | None
    content_encoding: str | None
    content_language: str | None
    content_disposition: str | None
    cache_control: str | None
    content_md5: str | None


@dataclass(frozen=True, kw_only=True)
class LeaseShown(MetadataShown):
    """What can be leased."""

    lease_status: str | None
    lease_state: str | None
    lease_duration: str | None


@dataclass(frozen=True, kw_only=True)
class CopyShown(MetadataShown):
    """What the service can copy into."""

    #: Of the copy that wrote it, or is writing it; None where no copy did, or a later write has replaced it.
    copy_id: str | None
    copy_status: str | None
    #: The bytes copied, and how many there are, such as ``12/40``.
    copy_progress: str | None


def describe_lease(found: Any) -> dict[str, str | None]:
    """Return the fields of ``LeaseShown`` in the properties of a resource."""
    lease = found.lease
    return {"lease_status": lease.status, "lease_state": lease.state, "lease_duration": lease.duration}


def describe_content(found: Any) -> dict[str, Any]:
    """Return the content, the lease and the copy in the properties of a blob or a file."""
    copy = found.copy
    return {
        "content_length": found.size,
        **vars(ContentHeaders.of(found)),
        **describe_lease(found),
        "copy_id": copy.id,
        "copy_status": copy.status,
        "copy_progress": copy.progress,
    }


def has_metadata(found: Any, wanted: Mapping[str, str]) -> bool:
    """Return whether a resource has these metadata and no others; their names have no case."""
    lower, theirs = ({name.lower(): value for name, value in each.items()} for each in (wanted, found.metadata))
    return lower == theirs
