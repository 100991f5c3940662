"""Content headers, attributes and times of files and directories, and the quota of a share."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.files import directories, guarding, writes
from azguard.files.entries import drop_own
from azguard.files.guarding import Guarding
from azguard.files.writes import FileWrite, Held
from azguard.guards.resolve import Conditions
from azguard.leases.owners import OF_LOCK, OWNER
from azguard.requests.calls import read
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, fresh_op
from azguard.requests.results import MetadataShown, Written
from azguard.requests.service_errors import build_unreadable
from azguard.resources import parts, properties
from azguard.resources.parts import Rewritten
from azguard.resources.properties import ContentHeaders
from azguard.wire import xml
from azguard.wire.call import call
from azguard.wire.operations.shares import (
    DIRECTORY_SET_PROPERTIES,
    FILE_SET_PROPERTIES,
    SHARE_GET_STATS,
    SHARE_SET_PROPERTIES,
)


@dataclass(frozen=True)
class SmbProperties:
    """What SMB clients see of a file or directory; None stays as it is. The times are ISO 8601."""

    attributes: str | None = None
    created: str | None = None
    written: str | None = None
    changed: str | None = None
    permission_key: str | None = None


def change_file(
    target: Target,
    wanted: tuple[ContentHeaders, SmbProperties],
    conditions: Conditions,
    guarding_by: Guarding,
    deadline: Deadline,
) -> Written:
    """Change content headers, attributes and times of a file; the others stay.

    Raises:
        Changed: it is not the version that the conditions name.
        Locked: another holds the lease, or has the file open.
        OutcomeUnknown: the answer was lost, and no lease tells whose the properties are.
    Source: https://learn.microsoft.com/rest/api/storageservices/set-file-properties
    """
    headers, smb = wanted
    if "readonly" in (smb.attributes or "").lower():
        # The record of the lease's holder could not be removed from a file that is read-only.
        guarding_by = replace(guarding_by, owner=None)
    # The service clears each content header that is not sent.
    found = properties.fetch(target, Conditions(lease_id=conditions.lease_id), deadline)
    settings = {**vars(smb), **headers.over(found).given}
    write = FileWrite(target=target, conditions=conditions, operation=FILE_SET_PROPERTIES, given=settings)
    return guarding.perform(write, guarding_by, deadline)


def change_directory(target: Target, smb: SmbProperties, conditions: Conditions, deadline: Deadline) -> Written:
    """Change attributes and times of a directory; the others stay.

    Raises:
        Changed: it is not the version that the conditions name.
        OutcomeUnknown: the answer was lost. Nothing tells whose the properties are.
    Source: https://learn.microsoft.com/rest/api/storageservices/set-directory-properties
    """
    directories.require_version(target, conditions, deadline)
    write = FileWrite(target=target, conditions=conditions, operation=DIRECTORY_SET_PROPERTIES, given=vars(smb))
    return writes.send(write, None, deadline)


def change_quota(
    target: Target, gibibytes: int, conditions: Conditions, guarding_by: Guarding, deadline: Deadline
) -> Written:
    """Set the quota of a share: how many GiB it can hold.

    Raises:
        Changed: it is not the version that the conditions name.
        OutcomeUnknown: the answer was lost, and no lease tells whose the quota is.
    Source: https://learn.microsoft.com/rest/api/storageservices/set-share-properties
    """
    write = FileWrite(
        target=target,
        conditions=conditions,
        operation=SHARE_SET_PROPERTIES,
        given={"quota": gibibytes},
    )
    return guarding.perform(write, guarding_by, deadline)


@dataclass(frozen=True)
class ShareStats:
    """How many bytes are in a share."""

    address: str
    usage_bytes: int


def count_bytes(target: Target, conditions: Conditions, deadline: Deadline) -> ShareStats:
    """Return about how many bytes are in a share.

    Raises:
        Unavailable: the answer does not tell.
    Source: https://learn.microsoft.com/rest/api/storageservices/get-share-stats
    """
    headers = conditions.request_headers
    answer = read(lambda timeouts: call(SHARE_GET_STATS, target, timeouts, headers=headers), target, deadline)
    used = xml.parse(answer, "statistics").findtext("ShareUsageBytes") or ""
    if not used.isdecimal():
        raise build_unreadable(target, "it says no number of bytes")
    return ShareStats(str(target.address), int(used))


def get_metadata(target: Target, conditions: Conditions, deadline: Deadline) -> tuple[MetadataShown, str | None]:
    """Return the metadata, and the lineage.

    Raises:
        NotFound: it is not there.
    """
    return parts.describe(
        target, properties.fetch(target, Conditions(lease_id=conditions.lease_id), deadline), drop_own
    )


def replace_metadata(
    target: Target, wanted: Mapping[str, str], conditions: Conditions, guarding_by: Guarding, deadline: Deadline
) -> Rewritten:
    """Replace the metadata.

    Raises:
        Changed: it is not the version that the conditions name.
        Locked: another holds the lease, or has the file open.
        UsageError: they are too large together with azguard's own.
        OutcomeUnknown: the answer was lost, and the write is not found. It may still arrive.
    Source: https://learn.microsoft.com/rest/api/storageservices/set-file-metadata
    """
    if target.kind is not Kind.DIR:
        conditions = guarding.take_over(target, conditions, guarding_by, deadline)
    if target.kind is Kind.DIR or conditions.expected_etag is None:
        found = directories.require_version(target, conditions, deadline)
        if found is None:
            found = properties.fetch(target, Conditions(lease_id=conditions.lease_id), deadline)
        return _replace_file_metadata(target, wanted, conditions, found, None, deadline)
    with guarding.hold(target, conditions, guarding_by, deadline) as held:
        return _replace_file_metadata(target, wanted, conditions, held.found, held, held.lease.patience)


def _replace_file_metadata(
    target: Target, wanted: Mapping[str, str], conditions: Conditions, found: Any, held: Held | None, deadline: Deadline
) -> Rewritten:
    op = fresh_op()
    own = [key for key in OF_LOCK if held is None or not held.has_note or key != OWNER]
    stamped = parts.stamp(wanted, found.metadata, op, found.etag, own)
    write = FileWrite(
        target=target,
        conditions=conditions,
        operation=parts.find_setter(target),
        given={"metadata": stamped},
        op=op,
    )
    written = writes.send(write, held, deadline)
    return Rewritten(written, conditions.expected_etag, stamped[KEY])
