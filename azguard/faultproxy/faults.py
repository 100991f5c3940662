"""What a proxy can do to a request, and what it knows about it afterwards."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from http import HTTPStatus


class Fault(Enum):
    """What happens to one request. The letters are those of the table of hazards."""

    NONE = "none"
    DROP = "drop"  # a: the emulator answers, and the client's connection closes without a byte
    FAIL_AFTER = "503-after"  # b: the emulator answers, and the client hears 503
    LATE = "late"  # c: the emulator answers, and the client hears nothing until it gives up
    ZOMBIE = "zombie"  # c2: the request is held, and delivered after the client gave up
    RESET = "reset"  # d: the client's connection is reset before anything is passed on
    HALF = "half"  # e: the emulator answers, and the client's connection closes in the middle of it
    FAIL_BEFORE = "503-before"  # p503: the client hears 503, and nothing is passed on
    SLOW = "slow"  # the answer trickles in
    REPLAYED = "replayed"  # the request is passed on twice, and the client hears the second answer

    @property
    def reaches(self) -> bool:
        """Return whether the emulator ever sees the request."""
        return self not in (Fault.RESET, Fault.FAIL_BEFORE)


@dataclass(frozen=True)
class Request:
    """What a client asks. ``path`` is as sent, with its query; the names of ``headers`` are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]

    @property
    def writes(self) -> bool:
        """Return whether it may change something."""
        return self.method not in ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True)
class Chosen:
    """A fault for one request, which is not passed on before ``until`` answers True; it is asked every few ms.

    A zombie is passed on when the client has given up *and* ``until`` answers True.
    """

    fault: Fault = Fault.NONE
    until: Callable[[], bool] | None = None


Decide = Callable[[Request], Fault | Chosen]


@dataclass(frozen=True)
class Answer:
    """What the emulator really answered, whatever the client heard; ``status`` is None if it did not answer.

    ``sent`` and ``answered`` are seconds since the epoch: when the request was passed on whole or in part, None if
    never, and when its answer came. The emulator did its work between the two. ``headers`` are the answer's, ``parts``
    the statuses inside the answer to a transaction, which is 202 whatever became of it.
    """

    request: Request
    fault: Fault
    status: int | None
    etag: str | None = None
    sent: float | None = None
    answered: float | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[int, ...] = ()

    @property
    def dropped(self) -> bool:
        """Return whether the emulator answered and the client heard nothing."""
        return self.fault is Fault.DROP and self.status is not None

    @property
    def committed(self) -> bool:
        """Return whether the emulator did what a write asked for."""
        return self.request.writes and self.status is not None and all(map(_is_success, (self.status, *self.parts)))


def _is_success(status: int) -> bool:
    return HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES


def losing(share: float, chance: random.Random, *, only_writes: bool = False) -> Decide:
    """Return a rule that loses this share of all answers, or of those to writes, at random."""

    def decide(request: Request) -> Fault:
        if only_writes and not request.writes:
            return Fault.NONE
        return Fault.DROP if chance.random() < share else Fault.NONE

    return decide
