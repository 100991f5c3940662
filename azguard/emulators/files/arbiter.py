"""Between REST and SMB: an operation on a file opens it over SMB first, as Microsoft documents, so conflicts are real.

Source: https://learn.microsoft.com/rest/api/storageservices/managing-file-locks
A range that is read or written is locked meanwhile. Which operations look at locks of ranges is not documented.
"""

import enum
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from azguard.emulators.files import smb_client
from azguard.emulators.files.answers import ServiceError
from azguard.emulators.files.database import DIRECTORY, Node, ShareRecord, make_key
from azguard.emulators.files.handles import SambaFiles
from azguard.emulators.files.request import FileRequest, ask_source, is_here, read_range
from azguard.emulators.files.samba import Samba, Unserved
from azguard.emulators.files.smb_client import (
    ALL,
    ATTRIBUTES,
    DELETE,
    READ,
    WRITE,
    ConnectionGone,
    OpenSmbFile,
    Refused,
    SmbClient,
)
from azguard.emulators.files.store import Store
from azguard.frozen import frozen

#: The error code that an operation answers with, by what Samba said. Anything else does not keep it from being tried.
_CODES = {
    smb_client.SHARING_VIOLATION: "SharingViolation",
    smb_client.DELETE_PENDING: "DeletePending",
    smb_client.FILE_LOCK_CONFLICT: "FileLockConflict",
    smb_client.LOCK_NOT_GRANTED: "FileLockConflict",
    smb_client.TIMED_OUT: "ClientCacheFlushDelay",
}
_LONGEST_SECONDS = 30.0
# Locks end below 2^63.
_EVERYTHING = (0, 2**63 - 1)
_FAR = (2**63 - 2, 1)


class Opens(enum.Enum):
    """How an operation opens a file over SMB."""

    NOTHING = enum.auto()
    #: For its properties: no share mode keeps it from that, but what a client caches has to be written first.
    LOOK = enum.auto()
    READ = enum.auto()
    WRITE = enum.auto()
    #: To set properties or metadata.
    CHANGE = enum.auto()
    REPLACE = enum.auto()
    DELETE = enum.auto()
    LEASE = enum.auto()
    #: To rename it; the file at the new place is deleted.
    RENAME = enum.auto()


#: The access that each asks for, and what it lets others do meanwhile.
_MODES = {
    Opens.LOOK: (READ, ALL),
    Opens.READ: (READ, ALL),
    Opens.WRITE: (WRITE, ALL),
    Opens.CHANGE: (WRITE, ALL),
    Opens.REPLACE: (WRITE | DELETE, ALL),
    Opens.DELETE: (DELETE, 0),
    # Documented is Write and Delete. Only with Read as well, a handle that lets others write and delete but not read
    # conflicts, as is documented, too.
    Opens.LEASE: (READ | WRITE | DELETE, READ),
    Opens.RENAME: (DELETE, ALL),
}
_READS = (Opens.LOOK, Opens.READ)
# A directory is opened only for these.
_OF_DIRECTORIES = (Opens.DELETE, Opens.RENAME)


@frozen
class _Target:
    share: ShareRecord
    node: Node
    opens: Opens
    #: The lease id that the request has for it.
    lease_id: str | None


class Smb:
    """Serves the shares of one emulator over SMB, opens files for REST, and keeps those open that are leased."""

    def __init__(self, account: str, key: str, host: str, port: int) -> None:
        """Start Samba; port 0 takes a free one. ``key`` is the account's key in base64, and the password.

        Raises:
            PortTaken: the port is taken.
            Unserved: Samba is not installed, or does not start.
        """
        self._samba = Samba(account, key, host, port)
        #: The port that it listens on.
        self.port = self._samba.port
        self._client = SmbClient(self._samba.host, self.port, account, key)
        #: The handles of leases, by the numbers of share and file.
        self._leases: dict[tuple[int, int], OpenSmbFile] = {}
        self._files: dict[tuple[str, str], threading.Lock] = {}
        self._mutex = threading.Lock()

    def begin(self, store: Store) -> None:
        with store.transaction():
            self.publish(store)
        store.smb = SambaFiles(self._samba, self._client)
        self._restore(store)

    def publish(self, store: Store) -> None:
        """Serve just those shares that are there now; inside a transaction. Samba closes all that is open of others."""
        folders = {share.name: store.disk.locate(share.root) for share in store.list_smb_shares()}
        for name in self._samba.publish(folders):
            self._leases = {key: handle for key, handle in self._leases.items() if handle.share != name}
            self._client.forget_share(name)

    def stop(self) -> None:
        self._client.close()
        self._samba.stop()

    def _restore(self, store: Store) -> None:
        """Open what is leased since an earlier run."""
        with store.transaction():
            leased = [
                (share, node)
                for share in store.list_smb_shares()
                for node in store.database.list_all_nodes(share.root)
                if node.lease.state(store.now()) == "leased"
            ]
        for share, node in leased:
            with suppress(Refused):
                self._keep(share, node)

    @contextmanager
    def admit(self, store: Store, request: FileRequest, opens: Opens) -> Iterator[None]:
        """Keep the files of an operation open for the length of a ``with`` block. Not inside a transaction.

        Raises:
            ServiceError: a handle or a lock of an SMB client does not allow the operation.
            Unserved: Samba cannot be asked.
        """
        if opens is Opens.NOTHING:
            yield
            return
        with ExitStack() as stack:
            for key in sorted(_name_files(request, opens)):
                stack.enter_context(self._find_lock(key))
            targets = _find_targets(store, request, opens)
            try:
                seconds = _read_patience(request)
                for target in targets:
                    stack.callback(self._settle, store, request, target)
                    self._admit_one(stack, store, request, target, seconds)
            except ConnectionGone:
                raise Unserved("the connection to Samba is lost") from None
            except Refused as error:
                raise _translate(error, targets) from None
            yield

    def _admit_one(self, stack: ExitStack, store: Store, request: FileRequest, target: _Target, seconds: float) -> None:
        share, node, opens = target.share, target.node, target.opens
        lease, state = node.lease, node.lease.state(store.now())
        if state == "leased" and opens not in _READS:
            if opens is Opens.LEASE or (target.lease_id or "").lower() != lease.id:
                # What the lease says about this request comes first.
                return
            if opens is not Opens.DELETE:
                self._lock_range(stack, self._hold(store, share, node), request, target)
                return
            self._drop(share, node)
        elif opens is Opens.LEASE and request.headers.get("x-ms-lease-action", "").lower() != "acquire":
            return
        try:
            handle = self._open(share, node, opens, seconds)
        except Refused as error:
            if opens is Opens.LOOK and error.status == smb_client.SHARING_VIOLATION:
                # Properties need no access to the content; but what is to be deleted is hidden.
                stack.callback(self._client.open(share.name, node.path, ATTRIBUTES, ALL).close)
                return
            if isinstance(error, ConnectionGone) or error.status in _CODES:
                raise
            return
        if opens is Opens.LEASE:
            self._leases[share.root, node.id] = handle
            return
        stack.callback(handle.close)
        self._lock_range(stack, handle, request, target)

    def _hold(self, store: Store, share: ShareRecord, node: Node) -> OpenSmbFile | None:
        """Return the handle of a lease; all are opened anew if they were lost."""
        held = self._leases.get((share.root, node.id))
        if held is not None and not held.is_open():
            self._leases.clear()
            self._restore(store)
        return self._leases.get((share.root, node.id))

    def _open(self, share: ShareRecord, node: Node, opens: Opens, seconds: float) -> OpenSmbFile:
        access, shared = _MODES[opens]
        is_directory = node.kind == DIRECTORY
        return self._client.open(share.name, node.path, access, shared, is_directory=is_directory, seconds=seconds)

    def _lock_range(self, stack: ExitStack, handle: OpenSmbFile | None, request: FileRequest, target: _Target) -> None:
        """Lock what is read or written; a lock to write also ends what other clients cache of the file."""
        if handle is None or target.node.kind == DIRECTORY:
            return
        opens, node = target.opens, target.node
        if opens in (Opens.READ, Opens.WRITE):
            start, end = _find_range(request, node.size)
            if end > start:
                handle.lock(start, end - start, exclusive=opens is Opens.WRITE)
                stack.callback(handle.unlock, start, end - start)
        elif opens is Opens.REPLACE or (opens is Opens.CHANGE and "x-ms-content-length" in request.headers):
            handle.lock(*_EVERYTHING, exclusive=True)
            stack.callback(handle.unlock, *_EVERYTHING)
        elif opens is Opens.CHANGE:
            with suppress(Refused):
                handle.lock(*_FAR, exclusive=True)
                handle.unlock(*_FAR)

    def _settle(self, store: Store, request: FileRequest, target: _Target) -> None:
        """Bring the handle of a lease in line with the lease, as it is after the operation."""
        share, node = target.share, target.node
        is_held = (share.root, node.id) in self._leases
        with store.transaction():
            # A rename has moved it.
            found = [store.database.find_node(share.root, path) for path in (node.path, request.path)]
            known = next((each for each in found if each is not None and each.id == node.id), None)
        is_leased = known is not None and known.lease.state(store.now()) == "leased"
        if is_held and not is_leased:
            self._drop(share, node)
        elif known is not None and is_leased and not is_held:
            with suppress(Refused):
                self._keep(share, known)

    def _keep(self, share: ShareRecord, node: Node) -> None:
        self._leases[share.root, node.id] = self._open(share, node, Opens.LEASE, _LONGEST_SECONDS)

    def _drop(self, share: ShareRecord, node: Node) -> None:
        held = self._leases.pop((share.root, node.id), None)
        if held is not None:
            held.close()

    def _find_lock(self, key: tuple[str, str]) -> threading.Lock:
        """Return the lock of a file: operations of REST wait for each other, they do not conflict."""
        with self._mutex:
            return self._files.setdefault(key, threading.Lock())


def _find_targets(store: Store, request: FileRequest, opens: Opens) -> list[_Target]:
    """Return the existing files and directories that an operation opens; the service answers for absent ones."""
    with store.transaction():
        return [
            _Target(share, node, how, lease_id)
            for asked, how, lease_id in _find_paths(request, opens)
            if (share := store.database.find_share(asked.share, asked.query.get("sharesnapshot", "")))
            and store.serves_smb(share)
            and (node := store.find(share.root, asked.path)) is not None
            and (node.kind != DIRECTORY or (how in _OF_DIRECTORIES and node.path))
        ]


def _find_paths(request: FileRequest, opens: Opens) -> list[tuple[FileRequest, Opens, str | None]]:
    """Return the requests that name what is opened, how, and the lease id that is sent for each."""
    headers = request.headers
    paths = [(request, opens, headers.get("x-ms-lease-id"))]
    other = ""
    if opens is Opens.RENAME:
        paths = [(request, Opens.DELETE, headers.get("x-ms-destination-lease-id"))]
        other = headers.get("x-ms-file-rename-source", "")
        source = (Opens.RENAME, headers.get("x-ms-source-lease-id"))
    elif opens in (Opens.REPLACE, Opens.WRITE):
        other = headers.get("x-ms-copy-source", "")
        source = (Opens.READ, None)
    if other and is_here(request, other):
        with suppress(ServiceError):
            asked = ask_source(request, other)
            paths.append((asked, *source))
    return paths


def _name_files(request: FileRequest, opens: Opens) -> set[tuple[str, str]]:
    return {(asked.share, make_key(asked.path)) for asked, _, _ in _find_paths(request, opens)}


def _find_range(request: FileRequest, size: int) -> tuple[int, int]:
    """Return the first byte that a request reads or writes, and the one past its end."""
    if request.query.get("comp") == "rangelist":
        return 0, 0
    try:
        asked = read_range(request)
    except ServiceError:
        asked = None
    if asked is None:
        return 0, size
    return asked[0], size if asked[1] is None else asked[1]


def _read_patience(request: FileRequest) -> float:
    text = request.query.get("timeout", "")
    return min(float(text), _LONGEST_SECONDS) if text.isdecimal() else _LONGEST_SECONDS


def _translate(error: Refused, targets: list[_Target]) -> ServiceError:
    is_directory = any(each.node.kind == DIRECTORY for each in targets)
    if error.status == smb_client.SHARING_VIOLATION and is_directory:
        return ServiceError("CannotDeleteFileOrDirectory")
    return ServiceError(_CODES.get(error.status, "SharingViolation"))
