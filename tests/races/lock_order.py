"""Were the waiters of a lock served in the order in which they came? Told from the requests that a proxy saw."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tests.faults.rules import operation
from tests.races.lock_history import Ran, Violation
from tests.races.lock_section import READER
from tests.races.log import blob_of, run_of
from tests.support.faultproxy.proxy import ProxiedAnswer

# The blobs beside a lock: the tickets of its waiters, and one for each reader inside.
_TICKET = re.compile(r".+![0-9]{10}")
_READER = re.compile(r".+!reader-.+")
# Who gives no sign of life for so long is passed over, rightly. The service tells times in whole seconds.
_SILENT_SECONDS = 11.0 - 1.0
# One that leaves a free lock alone for so long is passed over, rightly too. The clocks of both sides differ a little.
_LEFT_SECONDS = 8.0 - 0.5
_LOCK = "x"


@dataclass
class Wait:
    """What one run did in the queue; in seconds since the epoch."""

    run: str
    #: When its first look at the queue was sent.
    looked: float | None = None
    ticket: str | None = None
    #: When its ticket was made, as far as it could know; and when it gave signs of life.
    made: float | None = None
    kept: list[float] = field(default_factory=list)
    #: When it was granted the lock.
    granted: float | None = None
    is_ticket_deleted: bool = False

    @property
    def is_reader(self) -> bool:
        """Return whether it reads under the lock, beside other readers."""
        return self.run.startswith(READER)

    def has_kept_its_place(self) -> bool:
        """Return whether it gave signs of life in time until it was served, and no other deleted its ticket."""
        if self.made is None or self.granted is None or self.is_ticket_deleted:
            return False
        times = [self.made, *self.kept, self.granted]
        return all(after - before < _SILENT_SECONDS for before, after in pairwise(times))


def find_overtaking(answers: Sequence[ProxiedAnswer], ran: Iterable[Ran]) -> list[Violation]:
    """Return which runs were served before one that had its ticket before they first looked at the queue.

    A reader may be served before another reader.
    """
    lease = _read_lease(answers)
    killed = {each.run for each in ran if each.killed is not None}
    waits = [each for each in _read(answers).values() if each.granted is not None and each.run not in killed]
    return [
        Violation("overtaken", f"{later.run} was served before {first.run}", (str(first), str(later)))
        for first in waits
        if first.has_kept_its_place()
        for later in waits
        if not (first.is_reader and later.is_reader)
        and later.looked is not None
        and later.looked > (first.made or 0.0)
        and (later.granted or 0.0) < (first.granted or 0.0)
        and not lease.was_free(later.granted or 0.0, _LEFT_SECONDS)
    ]


@dataclass
class _Lease:
    """The times of the lease on the lock: when it was acquired or renewed, and when it would end from then on."""

    spans: list[tuple[float, float]] = field(default_factory=list)

    def was_free(self, at: float, seconds: float) -> bool:
        """Return whether the lock had been free for so long at a moment."""
        ends = [end for begin, end in self.spans if begin < at]
        return at - (ends[-1] if ends else 0.0) >= seconds


def _read_lease(answers: Sequence[ProxiedAnswer]) -> _Lease:
    found = _Lease()
    seconds = 0.0
    for answer in sorted(answers, key=lambda each: each.answered or each.sent or 0.0):
        if not answer.committed or blob_of(answer.request) != _LOCK:
            continue
        at, headers = answer.answered or answer.sent or 0.0, answer.request.headers
        match headers.get("x-ms-lease-action"):
            case "acquire":
                seconds = float(headers.get("x-ms-lease-duration", 0))
                found.spans.append((at, at + seconds))
            case "renew":
                found.spans.append((at, at + seconds))
            case "release" | "break":
                found.spans.append((at, at))
    return found


def _read(answers: Sequence[ProxiedAnswer]) -> dict[str, Wait]:
    waits: dict[str, Wait] = {}
    for answer in sorted(answers, key=lambda each: each.answered or each.sent or 0.0):
        if not answer.committed and operation(answer.request) != "GET list":
            continue
        run, name, at = run_of(answer.request), blob_of(answer.request) or "", answer.answered or answer.sent or 0.0
        wait = waits.setdefault(run, Wait(run))
        what = operation(answer.request)
        is_ticket = _TICKET.fullmatch(name) is not None
        if what == "GET list" and wait.looked is None:
            wait.looked = answer.sent
        elif what == "PUT blob" and is_ticket:
            wait.ticket, wait.made, wait.kept = name, at, []
        elif what == "PUT properties" and is_ticket:
            wait.kept.append(at)
        elif what == "PUT lease:acquire" and wait.is_reader == (_READER.fullmatch(name) is not None):
            wait.granted = at
        elif what == "DELETE blob":
            _note_deletion(waits.values(), wait, name)
    return waits


def _note_deletion(waits: Iterable[Wait], by: Wait, name: str) -> None:
    for each in waits:
        if each is not by and each.ticket == name and each.granted is None:
            each.is_ticket_deleted = True
