"""The source of a file's copy, a file or a blob: which version of it is copied.

The service compares no version of the source. So azguard reads it before the copy, and again after it. An ETag never
comes back: if both are the same, what was copied is of this one version. What a program writes over SMB may move the
ETag later only; a snapshot of the share cannot be written.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from azguard.accounts.account import Auth
from azguard.accounts.target import Target
from azguard.address import Kind
from azguard.conditions.etags import quote
from azguard.errors import AzguardError, Changed, Forbidden, NotFound, Unauthenticated
from azguard.files import writes
from azguard.leases.owners import OF_LOCK
from azguard.requests.calls import read
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY
from azguard.resources import copies

# What azguard keeps in the metadata is about the source alone.
_OWN = (KEY, *OF_LOCK)


@dataclass(frozen=True)
class FileSource:
    """The version of a source that is copied."""

    etag: str
    size: int
    content_type: str | None
    metadata: Mapping[str, str]
    #: Attributes and times of a file, in the SDK's terms; empty of a blob.
    smb: Mapping[str, Any]


def read_version(source: Target, etag: str | None, deadline: Deadline) -> FileSource:
    """Return the version of a source that is there now.

    Raises:
        Changed: it is not the version with this ETag.
        NotFound, Forbidden, Unauthenticated: it is not there, or may not be read.
    """
    try:
        found = _fetch(source, deadline)
    except (NotFound, Forbidden, Unauthenticated) as error:
        if error.reason is not None and source.account.auth in (Auth.KEY, Auth.LOGIN):
            # The key or the login is at fault, for which no SAS helps; or the share is missing.
            raise error.but(facts={**error.facts, "side": "source"}) from error
        raise copies.to_unreadable(error, source) from error
    if etag not in (None, quote(found.etag)):
        raise _to_changed(source, str(etag), quote(found.etag))
    return FileSource(
        etag=quote(found.etag),
        size=found.size,
        content_type=found.content_settings.content_type,
        metadata={key: value for key, value in (found.metadata or {}).items() if key.lower() not in _OWN},
        smb=_read_smb(source, found),
    )


def check_unchanged(source: Target, version: FileSource, deadline: Deadline) -> None:
    """Make sure that a source is still the version that was read before the copy.

    Raises:
        Changed: it is not, or it is gone.
    """
    try:
        found = quote(_fetch(source, deadline).etag)
    except NotFound as error:
        raise _to_changed(source, version.etag, None) from error
    if found != version.etag:
        raise _to_changed(source, version.etag, found)


def judge(error: AzguardError, source: Target) -> AzguardError:
    """Return the refusal of a copy, with the side that was refused."""
    if error.service_code == copies.UNREADABLE:
        return copies.judge_unreadable(error, source)
    # The directory of the destination was there: it is a source in the same account.
    is_of_source = isinstance(error, NotFound) and error.service_code == "ResourceNotFound"
    return copies.to_unreadable(error, source) if is_of_source else error


def _fetch(source: Target, deadline: Deadline) -> Any:
    if source.kind is Kind.FILE:
        return writes.fetch(source, None, deadline)
    client = source.account.blob(source.address)
    return read(lambda timeouts: client.get_blob_properties(**timeouts), source, deadline)


def _read_smb(source: Target, found: Any) -> dict[str, Any]:
    if source.kind is not Kind.FILE:
        return {}
    given = {
        "file_attributes": (found.file_attributes or "").replace(" ", "") or None,
        "file_creation_time": found.creation_time,
        "file_last_write_time": found.last_write_time,
    }
    return {name: value for name, value in given.items() if value is not None}


def _to_changed(source: Target, expected: str, current: str | None) -> Changed:
    what = f"the source {source} is not the version {expected}"
    return Changed(
        f"{what}; nothing was written",
        address=str(source.address),
        current_etag=current,
        reason="copy_source_changed",
        facts={"side": "source", "source_etag": expected},
    )
