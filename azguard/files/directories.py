"""Directories: thin calls into the SDK, frozen values out. They have versions, and no leases to keep them."""

from collections.abc import Mapping
from typing import Any

from azguard.accounts.target import Target
from azguard.conditions.etags import quote
from azguard.conditions.resolve import Conditions
from azguard.files import guarding, shares, writes
from azguard.files.described import DirectoryShown, describe_directory
from azguard.files.writes import FileWrite
from azguard.requests.calls import write_timeouts
from azguard.requests.commits import WriteResult
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage
from azguard.requests.settle import WriteRequest, send_until_settled


def create(target: Target, metadata: Mapping[str, str], deadline: Deadline, op: str) -> WriteResult:
    """Create a directory; it is always create-only, and the directory that it is in has to be there.

    Raises:
        Exists: there is one of that name.
        NotFound: there is no share or directory that it could be in.
    Source: https://learn.microsoft.com/rest/api/storageservices/create-directory
    """
    client = target.account.directory(target.address)
    stamped = {**metadata, KEY: str(Lineage().after(op, None))}
    request = WriteRequest[Any](
        target=target,
        send=lambda: client.create_directory(metadata=stamped, **write_timeouts(deadline)),
        look=lambda patience: shares.find_create_outcome(target, op, patience),
    )
    settled = send_until_settled(request, deadline)
    return shares.to_create_result(target, settled.answer, settled.attempts)


def show(target: Target, deadline: Deadline) -> DirectoryShown:
    """Return a directory's properties and metadata.

    Raises:
        NotFound: there is no such directory.
    Source: https://learn.microsoft.com/rest/api/storageservices/get-directory-properties
    """
    return describe_directory(target.address, writes.fetch(target, None, deadline))


def delete(target: Target, conditions: Conditions, deadline: Deadline) -> WriteResult:
    """Delete a directory, which has to be empty.

    Raises:
        Changed: it is not the version that the conditions name.
        BadRequest: it is not empty.
        OutcomeUnknown: the answer was lost, and it is gone: by us or by another.
    Source: https://learn.microsoft.com/rest/api/storageservices/delete-directory
    """
    before = require_version(target, conditions, deadline)
    client = target.account.directory(target.address)
    write = FileWrite(
        target=target,
        conditions=conditions,
        send=lambda _, patience: client.delete_directory(**write_timeouts(patience)),
        is_delete=True,
        before=before,
    )
    return writes.send(write, None, deadline)


def require_version(target: Target, conditions: Conditions, deadline: Deadline) -> Any | None:
    """Compare the version with the one that the conditions name, and return its properties; None if they name none.

    Not guaranteed: another writer can come between this and the write.

    Raises:
        Changed: it is another version, or it is gone.
    """
    if conditions.expected_etag is None:
        return None
    found = writes.fetch(target, None, deadline)
    current = quote(found.etag)
    if current != conditions.expected_etag:
        raise guarding.to_changed(target, conditions.expected_etag, current)
    return found
