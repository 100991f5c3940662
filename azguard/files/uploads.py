"""Content into a file, whole or not at all: a temporary file beside it, and a rename over it.

A rename that replaces nothing creates atomically. One that replaces a version is guarded by a lease on that version.
A crash leaves the old file as it was, and perhaps a temporary one.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, BinaryIO, ClassVar

from azguard import columns
from azguard.accounts.target import Target
from azguard.conditions.etags import quote
from azguard.conditions.operations import FILE_RENAME
from azguard.conditions.requested import RequestedConditions
from azguard.conditions.resolve import Conditions, resolve
from azguard.documents import metadata as rules
from azguard.errors import Exists, Gone, Locked, NotFound, UsageError
from azguard.files import guarding, renames, temporary, writes
from azguard.files.guarding import Guarding
from azguard.files.properties import FileHeaders, SmbProperties
from azguard.files.temporary import PIECE_BYTES, TemporaryFile
from azguard.files.writes import Held
from azguard.leases import actions
from azguard.leases.owners import FENCE, OWNER, SLOTS
from azguard.requests import commits
from azguard.requests.calls import write_timeouts
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, UNSEEN, Lineage
from azguard.requests.settle import Finding, Settled, WriteRequest, send_until_settled
from azguard.requests.sources import read_up_to
from azguard.requests.verdicts import Verdict

# What a lock keeps in the metadata.
_OF_LOCKS = (OWNER, FENCE, SLOTS)


@dataclass(frozen=True)
class FilePut:
    """What a put wrote."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.CONTENT_LENGTH, columns.ETAG)

    address: str
    #: None where a lost answer was settled, but later writes hide the ETag.
    etag: str | None
    last_modified: datetime | None
    content_length: int
    content_type: str | None
    content_hash: str
    guard: str
    attempts: int
    conflicts: int
    outcome: str
    created: bool | None
    #: The bytes of the version that was replaced.
    replaced_length: int | None = field(default=None, metadata=columns.UNPRINTED)
    lineage: str | None = field(default=None, metadata=columns.UNPRINTED)


@dataclass(frozen=True, kw_only=True)
class FileUpload:
    """One put that is not sent yet."""

    target: Target
    headers: FileHeaders
    smb: SmbProperties
    metadata: Mapping[str, str]
    conditions: Conditions
    deadline: Deadline
    op: str

    @property
    def creates_only(self) -> bool:
        """Return whether it must not replace anything."""
        return self.conditions.guard == "if-none-match"

    def stamp(self, found: Any | None, *, keeps_locks: bool) -> dict[str, str]:
        """Return the metadata that the new version carries, over the one that was found."""
        before: Mapping[str, str] = {} if found is None else found.metadata or {}
        kept = {key: value for key, value in before.items() if keeps_locks and key.lower() in _OF_LOCKS}
        parent = None if self.creates_only else UNSEEN
        if found is not None and self.conditions.expected_etag is not None:
            parent = found.etag
        lineage = Lineage.parse(before.get(KEY)).after(self.op, parent)
        stamped = {**kept, **self.metadata, KEY: str(lineage)}
        rules.check_size(stamped, own=(*kept, KEY))
        return stamped


def create_only(target: Target) -> Conditions:
    """Return the conditions of a put that only creates, even if this scope has read a version."""
    return resolve(FILE_RENAME, RequestedConditions(), target)


def put(
    upload: FileUpload,
    source: BinaryIO,
    size: int | None,
    guarding_by: Guarding,
    progress: Callable[[int], None],
    *,
    allow_empty: bool = True,
) -> FilePut:
    """Write a file from a stream of any length; ``size`` is its length in bytes, if that is known.

    Raises:
        Changed: it is no longer the version that the conditions name; nothing was written.
        Exists: create-only, and it exists.
        Locked: it is leased, or another program has it open.
        OutcomeUnknown: the answer was lost, and it cannot be known whether it was applied.
        UsageError: the content is not what its MD5 says, or it is empty and must not be.
    Source: https://learn.microsoft.com/rest/api/storageservices/create-file, /put-range and /rename-file
    """
    first = read_up_to(source, PIECE_BYTES)
    if not first and not allow_empty:
        raise UsageError("the input is empty; nothing was written", reason="put_is_empty")
    found = _look_early(upload)
    settings = {
        "metadata": upload.stamp(found, keeps_locks=False),
        "content_settings": upload.headers.for_sdk(),
        **_choose_smb(upload.smb, found),
    }
    beginning = len(first) if len(first) < PIECE_BYTES else max(size or 0, len(first))
    made = temporary.create(upload.target, beginning, settings, upload.deadline.fresh)
    with ExitStack() as stack:
        stack.callback(made.remove)
        made.fill(first, source, progress)
        _check_md5(upload, made)
        made.check()
        settled, after = _put_in_place(upload, made, found, guarding_by)
        # Renamed, it is not there any more.
        stack.pop_all()
    return _to_file_put(upload, made, settled, after, found)


def _look_early(upload: FileUpload) -> Any | None:
    """Return the version that is there; fail early where the rename would.

    Raises:
        Changed: it is another version than that of the conditions, or it is gone.
        Exists: it exists, and must not.
        Locked: it has the attribute ReadOnly.
    """
    conditions, target = upload.conditions, upload.target
    try:
        found = writes.fetch(target, conditions.lease_id, upload.deadline)
    except NotFound as error:
        if error.service_code == "ShareNotFound" or error.reason == "parent_not_found":
            raise
        if conditions.expected_etag is None:
            return None
        raise Gone(
            f"{target} is no longer there", str(target.address), expected_etag=conditions.expected_etag
        ) from error
    if upload.creates_only:
        raise Exists(f"{target} exists already", str(target.address), reason="file_exists")
    if conditions.expected_etag not in (None, quote(found.etag)):
        raise guarding.to_changed(target, conditions.expected_etag, quote(found.etag))
    if "ReadOnly" in (found.file_attributes or ""):
        raise Locked(f"{target} has the attribute ReadOnly", str(target.address), reason="file_is_read_only")
    return found


def _choose_smb(given: SmbProperties, found: Any | None) -> dict[str, Any]:
    """Return attributes, creation time and permission of the new version: as given, else those of the old one."""
    wanted = {name: value for name, value in given.for_sdk().items() if value is not None}
    if found is None:
        return wanted
    kept = {
        "file_attributes": found.file_attributes.replace(" ", "") if found.file_attributes else None,
        "file_creation_time": found.creation_time,
        "permission_key": found.permission_key,
    }
    return {**{name: value for name, value in kept.items() if value}, **wanted}


def _check_md5(upload: FileUpload, made: TemporaryFile) -> None:
    import base64

    told = upload.headers.content_md5
    if told is not None and base64.b64decode(told) != made.md5.digest():
        raise UsageError(
            "the content has another MD5 than the one given; nothing was written", reason="content_md5_differs"
        )


def _put_in_place(
    upload: FileUpload, made: TemporaryFile, found: Any | None, guarding_by: Guarding
) -> tuple[Settled[Any], dict[str, str]]:
    """Rename the temporary file to its name, under the guard of the conditions; return what it carries."""
    conditions = upload.conditions
    if conditions.expected_etag is None:
        return _rename(upload, made, None, conditions.lease_id, found)
    with guarding.hold(upload.target, conditions, guarding_by, upload.deadline.fresh()) as held:
        done = _rename(upload, made, held, held.lease.lease_id, held.found)
        # Our lease went with the file that was replaced.
        held.lease.is_gone = held.lease.is_own
        return done


def _rename(
    upload: FileUpload, made: TemporaryFile, held: Held | None, lease_id: str | None, found: Any | None
) -> tuple[Settled[Any], dict[str, str]]:
    deadline = upload.deadline.fresh() if held is None else held.lease.patience
    is_of_caller = lease_id is not None and found is not None and (held is None or not held.lease.is_own)
    metadata = upload.stamp(found, keeps_locks=is_of_caller)
    if is_of_caller:
        # A renamed file keeps its own lease: so the caller's stays on the new version.
        with commits.suppress():
            made.lease_id = lease_id
            actions.acquire(made.target, str(lease_id), None, Conditions(), deadline)
    heard: list[Any] = []

    def send() -> Mapping[str, Any]:
        made.client.rename_file(
            upload.target.address.path,
            overwrite=not upload.creates_only,
            metadata=metadata,
            source_lease=lease_id if is_of_caller else None,
            destination_lease=lease_id,
            raw_response_hook=heard.append,
            **write_timeouts(deadline),
        )
        return renames.read_version(heard[-1])

    request = WriteRequest[Any](
        target=upload.target,
        send=send,
        look=lambda patience: _find_outcome(upload, made, patience),
        expected_etag=upload.conditions.expected_etag,
    )
    return send_until_settled(request, deadline), metadata


def _find_outcome(upload: FileUpload, made: TemporaryFile, patience: Deadline) -> Finding[Any]:
    """Return whether the file is ours, or the temporary one still waits to be renamed, which can be done once only."""
    try:
        found = writes.fetch(upload.target, None, patience)
    except NotFound:
        found = None
    if found is not None:
        history = Lineage.parse((found.metadata or {}).get(KEY))
        if upload.op in history:
            newest = history.entries[0][0] == upload.op
            version = {"etag": found.etag, "last_modified": found.last_modified}
            return Finding(Verdict.COMMITTED, version if newest else {"etag": None})
    try:
        writes.fetch(made.target, None, patience)
    except NotFound:
        return Finding(Verdict.UNKNOWN)
    return Finding(Verdict.NOT_YET)


def _to_file_put(
    upload: FileUpload, made: TemporaryFile, settled: Settled[Any], metadata: Mapping[str, str], found: Any | None
) -> FilePut:
    etag = settled.answer.get("etag")
    is_creation = True if upload.creates_only else (False if upload.conditions.expected_etag else None)
    return FilePut(
        address=str(upload.target.address),
        etag=None if etag is None else quote(etag),
        last_modified=settled.answer.get("last_modified"),
        content_length=made.length,
        content_type=upload.headers.content_type,
        content_hash=f"sha256:{made.sha256.hexdigest()}",
        guard=upload.conditions.guard,
        attempts=settled.attempts,
        conflicts=0,
        outcome="committed",
        created=is_creation,
        replaced_length=None if found is None else found.size,
        lineage=metadata[KEY],
    )
