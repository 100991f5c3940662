"""A file as a copy of another file or of a blob, by the service itself.

The service's Copy File replaces what is at its destination, compares nothing, and may take hours. So it copies into a
temporary file. Once that copy has ended and is checked, the file is put in its place as any new version is. Meanwhile
nothing is seen at the destination, and nothing is leased.

No request to copy names the destination, nor the file that is checked, which gets another name before. So a request
that comes late, or twice, changes neither. At worst it leaves a temporary file.

The service compares no version of the source. So azguard reads it before the copy, and again after it: an ETag never
comes back. What a program writes over SMB may move the ETag later only; a snapshot of the share cannot be written.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import field
from functools import partial
from typing import Any

from azguard import columns
from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.errors import (
    AzguardError,
    Changed,
    Forbidden,
    GaveUp,
    NotFound,
    OutcomeUnknown,
    Unauthenticated,
    UsageError,
)
from azguard.files import replacing, temporary
from azguard.files.entries import SmbProperties, choose_smb
from azguard.files.guarding import Guarding
from azguard.files.replacing import NewVersion
from azguard.files.temporary import TemporaryFile
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.guards.versions import describe_write
from azguard.leases.owners import OF_LOCK
from azguard.processes.locked_file import ProcessNotes
from azguard.requests import commits
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY
from azguard.requests.settle import Finding, Settled, WriteRequest, send_until_settled
from azguard.resources import copies, properties
from azguard.resources.copies import PENDING, SUCCESS, Copied
from azguard.times import say_count
from azguard.wire.answers import Answer
from azguard.wire.operations.shares import FILE_COPY

# What azguard keeps in the metadata is about the source alone.
_OWN = (KEY, *OF_LOCK)


@frozen
class FileCopySettings:
    """What a copy sets besides the content."""

    smb: SmbProperties
    #: None is that of the source.
    metadata: Mapping[str, str] | None = None
    #: Whether attributes and times are those of the source.
    keeps_info: bool = False
    #: Whether the permission is that of the source.
    keeps_permission: bool = False


@frozen(kw_only=True)
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


@frozen
class _Begun:
    """A copy that the service makes into a temporary file."""

    given: FileCopy
    made: TemporaryFile
    copy_id: str
    #: Files into which a request may still copy whose answer was lost.
    doubtful: list[TemporaryFile]

    def remove_doubtful(self) -> None:
        for each in self.doubtful:
            each.remove()


@frozen(kw_only=True)
class FileCopied(Copied):
    """What a copy wrote; one that is pending is never at the destination."""

    content_type: str | None
    #: The bytes of the version that was replaced.
    replaced_length: int | None = field(default=None, metadata=columns.UNPRINTED)
    lineage: str | None = field(default=None, metadata=columns.UNPRINTED)


def copy(given: FileCopy, guarding_by: Guarding, tell: Callable[[int, int | None], None]) -> FileCopied:
    """Copy a file; ``tell`` is given the bytes that are copied, and how many there are.

    Interrupted, or if it fails, the copy is stopped and nothing is written.

    Raises:
        Changed: the destination is no longer the version that the conditions name, or the source was changed.
        Exists: create-only, and the destination exists.
        Locked: the destination is leased, or another program has it open.
        NotFound, Forbidden: the source, or the directory of the destination.
        GaveUp: the service did not copy in time.
        OutcomeUnknown: the answer was lost, and it cannot be known whether the copy was put in its place.
    Source: https://learn.microsoft.com/rest/api/storageservices/copy-file
    """
    if given.source.address == given.target.address and given.source.account is given.target.account:
        raise UsageError("the two addresses are the same", address=str(given.target.address))
    source = _read_version(given.source, given.source_etag, given.deadline)
    metadata = given.settings.metadata
    if metadata is None:
        metadata = {key: value for key, value in source.metadata.items() if key.lower() not in _OWN}
    version = NewVersion(
        target=given.target,
        metadata=metadata,
        conditions=given.conditions,
        deadline=given.deadline,
        op=given.op,
    )
    version, found = replacing.look_early(version, guarding_by)
    with ExitStack() as stack:
        begun = _begin(given, guarding_by.temporary, stack)
        _await_end(begun, source, tell)
        _keep_apart(begun)
        _check_unchanged(given.source, source, given.deadline.fresh())
        smb = _choose_smb(given, source, found)
        settled, after = replacing.put_in_place(version, begun.made, found, guarding_by, smb)
        # Renamed, it is not there any more.
        begun.made.forget()
        stack.pop_all()
    begun.remove_doubtful()
    return _to_copied(begun, version, source, settled, after, found)


def _choose_smb(given: FileCopy, source: Answer, found: Any | None) -> dict[str, Any]:
    """Return attributes, times and permission: as given, else those of the source or of the version replaced."""
    settings, chosen = given.settings, choose_smb(SmbProperties(), found)
    if settings.keeps_info and given.source.kind is Kind.FILE:
        chosen.update(choose_smb(SmbProperties(), source, ("attributes", "created", "written")))
    if settings.keeps_permission:
        chosen.pop("permission_key", None)
    return {**chosen, **choose_smb(settings.smb, None)}


def _to_copied(
    begun: _Begun,
    version: NewVersion,
    source: Answer,
    settled: Settled[Any],
    metadata: Mapping[str, str],
    found: Any | None,
) -> FileCopied:
    given = begun.given
    return FileCopied(
        **describe_write(given.target, given.conditions.guard, settled),
        source=copies.describe(given.source, given.target),
        source_etag=source.etag,
        content_length=source.size,
        content_type=source.content_settings.content_type,
        copy_id=begun.copy_id,
        copy_status=SUCCESS,
        created=version.is_creation,
        replaced_length=None if found is None else found.size,
        lineage=metadata[KEY],
    )


def _read_version(source: Target, etag: str | None, deadline: Deadline) -> Answer:
    try:
        found = properties.fetch(source, Conditions(), deadline)
    except (NotFound, Forbidden, Unauthenticated) as error:
        raise copies.to_unread(error, source) from error
    if etag not in (None, found.etag):
        raise _to_changed(source, str(etag), found.etag)
    return found


def _check_unchanged(source: Target, version: Answer, deadline: Deadline) -> None:
    try:
        found = properties.fetch(source, Conditions(), deadline).etag
    except NotFound as error:
        raise _to_changed(source, version.etag, None) from error
    if found != version.etag:
        raise _to_changed(source, version.etag, found)


def _judge_refusal(error: AzguardError, source: Target) -> AzguardError:
    if error.service_code == copies.UNREADABLE:
        return copies.judge_unreadable(error, source)
    # The directory of the destination was there: it is a source in the same account.
    is_of_source = isinstance(error, NotFound) and error.service_code == "ResourceNotFound"
    return copies.to_unreadable(error, source) if is_of_source else error


def _to_changed(source: Target, expected: str, current: str | None) -> Changed:
    what = f"the source {source} is not the version {expected}"
    return Changed(
        f"{what}; nothing was written",
        address=str(source.address),
        current_etag=current,
        reason="copy_source_changed",
        facts={"side": "source", "source_etag": expected},
    )


def _begin(given: FileCopy, notes: ProcessNotes | None, stack: ExitStack) -> _Begun:
    """Have the service begin to copy into a temporary file, which ``stack`` removes; before, sweep the directory.

    A request whose answer is lost, and of which nothing is found, is not sent again: it may come late. Instead there is
    another name.
    """
    deadline, doubtful = given.deadline.fresh(), list[TemporaryFile]()
    temporary.sweep(notes, given.target, deadline)
    pauses = copies.pauses()
    asked = {
        "copy_source": copies.to_url(given.source),
        "permission_copy_mode": "source" if given.settings.keeps_permission else None,
    }
    while True:
        made = temporary.choose(given.target, {}, given.deadline.fresh, 0, notes)
        stack.callback(made.remove)
        request = WriteRequest[Any](
            operation=FILE_COPY,
            target=made.target,
            given=asked,
            look=partial(_find_begun, made),
            resend=False,
            is_undone_by_caller=True,
        )
        try:
            with commits.suppress():
                answer = send_until_settled(request, deadline).answer
        except OutcomeUnknown as error:
            made.is_doubtful = True
            doubtful.append(made)
            if deadline.passed:
                raise made.build_failed(error.message) from error
            # Longer each time: each name is a file that may have to be deleted.
            deadline.pause(next(pauses))
        except AzguardError as error:
            raise _judge_refusal(error, given.source) from error
        else:
            made.note_there()
            return _Begun(given, made, str(answer["copy_id"]), doubtful)


def _find_begun(made: TemporaryFile, patience: Deadline) -> Finding[Any]:
    """Return whether a copy was begun into a file that is no other request's."""
    found = properties.find(made.target, patience)
    if found is None:
        return Finding(Verdict.UNKNOWN)
    return Finding(Verdict.UNKNOWN) if found.copy.id is None else Finding(Verdict.COMMITTED, {"copy_id": found.copy.id})


def _await_end(begun: _Begun, source: Answer, tell: Callable[[int, int | None], None]) -> None:
    given, made = begun.given, begun.made
    left, last = given.patience, -1
    for pause in copies.pauses():
        found = _fetch(begun, left)
        if found.copy.status != PENDING:
            break
        done, total = copies.read_progress(found.copy.progress)
        tell(done, total)
        if done != last and not given.is_strict:
            left, last = left.fresh(), done
        if left.remaining <= pause:
            raise _to_gave_up(given, done, total)
        left.pause(pause)
    if found.copy.status != SUCCESS:
        failure = copies.build_failure(given.target, found, "nothing was written")
        is_aborted = failure.reason == "copy_was_aborted"
        raise failure.but(reason="file_copy_aborted" if is_aborted else "file_copy_failed")
    if found.size != source.size:
        raise made.build_failed(f"it has {say_count(found.size, 'byte')}, and its source {source.size:,}")
    made.size = made.length = found.size
    made.etag = found.etag


def _fetch(begun: _Begun, deadline: Deadline) -> Any:
    made = begun.made
    try:
        found = properties.fetch(made.target, Conditions(), deadline)
    except NotFound as error:
        raise made.build_failed("it was deleted") from error
    if found.copy.id not in (None, begun.copy_id):
        raise made.build_failed("something else was copied into it")
    return found


def _keep_apart(begun: _Begun) -> None:
    """Give the temporary file a name that no request to copy has, and make sure that it is what was copied."""
    begun.made.rename_away()
    found = _fetch(begun, begun.given.deadline.fresh())
    if found.copy.status not in (None, SUCCESS):
        raise begun.made.build_failed("something else is copied into it")
    begun.made.check()


def _to_gave_up(given: FileCopy, done: int, total: int | None) -> GaveUp:
    return GaveUp(
        f"the copy to {given.target} took too long, with {done:,} of {say_count(total or 0, 'byte')}; it was stopped, "
        "and nothing was written",
        address=str(given.target.address),
        reason="file_copy_too_slow",
        facts={"copy_progress": f"{done}/{total or 0}"},
    )
