"""Shares: requests in, frozen values out.

Unlike that of a container, the lease of a share keeps out everything that changes the share itself: its metadata,
properties and policies. It does not keep out writers of the files in it.
"""

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import NotFound
from azguard.files import writes
from azguard.files.entries import drop_own
from azguard.files.guarding import Guarding
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.guards.versions import describe_write
from azguard.requests.calls import read, walk_pages
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import Lineage, fresh_op, with_lineage
from azguard.requests.results import SnapshotMade, Written
from azguard.requests.service_codes import NOWHERE
from azguard.requests.service_errors import build_unreadable
from azguard.requests.settle import Finding, WriteRequest, send_until_settled
from azguard.resources import lifecycles, parts, properties
from azguard.resources.lifecycles import Contents, count_first
from azguard.resources.parts import Policies
from azguard.resources.properties import KeptShown, describe_kept
from azguard.wire import xml
from azguard.wire.call import call
from azguard.wire.operations.shares import (
    DIRECTORY_LIST,
    SHARE_CREATE_PERMISSION,
    SHARE_DELETE,
    SHARE_GET_PERMISSION,
    SHARE_GET_STATS,
    SHARE_SET_ACL,
    SHARE_SET_PROPERTIES,
    SHARE_SNAPSHOT,
)

_PAGE = 5000


@frozen(kw_only=True)
class ShareShown(KeptShown):
    """A share's properties."""

    COLUMNS: ClassVar = (
        columns.NAME, columns.ADDRESS, columns.SNAPSHOT, columns.LAST_MODIFIED, columns.ETAG,
        columns.LEASE_STATE, columns.QUOTA, columns.DELETED_VERSION,
    )  # fmt: skip
    FIRST: ClassVar = ("address", "name", "snapshot", "etag", "last_modified")

    name: str
    snapshot: str | None
    #: In GiB.
    quota: int | None
    access_tier: str | None
    protocols: tuple[str, ...]
    root_squash: str | None


def delete(
    target: Target, conditions: Conditions, guarding_by: Guarding, deadline: Deadline, *, snapshots: bool = False
) -> Written:
    """Delete a share with all that is in it, or one snapshot; ``snapshots`` deletes those of the share too.

    Raises:
        Changed: it is no longer the version that the guard names.
        Locked: it is leased, and the lease id is missing or wrong.
        OutcomeUnknown: the answer was lost, and the share is gone: by us or by another.
    Source: https://learn.microsoft.com/rest/api/storageservices/delete-share
    """
    how = "include" if snapshots else None
    return writes.perform(SHARE_DELETE, target, conditions, guarding_by, deadline, delete_snapshots=how)


def describe(address: Address, found: Any) -> ShareShown:
    """Return a share as show and list print it, from its properties or from an item of a listing."""
    return ShareShown(
        **describe_kept(address, found),
        name=address.container,
        snapshot=address.snapshot,
        quota=found.quota,
        access_tier=found.access_tier,
        protocols=tuple(found.protocols or ()),
        root_squash=found.root_squash,
        metadata=drop_own(found.metadata),
    )


def take_snapshot(target: Target, metadata: Mapping[str, str], deadline: Deadline) -> SnapshotMade:
    """Keep a share as it is now; it does not change. Without metadata, the snapshot has those of the share.

    Raises:
        NotFound: there is no such share.
        OutcomeUnknown: the answer was lost, and the snapshot is not in the list; it may still be made.
    Source: https://learn.microsoft.com/rest/api/storageservices/snapshot-share
    """
    op = fresh_op()
    found = properties.fetch(target, Conditions(), deadline)
    lineage = Lineage.find(found.metadata).after(op, found.etag)
    stamped = with_lineage(metadata or found.metadata, lineage)
    request = WriteRequest[Any](
        operation=SHARE_SNAPSHOT,
        target=target,
        given={"metadata": stamped},
        look=lambda patience: _find_snapshot(target, op, patience),
        # A second copy would make a second snapshot.
        resend=False,
    )
    settled = send_until_settled(request, deadline)
    taken = str(settled.answer["snapshot"])
    return SnapshotMade(
        **describe_write(target, "none", settled),
        snapshot=taken,
        snapshot_address=str(Address(Kind.SHARE, target.address.parts, taken)),
    )


def _find_snapshot(target: Target, op: str, patience: Deadline) -> Finding[Any]:
    name = target.address.container
    for _, item in lifecycles.list_all(target.account, Kind.SHARE, patience, name, None, ["snapshots"]):
        if item.name == name and item.snapshot and op in Lineage.find(item.metadata):
            return Finding(Verdict.COMMITTED, {"snapshot": item.snapshot})
    return Finding(Verdict.UNKNOWN)


def change_quota(
    target: Target, gibibytes: int, conditions: Conditions, guarding_by: Guarding, deadline: Deadline
) -> Written:
    """Set the quota of a share: how many GiB it can hold.

    Raises:
        Changed: it is not the version that the conditions name.
        OutcomeUnknown: the answer was lost, and no lease tells whose the quota is.
    Source: https://learn.microsoft.com/rest/api/storageservices/set-share-properties
    """
    return writes.perform(SHARE_SET_PROPERTIES, target, conditions, guarding_by, deadline, quota=gibibytes)


@frozen
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


@frozen
class PermissionShown:
    """A permission that a share keeps for its files."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.PERMISSION_KEY, columns.PERMISSION)

    #: Of the share, or of the file or directory that has it.
    address: str
    permission_key: str
    #: In SDDL.
    permission: str


@frozen(kw_only=True)
class PermissionMade(Written):
    """A permission that was created."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.PERMISSION_KEY)

    permission_key: str


def show_permission(target: Target, key: str | None, deadline: Deadline) -> PermissionShown:
    """Return the permission of a key, or without one that of a file or directory, a share's being that of its root.

    Raises:
        NotFound: the share has no permission of that key, or there is no such file.
        Unavailable: the answer does not tell.
    Source: https://learn.microsoft.com/rest/api/storageservices/get-permission
    """
    share = target._replace(address=Address(Kind.SHARE, (target.address.container,)))
    if key is None:
        is_share = target.kind is Kind.SHARE
        root = Address(Kind.DIR, (target.address.container, ""), target.address.snapshot)
        of = target._replace(address=root) if is_share else target
        key = properties.fetch(of, Conditions(), deadline).permission_key
    if key is None:
        raise build_unreadable(target, "it names no permission")
    try:
        answer = read(
            lambda timeouts: call(SHARE_GET_PERMISSION, share, timeouts, permission_key=key), share, deadline.fresh()
        )
    except NotFound as error:
        if error.service_code in NOWHERE:
            raise
        told = f"{share} keeps no permission {key}"
        raise error.but(message=told, reason="no_such_permission") from error
    try:
        permission = json.loads(answer.content)["permission"]
    except (KeyError, TypeError, ValueError) as error:
        raise build_unreadable(share, "it is no permission") from error
    return PermissionShown(str(target.address), key, str(permission))


def create_permission(target: Target, permission: str, deadline: Deadline) -> PermissionMade:
    """Keep a permission, in SDDL, for the files of a share; a second request only makes an equal one.

    Raises:
        BadRequest: the service does not understand it.
        NotFound: there is no such share.
    Source: https://learn.microsoft.com/rest/api/storageservices/create-permission
    """
    body = json.dumps({"permission": permission}).encode()
    request = WriteRequest[Any](
        operation=SHARE_CREATE_PERMISSION,
        target=target,
        given={"body": body},
    )
    settled = send_until_settled(request, deadline)
    return PermissionMade(**describe_write(target, "none", settled), permission_key=settled.answer["permission_key"])


def replace_policies(
    target: Target, policies: Policies, conditions: Conditions, guarding_by: Guarding, deadline: Deadline
) -> Written:
    """Replace all access policies of a share.

    Raises:
        Changed: the share is no longer the version that the conditions name.
        OutcomeUnknown: the answer was lost, and no lease tells whose the policies are.
    Source: https://learn.microsoft.com/rest/api/storageservices/set-share-acl
    """
    body = parts.build_policies_body(policies)
    return writes.perform(SHARE_SET_ACL, target, conditions, guarding_by, deadline, body=body)


def count_entries(target: Target, deadline: Deadline) -> Contents:
    """Count the directories and files in the root of a share, up to the end of the first page that has any.

    Raises:
        Forbidden: it may not be listed.
        NotFound: it is not there.
    """
    pages = walk_pages(DIRECTORY_LIST, target, deadline, "Entries", "Directory", "File", maxresults=_PAGE)
    counted = ((len(page.items), page.marker is not None) for page in pages)
    return count_first(counted, target, "file or directory", "files and directories")
