"""Files under a directory of a share, as trees of files see them."""

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field
from functools import cached_property, partial
from typing import Any, NamedTuple

from azguard import naming
from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import Exists, NotFound
from azguard.files import entries, files, replacing
from azguard.files.content import FileDownload
from azguard.files.entries import SmbProperties
from azguard.files.guarding import Guarding
from azguard.files.temporary import PREFIX
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.requests import commits
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.results import Written
from azguard.requests.settle import Finding, WriteRequest, send_until_settled
from azguard.resources import delivery, lifecycles, properties
from azguard.resources.properties import ContentHeaders
from azguard.resources.tree_store import ListedItem, TreeGet, TreePut, TreeStore
from azguard.wire.operations.shares import DIRECTORY_CREATE, DIRECTORY_DELETE, FILE_DELETE, FILE_GET, FILE_RENAME
from azguard.wire.rows import Operation

# So many directories are remembered as made: a tree may have more of them than fit the memory.
_MOST_FOLDERS = 10_000


class _Made:
    """The directories that are known to be there, and those being made: one thread makes each."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names = set[str]()
        self._under_way: dict[str, threading.Lock] = {}

    @contextmanager
    def once(self, name: str) -> Iterator[bool]:
        """Yield whether a directory is to be made here and now; others that ask for it wait until it is."""
        if name in self._names:
            yield False
            return
        with self._lock:
            own = self._under_way.setdefault(name, threading.Lock())
        with own:
            yield name not in self._names
            with self._lock:
                if len(self._names) >= _MOST_FOLDERS:
                    self._names.clear()
                self._names.add(name)
                self._under_way.pop(name, None)

    def forget(self, name: str) -> None:
        """Forget that a directory is there."""
        with self._lock:
            self._names.discard(name)


@frozen
class _FileFolders:
    """The directories of a share below one of them, with that itself. Threads may use it at the same time."""

    #: It may be a snapshot.
    share: Target
    #: Empty, or the directory with a slash at its end.
    prefix: str
    _made: _Made = field(default_factory=_Made)

    def walk(self, deadline: Deadline) -> Iterator[ListedItem]:
        """Yield all files, and each directory after what is in it; nothing if the first one is not there.

        One page of the listing is kept for each directory on the way down, so that memory does not grow with the tree.

        Raises:
            NotFound: there is no such share.
        """
        first = self.prefix.rstrip("/")
        if first:
            yield from self._walk(first, deadline)
            return
        yield from self._walk_below("", deadline)

    def locate(self, name: str) -> Target:
        share = self.share.address
        return Target(self.share.account, Address(Kind.DIR, (share.container, name), share.snapshot))

    def ensure(self, name: str, deadline: Deadline) -> None:
        """Make a directory, and those that it is in, unless they are there.

        Raises:
            AzguardError: one cannot be made, for example because a file has its name.
        """
        if not name:
            return
        with self._made.once(name) as is_new:
            if not is_new:
                return
            try:
                self._create(name, deadline)
            except NotFound as error:
                if error.reason != "parent_not_found":
                    raise
                self.ensure(name.rpartition("/")[0], deadline)
                self._create(name, deadline)

    def forget(self, name: str) -> None:
        """Forget that a directory was there."""
        self._made.forget(name)

    def delete(self, target: Target, deadline: Deadline) -> bool:
        try:
            self._settle(DIRECTORY_DELETE, target, deadline, is_there=False)
        except NotFound:
            return False
        return True

    def _create(self, name: str, deadline: Deadline) -> None:
        target = self.locate(name)
        # That one is there already is all that was wanted.
        with suppress(Exists):
            self._settle(DIRECTORY_CREATE, target, deadline, is_there=True)

    def _settle(self, operation: Operation, target: Target, deadline: Deadline, *, is_there: bool) -> None:
        """Send what may be done twice, because a directory without content has no version that could be lost.

        ``is_there`` says whether a directory is there once it is done.
        """

        def look(patience: Deadline) -> Finding[Any]:
            is_done = (properties.find(target, patience) is not None) is is_there
            return Finding(Verdict.COMMITTED if is_done else Verdict.NOT_YET)

        request = WriteRequest[Any](
            operation=operation,
            target=target,
            look=look,
            # What a refusal says is enough, even if it is of a second copy of the request.
            look_after_refusal=lambda _: Finding(Verdict.UNKNOWN),
        )
        with commits.suppress():
            send_until_settled(request, deadline)

    def _walk(self, name: str, deadline: Deadline) -> Iterator[ListedItem]:
        try:
            yield from self._walk_below(name, deadline)
        except NotFound as error:
            if error.service_code == "ShareNotFound":
                raise
            # Deleted since it was listed, or never there.
            return
        yield ListedItem(name, is_folder=True)

    def _walk_below(self, name: str, deadline: Deadline) -> Iterator[ListedItem]:
        folder = self.locate(name) if name else self.share
        for each in entries.list_entries(folder, deadline, prefix=None, limit=None):
            path = f"{name}/{each.name}" if name else each.name
            if each.type == Kind.DIR:
                yield from self._walk(path, deadline)
            else:
                # No MD5: the service keeps the one that a writer once sent, also after other writes.
                yield ListedItem(path, each.etag, each.last_modified, each.content_length)


class FileSettings(NamedTuple):
    """What a file is to be besides its content."""

    headers: ContentHeaders
    smb: SmbProperties
    metadata: Mapping[str, str]


@frozen(kw_only=True)
class FileTree(TreeStore):
    """The files of a share below a directory, or all of them. Of a snapshot nothing is written."""

    KIND = Kind.FILE
    #: A rename, which can create only.
    PUT = FILE_RENAME
    GET = FILE_GET
    DELETE = FILE_DELETE

    settings: Callable[[str], FileSettings] = lambda name: FileSettings(ContentHeaders(), SmbProperties(), {})
    guarding: Guarding

    @cached_property
    def folders(self) -> _FileFolders:
        return _FileFolders(self.root, self.prefix)

    @property
    def fold(self) -> Callable[[str], str]:
        """Return the function that folds the names of one file to one key: the service ignores the case of letters."""
        return naming.fold_path

    def find_reason_to_skip(self, name: str) -> str | None:
        """Return why a file is left out: it is the temporary file of another command."""
        return "a run that was killed left it" if _is_temporary(name) else None

    def locate_new(self, name: str) -> Target:
        found = self.locate(name)
        naming.check_new_path(name.removeprefix(self.prefix))
        return found

    def list_items(self, deadline: Deadline) -> Iterator[ListedItem]:
        """Yield the files below the directory, but no temporary ones of other commands."""
        for each in self.folders.walk(deadline):
            if not each.is_folder and not _is_temporary(each.name):
                yield each

    def put(self, put: TreePut) -> tuple[Any, str | None]:
        """Write a file; see ``replacing.put``. The directories that it is in are made where they are missing."""
        target, op, deadline, source = put.target, put.op, put.deadline, put.source
        folder = target.address.path.rpartition("/")[0]
        self.folders.ensure(folder, deadline.fresh())
        headers, smb, metadata = put.settings
        upload = replacing.FileUpload(
            target=target,
            headers=headers,
            smb=smb,
            metadata=metadata,
            conditions=put.conditions,
            deadline=deadline,
            op=op,
        )
        size = os.fstat(source.fileno()).st_size
        try:
            written = lifecycles.create_unless_exists(
                lambda: replacing.put(upload, source, size, self.guarding, put.progress),
                lambda: lifecycles.find_existing(target, op, deadline),
                skip=put.skip,
            )
        except NotFound:
            # Another has deleted the directory: for the next file it is made again.
            self.folders.forget(folder)
            raise
        return written, getattr(written, "lineage", None)

    def get(self, get: TreeGet) -> tuple[Any, str | None]:
        """Read a file into a local one; see ``delivery.to_file``. One way to read is good for all sizes."""
        begin = partial(FileDownload, get.target, get.conditions.lease_id, get.deadline.fresh)
        return delivery.to_file(
            get.target, begin, get.file, get.deadline, lambda done, _: get.progress(done), get.admit
        )

    def delete(
        self,
        target: Target,
        conditions: Conditions,
        deadline: Deadline,
        *,
        listed: str | None,  # its lease tells more
    ) -> Written:
        return files.delete(target, conditions, self.guarding, deadline)


def _is_temporary(name: str) -> bool:
    return any(part.startswith(PREFIX) for part in name.split("/"))
