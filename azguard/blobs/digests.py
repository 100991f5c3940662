"""The hashes of content that passes by in pieces: each in a thread of its own, beside what is done with the pieces.

Both are slower than a fast network, and hashlib lets other threads run meanwhile.
"""

import hashlib
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

_ALGORITHMS = ("sha256", "md5")


class Digests:
    """SHA-256 and MD5 of the pieces so far, in their order. Used as a ``with`` block, which ends the threads."""

    def __init__(self) -> None:
        # MD5 is what the service stores; it proves no origin.
        self._hashes = [hashlib.new(each, usedforsecurity=False) for each in _ALGORITHMS]
        self._pools = [ThreadPoolExecutor(1, each) for each in _ALGORITHMS]
        self._under_way: list[Future[None]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in self._pools:
            each.shutdown(wait=False, cancel_futures=True)

    def update(self, piece: bytes) -> None:
        """Begin to hash the next piece, as soon as the one before it is hashed: no more than one waits in memory."""
        self._wait()
        self._under_way = [
            pool.submit(each.update, piece) for pool, each in zip(self._pools, self._hashes, strict=True)
        ]

    def finish(self) -> tuple[Any, bytes]:
        """Return the SHA-256 hash and the MD5 digest of all pieces."""
        self._wait()
        sha256, md5 = self._hashes
        return sha256, md5.digest()

    def _wait(self) -> None:
        for each in self._under_way:
            each.result()
