"""One update as a race asks for it: what to do, to which blob, under which key."""

import json
import random
import sys
from dataclasses import asdict, dataclass
from enum import StrEnum

CONTAINER = "race"
COUNT, LINES = "count.json", "lines.txt"
# A filter command that any machine with this Python has.
FILTER = (
    sys.executable, "-I", "-S", "-c",
    "import json, sys; value = json.load(sys.stdin); value['count'] += 1; json.dump(value, sys.stdout)",
)  # fmt: skip
# After how many jobs another blob is made.
_MAKERS = 10
# Of the reads, how many are of the lines.
_LINES_SHARE = 0.4
# Some updates have only this long, in seconds, so that they have to give up with a write in doubt.
_HURRIED_SECONDS = (0.4, 2.0)


class How(StrEnum):
    """The kind of an update."""

    INCREMENT = "--increment"
    FILTER = "filter command"
    METADATA = "--metadata"
    CREATE = "--create"
    APPEND = "--append"
    LEASE = "--guard lease"
    READ = "read"
    READ_METADATA = "read metadata"

    @property
    def reads(self) -> bool:
        """Return whether nothing is changed."""
        return self in (How.READ, How.READ_METADATA)


_WEIGHTS = {How.INCREMENT: 40, How.FILTER: 10, How.METADATA: 15, How.CREATE: 10, How.APPEND: 20, How.LEASE: 5}
_READS = {How.READ: 15, How.READ_METADATA: 5}


@dataclass(frozen=True)
class Job:
    """One update. ``timeout`` and ``answer`` (how long a request may stay unanswered) are in seconds."""

    key: str
    how: How
    blob: str
    timeout: float
    answer: float

    def line(self, port: int) -> bytes:
        """Return the job as a worker reads it, for the service on this port."""
        return json.dumps({**asdict(self), "port": port}).encode() + b"\n"

    @property
    def address(self) -> str:
        """Return what is updated."""
        return f"blob:{CONTAINER}/{self.blob}"

    def words(self, op: str) -> list[str]:
        """Return the command line of the same update, without its key."""
        edits = {
            How.INCREMENT: ["--increment", "count"],
            How.FILTER: ["--", *FILTER],
            How.METADATA: ["--metadata", "--increment", "hits"],
            How.CREATE: ["--create", '{"count": 0}', "--increment", "count"],
            How.APPEND: [f"--append={op}\n"],
            How.LEASE: ["--guard", "lease", "--wait", "--increment", "count"],
        }[self.how]
        return [self.address, *edits]


class Jobs:
    """The jobs of one process, chosen by its own dice; ``hurried`` is the share of those that have little time."""

    def __init__(self, seed: str, timeout: float, answer: float, hurried: float, *, reads: bool = False) -> None:
        self._dice, self._seed = random.Random(seed), seed
        self._timeout, self.answer, self._hurried = timeout, answer, hurried
        self._weights = {**_WEIGHTS, **(_READS if reads else {})}
        self._count = 0

    def next(self) -> Job:
        """Return the next job; the first is to make a blob that all make."""
        self._count += 1
        how = self._dice.choices(list(self._weights), list(self._weights.values()))[0]
        if self._count == 1:
            how = How.CREATE
        blob = {How.CREATE: f"made-{self._count // _MAKERS}.json", How.APPEND: LINES}.get(how, COUNT)
        if how is How.READ and self._dice.random() < _LINES_SHARE:
            blob = LINES
        hurried, seconds = self._dice.random() < self._hurried, round(self._dice.uniform(*_HURRIED_SECONDS), 2)
        timeout = seconds if hurried else self._timeout
        return Job(f"{self._seed} job {self._count}", how, blob, timeout, self.answer)
