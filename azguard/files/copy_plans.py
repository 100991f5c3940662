"""A copy of a file that is not sent yet."""

from collections.abc import Mapping
from dataclasses import dataclass

from azguard.accounts.target import Target
from azguard.conditions.resolve import Conditions
from azguard.files.properties import SmbProperties
from azguard.requests.deadline import Deadline


@dataclass(frozen=True)
class FileCopySettings:
    """What a copy sets besides the content."""

    smb: SmbProperties
    #: None is that of the source.
    metadata: Mapping[str, str] | None = None
    #: Whether attributes and times are those of the source.
    keeps_info: bool = False
    #: Whether the permission is that of the source.
    keeps_permission: bool = False


@dataclass(frozen=True, kw_only=True)
class FileCopy:
    """One copy that is not sent yet."""

    target: Target
    source: Target
    #: The version of the source that is wanted; None is the one that is there.
    source_etag: str | None
    settings: FileCopySettings
    #: Those on the destination.
    conditions: Conditions
    deadline: Deadline
    #: How long the service may take to copy.
    patience: Deadline
    #: Whether that bounds the whole copy, and not the time without progress.
    is_strict: bool
    op: str
