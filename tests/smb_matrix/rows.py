"""What is tried, and what Microsoft documents of it. A row that is named after a test case of Microsoft says so.

Sources: https://learn.microsoft.com/rest/api/storageservices/managing-file-locks
https://github.com/microsoft/WindowsProtocolTestSuites, FileServer: MS-SMB2 and MS-FSA
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

from azure.core.exceptions import HttpResponseError
from azure.storage.fileshare import ContentSettings, Handle, ShareFileClient
from smbprotocol.open import CreateDisposition, Open

from tests.smb_matrix.endpoint import (
    ALL,
    AT_ONCE,
    DELETE,
    EXCLUSIVE,
    NAMES,
    READ,
    SHARED,
    UNLOCK,
    WRITE,
    Endpoint,
    SmbClient,
    ask_rest,
    ask_smb,
    describe,
    lock,
)
from tests.smb_matrix.oplocks import BATCH, LEVEL_2, NONE, Breaks

_VIOLATION = "409 SharingViolation"
# Two pages of Microsoft disagree; both are right.
_PENDING = ("409 DeletePending", "409 SMBDeletePending")
_NOT_FLUSHED = ("408 ClientCacheFlushDelay", "500 ClientCacheFlushDelay")
_LOCKED = "409 FileLockConflict"
_SMB_VIOLATION = "0xc0000043"
_SMB_CLOSED = "0xc0000128"

#: The operations on a file, by what refuses them: see the table of REST operations and the access they need.
OPERATIONS: dict[str, Callable[[ShareFileClient], object]] = {
    "Get File": lambda file: file.download_file().readall(),
    "List Ranges": lambda file: list(file.list_ranges()),
    "Put Range": lambda file: file.upload_range(b"y", 0, 1),
    "Set Metadata": lambda file: file.set_file_metadata({"a": "b"}),
    "Set Properties": lambda file: file.set_http_headers(ContentSettings(content_type="text/plain")),
    "Lease": lambda file: file.acquire_lease().release(),
    "Create File": lambda file: file.create_file(100),
    "Get Properties": lambda file: file.get_file_properties(),
    "Delete File": lambda file: file.delete_file(),
}
_READS = {"Get File", "List Ranges"}
_WRITES = {"Put Range", "Set Metadata", "Set Properties"}

#: Which operations fail while an SMB client has the file open with a share mode, by that table.
REFUSED = {
    0: {*_READS, *_WRITES, "Create File", "Lease", "Delete File"},
    READ: {*_WRITES, "Create File", "Lease", "Delete File"},
    WRITE: {*_READS, "Create File", "Lease", "Delete File"},
    DELETE: {*_READS, *_WRITES, "Create File", "Lease", "Delete File"},
    READ | WRITE: {"Create File", "Lease", "Delete File"},
    READ | DELETE: {*_WRITES, "Create File", "Lease", "Delete File"},
    WRITE | DELETE: {*_READS, "Lease", "Delete File"},
    ALL: {"Delete File"},
}


@dataclass(frozen=True)
class Row:
    """One thing that was tried."""

    case: str
    what: str
    #: What is documented; several where pages disagree.
    expected: tuple[str, ...]
    found: str

    @property
    def is_green(self) -> bool:
        return self.found in self.expected


def _row(case: str, what: str, expected: str | tuple[str, ...], found: object) -> Row:
    return Row(case, what, (expected,) if isinstance(expected, str) else expected, str(found))


def try_share_modes(endpoint: Endpoint) -> Iterator[Row]:
    """An SMB client reads with each share mode; each operation of REST is tried."""
    with endpoint.connect() as client:
        for mode, refused in REFUSED.items():
            with endpoint.file() as file:
                opened = client.open(file.file_name, READ, mode)
                for name, operation in OPERATIONS.items():
                    expected = _VIOLATION if name in refused else "ok"
                    yield _row(f"share mode {NAMES[mode]}", name, expected, ask_rest(operation, file))
                opened.close()


def try_leases(endpoint: Endpoint) -> Iterator[Row]:
    """A lease of REST and an open of SMB, in both orders."""
    with endpoint.connect() as client, endpoint.file() as file:
        for access in (0, READ, WRITE, DELETE, READ | WRITE):
            opened = client.open(file.file_name, access)
            expected = _VIOLATION if access & (WRITE | DELETE) else "ok"
            found = ask_rest(lambda: file.acquire_lease().release())
            yield _row("SMB open, then lease", f"access {NAMES[access]}", expected, found)
            opened.close()
        lease = file.acquire_lease()
        for access in (0, READ, WRITE, DELETE):
            expected = _SMB_VIOLATION if access & (WRITE | DELETE) else "ok"
            found = ask_smb(_open_and_close, client, file, access)
            yield _row("lease, then SMB open", f"access {NAMES[access]}", expected, found)
        found = ask_rest(lambda: file.upload_range(b"y", 0, 1, lease=lease))
        yield _row("lease, then REST", "Put Range with its id", "ok", found)
        found = ask_rest(lambda: file.upload_range(b"y", 0, 1))
        yield _row("lease, then REST", "Put Range without its id", "412 LeaseIdMissing", found)
        yield _row("lease, then List Handles", "its own handle is not listed", "0", len(list(file.list_handles())))
        lease.release()
        found = ask_smb(lambda: client.open(file.file_name, WRITE).close())
        yield _row("lease released, then SMB open", "access W", "ok", found)
        file.acquire_lease().break_lease()
        found = ask_smb(lambda: client.open(file.file_name, WRITE).close())
        yield _row("lease broken, then SMB open", "access W", "ok", found)
        yield _row("lease broken", "Delete File", "ok", ask_rest(file.delete_file))


def try_range_locks(endpoint: Endpoint) -> Iterator[Row]:
    """MS-SMB2 BVT_SMB2Basic_LockAndUnLock, with REST as the second client."""
    case = "BVT_SMB2Basic_LockAndUnLock"
    with endpoint.connect() as client, endpoint.file() as file:
        opened = client.open(file.file_name, READ | WRITE)
        operations: dict[str, Callable[[], object]] = {
            "Put Range inside": lambda: file.upload_range(b"y", 5, 1),
            "Put Range outside": lambda: file.upload_range(b"y", 50, 1),
            "Get File inside": lambda: file.download_file(offset=5, length=2).readall(),
            "Get File outside": lambda: file.download_file(offset=50, length=2).readall(),
        }
        refused = {
            "exclusive": {"Put Range inside", "Get File inside"},
            "shared": {"Put Range inside"},
        }
        for kind, flags in (("exclusive", EXCLUSIVE), ("shared", SHARED)):
            lock(opened, 0, 10, flags | AT_ONCE)
            for what, operation in operations.items():
                expected = _LOCKED if what in refused[kind] else "ok"
                yield _row(case, f"{kind} lock, {what}", expected, ask_rest(operation))
            lock(opened, 0, 10, UNLOCK)
        yield _row(case, "unlocked, Put Range inside", "ok", ask_rest(operations["Put Range inside"]))
        opened.close()


def try_delete_pending(endpoint: Endpoint) -> Iterator[Row]:
    """MS-FSA FileInfo_Set_FileDispositionInformation_File, seen over REST."""
    case = "FileInfo_Set_FileDispositionInformation_File"
    with endpoint.connect() as client, endpoint.file() as file:
        opened = client.open(file.file_name, READ | DELETE)
        client.mark_deleted(opened)
        for name, operation in OPERATIONS.items():
            yield _row(case, f"delete pending, {name}", _PENDING, ask_rest(operation, file))
        yield _row(case, "delete pending, List Files", "hidden", _is_listed(endpoint, file))
        client.mark_deleted(opened, deleted=False)
        yield _row(case, "taken back, Get File", "ok", ask_rest(lambda: file.download_file().readall()))
        yield _row(case, "taken back, List Files", "listed", _is_listed(endpoint, file))
        client.mark_deleted(opened)
        opened.close()
        yield _row(case, "closed, Get Properties", "404 ResourceNotFound", ask_rest(file.get_file_properties))


def try_oplocks(endpoint: Endpoint) -> Iterator[Row]:
    """MS-SMB2 BVT_OpLockBreak, with REST as the second client."""
    case = "BVT_OpLockBreak"
    with endpoint.connect() as client, endpoint.file() as file:
        breaks = Breaks(client)
        opened = client.open(file.file_name, READ | WRITE, oplock=BATCH)
        with _in_background(lambda: file.download_file().readall()) as getting:
            yield _row(case, "batch, Get File breaks to", str(LEVEL_2), breaks.wait())
            opened.write(b"flushed", 0)
            breaks.acknowledge(opened, LEVEL_2)
        yield _row(case, "batch, Get File waits for what is flushed", "flushed", getting.text[:7])
        found = ask_rest(lambda: file.upload_range(b"y", 0, 1))
        yield _row(case, "level II, Put Range", "ok", found)
        yield _row(case, "level II, Put Range breaks to", str(NONE), breaks.wait())
        opened.close()

        opened = client.open(file.file_name, READ, 0, oplock=BATCH)
        with _in_background(lambda: file.download_file().readall()) as getting:
            breaks.wait()
            opened.close()
        yield _row("deferred close", "Get File has the handle closed", "ok", getting.found)

        opened = client.open(file.file_name, READ | WRITE, oplock=BATCH)
        found = ask_rest(lambda: file.download_file(timeout=2).readall())
        yield _row(case, "batch, no acknowledgment, Get File", _NOT_FLUSHED, found)
        breaks.wait()
        breaks.acknowledge(opened, NONE)
        opened.close()


def try_handles(endpoint: Endpoint) -> Iterator[Row]:
    """List Handles and Force Close Handles."""
    case = "List Handles, Force Close Handles"
    with endpoint.connect() as client, endpoint.file() as file:
        first = client.open(file.file_name, READ)
        second = client.open(file.file_name, READ | WRITE)
        listed = {
            tuple(str(getattr(right, "value", right)) for right in each.access_rights): each
            for each in file.list_handles()
        }
        yield _row(case, "rights", "[('Read',), ('Read', 'Write')]", sorted(listed))
        closed = file.close_handle(listed["Read", "Write"])
        yield _row(case, "one is closed", "1", closed["closed_handles_count"])
        yield _row(case, "its holder writes", _SMB_CLOSED, ask_smb(lambda: second.write(b"y", 0)))
        yield _row(case, "the other one reads", "ok", ask_smb(lambda: first.read(0, 1)))
        yield _row(case, "all are closed", "1", file.close_all_handles()["closed_handles_count"])
        yield _row(case, "its holder reads", _SMB_CLOSED, ask_smb(lambda: first.read(0, 1)))
        yield _row(case, "Delete File", "ok", ask_rest(file.delete_file))


def try_visibility(endpoint: Endpoint) -> Iterator[Row]:
    """What one protocol writes, the other one sees."""
    case = "one file, two protocols"
    with endpoint.connect() as client, endpoint.file() as file:
        before = file.get_file_properties().etag
        opened = client.open(file.file_name, READ | WRITE)
        opened.write(b"over SMB", 0)
        opened.close()
        yield _row(case, "written over SMB, read over REST", "over SMB", file.download_file(0, 8).readall().decode())
        changed = file.get_file_properties().etag != before
        yield _row(case, "written over SMB, the ETag", "changed", "changed" if changed else "the same")
        file.upload_range(b"REST", 0, 4)
        opened = client.open(file.file_name, READ)
        yield _row(case, "written over REST, read over SMB", "REST SMB", opened.read(0, 8).decode())
        opened.close()
        yield from _try_names(case, endpoint, client, file)


def _try_names(case: str, endpoint: Endpoint, client: SmbClient, file: ShareFileClient) -> Iterator[Row]:
    folder = f"folder-{file.file_name[:8]}"
    client.open(folder, READ, disposition=CreateDisposition.FILE_CREATE, is_directory=True).close()
    made = client.open(rf"{folder}\é.txt", WRITE, disposition=CreateDisposition.FILE_CREATE)
    made.write(b"one", 0)
    made.close()
    listed = [each["name"] for each in endpoint.share.list_directories_and_files(folder)]
    yield _row(case, "folder and file made over SMB, listed over REST", "['é.txt']", listed)
    moved: Open = client.open(rf"{folder}\é.txt", READ | DELETE)
    client.rename(moved, rf"{folder}\b.txt")
    moved.close()
    other = endpoint.share.get_file_client(f"{folder}/b.txt")
    yield _row(case, "renamed over SMB, read over REST", "one", other.download_file().readall().decode())
    endpoint.share.create_directory(f"{folder}/inside")
    found = ask_smb(lambda: client.open(rf"{folder}\inside", READ, is_directory=True).close())
    yield _row(case, "folder made over REST, opened over SMB", "ok", found)
    other.delete_file()
    endpoint.share.delete_directory(f"{folder}/inside")
    yield _row(
        case, "emptied over REST, Delete Directory", "ok", ask_rest(lambda: endpoint.share.delete_directory(folder))
    )


#: All that is tried, in order.
TRIALS = (
    try_share_modes,
    try_leases,
    try_range_locks,
    try_delete_pending,
    try_oplocks,
    try_handles,
    try_visibility,
)


class _Answer:
    """An operation of REST in a thread."""

    def __init__(self, operation: Callable[[], Any]) -> None:
        self.found = ""
        self.text = ""
        self._operation = operation
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    def _run(self) -> None:
        try:
            self.text = self._operation().decode()
            self.found = "ok"
        except HttpResponseError as error:
            self.found = describe(error)


def _name_rights(handle: Handle) -> tuple[str, ...]:
    return tuple(str(getattr(right, "value", right)) for right in handle.access_rights or [])


def _open_and_close(client: SmbClient, file: ShareFileClient, access: int) -> None:
    client.open(file.file_name, access).close()


def _in_background(operation: Callable[[], Any]) -> _Answer:
    return _Answer(operation)


def _is_listed(endpoint: Endpoint, file: ShareFileClient) -> str:
    names = [each["name"] for each in endpoint.share.list_directories_and_files()]
    return "listed" if file.file_name in names else "hidden"
