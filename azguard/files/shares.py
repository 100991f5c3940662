"""Shares: thin calls into the SDK, frozen values out.

Unlike that of a container, the lease of a share keeps out everything that changes the share itself: its metadata,
properties and policies. It does not keep out writers of the files in it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.account import Account
from azguard.accounts.target import Target
from azguard.address import Address, Kind
from azguard.conditions.etags import quote
from azguard.conditions.resolve import Conditions
from azguard.errors import BadRequest, NotFound
from azguard.files import guarding, writes
from azguard.files.described import drop_own
from azguard.files.guarding import Guarding
from azguard.files.writes import FileWrite
from azguard.requests.calls import page_timeouts, pages, write_timeouts
from azguard.requests.commits import Verdict, WriteResult
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage
from azguard.requests.service_codes import TYPE_MISMATCH
from azguard.requests.settle import Finding, WriteRequest, send_until_settled

_PAGE = 5000


@dataclass(frozen=True)
class ShareShown:
    """A share's properties."""

    COLUMNS: ClassVar = (
        columns.NAME, columns.ADDRESS, columns.SNAPSHOT, columns.LAST_MODIFIED, columns.ETAG,
        columns.LEASE_STATE, columns.QUOTA,
    )  # fmt: skip

    address: str
    name: str
    snapshot: str | None
    etag: str
    last_modified: datetime
    #: In GiB.
    quota: int | None
    access_tier: str | None
    protocols: tuple[str, ...]
    root_squash: str | None
    lease_status: str | None
    lease_state: str | None
    lease_duration: str | None
    #: Whether it was deleted, and can be restored still.
    deleted: bool
    metadata: Mapping[str, str]


@dataclass(frozen=True)
class ShareSettings:
    """What a share is created with; None is what the service takes."""

    metadata: Mapping[str, str]
    #: In GiB.
    quota: int | None = None
    access_tier: str | None = None


def create(target: Target, settings: ShareSettings, deadline: Deadline, op: str) -> WriteResult:
    """Create a share; it is always create-only.

    Raises:
        Exists: there is one of that name.
        Locked: a share of that name is still being deleted.
    Source: https://learn.microsoft.com/rest/api/storageservices/create-share
    """
    client = target.account.share(target.address)
    stamped = {**settings.metadata, KEY: str(Lineage().after(op, None))}
    request = WriteRequest[Any](
        target=target,
        send=lambda: client.create_share(
            metadata=stamped, quota=settings.quota, access_tier=settings.access_tier, **write_timeouts(deadline)
        ),
        look=lambda patience: find_create_outcome(target, op, patience),
    )
    settled = send_until_settled(request, deadline)
    return to_create_result(target, settled.answer, settled.attempts)


def show(target: Target, conditions: Conditions, deadline: Deadline) -> ShareShown:
    """Return a share's properties and metadata.

    Raises:
        NotFound: there is no such share.
        Locked: the lease that the conditions name is not held.
    Source: https://learn.microsoft.com/rest/api/storageservices/get-share-properties
    """
    return _describe(target.address, writes.fetch(target, conditions.lease_id, deadline))


def list_shares(
    account: Account, deadline: Deadline, *, prefix: str | None, limit: int | None, snapshots: bool = False
) -> Iterator[ShareShown]:
    """Yield the account's shares in order of name, with their metadata, page by page.

    Source: https://learn.microsoft.com/rest/api/storageservices/list-shares
    """
    everything = Target(account, Address(Kind.SHARE, ("",)))
    found = account.share_service().list_shares(
        name_starts_with=prefix,
        include_metadata=True,
        include_snapshots=snapshots,
        results_per_page=None if limit is None else min(limit, _PAGE),
        **page_timeouts(deadline),
    )
    for item in islice(pages(found, everything, deadline), limit):
        yield _describe(Address(Kind.SHARE, (item.name,), item.snapshot or None), item)


def delete(
    target: Target, conditions: Conditions, guarding_by: Guarding, deadline: Deadline, *, snapshots: bool = False
) -> WriteResult:
    """Delete a share with all that is in it, or one snapshot; ``snapshots`` deletes those of the share too.

    Raises:
        Changed: it is no longer the version that the guard names.
        Locked: it is leased, and the lease id is missing or wrong.
        OutcomeUnknown: the answer was lost, and the share is gone: by us or by another.
    Source: https://learn.microsoft.com/rest/api/storageservices/delete-share
    """
    client = target.account.share(target.address)
    write = FileWrite(
        target=target,
        conditions=conditions,
        send=lambda headers, patience: client.delete_share(
            delete_snapshots=snapshots or None, headers=dict(headers), **write_timeouts(patience)
        ),
        is_delete=True,
    )
    return guarding.perform(write, guarding_by, deadline)


def find_create_outcome(target: Target, op: str, patience: Deadline) -> Finding[Any]:
    """Return whether the share or directory that is there is the one we made."""
    try:
        found = writes.fetch(target, None, patience)
    except NotFound:
        return Finding(Verdict.NOT_YET)
    except BadRequest as error:
        if error.service_code != TYPE_MISMATCH:
            raise
        # A file has this name, so no directory of ours is there.
        return Finding(Verdict.NOT_YET)
    if op in Lineage.parse((found.metadata or {}).get(KEY)):
        return Finding(Verdict.COMMITTED, {"etag": found.etag, "last_modified": found.last_modified})
    return Finding(Verdict.UNKNOWN)


def to_create_result(target: Target, answer: Mapping[str, Any], attempts: int) -> WriteResult:
    """Return what a create did."""
    return WriteResult(
        address=str(target.address),
        etag=quote(answer["etag"]),
        last_modified=answer["last_modified"],
        guard="if-none-match",
        attempts=attempts,
    )


def _describe(address: Address, found: Any) -> ShareShown:
    lease = found.lease
    return ShareShown(
        address=str(address),
        name=address.container,
        snapshot=address.snapshot,
        etag=quote(found.etag),
        last_modified=found.last_modified,
        quota=found.quota,
        access_tier=found.access_tier,
        protocols=tuple(found.protocols or ()),
        root_squash=found.root_squash,
        lease_status=lease.status,
        lease_state=lease.state,
        lease_duration=lease.duration,
        deleted=bool(found.deleted),
        metadata=drop_own(found.metadata),
    )
