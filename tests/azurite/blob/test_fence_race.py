"""Two holders of one lock who both think it is theirs: real processes, one blob, different fences."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
from azure.storage.blob import BlobClient

from tests.support import thorough
from tests.support.cli_world import CliWorld
from tests.support.forked_process import ForkedProcess

# Where the blob begins makes a difference to the first writes only.
WRITES = {"a fence": thorough.count(40, 20), "no fence": 12, "nothing": 12}


@dataclass(frozen=True)
class Write:
    """One write of a holder: its fence, what it was told, and when it began and ended."""

    holder: int
    how: str
    fence: int
    code: int
    began: float
    ended: float


def holders(cli: CliWorld, blob: str, seed: int, count: int) -> list[Write]:
    """Let two processes write at once and return all they did."""
    with ExitStack() as stack:
        # Folders of their own: on one machine safe-update would have them queue.
        running = [stack.enter_context(_holder(cli, number, blob, seed, count)) for number in (0, 1)]
        for each in running:
            assert each.stdout is not None
            assert each.stdout.readline() == b"ready\n"
        for each in running:
            assert each.stdin is not None
            each.stdin.write(b"go\n")
            each.stdin.flush()
        told = [each.communicate(timeout=100)[0].decode() for each in running]
        assert [each.returncode for each in running] == [0, 0]
    return [Write(number, **json.loads(line)) for number, text in enumerate(told) for line in text.splitlines()]


def _holder(cli: CliWorld, number: int, blob: str, seed: int, count: int) -> ForkedProcess:
    folder = cli.root / f"holder{number}"
    folder.mkdir()
    words = (str(folder), str(number), str(seed), str(count), blob)
    return ForkedProcess(words, cli.root, cli.environ(), module="tests.support.fence_holder", stderr=None)


def accepted_too_late(writes: list[Write]) -> Iterator[tuple[Write, Write]]:
    """Yield each write that was accepted although one with a higher fence had been acknowledged before it began."""
    done = [each for each in writes if each.code == 0]
    for late in done:
        yield from ((late, each) for each in done if each.fence > late.fence and each.ended < late.began)


def refused_for_nothing(writes: list[Write]) -> Iterator[Write]:
    """Yield each write that was refused although no higher one that was accepted had begun."""
    done = [each for each in writes if each.code == 0]
    for each in writes:
        if each.code == 77 and not any(other.fence > each.fence and other.began < each.ended for other in done):
            yield each


@pytest.mark.parametrize("before", WRITES)
def test_no_lower_fence_is_accepted_once_a_higher_one_was_acknowledged(
    cli: CliWorld, before: str, request: pytest.FixtureRequest
) -> None:
    container = cli.container()
    client = BlobClient.from_connection_string(cli.connection_string or "", container, "a")
    if before != "nothing":
        client.upload_blob(b"start", tags={"fence": f"{0:019d}"} if before == "a fence" else None)
    writes = holders(cli, f"{container}/a", int(request.config.getoption("--race-seed")), WRITES[before])
    counts = Counter(each.code for each in writes)
    # The writer that commits discards the blocks that the other is sending, so that such an upload may end with 42.
    conflicts = {each.how for each in writes if each.code == 42}
    assert (set(counts) - {42}, conflicts - {"blocks"}, sum(counts.values())) == ({0, 77}, set(), 2 * WRITES[before])
    assert (list(accepted_too_late(writes)), list(refused_for_nothing(writes))) == ([], [])
    highest = max(each.fence for each in writes if each.code == 0)
    last = client.download_blob().readall().split()[-1]
    assert (int(client.get_blob_tags()["fence"]), last) == (highest, str(highest).encode())
    first, second = ([each for each in writes if each.holder == number] for number in (0, 1))
    assert any(one.began < other.ended and other.began < one.ended for one in first for other in second)
