"""A new version of a file, put in its place: a temporary file that is complete, and a rename of it.

A rename that replaces nothing creates atomically. One that replaces a version is guarded by a lease on that version.
A crash leaves the old file as it was, and perhaps a temporary one.

Source: https://learn.microsoft.com/rest/api/storageservices/rename-file
"""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar

from azguard.accounts.account import Target
from azguard.documents import metadata as rules
from azguard.errors import BadRequest, Exists, Gone, Locked, NotFound, OutcomeUnknown
from azguard.files import guarding, writes
from azguard.files.guarding import Guarding
from azguard.files.properties import SmbProperties
from azguard.files.temporary import TemporaryFile
from azguard.files.writes import Held
from azguard.guards.resolve import Conditions
from azguard.guards.versions import quote_etag, require_version
from azguard.leases import actions
from azguard.leases.owners import OF_LOCK
from azguard.requests import commits
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, UNSEEN, Lineage, with_lineage
from azguard.requests.settle import Finding, Settled, WriteRequest, send_until_settled

_Version = TypeVar("_Version", bound="NewVersion")


@dataclass(frozen=True, kw_only=True)
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
        lineage = Lineage.parse(before.get(KEY)).after(self.op, parent)
        stamped = with_lineage({**kept, **self.metadata}, lineage)
        rules.check_size(stamped, own=(*kept, KEY))
        return stamped


def look_early(version: _Version, guarding_by: Guarding) -> tuple[_Version, Any | None]:
    """End what a killed process left of the file, and fail early where the rename would.

    Return the new version, which may replace another one then, and the one that is there.

    One that this op has made already, in a run before this one, is returned as it is.
    """
    conditions = guarding.take_over(version.target, version.conditions, guarding_by, version.deadline)
    version = replace(version, conditions=conditions)
    return version, _look(version)


def _look(version: NewVersion) -> Any | None:
    conditions, target = version.conditions, version.target
    try:
        found = writes.fetch(target, conditions.lease_id, version.deadline)
    except NotFound as error:
        if conditions.expected_etag is None and not _has_no_place(error):
            return None
        _raise_missing(version, error)
    if is_of(found, version.op):
        return found
    if version.creates_only:
        raise Exists(f"{target} exists already", str(target.address), reason="file_exists")
    require_version(target, conditions.expected_etag, quote_etag(found.etag), reason="share_or_file_changed")
    if "ReadOnly" in (found.file_attributes or ""):
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
    return op in Lineage.parse((found.metadata or {}).get(KEY))


def choose_smb(given: SmbProperties, found: Any | None) -> dict[str, Any]:
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


def put_in_place(
    version: NewVersion,
    made: TemporaryFile,
    found: Any | None,
    guarding_by: Guarding,
    smb: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[Settled[Any], dict[str, str]]:
    """Rename the temporary file to its name, under the guard of the conditions; return the metadata that it carries.

    ``smb`` is what the rename itself sets for SMB clients: see the SDK's ``rename_file``.
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
        held.lease.is_gone = held.lease.is_own
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
        # A renamed file keeps its own lease: so the caller's stays on the new version.
        with commits.suppress():
            _give_lease(made, str(lease_id), deadline)
    request = WriteRequest[Any](
        target=version.target,
        send=lambda: writes.rename_once(
            made.target,
            version.target,
            deadline,
            overwrite=not version.creates_only,
            metadata=metadata,
            source_lease=lease_id if is_of_caller else None,
            destination_lease=lease_id,
            **smb,
        ),
        look=lambda patience: _find_outcome(version, made, patience),
        expected_etag=version.conditions.expected_etag,
    )
    return _settle(made, request, deadline), metadata


def _give_lease(made: TemporaryFile, lease_id: str, deadline: Deadline) -> None:
    made.take_lease(lease_id)
    try:
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


def _find_outcome(version: NewVersion, made: TemporaryFile, patience: Deadline) -> Finding[Any]:
    """Return whether the file is ours, or the temporary one still waits to be renamed, which can be done once only."""
    try:
        found = writes.fetch(version.target, None, patience)
    except (NotFound, BadRequest, Locked):  # nothing is there, or a directory, or what is deleted when it is closed
        found = None
    if found is not None:
        history = Lineage.parse((found.metadata or {}).get(KEY))
        if version.op in history:
            newest = history.entries[0][0] == version.op
            written = {"etag": found.etag, "last_modified": found.last_modified}
            return Finding(Verdict.COMMITTED, written if newest else {"etag": None})
    try:
        writes.fetch(made.target, None, patience)
    except NotFound:
        return Finding(Verdict.UNKNOWN)
    return Finding(Verdict.NOT_YET)
