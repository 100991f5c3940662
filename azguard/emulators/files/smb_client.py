"""The emulator's own way into Samba: files are opened, ranges locked, and handles of others closed.

Sources: [MS-SMB2], and [MS-SRVS] 3.1.4.6 for NetrFileClose. smbprotocol is imported only here.
"""

import logging
import struct
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

_LOG = logging.getLogger("azguard.emulators.files")

#: What an open may do, and let others do; the bits of both are those of share modes.
READ, WRITE, DELETE = 1, 2, 4
ALL = READ | WRITE | DELETE
#: Opens a file for its attributes alone: it conflicts with no share mode.
ATTRIBUTES = 0

SHARING_VIOLATION = 0xC0000043
FILE_LOCK_CONFLICT = 0xC0000054
LOCK_NOT_GRANTED = 0xC0000055
DELETE_PENDING = 0xC0000056
#: No status of SMB: an oplock was not given up in time.
TIMED_OUT = -1

# FILE_READ_ATTRIBUTES, and with it FILE_READ_DATA, FILE_WRITE_DATA and DELETE.
_MASKS = {READ: 0x1, WRITE: 0x2, DELETE: 0x10000}
_ATTRIBUTES_MASK = 0x80
_IMPERSONATION = 2
_FILE_OPEN = 1
_SHARED, _EXCLUSIVE, _UNLOCK, _AT_ONCE = 1, 2, 4, 16
# Beyond every file.
_PROBED = (2**63 - 4, 1)
_ANSWER_SECONDS = 30.0
_CANCEL_SECONDS = 5.0

_SRVSVC = ("4b324fc8-1670-01d3-1278-5a47bf6ee188", 3)
_NDR = ("8a885d04-1ceb-11c9-9fe8-08002b104860", 2)
_BIND, _REQUEST = 11, 0
_FILE_CLOSE = 11
_FRAGMENT = 4280
_PIPE_MASK = 0x12019F


class Refused(Exception):
    """Samba refuses; ``status`` is its NTSTATUS."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(f"{status:#x}")


class ConnectionGone(Refused):
    """The connection, the share or the handle is gone."""

    def __init__(self) -> None:
        super().__init__(0)


class OpenSmbFile:
    """A file that is open over SMB."""

    def __init__(self, client: "SmbClient", opened: Any) -> None:
        self._client = client
        self._opened = opened
        #: The name of its share.
        self.share: str = opened.tree_connect.share_name.rpartition("\\")[2]

    def lock(self, start: int, length: int, *, exclusive: bool) -> None:
        """Lock a range until the handle is closed or the range unlocked.

        Raises:
            Refused: another one has a lock on it.
        """
        self._send(start, length, (_EXCLUSIVE if exclusive else _SHARED) | _AT_ONCE)

    def unlock(self, start: int, length: int) -> None:
        """Unlock a range that was locked with just these bounds."""
        with suppress(Refused):
            self._send(start, length, _UNLOCK)

    def is_open(self) -> bool:
        """Return whether Samba still knows it."""
        try:
            self.lock(*_PROBED, exclusive=False)
        except ConnectionGone:
            return False
        except Refused:
            return True
        self.unlock(*_PROBED)
        return True

    def close(self) -> None:
        """Close it; one that is gone already is closed."""
        with suppress(Refused):
            message, receive = self._opened.close(send=False)
            self._client.ask(message, receive, self._opened.tree_connect)

    def _send(self, start: int, length: int, flags: int) -> None:
        from smbprotocol.open import SMB2LockElement

        element = SMB2LockElement()
        element["offset"] = start
        element["length"] = length
        element["flags"] = flags
        message, receive = self._opened.lock([element], send=False)
        self._client.ask(message, receive, self._opened.tree_connect)


class SmbClient:
    """One connection to Samba, made when it is first needed, and again when it was lost. Safe for threads."""

    def __init__(self, host: str, port: int, account: str, key: str) -> None:
        self._place = (host, port)
        self._account = account
        self._key = key
        self._lock = threading.Lock()
        self._session: Any = None
        self._trees: dict[str, Any] = {}

    @property
    def address(self) -> str | None:
        """Return the local end of the connection as Samba names it; None if there is none."""
        if self._session is None:
            return None
        with suppress(OSError, AttributeError):
            # smbprotocol does not tell.
            host, port = self._session.connection.transport._sock.getsockname()[:2]  # noqa: SLF001  # smbprotocol tells no address
            return f"{host}:{port}"
        return None

    def open(
        self, share: str, path: str, access: int, shared: int, *, is_directory: bool = False, seconds: float = 30.0
    ) -> OpenSmbFile:
        """Open what is there; ``path`` has slashes, ``seconds`` is how long others may take to give up an oplock.

        Raises:
            Refused: it cannot be opened like that.
        """
        from smbprotocol.open import Open

        mask = _ATTRIBUTES_MASK | sum(bit for each, bit in _MASKS.items() if access & each)
        # FILE_DIRECTORY_FILE or FILE_NON_DIRECTORY_FILE
        options = 0x1 if is_directory else 0x40
        for is_last in (False, True):
            try:
                tree = self._reach(share)
                opened = Open(tree, path.replace("/", "\\"))
                message, receive = opened.create(_IMPERSONATION, mask, 0, shared, _FILE_OPEN, options, send=False)
                self.ask(message, receive, tree, seconds)
                return OpenSmbFile(self, opened)
            except ConnectionGone:
                self._forget(share)
                if is_last:
                    raise
        raise AssertionError

    def ask(self, message: Any, receive: Callable[[Any], Any], tree: Any, seconds: float = _ANSWER_SECONDS) -> Any:
        """Send a message, and return the content of its answer.

        Raises:
            Refused: the answer is an error, or no answer came.
        """
        from smbprotocol.exceptions import SMBException, SMBResponseException

        connection = tree.session.connection
        try:
            with self._lock:
                sent = connection.send(message, tree.session.session_id, tree.tree_connect_id)
            try:
                connection.receive(sent, timeout=seconds)
            except SMBResponseException:
                raise
            except SMBException:
                # In time or not: without a connection this raises.
                with self._lock:
                    sent.cancel()
                connection.receive(sent, timeout=_CANCEL_SECONDS)
            return receive(sent)
        except SMBResponseException as error:
            raise _translate(error.status) from None
        except (SMBException, OSError):
            raise ConnectionGone from None

    def forget_share(self, share: str) -> None:
        with self._lock:
            self._trees.pop(share, None)

    def close_handle(self, number: int) -> bool:
        """Close a handle of any client by its number in Samba; return whether there was one."""
        return _call_file_close(self._connect(), number)

    def close(self) -> None:
        with self._lock:
            session, self._session = self._session, None
        if session is not None:
            with suppress(Exception):
                session.connection.disconnect(close=False)

    def _reach(self, share: str) -> Any:
        with self._lock:
            if self._session is None:
                self._session = self._connect()
                self._trees.clear()
            if share not in self._trees:
                self._trees[share] = _connect_tree(self._session, rf"\\{self._place[0]}\{share}")
            return self._trees[share]

    def _forget(self, share: str) -> None:
        """Forget a tree that was taken away, and a connection that was lost."""
        with self._lock:
            self._trees.pop(share, None)
            if self._session is not None and not self._session.connection._t_worker.is_alive():  # noqa: SLF001  # it does not tell
                self._session = None

    def _connect(self) -> Any:
        from smbprotocol.connection import Connection, Dialects
        from smbprotocol.exceptions import SMBException
        from smbprotocol.session import Session

        host, port = self._place
        connection = Connection(uuid.uuid4(), host, port)
        try:
            connection.connect(Dialects.SMB_3_1_1)
            session = Session(connection, self._account, self._key, require_encryption=True)
            session.connect()
        except (SMBException, OSError, ValueError):
            _LOG.exception("no connection to Samba")
            raise ConnectionGone from None
        return session


# STATUS_NETWORK_NAME_DELETED, STATUS_USER_SESSION_DELETED, STATUS_FILE_CLOSED
_LOST = (0xC00000C9, 0xC0000203)
_CANCELLED = 0xC0000120


def _translate(status: int) -> Refused:
    if status in _LOST:
        return ConnectionGone()
    return Refused(TIMED_OUT if status == _CANCELLED else status)


def _connect_tree(session: Any, name: str) -> Any:
    from smbprotocol.exceptions import SMBException, SMBResponseException
    from smbprotocol.tree import TreeConnect

    tree = TreeConnect(session, name)
    try:
        tree.connect()
    except SMBResponseException as error:
        raise _translate(error.status) from None
    except (SMBException, OSError):
        raise ConnectionGone from None
    return tree


def _call_file_close(session: Any, number: int) -> bool:
    """Call NetrFileClose over the pipe ``srvsvc`` of a session of its own."""
    from smbprotocol.exceptions import SMBException
    from smbprotocol.open import Open

    try:
        tree = _connect_tree(session, r"\\127.0.0.1\IPC$")
        pipe = Open(tree, "srvsvc")
        pipe.create(_IMPERSONATION, _PIPE_MASK, 0, ALL, _FILE_OPEN, 0)
        syntaxes = b"".join(uuid.UUID(name).bytes_le + struct.pack("<I", version) for name, version in (_SRVSVC, _NDR))
        pipe.write(_pack(_BIND, struct.pack("<HHIBBHHBB", _FRAGMENT, _FRAGMENT, 0, 1, 0, 0, 0, 1, 0) + syntaxes))
        pipe.read(0, _FRAGMENT)
        # A null name of the server, and the number of the handle.
        arguments = struct.pack("<II", 0, number)
        pipe.write(_pack(_REQUEST, struct.pack("<IHH", len(arguments), 0, _FILE_CLOSE) + arguments))
        answer: bytes = pipe.read(0, _FRAGMENT)
    except (SMBException, OSError):
        _LOG.exception("a handle could not be closed")
        return False
    finally:
        with suppress(Exception):
            session.connection.disconnect(close=False)
    return answer[-4:] == bytes(4)


def _pack(kind: int, body: bytes) -> bytes:
    """Return a PDU of DCE/RPC, version 5.0, in one fragment, little-endian."""
    return struct.pack("<BBBBIHHI", 5, 0, kind, 3, 0x10, len(body) + 16, 0, 1) + body
