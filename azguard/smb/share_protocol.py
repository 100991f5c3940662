"""Why a share is not there through SMB: it may be one of the protocol NFS."""

from azguard.accounts.target import Target
from azguard.address import Address, Kind
from azguard.conditions.resolve import Conditions
from azguard.errors import AzguardError, BadRequest
from azguard.requests.deadline import Deadline
from azguard.smb.file_lock import FileLock

# The share may be missing from SMB for other reasons, which the error names already.
_PATIENCE_SECONDS = 4.0


def explain(error: AzguardError, lock: FileLock) -> AzguardError:
    """Return the error for a share that the SMB server does not let in, with its cause if REST knows it."""
    from azguard.files import shares

    share = Target(lock.target.account, Address(Kind.SHARE, (lock.target.address.container,)))
    try:
        found = shares.show(share, Conditions(), Deadline(_PATIENCE_SECONDS))
    except AzguardError:
        return error
    if "NFS" not in found.protocols:
        return error
    return BadRequest(
        f"{share.address} is a share of the protocol NFS, which has no SMB", lock.name, reason="smb_share_is_nfs"
    )
