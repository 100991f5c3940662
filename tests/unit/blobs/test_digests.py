"""The hashes of content in pieces."""

import hashlib

from azguard.blobs.content.put_blob import Digests
from tests.support.cases import cases


@cases("pieces", [], [b""], [b"one"], [bytes([each]) * 100_000 for each in range(50)])
def test_the_pieces_are_hashed_whole_and_in_their_order(pieces: list[bytes]) -> None:
    content = b"".join(pieces)
    with Digests() as digests:
        for each in pieces:
            digests.update(each)
        sha256, md5 = digests.finish()
    assert (sha256.hexdigest(), md5) == (
        hashlib.sha256(content).hexdigest(),
        hashlib.md5(content, usedforsecurity=False).digest(),
    )
