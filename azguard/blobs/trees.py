"""Blobs under a prefix, as trees of files see them. A small blob takes one request."""

import hashlib
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import Any

from azguard.accounts.account import SINGLE_BYTES, Target
from azguard.address import Kind
from azguard.blobs import deletes, listing
from azguard.blobs.content import put_blob
from azguard.blobs.content.download import BlobDownload, BlobGot
from azguard.blobs.content.upload import Settings, Upload
from azguard.blobs.refusals import explain_stale_read
from azguard.guards.resolve import Conditions
from azguard.requests import calls, delivery
from azguard.requests.deadline import Deadline
from azguard.requests.delivery import AT_ONCE, Shares
from azguard.requests.lineage import KEY, drop_lineage
from azguard.requests.results import Written
from azguard.resources import downloads, lifecycles, properties
from azguard.resources.tree_store import ListedItem, TreeGet, TreePut, TreeStore
from azguard.wire.call import call
from azguard.wire.client import Limits
from azguard.wire.operations.blobs import BLOB_DELETE, BLOB_GET, BLOB_PUT_BLOCK_BLOB

# What all blobs together have in memory that are read at the same time: the first range of one, and AT_ONCE others.
_CONTENT = Shares(1 + AT_ONCE)
#: Each of many jobs has one of them in memory.
_SMALL_BYTES = 1 << 20
_RANGE = f"bytes=0-{_SMALL_BYTES - 1}"


@dataclass(frozen=True, kw_only=True)
class BlobTree(TreeStore):
    """The blobs of a container whose names begin with a prefix. Names that differ in anything are different blobs."""

    KIND = Kind.BLOB
    PUT = BLOB_PUT_BLOCK_BLOB
    GET = BLOB_GET
    DELETE = BLOB_DELETE

    settings: Callable[[str], Settings] = lambda name: Settings()
    #: Whether a put stamps the lineage.
    stamps: bool = True
    #: Whether a put replaces an append or page blob, too.
    any_type: bool = False
    #: Of a delete: None, ``include`` or ``only``.
    snapshots: str | None = None

    def fetch(self, target: Target, deadline: Deadline) -> Any:
        return properties.fetch(target, Conditions(), deadline)

    def list_items(self, deadline: Deadline) -> Iterator[ListedItem]:
        return listing.list_names(self.root, deadline, self.prefix)

    def put(self, put: TreePut) -> tuple[Any, str | None]:
        """Write a blob; see ``put_blob.put``."""
        target, op, deadline = put.target, put.op, put.deadline
        upload = Upload(
            target=target,
            settings=put.settings,
            conditions=put.conditions,
            deadline=deadline,
            op=op,
            any_type=self.any_type,
        )
        upload = upload.add_lineage() if self.stamps else upload
        written = lifecycles.create_unless_exists(
            lambda: put_blob.put(upload, put.source, put.progress),
            lambda: lifecycles.find_existing(target, op, deadline),
            skip=put.skip,
        )
        return written, upload.stamp

    def get(self, get: TreeGet) -> tuple[Any, str | None]:
        """Read a blob into a file; see ``downloads.to_file``. A small one takes one request."""
        size, progress = get.size, get.progress
        if size is not None and 0 < size <= _SMALL_BYTES:
            found = _read_small_to_file(get)
            if found is not None:
                return found
        with _CONTENT.hold(None if size is None else -(-size // SINGLE_BYTES)) as count:
            # The run may have been stopped meanwhile.
            progress(0)
            begin = partial(BlobDownload, get.target, get.conditions, get.deadline.fresh, at_once=max(1, count - 1))
            return downloads.to_file(
                get.target, begin, get.file, get.deadline, lambda done, _: progress(done), get.admit
            )

    def delete(self, target: Target, conditions: Conditions, deadline: Deadline, *, listed: str | None) -> Written:
        return deletes.delete(target, conditions, self.snapshots, deadline, listed=listed)


def _read_small_to_file(get: TreeGet) -> tuple[BlobGot, str | None] | None:
    """Write a small blob's content to a file, whole or not at all, and return the result and the blob's lineage.

    Return None and write nothing if one request cannot read the whole blob, or if the file is a device.
    """
    target, deadline = get.target, get.deadline
    mode = delivery.find_mode(get.file)
    if mode is not None and not stat.S_ISREG(mode):
        return None
    headers = get.conditions.request_headers
    with explain_stale_read(target, get.conditions, deadline):
        found = calls.read(lambda timeouts: _read(target, headers, timeouts), target, deadline)
    if found is None:
        return None
    content, got, lineage = found
    get.progress(len(content))
    with delivery.replace_file(get.file, mode) as stream:
        stream.write(content)
        inode = delivery.find_inode(stream)
        get.admit(got.content_hash)
    return replace(got, file=str(get.file), inode=inode), lineage


def _read(target: Target, headers: Mapping[str, str], timeouts: Limits) -> tuple[bytes, BlobGot, str | None] | None:
    """Read a blob and its lineage from one answer; None if it is empty, larger than one request reads, or odd.

    Source: https://learn.microsoft.com/rest/api/storageservices/get-blob
    """
    answer = call(BLOB_GET, target, timeouts, headers=headers, range=_RANGE)
    content = answer.content
    is_whole = answer.content_range == f"bytes 0-{len(content) - 1}/{len(content)}"
    if answer.status != HTTPStatus.PARTIAL_CONTENT or not is_whole or not answer.etag or not answer.last_modified:
        return None
    metadata = answer.metadata
    with suppress(ValueError):
        got = BlobGot(
            address=str(target.address),
            etag=answer.etag,
            last_modified=answer.last_modified,
            content_length=len(content),
            start=0,
            length=len(content),
            content_type=answer.content_type,
            blob_type=answer.blob_type,
            content_hash=f"sha256:{hashlib.sha256(content).hexdigest()}",
            file=None,
            metadata=drop_lineage(metadata),
        )
        return content, got, metadata.get(KEY)
    return None
