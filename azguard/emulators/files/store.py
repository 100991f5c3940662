"""Shares and what is in them: found, read and changed. The disk says what exists, the database what is known of it."""

import fcntl
import hashlib
import json
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from azguard.atomic_files import write_atomically
from azguard.emulators.files import answers
from azguard.emulators.files.answers import ServiceError
from azguard.emulators.files.database import (
    DIRECTORY,
    FILE,
    Database,
    Node,
    OpenHandle,
    PendingCopy,
    ShareRecord,
    make_key,
    parent_of,
)
from azguard.emulators.files.disk import Disk, Room
from azguard.emulators.files.request import FileRequest

#: The permission of what was made without one.
DEFAULT_PERMISSION = "O:SYG:SYD:(A;;FA;;;BA)(A;;FA;;;SY)(A;;0x1301bf;;;AU)(A;;0x1200a9;;;BU)"
_ATTRIBUTES = (
    "ReadOnly", "Hidden", "System", "None", "Directory", "Archive", "Temporary", "Offline", "NotContentIndexed",
    "NoScrubData",
)  # fmt: skip
# What a copy names to take a property of its source.
_SOURCE = "source"
#: The headers that set times, and the fields of a node.
TIMES = {
    "x-ms-file-creation-time": "created",
    "x-ms-file-last-write-time": "written",
    "x-ms-file-change-time": "changed",
}
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,7}))?(Z|[+-]\d\d:\d\d)?\Z", re.ASCII)
# The parts that a security descriptor may have: owner, group, and access lists.
_SDDL = re.compile(r"(O:[^:()]+)?(G:[^:()]+)?([DS]:.*)?\Z", re.DOTALL)
_SDDL_START = re.compile(r"[OGDS]:")


class OpenFiles(Protocol):
    """What SMB clients have open."""

    def list_handles(self, folder: Path) -> list[OpenHandle]:
        """Return the handles of clients in the folder of a share."""

    def find_deleted(self, folder: Path) -> set[str]:
        """Return the paths, from the folder of a share, of what is gone as soon as its last handle is closed."""

    def close_handles(self, handles: list[OpenHandle]) -> int:
        """Close handles; return how many are closed."""


class Store:
    """All shares of one account. Work with it inside ``transaction()``."""

    def __init__(
        self,
        folder: Path,
        *,
        retention_days: int = 0,
        share_deletion_seconds: float = 0,
        now: Callable[[], float] = time.time,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.database = Database(folder / "files.db")
        self.disk = Disk(folder / "trees")
        #: For how many days a deleted share can be restored; 0 is not at all.
        self.retention_days = retention_days
        #: For how many seconds the name of a deleted share cannot be used.
        self.share_deletion_seconds = share_deletion_seconds
        #: When each share was deleted, on ``now``.
        self.deleted_shares: dict[str, float] = {}
        self.now = now
        #: What SMB clients have open; None if the shares are not served over SMB.
        self.smb: OpenFiles | None = None
        #: The copies from other servers that are not done, by their ids.
        self.pending: dict[str, PendingCopy] = {}
        self.room = Room(self.disk)
        self._partial = folder / "copies"
        shutil.rmtree(self._partial, ignore_errors=True)
        self._partial.mkdir()
        #: What is renamed just now: written before the disk changes, removed after the tables have.
        self._journal = folder / "rename.json"
        self._is_renaming = self._journal.exists()
        self._lock = (folder / "lock").open("a")
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with self.transaction():
            self._finish_rename()
            self._remove_stray_folders(folder / "trees")

    def close(self) -> None:
        with self.database.lock:
            for each in self.pending.values():
                each.is_stopped = True
            self.database.close()
        self._lock.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Apply all of a block to the tables, or nothing of it if it raises; one block at a time."""
        with self.database.lock:
            with self.database.transaction():
                yield
            if self._is_renaming:
                self._journal.unlink(missing_ok=True)
                self._is_renaming = False

    def list_smb_shares(self) -> list[ShareRecord]:
        return [share for share in self.database.list_shares() if self.serves_smb(share)]

    def serves_smb(self, share: ShareRecord) -> bool:
        """Return whether a share is served over SMB, if shares are at all."""
        return not share.snapshot and share.deleted is None

    def next_version(self) -> tuple[str, float]:
        """Return an ETag that never was, and the time for Last-Modified."""
        now = self.now()
        ticks = self.database.count_up("etag", answers.to_ticks(now))
        return f'"0x{ticks:X}"', now

    def locate_partial(self, copy_id: str) -> Path:
        """Return where the content of a pending copy is until all of it is there."""
        return self._partial / copy_id

    def get_share(self, request: FileRequest) -> ShareRecord:
        snapshot = request.query.get("sharesnapshot", "")
        if snapshot and request.method not in ("GET", "HEAD") and request.query.get("comp") != "lease":
            is_delete = request.method == "DELETE" and request.query.get("restype") == "share"
            if not is_delete:
                raise ServiceError("ShareSnapshotOperationNotSupported")
        self.refuse_deleted(request.share)
        found = self.database.find_share(request.share, snapshot)
        if found is None:
            raise ServiceError("ShareNotFound")
        return found

    def refuse_deleted(self, name: str) -> None:
        """Refuse a share that is still being deleted."""
        deleted = self.deleted_shares.get(name)
        if deleted is not None and self.now() < deleted + self.share_deletion_seconds:
            raise ServiceError("ShareBeingDeleted")

    def find(self, root: int, path: str) -> Node | None:
        """Return a directory or file, as the disk has it now."""
        known = self.database.find_node(root, path)
        written = known.path if known else path
        on_disk = self.disk.find(root, written)
        if on_disk is None:
            if known:
                self.database.remove_node(root, path)
            return None
        return self.refresh(root, on_disk, known)

    def refresh(self, root: int, path: str, known: Node | None) -> Node:
        """Return the node at a path; a node that another program made or changed on the disk gets a new version."""
        is_directory = self.disk.is_directory(root, path)
        if known is None or (known.kind == DIRECTORY) != is_directory:
            known = self._adopt(root, path, DIRECTORY if is_directory else FILE)
        elif not is_directory and known.stamp != self.disk.measure(root, path):
            self._note_foreign_write(known)
        return known

    def get(self, root: int, path: str) -> Node:
        """Return a directory or file that must be there.

        Raises:
            ServiceError: it is not.
        """
        found = self.find(root, path)
        if found is None:
            above = self.find(root, parent_of(path))
            missing = above is None or above.kind != DIRECTORY
            raise ServiceError("ParentNotFound" if missing else "ResourceNotFound")
        return found

    def get_any(self, request: FileRequest) -> Node:
        """Return the directory or file that a request names. Raises as ``get``."""
        return self.get(self.get_share(request).root, request.path)

    def get_file(self, request: FileRequest, *, reads: bool = False) -> Node:
        return self._get_kind(request, FILE, reads=reads)

    def get_directory(self, request: FileRequest, *, reads: bool = False) -> Node:
        return self._get_kind(request, DIRECTORY, reads=reads)

    def require_parent(self, root: int, path: str) -> Node:
        """Return the directory in which something is to be made."""
        found = self.find(root, parent_of(path))
        if found is None or found.kind != DIRECTORY:
            raise ServiceError("ParentNotFound")
        return found

    def make_node(self, root: int, path: str, kind: str) -> Node:
        """Return the node of a new directory or file; the caller fills in the node and saves it."""
        etag, modified = self.next_version()
        time_now = answers.format_time(modified)
        return Node(
            root=root,
            path=path,
            kind=kind,
            id=self.database.count_up("file-id", 1) << 32 if path else 0,
            etag=etag,
            modified=modified,
            attributes="Directory" if kind == DIRECTORY else "Archive",
            created=time_now,
            written=time_now,
            changed=time_now,
            permission_key=self.keep_permission(DEFAULT_PERMISSION),
        )

    def save_changed(self, node: Node) -> None:
        """Save a node that was changed: it gets a new version."""
        node.etag, node.modified = self.next_version()
        self.save(node)

    def save(self, node: Node) -> None:
        """Save a node with the version it has."""
        if node.kind == FILE:
            node.stamp = self.disk.measure(node.root, node.path)
            node.size = node.stamp[1]
        self.database.save_node(node)

    def note_change(self, node: Node, start: int, end: int) -> None:
        """Note that a part of a file was written or cleared; its ranges tell which of the two."""
        if node.changes is None or start == end:
            return
        number = self.database.find_last_root()
        kept: list[tuple[int, int, int]] = []
        for s, e, n in node.changes:
            if n == number and s <= end and e >= start:
                start, end = min(s, start), max(e, end)
            else:
                kept += [part for part in ((s, min(e, start), n), (max(s, end), e, n)) if part[0] < part[1]]
        node.changes = sorted([*kept, (start, end, number)])

    def keep_permission(self, text: str) -> str:
        """Keep a permission; return the key by which it is found."""
        digest = hashlib.sha256(text.encode()).digest()
        key = f"{int.from_bytes(digest[:8])}*{int.from_bytes(digest[8:16])}"
        self.database.save_permission(key, text)
        return key

    def _get_kind(self, request: FileRequest, kind: str, *, reads: bool) -> Node:
        found = self.get_any(request)
        if found.kind != kind:
            # The service looks for a file to read among the files alone.
            raise ServiceError("ResourceNotFound" if reads else "ResourceTypeMismatch")
        return found

    def _adopt(self, root: int, path: str, kind: str) -> Node:
        new = self.make_node(root, path, kind)
        if kind == FILE:
            new.ranges = self.disk.find_data(root, path)
        self.save(new)
        return new

    def _note_foreign_write(self, node: Node) -> None:
        node.ranges = self.disk.find_data(node.root, node.path)
        node.changes = None
        node.content.pop("Content-MD5", None)
        node.written = node.changed = answers.format_time(self.disk.modified(node.root, node.path))
        self.save_changed(node)

    def rename(self, root: int, source: str, target: str) -> None:
        """Rename on the disk and in the tables; if this process is killed in between, the next one finishes it."""
        self._is_renaming = True
        write_atomically(self._journal, json.dumps([root, source, target]).encode(), durable=False)
        self.disk.rename(root, source, target)
        self._move_nodes(root, source, target)

    def _finish_rename(self) -> None:
        """Bring the tables up to date with a rename that the process before was killed in."""
        if not self._is_renaming:
            return
        root, source, target = json.loads(self._journal.read_bytes())
        if self.disk.find(root, target) is not None and self.disk.find(root, source) is None:
            self._move_nodes(root, source, target)

    def _move_nodes(self, root: int, source: str, target: str) -> None:
        moved = [*self.database.list_below(root, source)]
        first = self.database.find_node(root, source)
        for node in [first, *moved] if first else moved:
            self.database.remove_node(root, node.path)
            node.path = target + node.path[len(source) :]
            self.database.save_node(node)

    def _remove_stray_folders(self, folder: Path) -> None:
        """Remove the folders of shares whose creation or deletion this process was killed in."""
        known = {str(share.root) for share in self.database.list_shares()}
        for each in folder.iterdir():
            if each.name not in known:
                shutil.rmtree(each, ignore_errors=True)


def same_path(one: str, other: str) -> bool:
    """Return whether two paths name the same thing."""
    return make_key(one) == make_key(other)


def apply_smb_properties(
    store: Store, node: Node, request: FileRequest, *, new: bool, source: Node | None = None
) -> None:
    """Set the attributes, times and permission that a request names; a copy may name those of its source."""
    headers = request.headers
    attributes = headers.get("x-ms-file-attributes")
    if source is not None and (attributes or "").lower() == _SOURCE:
        node.attributes = source.attributes
    elif attributes and attributes.lower() != "preserve":
        # A file that is made has this one, whatever others it is given.
        own = {"Directory"} if node.kind == DIRECTORY else {"Archive"} if new else set()
        node.attributes = _read_attributes(attributes, own)
    now = answers.format_time(store.now())
    for header, field in TIMES.items():
        value = headers.get(header)
        if value and value.lower() == "now":
            setattr(node, field, now)
        elif source is not None and (value or "").lower() == _SOURCE:
            setattr(node, field, getattr(source, field))
        elif value and value.lower() != "preserve":
            setattr(node, field, _read_time(value))
    if not new and "x-ms-file-change-time" not in headers:
        node.changed = now
    if source is not None and headers.get("x-ms-file-permission-copy-mode", "").lower() == _SOURCE:
        node.permission_key = source.permission_key
    else:
        _apply_permission(store, node, headers)


def _read_attributes(text: str, own: set[str]) -> str:
    known = {each.lower(): each for each in _ATTRIBUTES}
    try:
        found = own | {known[each.strip().lower()] for each in text.split("|")}
    except KeyError:
        raise ServiceError("InvalidHeaderValue") from None
    if len(found) > 1:
        found.discard("None")
    return " | ".join(each for each in _ATTRIBUTES if each in found)


def smb_headers(node: Node, parent_id: int) -> dict[str, str]:
    """Return the headers that tell of attributes, times and ids."""
    return {
        "x-ms-file-attributes": node.attributes,
        "x-ms-file-creation-time": node.created,
        "x-ms-file-last-write-time": node.written,
        "x-ms-file-change-time": node.changed,
        "x-ms-file-permission-key": node.permission_key,
        "x-ms-file-id": str(node.id),
        "x-ms-file-parent-id": str(parent_id),
    }


def _apply_permission(store: Store, node: Node, headers: Mapping[str, str]) -> None:
    permission, key = headers.get("x-ms-file-permission"), headers.get("x-ms-file-permission-key")
    if permission and key:
        raise ServiceError("InvalidHeaderValue")
    if key:
        if store.database.find_permission(key) is None:
            raise ServiceError("FileInvalidPermissionKey")
        node.permission_key = key
    elif permission and permission.lower() not in ("inherit", "preserve"):
        node.permission_key = store.keep_permission(check_permission(permission, headers))


def check_permission(text: str, headers: Mapping[str, str]) -> str:
    """Return a permission that looks like one; the binary form is taken as it is."""
    if headers.get("x-ms-file-permission-format", "").lower() == "binary":
        return text
    if not _SDDL_START.match(text) or not _SDDL.match(text):
        raise ServiceError("FileInvalidPermission")
    return text


def _read_time(value: str) -> str:
    found = _TIME.match(value)
    try:
        moment = datetime.fromisoformat(f"{found[1]}{found[3] or 'Z'}").astimezone(UTC) if found else None
    except (ValueError, OverflowError):
        moment = None
    if found is None or moment is None:
        raise ServiceError("InvalidHeaderValue")
    return f"{moment.replace(tzinfo=None).isoformat()}.{(found[2] or '').ljust(7, '0')}Z"
