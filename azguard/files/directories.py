"""Directories: requests in, frozen values out. They have versions, and no leases to keep them."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import field
from typing import Any

from azguard import columns
from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import AzguardError, BadRequest, Exists, Locked, NotFound, UsageError
from azguard.files import guarding, handles, temporary, writes
from azguard.files.writes import FileWrite
from azguard.frozen import frozen
from azguard.guards import versions
from azguard.guards.resolve import Conditions
from azguard.guards.versions import describe_write
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.results import WOULD_RENAME, Written
from azguard.requests.settle import Finding, WriteRequest, send_until_settled
from azguard.resources import properties
from azguard.wire.operations.shares import DIRECTORY_DELETE, DIRECTORY_RENAME

# Bounded: the refusal is known already.
_ASK_SECONDS = 3.0


def delete(target: Target, conditions: Conditions, deadline: Deadline) -> Written:
    """Delete a directory, which has to be empty.

    Raises:
        Changed: it is not the version that the conditions name.
        BadRequest: it is not empty.
        OutcomeUnknown: the answer was lost, and it is gone: by us or by another.
    Source: https://learn.microsoft.com/rest/api/storageservices/delete-directory
    """
    before = guarding.require_version(target, conditions, deadline)
    write = FileWrite(target=target, conditions=conditions, operation=DIRECTORY_DELETE, before=before)
    return writes.send(write, None, deadline)


@frozen
class DirectoryRenamed(Written):
    """What the rename of a directory did."""

    #: The version that was renamed.
    previous_etag: str | None = field(default=None, metadata=columns.UNPRINTED)


def rename_directory(source: Target, target: Target, conditions: Conditions, deadline: Deadline) -> DirectoryRenamed:
    """Rename a directory with all that is in it; only a file is replaced, and only if the conditions allow that.

    Raises:
        Exists: there is something at the new address.
        NotFound: there is no such directory.
        UsageError: the new address is in another share, in the directory itself, or the same.
        OutcomeUnknown: the answer was lost, and the directory is not at its new address.
    Source: https://learn.microsoft.com/rest/api/storageservices/rename-directory
    """
    check_same_share(source, target)
    _check_outside(source, target)
    guarding.require_version(find_replaced(target), conditions, deadline)
    before = properties.fetch(source, Conditions(), deadline)
    creates_only = conditions.guard == "if-none-match"
    request = WriteRequest[Any](
        operation=DIRECTORY_RENAME,
        target=target,
        send=lambda: temporary.rename_once(
            source, target, deadline, overwrite=not creates_only, destination_lease_id=conditions.lease_id
        ),
        look=lambda patience: find_renamed(target, before.file_id, patience),
        # A copy that comes late would rename another directory that is at the old address then.
        resend=False,
    )
    with (
        _tell_of_directory(target),
        handles.tell_holders_at_rename(source, target, deadline, creates_only=creates_only),
        tell_of_source(source, None, deadline),
    ):
        settled = send_until_settled(request, deadline)
    return DirectoryRenamed(**describe_write(target, conditions.guard, settled), previous_etag=before.etag)


def preview_rename(
    source: Target, target: Target, expected: str | None, conditions: Conditions, deadline: Deadline
) -> Written:
    """Return the result of a rename of a file or a directory without sending it; ``expected`` is the version to rename.

    Raises:
        Changed, Exists, NotFound, UsageError: as the rename would.
    """
    check_same_share(source, target)
    _check_outside(source, target)
    etag = properties.fetch(source, Conditions(), deadline).etag
    versions.require_version(source, expected, etag, reason="share_or_file_changed")
    replaced = find_replaced(target)
    guarding.require_version(replaced, conditions, deadline)
    if conditions.guard == "if-none-match":
        _require_absent(target, replaced, deadline)
    return Written(address=str(target.address), etag=etag, guard=conditions.guard, attempts=0, outcome=WOULD_RENAME)


def _require_absent(target: Target, replaced: Target, deadline: Deadline) -> None:
    # The service finds a file among files alone, and a directory among directories.
    directory = Target(target.account, Address(Kind.DIR, target.address.parts))
    for each in (replaced, directory):
        with suppress(NotFound), _tell_of_directory(target):
            properties.fetch(each, Conditions(), deadline)
            raise Exists(f"{target} exists", str(target.address))


def find_replaced(target: Target) -> Target:
    """Return the file that a rename of a directory can replace at its new address."""
    return Target(target.account, Address(Kind.FILE, target.address.parts))


def _check_outside(source: Target, target: Target) -> None:
    if source.address == target.address:
        raise UsageError("the two addresses are the same", address=str(target.address))
    if target.address.path.startswith(f"{source.address.path}/"):
        raise UsageError(f"{target} is inside {source} itself", address=str(target.address))


@contextmanager
def tell_of_source(source: Target, lease_id: str | None, deadline: Deadline) -> Iterator[None]:
    """Raise a refusal that is because of what is renamed as one of that: the service does not say which end it means.

    Raises:
        NotFound, BadRequest, Locked: what is renamed is gone or of the other type, or ``lease_id`` is not held on it.
    """
    try:
        yield
    except (NotFound, BadRequest, Locked) as error:
        if isinstance(error, Locked) and not (error.service_code or "").startswith("Lease"):
            raise
        try:
            found = properties.fetch(source, Conditions(lease_id=lease_id), deadline.restart(seconds=_ASK_SECONDS))
            # A directory has no lease.
            is_leased = source.kind is Kind.FILE and found.lease.status == "locked"
            if lease_id is None and isinstance(error, Locked) and is_leased:
                words = f"{source} is leased, and no lease id was given"
                raise error.but(message=words, address=str(source.address), reason=None)
        except (NotFound, BadRequest, Locked) as told:
            raise told from error
        except AzguardError:
            # The service does not answer, and the refusal is known.
            pass
        raise


@contextmanager
def _tell_of_directory(target: Target) -> Iterator[None]:
    """Say that a directory is at the new address: what is renamed was one just now, so only that can be of a kind."""
    try:
        yield
    except BadRequest as error:
        if error.reason != "path_of_other_type":
            raise
        words = f"{target} is a directory, and a rename replaces none"
        raise error.as_kind(Exists, message=words, reason=None, values={}) from error


def check_same_share(source: Target, target: Target) -> None:
    """Refuse a rename into another share."""
    if (source.endpoint, source.address.container) != (target.endpoint, target.address.container):
        raise UsageError(
            f"{target} is in another share, and a rename stays in its share",
            address=str(target.address),
            reason="rename_to_other_share",
        )


def find_renamed(target: Target, known: str | None, patience: Deadline) -> Finding[Any]:
    """Return whether the entry at the new address is the one that was at the old one: it keeps its id."""
    found = guarding.find(target, patience)
    if known is None or found is None or found.file_id != known:
        return Finding(Verdict.UNKNOWN)
    # Another program may have written to it since.
    return Finding(Verdict.COMMITTED, {"etag": None})
