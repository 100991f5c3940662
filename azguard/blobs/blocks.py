"""A stream of any length as staged blocks: read once, in pieces, a few of them being sent at a time."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, BinaryIO, NamedTuple

from azguard.accounts.target import Target
from azguard.requests.calls import read
from azguard.requests.deadline import Deadline
from azguard.requests.sources import read_up_to

BLOCK_BYTES = 4 * 1024 * 1024
_WORKERS = 4
# The service takes 50,000 blocks; the block size doubles every 10,000, so a stream of unknown length always fits.
_BLOCKS_PER_SIZE = 10_000


class StagingPlace(NamedTuple):
    """Where blocks are staged."""

    target: Target
    lease_id: str | None
    #: The ids of the blocks begin with it.
    op: str
    #: Returns the deadline of one block.
    patience: Callable[[], Deadline]


def stage_stream(
    place: StagingPlace, first: bytes, source: BinaryIO, progress: Callable[[int], None]
) -> Iterator[tuple[str, bytes]]:
    """Stage every block and yield its id and content in order; ``first`` was read from the source already.

    Ids have one fixed length and hold the op: blocks of two writers never mix, nor do their lengths.
    """
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
            block = f"{place.op}{index:08d}"
            waiting.append((block, piece, pool.submit(stage_block, place, block, piece)))
            if len(waiting) >= _WORKERS:
                yield await_oldest()
        while waiting:
            yield await_oldest()
    finally:
        # After an interruption, do not wait for the blocks that are being sent.
        pool.shutdown(wait=False, cancel_futures=True)


def list_committed(target: Target, deadline: Deadline) -> tuple[list[str], str | None]:
    """Return the ids of the blocks that a blob is made of, and its ETag, from one response.

    Source: https://learn.microsoft.com/rest/api/storageservices/get-block-list
    """
    client = target.account.blob(target.address)
    answers: list[Any] = []

    def call(timeouts: Mapping[str, Any]) -> list[str]:
        found, _ = client.get_block_list("committed", raw_response_hook=answers.append, **timeouts)
        return [str(block.id) for block in found]

    ids = read(call, target, deadline)
    return ids, answers[-1].http_response.headers.get("ETag")


def stage_block(place: StagingPlace, block: str, piece: bytes) -> None:
    """Stage one block, again until it is answered: a block that is staged twice is replaced by an equal one.

    Source: https://learn.microsoft.com/rest/api/storageservices/put-block
    """
    lease = {"x-ms-lease-id": place.lease_id} if place.lease_id else {}
    client = place.target.account.blob(place.target.address)
    read(
        lambda timeouts: client.stage_block(block, piece, len(piece), headers=dict(lease), **timeouts),
        place.target,
        place.patience(),
    )


def _pieces(first: bytes, source: BinaryIO) -> Iterator[bytes]:
    yield first
    index = 1
    while piece := read_up_to(source, BLOCK_BYTES << (index // _BLOCKS_PER_SIZE)):
        yield piece
        index += 1
