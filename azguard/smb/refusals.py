"""What the answers of an SMB server mean: NT status → an error of azguard."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from azguard.errors import AzguardError, BadRequest, Forbidden, NotFound, Unauthenticated, Unavailable
from azguard.smb.file_lock import FileLock

#: Another has the file open so that it cannot be opened now, or has locked these bytes.
BUSY = frozenset({0xC0000043, 0xC0000054, 0xC0000055, 0xC0000056})
#: The server has no room for a request now.
TRANSIENT = frozenset({0xC000009A, 0xC0000205})
#: The handle, or what it belongs to, is gone.
ENDED = frozenset({0xC0000008, 0xC00000C9, 0xC0000128, 0xC0000203, 0xC000035C})
PATH_MISSING = 0xC000003A
SHARE_MISSING = 0xC00000CC
# https://learn.microsoft.com/openspecs/windows_protocols/ms-erref/596a1078-e883-4972-9bbc-49e60bebca55
_NAMES: Mapping[int, str] = {
    0xC0000008: "STATUS_INVALID_HANDLE",
    0xC0000022: "STATUS_ACCESS_DENIED",
    0xC0000033: "STATUS_OBJECT_NAME_INVALID",
    0xC0000034: "STATUS_OBJECT_NAME_NOT_FOUND",
    0xC0000035: "STATUS_OBJECT_NAME_COLLISION",
    PATH_MISSING: "STATUS_OBJECT_PATH_NOT_FOUND",
    0xC000003B: "STATUS_OBJECT_PATH_SYNTAX_BAD",
    0xC0000043: "STATUS_SHARING_VIOLATION",
    0xC0000054: "STATUS_FILE_LOCK_CONFLICT",
    0xC0000055: "STATUS_LOCK_NOT_GRANTED",
    0xC0000056: "STATUS_DELETE_PENDING",
    0xC000006D: "STATUS_LOGON_FAILURE",
    0xC0000072: "STATUS_ACCOUNT_DISABLED",
    0xC000009A: "STATUS_INSUFFICIENT_RESOURCES",
    0xC00000BA: "STATUS_FILE_IS_A_DIRECTORY",
    0xC00000C9: "STATUS_NETWORK_NAME_DELETED",
    SHARE_MISSING: "STATUS_BAD_NETWORK_NAME",
    0xC0000103: "STATUS_NOT_A_DIRECTORY",
    0xC0000128: "STATUS_FILE_CLOSED",
    0xC0000203: "STATUS_USER_SESSION_DELETED",
    0xC0000205: "STATUS_INSUFF_SERVER_RESOURCES",
    0xC000035C: "STATUS_NETWORK_SESSION_EXPIRED",
}


class SmbRefusal(NamedTuple):
    """What a status means."""

    kind: type[AzguardError]
    message: str
    reason: str


@dataclass
class SmbRefused(Exception):
    """The server refused a request."""

    #: The NT status.
    status: int


@dataclass
class SmbSilent(Exception):
    """The server did not answer in time."""

    #: Whether it said that it is at work on the request.
    is_pending: bool = False


@dataclass
class SmbCut(Exception):
    """The handle is gone, or the connection has ended, and with it all its handles."""

    why: str


def name(status: int) -> str:
    """Return the name of an NT status, or its number."""
    return _NAMES.get(status, f"0x{status:08X}")


def translate(status: int, lock: FileLock) -> AzguardError:
    """Return the error for a refused request about a file, its share, or the session."""
    address = lock.name
    share = lock.target.address.container
    code = name(status)
    if status in TRANSIENT:
        return Unavailable(
            f"{lock.place} has no room for more: {code}", address, service_code=code, reason="smb_no_room"
        )
    known: Mapping[int, SmbRefusal] = {
        0xC0000022: SmbRefusal(Forbidden, f"the server denies access to {address}", reason="smb_access_denied"),
        0xC000006D: SmbRefusal(
            Unauthenticated, "the server does not accept the account key", reason="smb_logon_failed"
        ),
        0xC0000072: SmbRefusal(Unauthenticated, "the server does not accept the account", reason="smb_logon_failed"),
        0xC0000034: SmbRefusal(NotFound, f"there is no {address}", reason="smb_file_missing"),
        PATH_MISSING: SmbRefusal(NotFound, f"a directory of {address} is missing", reason="smb_directory_missing"),
        SHARE_MISSING: SmbRefusal(NotFound, f"there is no share:{share}", reason="smb_share_missing"),
        0xC00000BA: SmbRefusal(BadRequest, f"{address} is a directory", reason="smb_is_directory"),
        0xC0000103: SmbRefusal(BadRequest, f"a part of the path of {address} is a file", reason="smb_path_malformed"),
        0xC0000033: SmbRefusal(BadRequest, f"SMB takes no such name as {address}", reason="smb_path_malformed"),
        0xC000003B: SmbRefusal(BadRequest, f"SMB takes no such path as {address}", reason="smb_path_malformed"),
    }
    if status not in known:
        return AzguardError(f"the server refused {address}: {code}", address, service_code=code, reason="smb_refused")
    found = known[status]
    values = {"share": share, "directory": address.partition(":")[2].rpartition("/")[0]}
    return found.kind(found.message, address, service_code=code, reason=found.reason, values=values)
