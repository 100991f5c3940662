"""Content into a blob: one Put Blob if it is small, else blocks, with the condition on the commit.

The source is read once, in pieces, so that memory stays constant for a stream of any length. Every upload stamps the
lineage, by which a lost answer is settled. Blocks are staged a few at a time.
"""

import base64
import hashlib
import io
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Self

from azguard.accounts.account import SINGLE_BYTES, Target
from azguard.blobs import refusals
from azguard.blobs.content.upload import BlobPut, Settings, Upload, commit_blocks, find_outcome, send
from azguard.errors import UsageError
from azguard.guards.resolve import Conditions
from azguard.guards.versions import describe_write
from azguard.requests.calls import read
from azguard.requests.deadline import Deadline
from azguard.resources.properties import encode_md5
from azguard.resources.sources import read_up_to
from azguard.wire.call import call
from azguard.wire.operations.blobs import BLOB_PUT_BLOCK, BLOB_PUT_BLOCK_BLOB, BLOB_PUT_BLOCK_LIST

if TYPE_CHECKING:
    from concurrent.futures import Future

    from azguard.requests.settle import Settled


# The service's answer, and the conditions under which it was given.
_Committed = tuple["Settled[Mapping[str, Any]]", Conditions]
_ALGORITHMS = ("sha256", "md5")
BLOCK_BYTES = 4 * 1024 * 1024
_WORKERS = 4
# The service takes 50,000 blocks; the block size doubles every 10,000, so a stream of unknown length always fits.
_BLOCKS_PER_SIZE = 10_000


class Digests:
    """SHA-256 and MD5 of the pieces so far, in their order. Used as a ``with`` block, which ends the threads.

    Each is computed in a thread of its own, beside what is done with the pieces: both are slower than a fast network,
    and hashlib lets other threads run meanwhile.
    """

    def __init__(self) -> None:
        from concurrent.futures import ThreadPoolExecutor

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


class StagingPlace(NamedTuple):
    """Where blocks are staged."""

    target: Target
    lease_id: str | None
    #: The ids of the blocks begin with it.
    op: str
    #: Returns the deadline of one block.
    patience: Callable[[], Deadline]


def put(upload: Upload, source: BinaryIO, progress: Callable[[int], None], *, allow_empty: bool = True) -> BlobPut:
    """Write a blob from a stream of any length; of no length only with ``allow_empty``.

    Raises:
        Changed: it is no longer the version the condition names; nothing was written.
        Exists: create-only, and it exists.
        LockLost: a holder with a higher fence has written it; nothing was written.
        OutcomeUnknown: the answer was lost, and it cannot be known whether it was applied.
        UsageError: the content is not what ``content_md5`` says, or it is empty and must not be.
    Source: https://learn.microsoft.com/rest/api/storageservices/put-blob and /put-block-list
    """
    _check_tags(upload)
    first = read_up_to(source, SINGLE_BYTES + 1)
    if not first and not allow_empty:
        raise UsageError("the input is empty; nothing was written", reason="put_is_empty")
    with refusals.explain_refusal(upload.target, upload.conditions, upload.deadline):
        if len(first) <= SINGLE_BYTES:
            upload = replace(upload, md5=hashlib.md5(first, usedforsecurity=False).digest())
            _check_md5(upload.settings, upload.md5 or b"")
            digest = hashlib.sha256(first)
            length = len(first)
            committed = _write_under_fence(upload, lambda fresh: send(fresh, first), ())
            progress(length)
        else:
            committed, length, digest = _put_blocks(upload, first, source, progress)
    return _to_blob_put(upload, committed, length, digest)


def _check_tags(upload: Upload) -> None:
    if upload.conditions.fence is not None:
        from azguard.guards import fences

        fences.check_tags(upload.settings.tags or {})


def _to_blob_put(upload: Upload, committed: _Committed, length: int, digest: Any) -> BlobPut:
    settled, conditions = committed
    answer = settled.answer
    return BlobPut(
        **describe_write(upload.target, conditions.guard, settled),
        version_id=answer.get("version_id"),
        content_length=length,
        content_type=upload.settings.content_type,
        content_hash=f"sha256:{digest.hexdigest()}",
        created=conditions.is_creation,
        replaced_length=conditions.length,
    )


def prepare(upload: Upload, content: bytes) -> Callable[[Conditions], Mapping[str, Any]]:
    """Stage what needs staging and return the one request that commits, for a caller that settles doubts itself.

    The request may be sent more than once. All of it, staging included, is bound by the upload's own deadline.
    """
    if len(content) <= SINGLE_BYTES:
        return lambda conditions: send(replace(upload, conditions=conditions), content)
    rest = io.BytesIO(content)
    place = _to_place(upload, lambda: upload.deadline)
    staged = stage_stream(place, rest.read(SINGLE_BYTES), rest, lambda _: None)
    ids = [block for block, _ in staged]
    return lambda conditions: commit_blocks(replace(upload, conditions=conditions), ids)


def commit_list(upload: Upload, ids: Sequence[str]) -> _Committed:
    """Make the blob of blocks that are staged or committed already, in this order.

    Raises as ``put`` does, and Changed where a block is not there any more.
    """
    _check_tags(upload)
    with refusals.explain_refusal(upload.target, upload.conditions, upload.deadline):
        # The ids prove nothing: another writer may have committed the same blocks.
        return _write_under_fence(upload, lambda fresh: commit_blocks(fresh, ids), ())


def _to_place(upload: Upload, patience: Callable[[], Deadline]) -> StagingPlace:
    return StagingPlace(upload.target, upload.conditions.lease_id, upload.op, patience)


def _put_blocks(
    upload: Upload, first: bytes, source: BinaryIO, progress: Callable[[int], None]
) -> tuple[_Committed, int, Any]:
    refusals.check_early(replace(upload, deadline=upload.deadline.fresh()))
    length = 0
    ids: list[str] = []
    place = _to_place(upload, lambda: _extend_deadline(upload))
    with Digests() as digests:
        for block, piece in stage_stream(place, first, source, progress):
            ids.append(block)
            digests.update(piece)
            length += len(piece)
        sha256, md5 = digests.finish()
    _check_md5(upload.settings, md5)
    stored = replace(upload, settings=replace(upload.settings, content_md5=encode_md5(md5)))
    return _write_under_fence(stored, lambda fresh: commit_blocks(fresh, ids), ids), length, sha256


def _write_under_fence(upload: Upload, call: Callable[[Upload], Mapping[str, Any]], ids: Sequence[str]) -> _Committed:
    # The time to read a slow pipe, or to stage the blocks, does not count against the deadline of the commit.
    upload = replace(upload, deadline=upload.deadline.fresh())

    def check_type(under: Conditions) -> None:
        if not upload.any_type:
            refusals.check_type(upload.target, under, upload.deadline)

    def attempt(under: Conditions) -> "Settled[Mapping[str, Any]]":
        if under is not upload.conditions:
            check_type(under)
        if upload.before_commit is not None:
            upload.before_commit(under)
        bound = upload if under is upload.conditions else replace(upload, conditions=under)
        return _attempt(bound, call, ids)

    # A refusal of this look has nothing to do with a fence.
    check_type(upload.conditions)
    return refusals.write_fenced(upload.target, upload.conditions, upload.deadline, attempt, creates=True)


def _attempt(
    upload: Upload, call: Callable[[Upload], Mapping[str, Any]], ids: Sequence[str]
) -> "Settled[Mapping[str, Any]]":
    from azguard.requests.settle import WriteRequest, send_until_settled

    conditional = upload.conditions.expected_etag is not None or upload.conditions.creates_only
    request = WriteRequest(
        operation=BLOB_PUT_BLOCK_LIST if ids else BLOB_PUT_BLOCK_BLOB,
        target=upload.target,
        send=lambda: call(upload),
        look=lambda patience: find_outcome(upload, ids, patience),
        expected_etag=upload.conditions.expected_etag,
        op=upload.op,
        resend=conditional,
    )
    return send_until_settled(request, upload.deadline)


def _extend_deadline(upload: Upload) -> Deadline:
    # A staged block is not visible yet, so each is retried for at least a minute, even if the deadline is shorter.
    return upload.deadline.restart(seconds=max(60.0, upload.deadline.seconds))


def _check_md5(settings: Settings, digest: bytes) -> None:
    if settings.content_md5 is not None and base64.b64decode(settings.content_md5) != digest:
        raise UsageError(
            f"the content's MD5 is {encode_md5(digest)}, not {settings.content_md5}; nothing was written",
            reason="content_md5_differs",
        )


def stage_stream(
    place: StagingPlace, first: bytes, source: BinaryIO, progress: Callable[[int], None]
) -> Iterator[tuple[str, bytes]]:
    """Stage every block and yield its id and content in order; ``first`` was read from the source already.

    Ids have one fixed length and hold the op: blocks of two writers never mix, nor do their lengths.
    """
    from concurrent.futures import ThreadPoolExecutor  # which a small put does not need

    done = 0
    waiting: deque[tuple[str, bytes, Future[None]]] = deque()

    def await_oldest() -> tuple[str, bytes]:
        nonlocal done
        block, piece, future = waiting.popleft()
        future.result()
        progress(done := done + len(piece))
        return block, piece

    pool = ThreadPoolExecutor(_WORKERS)
    try:
        for index, piece in enumerate(_pieces(first, source)):
            block = encode_id(f"{place.op}{index:08d}")
            waiting.append((block, piece, pool.submit(stage_block, place, block, piece)))
            if len(waiting) >= _WORKERS:
                yield await_oldest()
        while waiting:
            yield await_oldest()
    finally:
        # After an interruption, do not wait for the blocks that are being sent.
        pool.shutdown(wait=False, cancel_futures=True)


def stage_block(place: StagingPlace, block: str, piece: bytes) -> None:
    """Stage one block, again until it is answered: a block that is staged twice is replaced by an equal one.

    Its id is in base64.
    Source: https://learn.microsoft.com/rest/api/storageservices/put-block
    """
    headers = Conditions(lease_id=place.lease_id).request_headers
    read(
        lambda timeouts: call(BLOB_PUT_BLOCK, place.target, timeouts, headers=headers, body=piece, block_id=block),
        place.target,
        place.patience(),
    )


def encode_id(text: str) -> str:
    """Return a block id as the service takes it."""
    return base64.b64encode(text.encode()).decode()


def _pieces(first: bytes, source: BinaryIO) -> Iterator[bytes]:
    yield first
    index = 1
    while piece := read_up_to(source, BLOCK_BYTES << (index // _BLOCKS_PER_SIZE)):
        yield piece
        index += 1
