"""A connection to one share, and what the answers of its server mean: the one module that knows smbprotocol.

It never asks for an oplock or a lease: a server that takes one back ends the thread that receives.
"""

import logging
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from azguard.errors import AzguardError, BadRequest, ConfigError, Forbidden, NotFound, Unauthenticated, Unavailable
from azguard.smb.file_lock import ByteRange, FileLock, Share, SmbPlace

#: Another has the file open so that it cannot be opened now, or has locked these bytes.
BUSY = frozenset({0xC0000043, 0xC0000054, 0xC0000055, 0xC0000056})
#: The server has no room for a request now.
TRANSIENT = frozenset({0xC000009A, 0xC0000205})
#: The handle, or what it belongs to, is gone.
ENDED = frozenset({0xC0000008, 0xC00000C9, 0xC0000128, 0xC0000203, 0xC000035C})
_PATH_MISSING = 0xC000003A
# The library counts whole seconds, and none is too short.
_LEAST_SECONDS = 1.0
# How a message of the library begins that tells of an answer that did not come; it has no type of its own.
_TIMED_OUT = "Connection timeout"


class SmbRefusal(NamedTuple):
    """What an NT status means of a file that is to be opened."""

    #: Behind ``STATUS_``.
    name: str
    kind: type[AzguardError] = AzguardError
    #: What happened, with the ``address`` of the file, its ``share``, the ``place``, and the ``code`` of the service.
    message: str = "the server refused {address}: {code}"
    reason: str = "smb_refused"


# https://learn.microsoft.com/openspecs/windows_protocols/ms-erref/596a1078-e883-4972-9bbc-49e60bebca55
_STATUSES: Mapping[int, SmbRefusal] = {
    0xC0000008: SmbRefusal("INVALID_HANDLE"),
    0xC0000022: SmbRefusal(
        "ACCESS_DENIED", Forbidden, "the server denies access to {address}", reason="smb_access_denied"),
    0xC0000033: SmbRefusal(
        "OBJECT_NAME_INVALID", BadRequest, "SMB takes no such name as {address}", reason="smb_path_malformed"),
    0xC0000034: SmbRefusal("OBJECT_NAME_NOT_FOUND", NotFound, "there is no {address}", reason="smb_file_missing"),
    0xC0000035: SmbRefusal("OBJECT_NAME_COLLISION"),
    _PATH_MISSING: SmbRefusal(
        "OBJECT_PATH_NOT_FOUND", NotFound, "a directory of {address} is missing", reason="smb_directory_missing"),
    0xC000003B: SmbRefusal(
        "OBJECT_PATH_SYNTAX_BAD", BadRequest, "SMB takes no such path as {address}", reason="smb_path_malformed"),
    0xC0000043: SmbRefusal("SHARING_VIOLATION"),
    0xC0000054: SmbRefusal("FILE_LOCK_CONFLICT"),
    0xC0000055: SmbRefusal("LOCK_NOT_GRANTED"),
    0xC0000056: SmbRefusal("DELETE_PENDING"),
    0xC000006D: SmbRefusal(
        "LOGON_FAILURE", Unauthenticated, "the server does not accept the account key", reason="smb_logon_failed"),
    0xC0000072: SmbRefusal(
        "ACCOUNT_DISABLED", Unauthenticated, "the server does not accept the account", reason="smb_logon_failed"),
    0xC000009A: SmbRefusal(
        "INSUFFICIENT_RESOURCES", Unavailable, "{place} has no room for more: {code}", reason="smb_no_room"),
    0xC00000BA: SmbRefusal("FILE_IS_A_DIRECTORY", BadRequest, "{address} is a directory", reason="smb_is_directory"),
    0xC00000C9: SmbRefusal("NETWORK_NAME_DELETED"),
    0xC00000CC: SmbRefusal("BAD_NETWORK_NAME", NotFound, "there is no share:{share}", reason="smb_share_missing"),
    0xC0000103: SmbRefusal(
        "NOT_A_DIRECTORY", BadRequest, "a part of the path of {address} is a file", reason="smb_path_malformed"),
    0xC0000128: SmbRefusal("FILE_CLOSED"),
    0xC0000203: SmbRefusal("USER_SESSION_DELETED"),
    0xC0000205: SmbRefusal(
        "INSUFF_SERVER_RESOURCES", Unavailable, "{place} has no room for more: {code}", reason="smb_no_room"),
    0xC000035C: SmbRefusal("NETWORK_SESSION_EXPIRED"),
}  # fmt: skip


def name_of_status(status: int) -> str:
    """Return the name of an NT status, or its number."""
    return f"STATUS_{_STATUSES[status].name}" if status in _STATUSES else f"0x{status:08X}"


def translate(status: int, lock: FileLock) -> AzguardError:
    """Return the error for a refused request about a file, its share, or the session."""
    found, code = _STATUSES.get(status, SmbRefusal("", reason="smb_refused")), name_of_status(status)
    values = {"share": lock.target.address.container, "directory": lock.name.partition(":")[2].rpartition("/")[0]}
    message = found.message.format(address=lock.name, place=lock.place, code=code, **values)
    return found.kind(message, lock.name, service_code=code, reason=found.reason, values=values)


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


class ShareSession:
    """A connection to a server, an encrypted session on it, and one share."""

    def __init__(self, place: SmbPlace, patience: float) -> None:
        self._place = place
        self._patience = max(_LEAST_SECONDS, patience)
        #: How long the library waits for an answer where it is not told.
        self._limit = self._patience
        self._connection: Any = None
        self._tree: Any = None
        self._open: Any = None

    @property
    def descriptor(self) -> int:
        """Return the file descriptor of the connection, which lives as long as a process has it open."""
        number: int = self._connection.transport._sock.fileno()  # noqa: SLF001  # the library offers no other way
        return number

    def connect(self, lock: FileLock) -> None:
        """Connect, prove who is asking, and enter the share of a file.

        Raises:
            ConfigError: smbprotocol is not installed, or the server does not encrypt.
            Unavailable: there is no way to the server, or no SMB server there.
            Unauthenticated, Forbidden, NotFound: the server refuses the key, the account or the share.
        """
        _check_installed()
        from smbprotocol.connection import Connection
        from smbprotocol.session import Session
        from smbprotocol.tree import TreeConnect

        self.disconnect()
        place = self._place
        connection = Connection(uuid.uuid4(), place.host, place.port, require_signing=True)
        self._connection = connection
        self._step(lock, self._reach_server)
        self._bound_waiting(connection)
        session = Session(connection, place.account, place.key, require_encryption=True)
        self._step(lock, session.connect)
        self._tree = TreeConnect(session, rf"\\{place.host}\{lock.target.address.container}")
        self._step(lock, self._tree.connect)

    def open(self, lock: FileLock, *, create: bool, patience: float) -> bool:
        """Open a file so that others are kept out; return whether it is open now, and not in use by others.

        Raises:
            NotFound: there is no such file, and none may be made.
            SmbSilent: the server does not answer in time.
            SmbCut: the connection has ended.
        """
        try:
            self._open = self._create_with_directories(lock, create=create, patience=patience)
            if lock.byte_range is not None:
                self._lock_range(lock.byte_range, is_shared=lock.is_shared)
        except SmbRefused as refused:
            if refused.status in BUSY:
                self.close()
                return False
            raise translate(refused.status, lock) from refused
        return True

    def touch(self, seconds: float) -> None:
        """Ask the server about the open file, which shows whether the handle is still open.

        Raises:
            SmbRefused: it is not; or the server has no room.
            SmbSilent: the server does not answer in so many seconds.
            SmbCut: the connection has ended.
        """
        from smbprotocol.file_info import FileInformationClass, InfoType
        from smbprotocol.open import SMB2QueryInfoRequest

        query = SMB2QueryInfoRequest()
        query["info_type"] = InfoType.SMB2_0_INFO_FILE
        query["file_info_class"] = FileInformationClass.FILE_STANDARD_INFORMATION
        query["output_buffer_length"] = 64
        query["file_id"] = self._open.file_id
        with _failures_told():
            self._connection.receive(self._send(query), timeout=max(_LEAST_SECONDS, seconds))

    def close(self) -> None:
        """Close the file, and so free it.

        Raises:
            SmbRefused: the server has closed it before.
            SmbSilent, SmbCut: see ``touch``.
        """
        opened = self._open
        self._open = None
        if opened is not None:
            with _failures_told():
                opened.close()

    def disconnect(self) -> None:
        """End the connection, and with it all that is open. Raise nothing."""
        connection = self._connection
        self._connection = self._open = self._tree = None
        if connection is None or connection.transport is None:
            return
        try:
            connection.disconnect(close=False)
        except Exception as error:  # noqa: BLE001  # the server notices the end of the process at the latest
            logging.getLogger(__name__).debug("the connection was not ended: %s", error)

    def _reach_server(self) -> None:
        """Connect, and agree with the server on the version of SMB."""
        try:
            self._connection.connect(timeout=self._patience)
        except ValueError as error:
            raise _explain_no_connection(self._place, error.__cause__ or error, self._patience) from error

    def _step(self, lock: FileLock, step: Callable[[], Any]) -> None:
        """Do one of the library's own steps to the share."""
        from smbprotocol.exceptions import SMBAuthenticationError

        try:
            with _failures_told():
                step()
        except SMBAuthenticationError as error:
            raise Unauthenticated(
                f"the server does not take the account name and key: {error}", lock.name, reason="smb_logon_failed"
            ) from error
        except SmbRefused as refused:
            raise translate(refused.status, lock) from refused
        except (SmbSilent, SmbCut) as error:
            raise _explain_no_smb(self._place, lock.name, error) from error
        except _NoEncryption as error:
            raise ConfigError(
                f"{self._place} offers no encryption, and azguard sends nothing without it",
                lock.name,
                reason="smb_not_encrypted",
            ) from error

    def _bound_waiting(self, connection: Any) -> None:
        """Have the library's own steps wait no longer than we do; they would wait for ever."""
        receive = connection.receive

        def receive_in_time(request: Any, wait: bool = True, timeout: float | None = None, **rest: Any) -> Any:  # noqa: FBT001, FBT002  # as the library calls it
            return receive(request, wait, self._limit if timeout is None else timeout, **rest)

        connection.receive = receive_in_time

    def _create(self, lock: FileLock, path: str, *, patience: float, is_directory: bool, create: bool) -> Any:
        """Open a file or directory, and return its handle."""
        from smbprotocol import open as smb

        access = smb.FilePipePrinterAccessMask
        # Readers share it with each other: each reads, and lets others read.
        shared = smb.ShareAccess.FILE_SHARE_READ if lock.share is Share.READ or lock.is_shared else 0
        if lock.byte_range is not None or is_directory:
            # Only the bytes are locked. Others may not delete it all the same: no second file shall have its name.
            shared = smb.ShareAccess.FILE_SHARE_READ | smb.ShareAccess.FILE_SHARE_WRITE
        of_data = access.FILE_READ_DATA | (0 if lock.is_shared else access.FILE_WRITE_DATA)
        opened = smb.Open(self._tree, path)
        message, receive = opened.create(
            smb.ImpersonationLevel.Impersonation,
            access.FILE_READ_ATTRIBUTES | (0 if is_directory else of_data),
            0,
            shared,
            smb.CreateDisposition.FILE_OPEN_IF if create else smb.CreateDisposition.FILE_OPEN,
            smb.CreateOptions.FILE_DIRECTORY_FILE if is_directory else smb.CreateOptions.FILE_NON_DIRECTORY_FILE,
            send=False,
        )
        self._limit = max(_LEAST_SECONDS, patience)
        request = None
        try:
            with _failures_told():
                request = self._send(message)
                receive(request)
        except SmbSilent as silent:
            # A server that first takes an oplock back from another client says so.
            raise SmbSilent(is_pending=request is not None and request.async_id is not None) from silent
        finally:
            self._limit = self._patience
        return opened

    def _create_with_directories(self, lock: FileLock, *, create: bool, patience: float) -> Any:
        """Open a file, and make the directories that it is in if need be; return its handle."""
        try:
            return self._create(lock, lock.path, patience=patience, is_directory=False, create=create)
        except SmbRefused as refused:
            if refused.status != _PATH_MISSING or not create:
                raise
        parts = lock.path.split("\\")[:-1]
        for count in range(1, len(parts) + 1):
            path = "\\".join(parts[:count])
            made = self._create(lock, path, patience=self._patience, is_directory=True, create=True)
            with _failures_told():
                made.close()
        return self._create(lock, lock.path, patience=patience, is_directory=False, create=create)

    def _lock_range(self, wanted: ByteRange, *, is_shared: bool) -> None:
        from smbprotocol import open as smb

        element = smb.SMB2LockElement()
        element["offset"] = wanted.offset
        element["length"] = wanted.length
        kind = smb.LockFlags.SMB2_LOCKFLAG_SHARED_LOCK if is_shared else smb.LockFlags.SMB2_LOCKFLAG_EXCLUSIVE_LOCK
        element["flags"] = kind | smb.LockFlags.SMB2_LOCKFLAG_FAIL_IMMEDIATELY
        request = smb.SMB2LockRequest()
        request["file_id"] = self._open.file_id
        request["locks"] = [element]
        with _failures_told():
            self._connection.receive(self._send(request))

    def _send(self, message: Any) -> Any:
        return self._connection.send(message, self._tree.session.session_id, self._tree.tree_connect_id)


class _NoEncryption(Exception):
    """The server cannot encrypt."""


@contextmanager
def _failures_told() -> Iterator[None]:
    """Raise the errors of the library as those of this module."""
    from smbprotocol.exceptions import (
        SMBAuthenticationError,
        SMBException,
        SMBResponseException,
        SMBUnsupportedFeature,
    )

    try:
        yield
    except SMBResponseException as error:
        if error.status in ENDED:
            raise SmbCut(name_of_status(error.status)) from error
        raise SmbRefused(error.status) from error
    except SMBAuthenticationError:
        raise
    except SMBUnsupportedFeature as error:
        raise _NoEncryption(str(error)) from error
    except SMBException as error:
        if str(error).startswith(_TIMED_OUT):
            raise SmbSilent from error
        if "ncryption" in str(error):
            raise _NoEncryption(str(error)) from error
        raise SmbCut(str(error)) from error
    except (AttributeError, KeyError, LookupError, OSError, TypeError, ValueError) as error:
        # What the thread that receives died of, or a connection that ended in the midst.
        raise SmbCut(f"{type(error).__name__}: {error}") from error


def _check_installed() -> None:
    """Make sure that smbprotocol is there, and keep what it logs off the terminal."""
    try:
        import smbprotocol  # noqa: F401  # only whether it is there
    except ImportError as error:
        raise ConfigError("azguard was installed without what it needs for SMB", reason="smb_not_installed") from error
    for each in ("smbprotocol", "spnego"):
        logger = logging.getLogger(each)
        logger.addHandler(logging.NullHandler())
        logger.propagate = False


def _explain_no_connection(place: SmbPlace, cause: BaseException, seconds: float) -> Unavailable:
    if isinstance(cause, TimeoutError):
        return Unavailable(
            f"{place} did not accept a connection in {seconds:g} s",
            reason="smb_port_blocked",
            values={"host": place.host, "port": place.port},
        )
    why = getattr(cause, "strerror", None) or str(cause)
    return Unavailable(
        f"no connection to {place}: {why}", reason="smb_unreachable", values={"host": place.host, "port": place.port}
    )


def _explain_no_smb(place: SmbPlace, address: str, cause: SmbSilent | SmbCut) -> Unavailable:
    said = f": {cause.why}" if isinstance(cause, SmbCut) else ""
    return Unavailable(
        f"{place} accepts the connection, but does not answer as SMB{said}", address, reason="smb_no_answer"
    )
