"""A new version of a file, whole or not at all: a temporary file that is complete, and a rename of it into its place.

A rename that replaces nothing creates atomically. One that replaces a version is guarded by a lease on that version.
A crash leaves the old file as it was, and perhaps a temporary one.

Source: https://learn.microsoft.com/rest/api/storageservices/rename-file
"""

import hashlib
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any, BinaryIO, NoReturn, TypeVar

from azguard import columns
from azguard.accounts.account import Target
from azguard.documents import metadata as rules
from azguard.errors import AzguardError, Changed, Exists, Gone, Locked, NotFound, OutcomeUnknown, UsageError
from azguard.files import guarding, temporary
from azguard.files.content import FileDownload
from azguard.files.entries import SmbProperties, choose_smb
from azguard.files.guarding import Guarding, Held
from azguard.files.temporary import PIECE_BYTES, TemporaryFile
from azguard.frozen import frozen
from azguard.guards.requested import RequestedConditions
from azguard.guards.resolve import Conditions, resolve
from azguard.guards.versions import describe_write, require_version
from azguard.leases import actions
from azguard.leases.owners import OF_LOCK
from azguard.requests import commits
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, UNSEEN, Lineage, with_lineage
from azguard.requests.results import ContentPut
from azguard.requests.settle import Finding, Settled, WriteRequest, send_until_settled
from azguard.resources import properties
from azguard.resources.properties import ContentHeaders
from azguard.resources.sources import read_up_to
from azguard.wire.operations.shares import FILE_RENAME

# So many bytes are read to know the version that a rename without an answer has made.
_MOST_COMPARED = 16 * PIECE_BYTES
_Version = TypeVar("_Version", bound="NewVersion")


@frozen(kw_only=True)
class NewVersion:
    """A version of a file that is to take its place, and what it may replace."""

    target: Target
    #: What it has besides what azguard keeps there.
    metadata: Mapping[str, str]
    conditions: Conditions
    deadline: Deadline
    op: str

    @property
    def creates_only(self) -> bool:
        """Return whether it must not replace anything."""
        return self.conditions.guard == "if-none-match"

    @property
    def is_creation(self) -> bool | None:
        """Return whether it creates the file; None if the conditions do not tell."""
        if self.creates_only:
            return True
        return False if self.conditions.expected_etag else None

    def stamp(self, found: Any | None, *, keeps_locks: bool) -> dict[str, str]:
        """Return the metadata that the new version carries, over the one that was found."""
        before: Mapping[str, str] = {} if found is None else found.metadata or {}
        kept = {key: value for key, value in before.items() if keeps_locks and key.lower() in OF_LOCK}
        parent = None if self.creates_only else UNSEEN
        if found is not None and self.conditions.expected_etag is not None:
            parent = found.etag
        lineage = Lineage.find(before).after(self.op, parent)
        stamped = with_lineage({**kept, **self.metadata}, lineage)
        rules.check_size(stamped, own=(*kept, KEY))
        return stamped


def look_early(version: _Version, guarding_by: Guarding) -> tuple[_Version, Any | None]:
    """End the lease that a killed process left on the file, and fail early where the rename would.

    Return the new version, which may replace another one then, and the one that is there.

    One that this op has made already, in a run before this one, is returned as it is.
    """
    conditions = guarding.take_over(version.target, version.conditions, guarding_by, version.deadline)
    version = replace(version, conditions=conditions)
    return version, _look(version)


def _look(version: NewVersion) -> Any | None:
    conditions, target = version.conditions, version.target
    try:
        found = properties.fetch(target, Conditions(lease_id=conditions.lease_id), version.deadline)
    except NotFound as error:
        if conditions.expected_etag is None and not _has_no_place(error):
            return None
        _raise_missing(version, error)
    if is_of(found, version.op):
        return found
    if version.creates_only:
        raise Exists(f"{target} exists already", str(target.address), reason="file_exists")
    require_version(target, conditions.expected_etag, found.etag, reason="share_or_file_changed")
    if "ReadOnly" in (found.attributes or ""):
        raise Locked(f"{target} has the attribute ReadOnly", str(target.address), reason="file_is_read_only")
    return found


def _has_no_place(error: NotFound) -> bool:
    return error.service_code == "ShareNotFound" or error.reason == "parent_not_found"


def _raise_missing(version: NewVersion, error: NotFound) -> NoReturn:
    if _has_no_place(error):
        raise error
    target = version.target
    raise Gone(
        f"{target} is no longer there", str(target.address), expected_etag=version.conditions.expected_etag
    ) from error


def is_of(found: Any, op: str) -> bool:
    """Return whether an op has made the version that was found, or one before it."""
    return op in Lineage.find(found.metadata)


def put_in_place(
    version: NewVersion,
    made: TemporaryFile,
    found: Any | None,
    guarding_by: Guarding,
    smb: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[Settled[Any], dict[str, str]]:
    """Rename the temporary file to its name, under the guard of the conditions; return the metadata that it carries.

    ``smb`` is what the rename itself sets for SMB clients: the arguments of ``FILE_RENAME``.
    """
    conditions = version.conditions
    if conditions.expected_etag is None:
        return _rename(version, made, None, conditions.lease_id, found, smb)
    deadline = version.deadline.fresh()
    with ExitStack() as until:
        try:
            # Another process may have been killed while the temporary file was filled.
            conditions = guarding.take_over(version.target, conditions, guarding_by, deadline)
            held = until.enter_context(guarding.hold(version.target, conditions, guarding_by, deadline))
        except NotFound as error:
            _raise_missing(version, error)
        done = _rename(version, made, held, held.lease.lease_id, held.found, smb)
        # Our lease went with the file that was replaced.
        held.lease.end_with_resource()
        return done


def _rename(
    version: NewVersion,
    made: TemporaryFile,
    held: Held | None,
    lease_id: str | None,
    found: Any | None,
    smb: Mapping[str, Any],
) -> tuple[Settled[Any], dict[str, str]]:
    deadline = version.deadline.fresh() if held is None else held.lease.patience
    is_of_caller = lease_id is not None and found is not None and (held is None or not held.lease.is_own)
    metadata = version.stamp(found, keeps_locks=is_of_caller)
    if is_of_caller:
        give_lease(made, str(lease_id), deadline)
    request = WriteRequest[Any](
        operation=FILE_RENAME,
        target=version.target,
        send=lambda: temporary.rename_once(
            made.target,
            version.target,
            deadline,
            overwrite=not version.creates_only,
            metadata=metadata,
            source_lease_id=lease_id if is_of_caller else None,
            destination_lease_id=lease_id,
            **smb,
        ),
        look=lambda patience: _find_outcome(version, made, metadata, found, patience),
        expected_etag=version.conditions.expected_etag,
    )
    return _settle(made, request, deadline), metadata


def give_lease(made: TemporaryFile, lease_id: str, deadline: Deadline) -> None:
    """Acquire the caller's lease on a temporary file: renamed, it keeps its own, so that the caller's stays."""
    made.take_lease(lease_id)
    try:
        with commits.suppress():
            actions.acquire(made.target, lease_id, None, Conditions(), deadline)
    except OutcomeUnknown as error:
        raise made.build_failed("whether it was leased cannot be known") from error


def _settle(made: TemporaryFile, request: WriteRequest[Any], deadline: Deadline) -> Settled[Any]:
    try:
        return send_until_settled(request, deadline)
    except NotFound as error:
        if _has_no_place(error):
            raise
        raise made.build_failed("another has deleted it") from error


def _find_outcome(
    version: NewVersion, made: TemporaryFile, metadata: Mapping[str, str], before: Any | None, patience: Deadline
) -> Finding[Any]:
    """Return whether the file is ours, or the temporary one still waits to be renamed, which can be done once only.

    ``before`` is what was there when the rename was sent. If both have changed, it may have been done.
    """
    found = _look_for_own(version, made, metadata, patience)
    if isinstance(found, Finding):
        return found
    if properties.find(made.target, patience) is not None:
        return Finding(Verdict.NOT_YET)
    # The file may have been renamed since the first look.
    found = _look_for_own(version, made, metadata, patience)
    if isinstance(found, Finding):
        return found
    return Finding(Verdict.UNKNOWN, may_be_ours=found != (None if before is None else before.etag))


def _look_for_own(
    version: NewVersion, made: TemporaryFile, metadata: Mapping[str, str], patience: Deadline
) -> Finding[Any] | str | None:
    """Return the finding that the file is ours; else its ETag, None if it has none."""
    found = guarding.find(version.target, patience)
    if found is None:
        return None
    if not is_of(found, version.op):
        etag: str = found.etag
        return etag
    # Another program may have written since, and have kept the lineage.
    is_as_sent = properties.has_metadata(found, metadata) and _has_content_of(made, found, version)
    told = {"etag": found.etag, "last_modified": found.last_modified} if is_as_sent else {"etag": None}
    return Finding(Verdict.COMMITTED, told)


def _has_content_of(made: TemporaryFile, found: Any, version: NewVersion) -> bool:
    if not made.length == found.size <= _MOST_COMPARED:
        return False
    sent: str = made.sha256.hexdigest()
    try:
        return _hash_found(found, version) == sent
    except AzguardError:
        return False


def _hash_found(found: Any, version: NewVersion) -> str | None:
    """Return the hash of the version that was found; None if another one has taken its place."""
    digest = hashlib.sha256()
    try:
        content = FileDownload(version.target, version.conditions.lease_id, version.deadline.fresh)
        if content.properties.etag != found.etag:
            return None
        for piece in content:
            digest.update(piece)
    except (Changed, NotFound):
        return None
    return digest.hexdigest()


@frozen(kw_only=True)
class FilePut(ContentPut):
    """What a put wrote."""

    lineage: str | None = field(default=None, metadata=columns.UNPRINTED)


@frozen(kw_only=True)
class FileUpload(NewVersion):
    """One put that is not sent yet."""

    headers: ContentHeaders
    smb: SmbProperties


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
    upload, found = look_early(upload, guarding_by)
    if found is not None and is_of(found, upload.op):
        return _describe_earlier_put(upload, found, first, source)
    settings = _choose_settings(upload, found)
    beginning = len(first) if len(first) < PIECE_BYTES else max(size or 0, len(first))
    made = temporary.create(upload.target, beginning, settings, upload.deadline.fresh, guarding_by.temporary)
    with ExitStack() as stack:
        stack.callback(made.remove)
        made.rename_away()
        made.fill(first, source, progress)
        _check_md5(upload, made)
        smb = choose_smb(upload.smb, found)
        settled, after = put_in_place(upload, made, found, guarding_by, smb)
        # Renamed, it is not there any more.
        made.forget()
        stack.pop_all()
    return _to_file_put(upload, made, settled, after, found)


def _choose_settings(upload: FileUpload, found: Any | None) -> dict[str, Any]:
    smb = choose_smb(upload.smb, found)
    return {
        "metadata": upload.stamp(found, keeps_locks=False),
        **upload.headers.given,
        # The rename sets all that SMB clients see: the ranges move the times, and ReadOnly would refuse them.
        **({"permission_key": smb["permission_key"]} if "permission_key" in smb else {}),
    }


def _check_md5(upload: FileUpload, made: TemporaryFile) -> None:
    import base64

    told = upload.headers.content_md5
    if told is not None and base64.b64decode(told) != made.md5.digest():
        raise UsageError(
            "the content has another MD5 than the one given; nothing was written", reason="content_md5_differs"
        )


def _to_file_put(
    upload: FileUpload, made: TemporaryFile, settled: Settled[Any], metadata: Mapping[str, str], found: Any | None
) -> FilePut:
    return FilePut(
        **describe_write(upload.target, upload.conditions.guard, settled),
        content_length=made.length,
        content_type=upload.headers.content_type,
        content_hash=f"sha256:{made.sha256.hexdigest()}",
        created=upload.is_creation,
        replaced_length=None if found is None else found.size,
        lineage=metadata[KEY],
    )


def _describe_earlier_put(upload: FileUpload, found: Any, first: bytes, source: BinaryIO) -> FilePut:
    """Return the result of the put that an earlier run of its op made; ``first`` of the source was read already."""
    digest, length = hashlib.sha256(), 0
    piece = first
    while piece:
        digest.update(piece)
        length += len(piece)
        piece = read_up_to(source, PIECE_BYTES)
    is_there = length == found.size and _hash_found(found, upload) == digest.hexdigest()
    return FilePut(
        address=str(upload.target.address),
        etag=found.etag if is_there else None,
        last_modified=found.last_modified if is_there else None,
        content_length=length,
        content_type=upload.headers.content_type,
        content_hash=f"sha256:{digest.hexdigest()}",
        guard=upload.conditions.guard,
        attempts=1,
        created=upload.is_creation,
        lineage=found.metadata[KEY],
    )
