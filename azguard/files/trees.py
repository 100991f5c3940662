"""Files under a directory of a share, as trees of files see them."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from azguard import naming
from azguard.accounts.target import Target
from azguard.address import Address, Kind
from azguard.conditions.etags import quote
from azguard.conditions.operations import FILE_DELETE, FILE_GET, FILE_RENAME, Operation
from azguard.conditions.resolve import Conditions
from azguard.errors import Forbidden, NotFound
from azguard.files import download, files, uploads, writes
from azguard.files import existing as found
from azguard.files.guarding import Guarding
from azguard.files.properties import FileHeaders, SmbProperties
from azguard.files.temporary_notes import PREFIX
from azguard.files.tree_folders import FileFolders, Walked
from azguard.requests.commits import WriteResult
from azguard.requests.deadline import Deadline
from azguard.resources import existence


class FileSettings(NamedTuple):
    """What a file is to be besides its content."""

    headers: FileHeaders
    smb: SmbProperties
    metadata: Mapping[str, str]


def _choose_no_settings(name: str) -> FileSettings:  # noqa: ARG001  # whatever its name
    return FileSettings(FileHeaders(), SmbProperties(), {})


@dataclass(frozen=True, kw_only=True)
class FileTree:
    """The files of a share below a directory, or all of them."""

    #: It may be a snapshot, of which nothing is written.
    share: Target
    #: Empty, or the directory with a slash at its end.
    prefix: str
    guarding: Guarding
    #: Returns the properties of a file of this name; only a put needs them.
    settings: Callable[[str], FileSettings] = _choose_no_settings

    @property
    def address(self) -> str:
        """Return what the prefix is."""
        return f"file:{self.share.address.container}/{self.prefix}"

    @property
    def put_operation(self) -> Operation:
        """Return the operation of a put: a rename, which can create only."""
        return FILE_RENAME

    @property
    def get_operation(self) -> Operation:
        """Return the operation of a get."""
        return FILE_GET

    @property
    def delete_operation(self) -> Operation:
        """Return the operation of a delete."""
        return FILE_DELETE

    @cached_property
    def folders(self) -> FileFolders:
        """Return the directories."""
        return FileFolders(self.share, self.prefix)

    @property
    def fold(self) -> Callable[[str], str]:
        """Return what tells which names are of one file: the service keeps the case of letters, and ignores it."""
        return naming.fold_path

    def find_reason_to_skip(self, name: str) -> str | None:
        """Return why a file is left out: it is the temporary file of another command."""
        return "a run that was killed left it" if _is_temporary(name) else None

    def locate(self, name: str) -> Target:
        """Return the file of that name.

        Raises:
            UsageError: the service takes no such name.
        """
        share = self.share.address
        parts = (share.container, name)
        naming.check("file", "file", parts)
        return Target(self.share.account, Address(Kind.FILE, parts, share.snapshot))

    def locate_new(self, name: str) -> Target:
        """Return the file of that name, if programs can open it over SMB.

        Raises:
            UsageError: they cannot, or the service takes no such name.
        """
        found = self.locate(name)
        naming.check_new_path(name.removeprefix(self.prefix))
        return found

    def describe_settings(self, target: Target) -> str:
        """Return the properties that a put of this file sets, as one text."""
        return repr(self.settings(target.address.name))

    def check(self, deadline: Deadline) -> None:
        """Refuse to begin where there is no share; a caller who may not ask for it may begin.

        Raises:
            NotFound: there is none.
        """
        try:
            writes.fetch(self.share, None, deadline)
        except Forbidden:
            pass

    def list_items(self, deadline: Deadline) -> Iterator[Walked]:
        """Yield the files below the directory, but no temporary ones of other commands."""
        for each in self.folders.walk(deadline):
            if not each.is_folder and not _is_temporary(each.name):
                yield each

    def find_etag(self, target: Target, deadline: Deadline) -> str | None:
        """Return the version of a file that is there."""
        try:
            return quote(writes.fetch(target, None, deadline).etag)
        except NotFound:
            return None

    def put(
        self,
        target: Target,
        source: BinaryIO,
        conditions: Conditions,
        op: str,
        deadline: Deadline,
        progress: Callable[[int], None],
        *,
        skip: bool,
    ) -> tuple[Any, str | None]:
        """Write a file; see ``uploads.put``. The directories that it is in are made where they are missing."""
        folder = target.address.path.rpartition("/")[0]
        self.folders.ensure(folder, deadline.fresh())
        headers, smb, metadata = self.settings(target.address.name)
        upload = uploads.FileUpload(
            target=target,
            headers=headers,
            smb=smb,
            metadata=metadata,
            conditions=conditions,
            deadline=deadline,
            op=op,
        )
        size = os.fstat(source.fileno()).st_size
        try:
            written = existence.create(
                lambda: uploads.put(upload, source, size, self.guarding, progress),
                lambda: found.find(target, op, deadline),
                skip=skip,
            )
        except NotFound:
            # Another has deleted the directory: for the next file it is made again.
            self.folders.forget(folder)
            raise
        return written, getattr(written, "lineage", None)

    def get(
        self,
        target: Target,
        conditions: Conditions,
        file: Path,
        deadline: Deadline,
        progress: Callable[[int], None],
        admit: Callable[[str], None],
        *,
        size: int | None,  # one way to read is good for all sizes
    ) -> tuple[Any, str | None]:
        """Read a file into a local one; see ``download.to_file``."""
        return download.to_file(
            target, conditions, download.WHOLE, file, deadline, lambda done, _: progress(done), admit=admit
        )

    def delete(
        self,
        target: Target,
        conditions: Conditions,
        deadline: Deadline,
        *,
        listed: str | None,  # its lease tells more
    ) -> WriteResult:
        """Delete a file; see ``files.delete``."""
        return files.delete(target, conditions, self.guarding, deadline)


def _is_temporary(name: str) -> bool:
    return any(part.startswith(PREFIX) for part in name.split("/"))
