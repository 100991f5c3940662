"""Blobs under a prefix, as trees of files see them."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any

from azguard.accounts.account import SINGLE_BYTES, Target
from azguard.address import Kind
from azguard.blobs import deletes, listing
from azguard.blobs.content import put_blob
from azguard.blobs.content.download import BlobDownload
from azguard.blobs.content.upload import Settings, Upload
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.requests.deadline import Deadline
from azguard.requests.results import Written
from azguard.resources import delivery, lifecycles
from azguard.resources.properties import encode_md5
from azguard.resources.ranges import AT_ONCE, Shares
from azguard.resources.tree_store import ListedItem, TreeGet, TreePut, TreeStore
from azguard.wire.operations.blobs import BLOB_DELETE, BLOB_GET, BLOB_PUT_BLOCK_BLOB

# What all blobs together have in memory that are read at the same time: the first range of one, and AT_ONCE others.
_CONTENT = Shares(1 + AT_ONCE)
# Each of many jobs has one of them in memory.
_SMALL_BYTES = 1 << 20


@frozen(kw_only=True)
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

    def list_items(self, deadline: Deadline) -> Iterator[ListedItem]:
        """Yield the blobs, but no directories, which only an account with a hierarchical namespace lists."""
        for item in listing.walk(self.root, deadline, prefix=self.prefix or None):
            if item.resource_type != "directory":
                yield ListedItem(
                    name=item.name,
                    etag=item.etag,
                    last_modified=item.last_modified,
                    content_length=item.size,
                    content_md5=encode_md5(item.content_md5),
                    blob_type=item.blob_type,
                )

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
        """Read a blob into a file; see ``delivery.to_file``. A small one takes one request, and waits for no other."""
        size, progress = get.size, get.progress
        is_small = size is not None and size <= _SMALL_BYTES
        share = nullcontext(1) if is_small else _CONTENT.hold(None if size is None else -(-size // SINGLE_BYTES))
        with share as count:
            # The run may have been stopped meanwhile.
            progress(0)
            begin = partial(BlobDownload, get.target, get.conditions, get.deadline.fresh, at_once=max(1, count - 1))
            return delivery.to_file(
                get.target, begin, get.file, get.deadline, lambda done, _: progress(done), get.admit
            )

    def delete(self, target: Target, conditions: Conditions, deadline: Deadline, *, listed: str | None) -> Written:
        return deletes.delete(target, conditions, self.snapshots, deadline, listed=listed)
