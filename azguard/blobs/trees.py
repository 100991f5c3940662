"""Blobs under a prefix, as trees of files see them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

from azguard import naming
from azguard.accounts.account import SINGLE_BYTES
from azguard.accounts.direct import ChallengeReceived
from azguard.accounts.target import Target
from azguard.address import Address, Kind
from azguard.blobs import containers, deletes, downloads, listing, name_lists, properties, small_gets, uploads
from azguard.blobs.existing import find_blob
from azguard.blobs.name_lists import ListedBlob
from azguard.blobs.shown import BlobShown
from azguard.blobs.upload import Settings, Upload
from azguard.conditions.etags import quote
from azguard.conditions.operations import BLOB_DELETE, BLOB_GET, BLOB_PUT_BLOCK_BLOB, Operation
from azguard.conditions.resolve import Conditions
from azguard.errors import Forbidden, NotFound
from azguard.requests.commits import WriteResult
from azguard.requests.deadline import Deadline
from azguard.requests.delivery import AT_ONCE, Shares
from azguard.resources import existence

# What all blobs together have in memory that are read at the same time: the first range of one, and AT_ONCE others.
_CONTENT = Shares(1 + AT_ONCE)


@dataclass(frozen=True, kw_only=True)
class BlobTree:
    """The blobs of a container whose names begin with a prefix."""

    container: Target
    #: Empty, or with a slash at its end.
    prefix: str
    #: Returns the properties of a blob of this name; only a put needs them.
    settings: Callable[[str], Settings] = lambda name: Settings()
    #: Whether a put stamps the lineage.
    stamps: bool = True
    #: Whether a put replaces an append or page blob, too.
    any_type: bool = False
    #: Of a delete: None, ``include`` or ``only``.
    snapshots: str | None = None
    #: A container has no directories.
    folders: None = None
    #: Names that differ in anything are different blobs.
    fold: None = None

    @property
    def address(self) -> str:
        """Return what the prefix is."""
        return f"blob:{self.container.address.container}/{self.prefix}"

    @property
    def put_operation(self) -> Operation:
        """Return the operation of a put."""
        return BLOB_PUT_BLOCK_BLOB

    @property
    def get_operation(self) -> Operation:
        """Return the operation of a get."""
        return BLOB_GET

    @property
    def delete_operation(self) -> Operation:
        """Return the operation of a delete."""
        return BLOB_DELETE

    def find_reason_to_skip(self, name: str) -> str | None:  # for other services
        """Return None: every name may be a blob's."""
        return None

    def locate(self, name: str) -> Target:
        """Return the blob of that name.

        Raises:
            UsageError: the service takes no such name.
        """
        parts = (self.container.address.container, name)
        naming.check("blob", "blob", parts)
        return Target(self.container.account, Address(Kind.BLOB, parts))

    def locate_new(self, name: str) -> Target:
        """Return the blob of that name, as ``locate`` does."""
        return self.locate(name)

    def describe_settings(self, target: Target) -> str:
        """Return the properties that a put of this blob sets, as one text."""
        return repr(self.settings(target.address.name))

    def check(self, deadline: Deadline) -> None:
        """Refuse to begin where there is no container; a caller who may not ask for it may begin.

        Raises:
            NotFound: there is none.
        """
        try:
            containers.fetch(self.container, deadline)
        except Forbidden:
            pass

    def list_items(self, deadline: Deadline) -> Iterator[ListedBlob | BlobShown]:
        """Yield the blobs under the prefix."""
        found: Iterator[ListedBlob | BlobShown] = name_lists.list_names(self.container, deadline, self.prefix)
        try:
            first = list(islice(found, 1))
        except ChallengeReceived:
            first, found = [], self._list_by_sdk(deadline)
        return chain(first, found)

    def _list_by_sdk(self, deadline: Deadline) -> Iterator[BlobShown]:
        for each in listing.list_blobs(self.container, deadline, prefix=self.prefix or None):
            assert isinstance(each, BlobShown)
            yield each

    def find_etag(self, target: Target, deadline: Deadline) -> str | None:
        """Return the version of a blob that is there."""
        try:
            return quote(properties.fetch(target, Conditions(), deadline).etag)
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
        """Write a blob; see ``uploads.put``."""
        upload = Upload(
            target=target,
            settings=self.settings(target.address.name),
            conditions=conditions,
            deadline=deadline,
            op=op,
            any_type=self.any_type,
        )
        upload = upload.add_lineage() if self.stamps else upload
        written = existence.create(
            lambda: uploads.put(upload, source, progress),
            lambda: find_blob(upload),
            skip=skip,
        )
        return written, upload.stamp

    def get(
        self,
        target: Target,
        conditions: Conditions,
        file: Path,
        deadline: Deadline,
        progress: Callable[[int], None],
        admit: Callable[[str], None],
        *,
        size: int | None,
    ) -> tuple[Any, str | None]:
        """Read a blob into a file; see ``downloads.to_file``. A small one takes one request and no model of the SDK."""
        if size is not None and 0 < size <= small_gets.MOST_BYTES:
            found = small_gets.to_file(target, conditions, file, deadline, progress, admit)
            if found is not None:
                return found
        with _CONTENT.hold(None if size is None else -(-size // SINGLE_BYTES)) as count:
            # The run may have been stopped meanwhile.
            progress(0)
            return downloads.to_file(
                target, conditions, file, deadline, lambda done, _: progress(done), admit, at_once=max(1, count - 1)
            )

    def delete(self, target: Target, conditions: Conditions, deadline: Deadline, *, listed: str | None) -> WriteResult:
        """Delete a blob; see ``deletes.delete``."""
        return deletes.delete(target, conditions, self.snapshots, deadline, listed=listed)
