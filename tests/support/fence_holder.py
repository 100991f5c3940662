"""A process that writes one blob again and again under fences of its own, and logs what it was told.

``python -m tests.support.fence_holder FOLDER NUMBER SEED WRITES BLOB``, with the account in the environment, says
``ready``, waits for a line on standard input, and prints one JSON object for each write. The clock is that of all
processes.
"""

import json
import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.support.cli_world import CliWorld

# A little more than what one Put Blob takes.
_LARGE = 8 * 1024 * 1024 + 1


def fences(number: int, chance: random.Random) -> Iterator[int]:
    """Yield this holder's fences, which no other has: they rise, with now and then one from before."""
    last = 0
    while True:
        last += 2 * chance.randint(0, 3)
        yield 2 * max(0, last // 2 - chance.choice((0, 0, 1, 4))) + number


def write(cli: CliWorld, blob: str, how: str, fence: int) -> int:
    """Write once and return the exit status; what is written ends with the fence."""
    text = f" {fence}"
    if how == "update":
        return cli.call("safe-update", f"blob:{blob}", "--append", text, "--create=", "--fence", str(fence)).code
    size = _LARGE if how == "blocks" else 0
    return cli.call("blob", "put", blob, "--fence", str(fence), stdin=text.encode().rjust(size, b"x")).code


def main(folder: Path, number: int, seed: int, writes: int, blob: str) -> None:
    """Write so many times, each in one of the ways there are."""
    import azure.storage.blob  # noqa: F401  # so that no first write pays for it

    chance = random.Random(f"{seed} {number}")
    cli = CliWorld(folder, os.environ["AZURE_STORAGE_CONNECTION_STRING"])
    mine = fences(number, chance)
    _say("ready")
    sys.stdin.readline()
    for _ in range(writes):
        how, fence = chance.choice(("put", "put", "put", "update", "update", "update", "blocks")), next(mine)
        began = time.monotonic()
        code = write(cli, blob, how, fence)
        _say(json.dumps({"how": how, "fence": fence, "code": code, "began": began, "ended": time.monotonic()}))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
