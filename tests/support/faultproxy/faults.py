"""What a proxy can do to a request, and what it records about it."""

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from http import HTTPStatus

# A blob may be called messages; only messages are asked for by number.
_RECEIVE = re.compile(r"/messages\?(.*&)?numofmessages=")


class Fault(Enum):
    """What happens to one request. The letters are those of the table of hazards."""

    NONE = "none"
    #: a: the emulator answers, and the client's connection closes without a byte.
    DROP = "drop"
    #: b: the emulator answers, and the client receives 503.
    FAIL_AFTER = "503-after"
    #: c: the emulator answers, and the client receives nothing until it gives up.
    LATE = "late"
    #: c2: the request is held, and delivered after the client gave up.
    ZOMBIE = "zombie"
    #: d: the client's connection is reset before anything is passed on.
    RESET = "reset"
    #: e: the emulator answers, and the client's connection closes in the middle of it.
    HALF = "half"
    #: p503: the client receives 503, and nothing is passed on.
    FAIL_BEFORE = "503-before"
    #: The answer is sent in small pieces with pauses.
    SLOW = "slow"
    #: The request is passed on twice, and the client receives the second answer.
    REPLAYED = "replayed"
    #: The emulator answers, and the client receives the answer to an earlier request instead.
    STORED_AFTER = "stored-after"
    #: The client receives the answer to an earlier request, and nothing is passed on.
    STORED_BEFORE = "stored-before"

    @property
    def reaches(self) -> bool:
        """Return whether the emulator ever sees the request."""
        return self not in (Fault.RESET, Fault.FAIL_BEFORE, Fault.STORED_BEFORE)


@dataclass(frozen=True)
class Request:
    """What a client asks."""

    method: str
    #: As sent, with its query.
    path: str
    #: Their names are in lower case.
    headers: Mapping[str, str]

    @property
    def writes(self) -> bool:
        """Return whether it may change something. To receive messages is a GET, and hides them."""
        return self.method not in ("GET", "HEAD", "OPTIONS") or self._receives

    @property
    def _receives(self) -> bool:
        return _RECEIVE.search(self.path) is not None and "peekonly=" not in self.path


@dataclass(frozen=True)
class Chosen:
    """What to do to one request and to its answer."""

    fault: Fault = Fault.NONE
    #: The request is not passed on before this answers True; it is asked every few milliseconds. A zombie is passed on
    #: when the client has given up, too.
    until: Callable[[], bool] | None = None
    #: What the client receives instead of the answer, if the fault says so: the ``raw`` answer to an earlier request.
    stored: bytes = b""
    #: Whether the record of the answer has it whole, so that it can be given to a later request.
    keeps: bool = False
    #: Whether the answer names its request, as all of the service do: the emulator leaves that out of errors.
    echoes: bool = False
    #: How far the clock is ahead that the Date of the answer tells, in seconds; below 0 it is behind.
    ahead_seconds: int = 0


Decide = Callable[[Request], Fault | Chosen]


@dataclass(frozen=True)
class ProxiedAnswer:
    """What the emulator really answered, even if the client received something else."""

    request: Request
    fault: Fault
    #: None if it did not answer.
    status: int | None
    etag: str | None = None
    #: When the request was passed on, whole or in part, in seconds since the epoch; None if it never was.
    sent: float | None = None
    #: When the answer came, in seconds since the epoch. The emulator did its work between the two.
    answered: float | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    #: The statuses inside the answer to a transaction, which is 202 even if the transaction failed.
    parts: tuple[int, ...] = ()
    #: The answer as it is on the wire, if it was to be kept.
    raw: bytes = field(default=b"", repr=False)

    @property
    def dropped(self) -> bool:
        """Return whether the emulator answered and the client received nothing."""
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
