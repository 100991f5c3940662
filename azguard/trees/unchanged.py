"""Whether a file of this machine and one of the service hold the same content, as far as that can be proved."""

import base64
import hashlib
from contextlib import suppress
from pathlib import Path

from azguard.accounts.target import Target
from azguard.cache import copies
from azguard.cache.reads import Reads
from azguard.trees.store import ListedItem

_ALGORITHM = "sha256:"


def is_same(file: Path, target: Target, listed: ListedItem, reads: Reads) -> bool:
    """Return whether a file holds the content of the version that was listed.

    It does if the service's MD5 or the hash that was recorded for that very version says so. An equal size, time or
    name says nothing. Not known is not the same, as of a file that is gone or cannot be read.
    """
    with suppress(OSError):
        if listed.content_length is not None and listed.content_length != file.stat().st_size:
            return False
        recorded = reads.find_content_hash(target, listed.etag, copies.find_at(file))
        if recorded is not None and recorded.startswith(_ALGORITHM):
            return _digest(file, "sha256") == bytes.fromhex(recorded.removeprefix(_ALGORITHM))
        if listed.content_md5 is not None:
            return _digest(file, "md5") == base64.b64decode(listed.content_md5)
    return False


def is_as_read(file: Path, target: Target, reads: Reads) -> bool:
    """Return whether a file holds what was read into it from there, unchanged since."""
    with suppress(OSError):
        recorded = reads.find_bound_hash(target, copies.find_at(file))
        if recorded is not None and recorded.startswith(_ALGORITHM):
            return _digest(file, "sha256") == bytes.fromhex(recorded.removeprefix(_ALGORITHM))
    return False


def _digest(file: Path, algorithm: str) -> bytes:
    with open(file, "rb") as stream:
        # MD5 is what the service stores; here it finds equal content and proves no origin.
        return hashlib.file_digest(stream, lambda: hashlib.new(algorithm, usedforsecurity=False)).digest()
