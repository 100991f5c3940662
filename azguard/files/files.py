"""Files: their properties, and their deletion."""

from azguard.accounts.target import Target
from azguard.conditions.resolve import Conditions
from azguard.files import guarding, writes
from azguard.files.described import FileShown, describe_file
from azguard.files.guarding import Guarding
from azguard.files.writes import FileWrite
from azguard.requests.calls import write_timeouts
from azguard.requests.commits import WriteResult
from azguard.requests.deadline import Deadline


def show(target: Target, conditions: Conditions, deadline: Deadline) -> FileShown:
    """Return a file's properties and metadata; its content is not read.

    Raises:
        NotFound: there is no such file.
        Locked: the lease that the conditions name is not held.
    Source: https://learn.microsoft.com/rest/api/storageservices/get-file-properties
    """
    return describe_file(target.address, writes.fetch(target, conditions.lease_id, deadline))


def delete(target: Target, conditions: Conditions, guarding_by: Guarding, deadline: Deadline) -> WriteResult:
    """Delete a file.

    Raises:
        Changed: it is no longer the version that the guard names.
        Locked: it is leased, and the lease id is missing or wrong, or another program has it open.
        OutcomeUnknown: the answer was lost, and the file is gone: by us or by another.
    Source: https://learn.microsoft.com/rest/api/storageservices/delete-file2
    """
    client = target.account.file(target.address)
    write = FileWrite(
        target=target,
        conditions=conditions,
        send=lambda headers, patience: client.delete_file(headers=dict(headers), **write_timeouts(patience)),
        is_delete=True,
    )
    return guarding.perform(write, guarding_by, deadline)
