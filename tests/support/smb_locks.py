"""Locks of files for tests that need no server."""

from azguard.accounts import account
from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.smb.file_lock import ByteRange, FileLock, Share, SmbPlace

ACCOUNT = account.emulator({"file": 10004})
PLACE = SmbPlace("127.0.0.1", 445, ACCOUNT.name, "key")


def file_lock(
    path: str = "a.lock", share: Share = Share.NONE, byte_range: ByteRange | None = None, *, is_shared: bool = False
) -> FileLock:
    """Return a lock of a file of the share ``team``."""
    return FileLock(Target(ACCOUNT, Address(Kind.FILE, ("team", path))), PLACE, share, byte_range, is_shared)
