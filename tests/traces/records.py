"""A step of a trace, and an answer of the service, as the rules see them: in one spelling."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from azguard.requests.lineage import ABSENT, KEY, UNSEEN, Lineage, bare
from azguard.requests.trace import digest
from tests.faults.rules import operation
from tests.support.faultproxy.faults import ProxiedAnswer, Request

_ENTITY = re.compile(r"(\w+)\(PartitionKey='(.*)',RowKey='(.*)'\)")
_LOOKS = ("HEAD blob", "GET blob", "HEAD container", "GET container")
# What the service must have done for a step of a lease.
PROOFS = {
    "acquired": ("PUT lease:acquire", *_LOOKS),
    "renewed": ("PUT lease:renew", "PUT lease:acquire", *_LOOKS),
    "released": ("PUT lease:release",),
}
_ENDS_OF_LEASE = ("PUT lease:break", "DELETE blob", "DELETE container")


@dataclass(frozen=True)
class Step:
    """A line of a trace."""

    at: float
    process: str
    n: int
    command: str
    step: str
    address: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        """Return a field, None where the step has none."""
        return self.facts.get(name)

    def __str__(self) -> str:
        """Return it as a line of a report."""
        shown = " ".join(f"{name}={value}" for name, value in self.facts.items() if name != "endpoint")
        return f"{self.at:.3f} {self.process} {self.n} {self.command}: {self.step} {self.address} {shown}"


def read(*paths: Path) -> list[Step]:
    """Return the steps of traces, in the order of their times."""
    lines = [line for path in paths if path.exists() for line in path.read_text(encoding="utf-8").splitlines()]
    return sorted((to_step(json.loads(line)) for line in lines), key=lambda step: (step.at, step.n))


def to_step(line: dict[str, Any]) -> Step:
    """Return the step of a line."""
    own = {name: line.pop(name) for name in ("at", "process", "n", "command", "step")}
    return Step(**own, address=line.pop("address", ""), facts=line)


@dataclass(frozen=True)
class Event:
    """What the service did for one request, whatever its client received."""

    sent: float
    answered: float
    address: str
    #: Such as ``PUT blob``, ``PUT lease:acquire``, ``GET blob``.
    what: str
    committed: bool
    status: int | None = None
    #: The version that it made, or that was read.
    etag: str = ""
    #: The version that it depends on: ``-`` is nothing there, None is no condition.
    over: str | None = None
    #: The newest op of the lineage that was written.
    op: str | None = None
    #: The lineage that was written, or that was found by a read.
    lineage: Lineage = field(default_factory=Lineage)
    #: The digest of the lease id that was sent, and of the one that was proposed.
    lease: str | None = None
    proposed: str | None = None
    #: The id of the transmission: a proxy that sends a request again has two answers of one.
    transmission: str = ""
    fault: str = "none"

    @property
    def is_of_lease(self) -> bool:
        """Return whether it was about a lease alone."""
        return ":" in self.what

    @property
    def is_success(self) -> bool:
        """Return whether the service did what was asked."""
        return self.status is not None and HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES

    def __str__(self) -> str:
        """Return it as a line of a report."""
        facts = {"over": self.over, "op": self.op, "lease": self.lease, "proposed": self.proposed, "made": self.etag}
        shown = " ".join(f"{name}={value}" for name, value in facts.items() if value)
        return f"{self.answered:.3f} service {self.what} {self.address}: {self.status} {shown} ({self.fault})"


class Truth:
    """What the service did, by address."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.of: dict[str, list[Event]] = defaultdict(list)
        for event in events:
            self.of[event.address].append(event)

    def find_lineage(self, address: str, version: str) -> Lineage | None:
        """Return the lineage of a version, if any answer or write told it."""
        return next((e.lineage for e in self.of[address] if e.etag == version and e.lineage.entries), None)

    def list_writes(self, address: str, op: str | None, over: str | None) -> list[Event]:
        """Return the transmissions of a write: of its op, or where that is not known, those over its version."""
        writes = [event for event in self.of[address] if not event.is_of_lease]
        own = [event for event in writes if op is not None and event.op == op]
        # A write without a lineage has no op.
        return own or [event for event in writes if event.op is None and event.over == over is not None]

    def is_deleted(self, address: str, after: float, before: float) -> bool:
        """Return whether something was deleted between two moments."""
        deleted = (e for e in self.of[address] if e.what.startswith("DELETE ") and e.committed)
        return any(after < each.answered < before for each in deleted)

    def ends_lease(self, address: str, before: float) -> bool:
        """Return whether a lease was broken, or what it was on was deleted."""
        return any(e.what in _ENDS_OF_LEASE and e.committed and e.sent < before for e in self.of[address])

    def is_told(self, step: Step) -> bool:
        """Return whether the service had said a step of a lease."""
        mine = (e for e in self.of[step.address] if step["lease"] in (e.lease, e.proposed) and e.sent <= step.at)
        return any(event.what in PROOFS[step.step] and event.is_success for event in mine)


def to_events(log: Iterable[ProxiedAnswer], service: str = "blob") -> list[Event]:
    """Return what a service did, in the order of its answers."""
    found = [_to_event(answer, service) for answer in log if answer.sent is not None and answer.status is not None]
    return list(_drop_kept_ops(sorted(found, key=lambda event: event.answered)))


def _drop_kept_ops(events: Iterable[Event]) -> Iterator[Event]:
    """Yield events, without the op of a write that only keeps the entry which a read had found before."""
    made: set[tuple[str, str]] = set()
    found: set[tuple[str, str]] = set()
    for event in events:
        newest = (event.address, event.lineage.entries[0][0] if event.lineage.entries else "")
        if event.op is None:
            found |= {newest} - made
        elif newest in found:
            event = replace(event, op=None)  # noqa: PLW2901  # the same event, told better
        else:
            made.add(newest)
        yield event


def _to_event(answer: ProxiedAnswer, service: str) -> Event:
    headers = answer.request.headers
    # Of a write what it stamps, of a read what it found.
    stamped = (headers if answer.request.writes else answer.headers).get(f"x-ms-meta-{KEY}")
    lineage, over = Lineage.parse(stamped), _find_parent(answer.request)
    op, parent = (*lineage.entries, ("", ""))[0]
    # Another writer who keeps the metadata leaves the newest entry as it is, over another version.
    is_own = answer.request.writes and lineage.entries and (over in (None, parent) or parent == UNSEEN)
    return Event(
        sent=answer.sent or 0.0,
        answered=answer.answered or 0.0,
        address=_find_address(answer.request, service),
        what=operation(answer.request),
        committed=answer.committed,
        status=answer.status,
        etag=bare(answer.etag) if answer.etag else "",
        over=over,
        op=op if is_own else None,
        lineage=lineage,
        lease=digest(headers.get("x-ms-lease-id")),
        proposed=digest(headers.get("x-ms-proposed-lease-id")),
        transmission=headers.get("x-ms-client-request-id", str(id(answer.request))),
        fault=answer.fault.value,
    )


def _find_parent(request: Request) -> str | None:
    if request.headers.get("if-none-match") == "*":
        return ABSENT
    condition = request.headers.get("if-match")
    return None if condition in (None, "*") else bare(condition)


def _find_address(request: Request, service: str) -> str:
    url = urlsplit(request.path)
    _, _, path = unquote(url.path).removeprefix("/").partition("/")
    if service == "table":
        entity = _ENTITY.fullmatch(path)
        return (
            f"table:{path}" if entity is None else f"entity:{entity[1].lower()}/#{digest(f'{entity[2]}/{entity[3]}')}"
        )
    if service == "queue":
        return f"queue:{path.partition('/')[0]}"
    top, leaf = ("share", "file") if service == "file" else ("container", "blob")
    is_whole = "/" not in path or parse_qs(url.query).get("restype") == [top]
    return f"{top}:{path}" if is_whole else f"{leaf}:{path}"


def is_sent_again(steps: Sequence[Step], settled: Step | Event) -> bool:
    """Return whether a process sent an op again after a write of it was settled."""
    if not isinstance(settled, Step):
        return False
    later = (each for each in steps if each.step == "sending" and each.at > settled.at)
    return any((each.process, each["op"]) == (settled.process, settled["op"]) for each in later)


def find_end(lease: str, mine: Sequence[Step], at: float) -> float:
    """Return until when a holder counts on its lease, as of a moment: a term after its last request."""
    theirs = [step for step in mine if step["lease"] == lease and step.at < at]
    seconds = next((step["seconds"] for step in theirs if step["action"] == "acquire"), None)
    begun = [before.at for before, step in pairwise(theirs) if step.step in ("acquired", "renewed")]
    return float("inf") if seconds is None else max(begun, default=0.0) + float(seconds)
