"""New content of a file, whole and at once: a file beside it under a temporary name, then a rename that replaces.

A reader sees the old content or the new, never a mixture. The rename is one request, so that a process that is killed
leaves the old content, and perhaps the file with the temporary name.

A renamed file keeps its own lease, and that of the file in its place ends with that. So a lease of ours ends with the
write itself; the lease of a caller, who goes on, is put on the new file before.

Source: https://learn.microsoft.com/rest/api/storageservices/rename-file
"""

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from azguard.accounts.target import Target
from azguard.address import Address, Kind
from azguard.errors import AzguardError
from azguard.files import writes
from azguard.files.temporary import PREFIX, send_delete
from azguard.requests.calls import CallOutcome, CallResult, page_timeouts, pages, read, send_once, write_timeouts
from azguard.requests.deadline import Deadline
from azguard.requests.service_errors import translate

# The most that one Put Range takes.
_RANGE_BYTES = 4 * 1024 * 1024
_TRIES = 5
_PAUSE_SECONDS = 0.1
# Bounded: a file with a temporary name that stays does no harm.
_DELETE_SECONDS = 3.0


@dataclass(frozen=True)
class Kept:
    """What new content leaves as it is."""

    metadata: Mapping[str, str]
    #: Content type, encoding, language, disposition and cache control.
    headers: tuple[str | None, ...]
    attributes: str | None
    created: datetime | None
    permission_key: str | None

    @classmethod
    def of(cls, found: Any, metadata: Mapping[str, str]) -> "Kept":
        """Read the SDK's properties."""
        given = found.content_settings
        return cls(
            metadata=metadata,
            headers=(
                given.content_type,
                given.content_encoding,
                given.content_language,
                given.content_disposition,
                given.cache_control,
            ),
            attributes=found.file_attributes,
            created=found.creation_time,
            permission_key=found.permission_key,
        )


@dataclass(frozen=True)
class Replacement:
    """The file with a temporary name, and the one whose place it takes."""

    target: Target
    temporary: Target

    def commit(
        self, *, replaces: bool, lease_id: str | None, source_lease_id: str | None, deadline: Deadline
    ) -> Mapping[str, Any]:
        """Rename it once, and return what the answer says. The SDK's errors pass through."""
        return writes.rename_once(
            self.temporary,
            self.target,
            deadline,
            overwrite=replaces,
            destination_lease=lease_id,
            source_lease=source_lease_id,
        )

    def delete(self, lease_id: str | None, deadline: Deadline, tries: int = _TRIES) -> bool:
        """Delete the file with the temporary name, if it is still there; return whether the service has answered."""
        patience = deadline.afterwards(_DELETE_SECONDS)
        for _ in range(tries):
            sent = send_delete(self.temporary, lease_id, patience)
            if sent.outcome in (CallOutcome.COMMITTED, CallOutcome.REFUSED):
                return True
            if patience.passed:
                break
        return False


def prepare(
    target: Target, content: bytes, like: Kept | None, metadata: Mapping[str, str], stem: str, deadline: Deadline
) -> Replacement:
    """Write content into a file beside the target, with the properties of ``like``, and return it.

    ``stem`` begins its name after the prefix, so that it is found after a crash: the id of the lease around the write.

    Raises:
        AzguardError: it could not be written.
    """
    made = _create(target, content, like, metadata, stem, deadline)
    client = made.temporary.account.file(made.temporary.address)
    try:
        for offset in range(0, len(content), _RANGE_BYTES):
            piece = content[offset : offset + _RANGE_BYTES]
            # Sending a range again is safe, even late: it holds the same bytes.
            read(
                lambda timeouts, piece=piece, offset=offset: client.upload_range(piece, offset, len(piece), **timeouts),  # type: ignore[misc]  # bound here
                made.temporary,
                deadline,
            )
    except BaseException:
        _discard([made], deadline)
        raise
    return made


def give_lease(made: Replacement, lease_id: str, deadline: Deadline) -> None:
    """Put the caller's lease on the new file, which keeps it when it is renamed.

    Raises:
        AzguardError: it could not be acquired.
    """
    from azguard.leases.state import client

    lease = client(made.temporary, lease_id)
    read(lambda timeouts: lease.acquire(-1, **timeouts), made.temporary, deadline)


def clean(target: Target, stem: str, deadline: Deadline) -> None:
    """Delete the files that a process which was killed left beside the target; what cannot be done is left."""
    folder, _, _ = target.address.path.rpartition("/")
    patience = deadline.afterwards(_DELETE_SECONDS)
    directory = target.account.directory(Address(Kind.DIR, (target.address.container, folder)))
    with suppress(AzguardError):
        listed = directory.list_directories_and_files(name_starts_with=f"{PREFIX}{stem}", **page_timeouts(patience))
        for each in list(pages(listed, target, patience)):
            Replacement(target, _beside(target, each.name)).delete(None, patience)


def _create(
    target: Target,
    content: bytes,
    like: Kept | None,
    metadata: Mapping[str, str],
    stem: str,
    deadline: Deadline,
) -> Replacement:
    """Create the file; under another name each time, since a create that comes late would empty it.

    So would one that the network sends twice: before anything is written, the file is renamed.
    """
    tried: list[Replacement] = []
    try:
        for _ in range(_TRIES):
            made, renamed, before = _choose(target, stem), _choose(target, stem), [*tried]
            tried += (made, renamed)
            client = made.temporary.account.file(made.temporary.address)
            settings = _settings(like, content)
            sent = send_once(
                lambda client=client, settings=settings: client.create_file(  # type: ignore[misc]  # bound here
                    len(content), metadata=dict(metadata), **settings, **write_timeouts(deadline)
                )
            )
            if sent.error is None:
                sent = _rename_away(made, renamed, deadline)
            if sent.error is None:
                for each in before:
                    each.delete(None, deadline)
                return renamed
            failure = translate(sent.error, target)
            if sent.outcome is CallOutcome.REFUSED or deadline.passed:
                break
            deadline.pause(_PAUSE_SECONDS)
    except BaseException:
        _discard(tried, deadline)
        raise
    _discard(tried, deadline)
    raise failure


def _discard(left: Sequence[Replacement], deadline: Deadline) -> None:
    """Delete files that are of no use, unless the service does not answer: the time is over, or nearly so."""
    for each in left:
        if not each.delete(None, deadline, tries=1):
            break


def _choose(target: Target, stem: str) -> Replacement:
    return Replacement(target, _beside(target, f"{PREFIX}{stem}-{uuid.uuid4().hex[:8]}"))


def _rename_away(made: Replacement, renamed: Replacement, deadline: Deadline) -> CallResult[Any]:
    """Give the file a name that stands in no create; where the answer is lost, a look tells whether it has it."""
    rename = replace(made, target=renamed.temporary)
    sent = send_once(lambda: rename.commit(replaces=False, lease_id=None, source_lease_id=None, deadline=deadline))
    if sent.error is not None:
        with suppress(AzguardError):
            return CallResult(CallOutcome.COMMITTED, writes.fetch(renamed.temporary, None, deadline))
    return sent


def _settings(like: Kept | None, content: bytes) -> dict[str, Any]:
    """Return what a new file takes over from the one whose place it takes."""
    from azure.storage.fileshare import ContentSettings

    digest = bytearray(hashlib.md5(content, usedforsecurity=False).digest())
    if like is None:
        return {"content_settings": ContentSettings(content_md5=digest)}
    kind, encoding, language, disposition, caching = like.headers
    return {
        "content_settings": ContentSettings(
            content_type=kind,
            content_encoding=encoding,
            content_language=language,
            content_disposition=disposition,
            cache_control=caching,
            content_md5=digest,
        ),
        "file_attributes": like.attributes,
        "file_creation_time": like.created,
        "permission_key": like.permission_key,
    }


def _beside(target: Target, name: str) -> Target:
    folder, slash, _ = target.address.path.rpartition("/")
    return Target(target.account, Address(Kind.FILE, (target.address.container, f"{folder}{slash}{name}")))
