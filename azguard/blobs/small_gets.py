"""Blobs that one request reads: what trees are mostly made of."""

import hashlib
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

from azguard.accounts import direct
from azguard.accounts.direct import ChallengeReceived, DirectAnswer
from azguard.accounts.target import Target
from azguard.blobs.download import BlobGot
from azguard.blobs.properties import explain_stale_read
from azguard.conditions.resolve import Conditions
from azguard.requests import calls, delivery
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, drop_lineage

_METADATA = "x-ms-meta-"
#: Each of many jobs has one of them in memory.
MOST_BYTES = 1 << 20
_RANGE = f"bytes=0-{MOST_BYTES - 1}"


class SmallBlob(NamedTuple):
    """One version of a blob, read whole."""

    content: bytes
    etag: str
    last_modified: datetime
    content_type: str | None
    blob_type: str | None
    #: The lineage included.
    metadata: dict[str, str]


def to_file(
    target: Target,
    conditions: Conditions,
    file: Path,
    deadline: Deadline,
    progress: Callable[[int], None],
    admit: delivery.Admit,
) -> tuple[BlobGot, str | None] | None:
    """Write a blob's content to a file, whole or not at all, and return what was delivered and its lineage.

    None, and nothing is written, if it is not one that one request reads, or if the file is a device.

    Raises:
        UsageError: the folder does not exist or is not writable.
        OutputFailed: the disk is full or fails; the file is as it was.
        Changed: ``admit`` refused; the file is as it was.
    """
    mode = delivery.find_mode(file)
    if mode is not None and not stat.S_ISREG(mode):
        return None
    headers = conditions.request_headers
    with explain_stale_read(target, conditions, deadline):
        found = calls.read(lambda timeouts: _read(target, headers, timeouts), target, deadline)
    if found is None:
        return None
    progress(len(found.content))
    content_hash = f"sha256:{hashlib.sha256(found.content).hexdigest()}"
    with delivery.replace_file(file, mode) as stream:
        stream.write(found.content)
        inode = delivery.find_inode(stream)
        admit(content_hash)
    return _describe(target, found, file, content_hash, inode), found.metadata.get(KEY)


def _describe(target: Target, found: SmallBlob, file: Path, content_hash: str, inode: delivery.Inode) -> BlobGot:
    return BlobGot(
        address=str(target.address),
        etag=found.etag,
        last_modified=found.last_modified,
        content_length=len(found.content),
        content_type=found.content_type,
        blob_type=found.blob_type,
        content_hash=content_hash,
        file=str(file),
        metadata=drop_lineage(found.metadata),
        inode=inode,
    )


def _read(target: Target, headers: Mapping[str, str], timeouts: Mapping[str, Any]) -> SmallBlob | None:
    """Return a blob from one answer; None if it has no bytes, or more than one request reads, or its answer is odd.

    Raises:
        AzureError: as of the SDK.
    Source: https://learn.microsoft.com/rest/api/storageservices/get-blob
    """
    try:
        answer = direct.send(target.account, "GET", target.address, {"x-ms-range": _RANGE, **headers}, timeouts)
    except ChallengeReceived:
        return None
    found = answer.headers
    size = len(answer.content)
    is_whole = found.get("Content-Range") == f"bytes 0-{size - 1}/{size}"
    etag, modified = found.get("ETag"), found.get("Last-Modified")
    if answer.status != HTTPStatus.PARTIAL_CONTENT or not is_whole or not etag or not modified:
        return None
    with suppress(ValueError):
        return _build(answer, etag, _parse_date(modified))
    return None


def _build(answer: DirectAnswer, etag: str, modified: datetime) -> SmallBlob:
    found = answer.headers
    return SmallBlob(
        content=answer.content,
        etag=etag,
        last_modified=modified,
        content_type=found.get("Content-Type"),
        blob_type=found.get("x-ms-blob-type"),
        metadata={name[len(_METADATA) :]: value for name, value in found.items() if name.lower().startswith(_METADATA)},
    )


@lru_cache(maxsize=256)
def _parse_date(text: str) -> datetime:
    return parsedate_to_datetime(text)
