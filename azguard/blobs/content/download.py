"""One version of a blob, read in ranges that are pinned to it.

The first range carries the caller's conditions, every further one ``If-Match`` with the first one's ETag.
"""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from azguard.accounts.account import SINGLE_BYTES, Target
from azguard.blobs import refusals
from azguard.errors import Changed, NotFound, Unavailable
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.requests.calls import read
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import drop_lineage
from azguard.requests.results import Shown
from azguard.requests.service_errors import build_wrong_range
from azguard.resources.downloads import Download, Got, Inode
from azguard.resources.properties import encode_md5
from azguard.resources.ranges import RANGE_BYTES, WHOLE, Span, is_answer_to
from azguard.wire.answers import Answer
from azguard.wire.call import call
from azguard.wire.client import Limits
from azguard.wire.operations.blobs import BLOB_GET


@frozen(kw_only=True)
class BlobGot(Got):
    """What a get of a blob wrote to its output."""

    FIRST: ClassVar = (*Shown.FIRST, "content_length", "start", "length", "content_type", "blob_type")

    blob_type: str | None


class BlobDownload(Download):
    """One version of a blob, being read; the constructor reads its first range."""

    def __init__(
        self,
        target: Target,
        conditions: Conditions,
        patience: Callable[[], Deadline],
        *,
        validates: bool = False,
        at_once: int | None = None,
        span: Span = WHOLE,
    ) -> None:
        #: Whether the service is asked for the MD5 of each range, which takes ranges of 4 MiB at most.
        self._validates = validates
        # Azurite hashes each range of 4 MiB or less before it answers, whether asked to or not.
        self.range_bytes = RANGE_BYTES if validates else SINGLE_BYTES
        super().__init__(target, conditions, patience, span, at_once)

    def result(self, file: Path | None, content_hash: str, inode: Inode | None = None) -> BlobGot:
        found = self.properties
        known = self.describe(file, content_hash, inode)
        return BlobGot(**known, blob_type=found.blob_type, metadata=drop_lineage(found.metadata))

    def read_first(self) -> tuple[bytes, Answer]:
        with refusals.explain_stale_read(self.target, self.conditions, self.patience()):
            return super().read_first()

    def ask(self, offset: int, length: int, etag: str | None) -> Answer:
        pinned = self.conditions if etag is None else Conditions({"If-Match": etag}, lease_id=self.conditions.lease_id)
        headers = pinned.request_headers
        patience = self.patience()
        found = ask_range(self.target, offset, length, patience, headers=headers, etag=etag, validates=self._validates)
        if self._validates:
            self._check_md5(found)
        return found

    def _check_md5(self, answer: Answer) -> None:
        found = encode_md5(hashlib.md5(answer.content, usedforsecurity=False).digest())
        told = answer.headers.get("Content-MD5")
        if found != told:
            raise Unavailable(
                f"the content of {self.target} was changed on its way here",
                address=str(self.target.address),
                detail=(f"the MD5 of a range is {found}; the service told {told or 'none'}",),
                reason="content_damaged",
            )


def ask_range(
    target: Target,
    offset: int,
    length: int,
    deadline: Deadline,
    *,
    headers: Mapping[str, str] | None = None,
    etag: str | None = None,
    validates: bool = False,
) -> Answer:
    """Ask for a range of a blob until it is answered; the answer is shorter where the blob ends before.

    ``etag`` is the version that it must be of. ``validates`` asks for the MD5 of the range, too.

    Raises:
        BadRequest: the blob ends before ``offset`` or there.
        Unavailable: the answer is of another range or version. What stands between may answer with the whole blob, or
            out of a cache without regard to If-Match.
    Source: https://learn.microsoft.com/rest/api/storageservices/get-blob
    """
    asked = f"bytes={offset}-{offset + length - 1}"

    def ask(timeouts: Limits) -> Answer:
        found = call(BLOB_GET, target, timeouts, headers=headers, range=asked, range_md5="true" if validates else None)
        is_version = etag in (None, found.etag)
        if not is_version or not is_answer_to(offset, length, found):
            range_ = found.headers.get("Content-Range", "no Content-Range")
            told = f"answered {found.status} with {range_}, ETag {found.etag or 'missing'}"
            raise build_wrong_range(target, f"asked for {asked}, {told}")
        return found

    return read(ask, target, deadline)


def read_whole(
    target: Target, conditions: Conditions, deadline: Deadline, check: Callable[[Any], None] = lambda found: None
) -> tuple[bytes, Any]:
    """Read one version whole, and return its content and properties; another one if it is overwritten meanwhile.

    ``check`` is given the properties before the content is read, and may raise.
    """
    while True:
        download = BlobDownload(target, conditions, lambda: deadline)
        check(download.properties)
        try:
            return b"".join(download), download.properties
        except (Changed, NotFound):
            # Another version, or none any more: that is read next.
            if deadline.passed:
                raise
