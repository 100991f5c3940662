"""Which request gets which fault: by rules such as ``PUT blob 1 drop``, or at random from a seed."""

import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.faultproxy.faults import Chosen, Decide, Fault, Request

# The paths of the Table service. Only an insert looks like the name of a container.
_TABLE = re.compile(
    r"/\w+/(?:(?P<entity>\w+\(PartitionKey=.*\))|(?P<entities>\w+\(\))|(?P<batch>\$batch)|(?P<table>Tables(?:\(.*\))?))"
)
# The paths of the Queue service; with a query they look like those of a container.
_QUEUE = re.compile(r"/\w+/[^/$]+(?P<what>/messages(?P<id>/[^/]+)?)?")
# How long after the client gave up a zombie lands at the latest; seconds.
_ZOMBIE_SECONDS = 0.25
# A slow answer is whole, and an earlier one has to be chosen.
_NOT_AT_RANDOM = (Fault.NONE, Fault.SLOW, Fault.STORED_AFTER, Fault.STORED_BEFORE)
EVERY_FAULT: Mapping[Fault, float] = {fault: 1.0 for fault in Fault if fault not in _NOT_AT_RANDOM}


def operation(request: Request) -> str:
    """Return what a request does.

    Such as ``PUT blob``, ``PUT copy``, ``PUT metadata``, ``PUT lease:acquire``, ``PATCH entity``.
    """
    table = _TABLE.fullmatch(unquote(urlsplit(request.path).path))
    if table is not None:
        return f"{request.method} {table.lastgroup}"
    queue = _QUEUE.fullmatch(urlsplit(request.path).path)
    query = parse_qs(urlsplit(request.path).query)
    if queue is not None and not query.keys() & {"comp", "restype"} and (queue["what"] or request.method != "POST"):
        what = "message" if queue["id"] else "messages" if queue["what"] else "queue"
        return f"{request.method} {what}"
    if request.method == "POST" and "comp" not in request.path:
        return "POST entity"
    what = query.get("comp", query.get("restype", ["blob"]))[0]
    if what == "lease":
        what = f"lease:{request.headers.get('x-ms-lease-action', '')}"
    if what == "blob" and "x-ms-copy-source" in request.headers:
        what = "copy"
    return f"{request.method} {what}"


@dataclass(frozen=True)
class Rule:
    """The nth request (None is every one) that does ``operation`` gets ``fault``; ``*`` stands for any word."""

    operation: str
    nth: int | None
    fault: Fault

    @classmethod
    def parse(cls, text: str) -> "Rule":
        """Read ``METHOD WHAT NTH FAULT``, e.g. ``PUT blob 1 drop`` or ``* * * slow``.

        Raises:
            ValueError: it is not that.
        """
        words = text.split()
        if len(words) != 4:
            raise ValueError(f"{text!r} is not a rule: write METHOD WHAT NTH FAULT, e.g. PUT blob 1 drop")
        fault = Fault(words[3])
        if fault in (Fault.STORED_AFTER, Fault.STORED_BEFORE):
            raise ValueError(f"{words[3]} is not for a rule: it needs an earlier answer, which only a test can choose")
        return cls(f"{words[0]} {words[1]}", None if words[2] == "*" else int(words[2]), fault)

    def is_for(self, request: Request) -> bool:
        """Return whether the request does what the rule names."""
        pairs = zip(self.operation.lower().split(), operation(request).lower().split(), strict=True)
        return all(wanted in ("*", found) for wanted, found in pairs)


def by_rules(rules: Sequence[Rule]) -> Decide:
    """Return a decision by the first rule that names the request; each rule counts its own requests."""
    counts = [0] * len(rules)

    def decide(request: Request) -> Fault:
        found = Fault.NONE
        for position, rule in enumerate(rules):
            if not rule.is_for(request):
                continue
            counts[position] += 1
            if found is Fault.NONE and rule.nth in (None, counts[position]):
                found = rule.fault
        return found

    return decide


def at_random(seed: int, share: float, weights: Mapping[Fault, float] = EVERY_FAULT, *, reads: bool = False) -> Decide:
    """Return a decision that spoils this share of all writes (and reads), in the order in which they arrive.

    The same seed gives the same faults to the same sequence of requests. Writers that run at the same time
    do not repeat their sequence exactly.
    """
    chance = random.Random(seed)

    def decide(request: Request) -> Fault | Chosen:
        if not (request.writes or reads) or chance.random() >= share:
            return Fault.NONE
        (fault,) = chance.choices(list(weights), list(weights.values()))
        delay = chance.uniform(0, _ZOMBIE_SECONDS)
        return Chosen(fault, after(delay)) if fault is Fault.ZOMBIE else fault

    return decide


def after(seconds: float, clock: Callable[[], float] = time.monotonic) -> Callable[[], bool]:
    """Return what answers True once so many seconds have passed since it was first asked."""
    asked: list[float] = []

    def passed() -> bool:
        asked.append(clock())
        return asked[-1] - asked[0] >= seconds

    return passed
