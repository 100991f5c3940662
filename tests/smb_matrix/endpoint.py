"""One share of one account, over REST and over SMB."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from azure.core.exceptions import HttpResponseError
from azure.storage.fileshare import ShareClient, ShareFileClient
from smbprotocol.connection import Connection, Dialects
from smbprotocol.exceptions import SMBResponseException
from smbprotocol.file_info import FileDispositionInformation, FileRenameInformation
from smbprotocol.open import CreateDisposition, CreateOptions, Open, SMB2LockElement, SMB2SetInfoRequest
from smbprotocol.session import Session
from smbprotocol.tree import TreeConnect

#: What an open asks for, and what it lets others do; 0 is for attributes only.
READ, WRITE, DELETE = 1, 2, 4
ALL = READ | WRITE | DELETE
NAMES = {0: "none", 1: "R", 2: "W", 4: "D", 3: "RW", 5: "RD", 6: "WD", 7: "RWD"}

_FILE_READ_ATTRIBUTES = 0x80
_MASKS = {READ: 0x1, WRITE: 0x2, DELETE: 0x10000}
_IMPERSONATION = 2
_NO_OPLOCK = 0
SHARED, EXCLUSIVE, UNLOCK, AT_ONCE = 1, 2, 4, 16


class SmbClient:
    """A connection of its own to a share."""

    def __init__(self, tree: TreeConnect) -> None:
        self.tree = tree
        self.connection = tree.session.connection

    def open(
        self,
        path: str,
        access: int,
        shared: int = ALL,
        *,
        disposition: int = CreateDisposition.FILE_OPEN,
        oplock: int = _NO_OPLOCK,
        is_directory: bool = False,
    ) -> Open:
        """Open a file with just this access and share mode."""
        mask = _FILE_READ_ATTRIBUTES | sum(bit for each, bit in _MASKS.items() if access & each)
        kind = CreateOptions.FILE_DIRECTORY_FILE if is_directory else CreateOptions.FILE_NON_DIRECTORY_FILE
        opened = Open(self.tree, path)
        opened.create(_IMPERSONATION, mask, 0, shared, disposition, kind, oplock_level=oplock)
        return opened

    def set_info(self, opened: Open, information: Any) -> None:
        """Set what ``smbprotocol.file_info`` describes."""
        message = SMB2SetInfoRequest()
        message["info_type"] = information.INFO_TYPE
        message["file_info_class"] = information.INFO_CLASS
        message["file_id"] = opened.file_id
        message["buffer"] = information
        sent = self.connection.send(message, sid=self.tree.session.session_id, tid=self.tree.tree_connect_id)
        self.connection.receive(sent)

    def mark_deleted(self, opened: Open, *, deleted: bool = True) -> None:
        """Have a file go when its last handle is closed, or take that back."""
        information = FileDispositionInformation()
        information["delete_pending"] = deleted
        self.set_info(opened, information)

    def rename(self, opened: Open, path: str) -> None:
        """Rename an open file."""
        information = FileRenameInformation()
        information["file_name"] = path
        self.set_info(opened, information)


def lock(opened: Open, start: int, length: int, flags: int) -> None:
    """Lock or unlock a range."""
    element = SMB2LockElement()
    element["offset"] = start
    element["length"] = length
    element["flags"] = flags
    opened.lock([element])


class Endpoint:
    """Where a share is over both protocols."""

    def __init__(self, share: ShareClient, host: str, port: int, account: str, key: str) -> None:
        self.share = share
        self._place = (host, port)
        self._account = account
        self._key = key

    @contextmanager
    def connect(self) -> Iterator[SmbClient]:
        """Yield an SMB client, whose handles end with the ``with`` block."""
        host, port = self._place
        connection = Connection(uuid.uuid4(), host, port)
        connection.connect(Dialects.SMB_3_1_1)
        try:
            session = Session(connection, self._account, self._key, require_encryption=True)
            session.connect()
            tree = TreeConnect(session, rf"\\{host}\{self.share.share_name}")
            tree.connect()
            yield SmbClient(tree)
        finally:
            with suppress(Exception):
                connection.disconnect(close=False)

    @contextmanager
    def file(self, size: int = 100) -> Iterator[ShareFileClient]:
        """Yield a file over REST, and remove it in the end."""
        made = self.share.get_file_client(f"{uuid.uuid4().hex}.txt")
        made.upload_file(b"x" * size)
        yield made
        with suppress(HttpResponseError):
            made.delete_file()


def ask_rest(operation: Callable[..., object], *arguments: object) -> str:
    """Return ``ok``, or the status and error code with which an operation of REST is refused."""
    try:
        operation(*arguments)
    except HttpResponseError as error:
        return describe(error)
    return "ok"


def describe(error: HttpResponseError) -> str:
    """Return the status and the error code of a refusal."""
    code = getattr(error, "error_code", None)
    return f"{error.status_code} {getattr(code, 'value', code)}"


def ask_smb(operation: Callable[..., object], *arguments: object) -> str:
    """Return ``ok``, or the status with which an operation of SMB is refused."""
    try:
        operation(*arguments)
    except SMBResponseException as error:
        return f"{error.status:#010x}"
    return "ok"
