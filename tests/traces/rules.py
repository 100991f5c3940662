"""The rules of the protocol as transitions, and the replay of traces by them beside the log of the service.

A rule is what a step may follow, or what the service must have done for it. Each has its line in ``RULES``, from which
``docs/protocol.md`` has its table, and a test in ``test_rules`` with a trace that breaks it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from azguard.requests.lineage import Lineage
from tests.traces.records import Event, Step

RULES = {
    "another version": "an update is sent over the version that it read last",
    "applied already": "nothing is sent once the version that was read has the op of the update",
    "beside a doubt": "while an attempt over one version is in doubt, none is sent over another",
    "not looked": "after an attempt in doubt, or one that was refused, the resource is asked before the next step",
    "answer of another": "an attempt counts as committed only if the service has committed it",
    "false never": "an attempt is given up as impossible only if a recorded successor proves it, and it never commits",
    "false commit": "what is settled as committed is there, under the version that is told",
    "false refusal": "what is settled as not applied never comes",
    "left in doubt": "nothing that may still come is settled as not applied: a fence goes first",
    "known doubt": "what is settled as unknown has an attempt in doubt, or a refusal that a copy of it explains",
    "applied twice": "one op is applied once",
    "sent by itself": "each transmission of a write is a step: nothing below sends it again",
    "unconditional": "a write of an op depends on the version that it replaces",
    "asked unsaid": "a lease is noted before it is asked for",
    "id used again": "the id of a lease that was released is never asked for again",
    "false hold": "a lease counts as acquired, renewed or released only if the service says so",
    "two holders": "no lock has two holders at a time, except after a break",
    "fence fell": "each holder of a lock has a higher fence than the one before",
    "claimed beside": "a key that is claimed is claimed by no other before its time is over",
    "done again": "a key that is done is never claimed again",
    "deleted undone": "a message is deleted after its key is noted as done, or its copy is in the poison queue",
}
# Refusals that a copy of our own request can explain.
_PERHAPS_OURS = ("404", "409", "412", "ConditionNotMet", "BlobAlreadyExists", "UpdateConditionNotSatisfied")
_LOOKS = ("HEAD blob", "GET blob", "HEAD container", "GET container")
# What the service must have done for a step of a lease.
_PROOFS = {
    "acquired": ("PUT lease:acquire", *_LOOKS),
    "renewed": ("PUT lease:renew", "PUT lease:acquire", *_LOOKS),
    "released": ("PUT lease:release",),
}
_ENDS_OF_LEASE = ("PUT lease:break", "DELETE blob", "DELETE container")
_SHOWN = 6


@dataclass(frozen=True)
class Violation:
    """A step that a rule does not allow, with its neighbours."""

    rule: str
    step: Step | Event
    neighbours: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return it as a report shows it."""
        return "\n    ".join((f"{self.rule}, but not here: {RULES[self.rule]}", *self.neighbours))


class Truth:
    """What the service did, by address."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.of: dict[str, list[Event]] = defaultdict(list)
        for event in events:
            self.of[event.address].append(event)

    def find_lineage(self, address: str, version: str) -> Lineage | None:
        """Return the lineage of a version, if any answer or write told it."""
        told = (e for e in self.of[address] if e.etag == version and e.status in (200, 201, 206) and e.lineage.entries)
        return next((event.lineage for event in told if event.what != "PUT properties"), None)

    def commits(self, address: str, op: str | None, over: str | None = None) -> list[Event]:
        """Return the committed writes of an op; where that is not known, those over a version."""
        made = [event for event in self.of[address] if event.committed and ":" not in event.what]
        return [e for e in made if (e.op == op if op and e.op else True) and (over is None or e.over == over)]

    def is_told(self, step: Step, *whats: str) -> bool:
        """Return whether the service had done this for a lease by the time of a step."""
        mine = (e for e in self.of[step.address] if step["lease"] in (e.lease, e.proposed) and e.sent <= step.at)
        return any(e.what in whats and e.status in (200, 201, 202, 206) for e in mine)


@dataclass
class _Write:
    """A write under way: an update, known by its op, or a single one, known by its number."""

    truth: Truth
    found: Callable[[str, Step | Event], None]
    address: str
    op: str | None
    read: str | None = None
    is_known: bool = False
    is_looked: bool = True
    refused: bool = False
    doubts: set[str | None] = field(default_factory=set)
    overs: list[str | None] = field(default_factory=list)

    def take(self, step: Step) -> None:
        """Replay a step."""
        method = getattr(self, f"_on_{step.step}", None)
        if method is not None:
            method(step)

    def _on_read(self, step: Step) -> None:
        self.read, self.is_looked = step["version"], True
        lineage = self.truth.find_lineage(self.address, str(self.read))
        self.is_known = lineage is not None and self.op is not None and self.op in lineage

    def _on_sending(self, step: Step) -> None:
        over = step["over"]
        if self.op is not None and over != self.read:
            self.found("another version", step)
        if self.is_known:
            self.found("applied already", step)
        if self.doubts - {over}:
            self.found("beside a doubt", step)
        if not self.is_looked:
            self.found("not looked", step)
        self.overs.append(over)
        self.is_looked = self.refused = False

    def _on_sent(self, step: Step) -> None:
        outcome, over = step["outcome"], step["over"]
        if outcome == "committed" and not self._committed(over, before=step.at):
            self.found("answer of another", step)
        if outcome == "in doubt":
            self.doubts.add(over)
        self.refused = self.refused or (outcome == "refused" and step["code"] in _PERHAPS_OURS)
        self.is_looked = not (outcome == "in doubt" or self.refused)

    def _on_looked(self, step: Step) -> None:
        over, self.is_looked = step["over"], True
        if step["found"] == "never":
            lineage = self.truth.find_lineage(self.address, str(step["version"]))
            unproved = lineage is not None and lineage.successor(over) in (None, self.op)
            if self._committed(over) or (self.op is not None and unproved):
                self.found("false never", step)
            self.doubts.discard(over)
        if step["found"] == "committed":
            self.is_known = True

    def _on_fencing(self, step: Step) -> None:
        if step["over"] != self.read:
            self.found("another version", step)

    def _on_fenced(self, step: Step) -> None:
        if step["outcome"] == "committed":
            self.doubts.clear()

    def _on_settled(self, step: Step) -> None:
        outcome, made = step["outcome"], [each for over in set(self.overs) for each in self._committed(over)]
        if outcome == "committed":
            told = step["etag"]
            if not made or (self.op and told and told not in self._versions_with(made)):
                self.found("false commit", step)
        elif outcome == "unknown":
            if not self.doubts and not self.refused and self.op is not None and self.overs:
                self.found("known doubt", step)
        elif outcome == "not applied":
            if made:
                self.found("false refusal", step)
            if self.doubts and self.op is not None:
                self.found("left in doubt", step)
            if self.refused and not self.is_looked:
                self.found("not looked", step)

    def _committed(self, over: str | None, before: float = float("inf")) -> list[Event]:
        return [each for each in self.truth.commits(self.address, self.op, over) if each.sent <= before]

    def _versions_with(self, made: Sequence[Event]) -> set[str]:
        """Return the versions that an op made, and those of other writers after it, who left its lineage on top."""
        told = (event for event in self.truth.of[self.address] if event.lineage.entries)
        return {each.etag for each in made} | {each.etag for each in told if each.lineage.entries[0][0] == self.op}


class Checker:
    """The replay of all traces of one run."""

    def __init__(self, steps: Sequence[Step], events: Sequence[Event]) -> None:
        self.steps, self.events, self.truth = steps, events, Truth(events)
        self.violations: list[Violation] = []

    def check(self) -> list[Violation]:
        """Return each step that is not allowed."""
        writes: dict[tuple[object, ...], _Write] = {}
        for step in self.steps:
            name = step["op"] or step["write"]
            if name is not None:
                key = step.process, step.address, name
                new = _Write(self.truth, self._found, step.address, step["op"])
                writes.setdefault(key, new).take(step)
        self._check_transmissions(writes.values())
        for address in sorted({step.address for step in self.steps}):
            mine = [step for step in self.steps if step.address == address]
            self._check_leases(address, mine)
            self._check_holders(address, mine)
            self._check_claims(mine)
        self._check_messages()
        return self.violations

    def _found(self, rule: str, step: Step | Event) -> None:
        times = [(each.at, str(each)) for each in self.steps if each.address == step.address]
        times += [(each.answered, str(each)) for each in self.truth.of[step.address]]
        lines = [line for _, line in sorted(times)]
        place = lines.index(str(step))
        lines[place] = f"> {step}"
        self.violations.append(Violation(rule, step, tuple(lines[max(0, place - _SHOWN) : place + _SHOWN])))

    def _check_transmissions(self, writes: Iterable[_Write]) -> None:
        """Each op once, each transmission of it a step, and each over a version."""
        by_op: dict[tuple[str, str], list[str | None]] = defaultdict(list)
        for write in writes:
            if write.op is not None:
                by_op[write.address, write.op] += write.overs
        for (address, op), overs in by_op.items():
            mine = [event for event in self.truth.of[address] if event.op == op and ":" not in event.what]
            made = [event for event in mine if event.committed]
            runs = {step.process for step in self.steps if step["op"] == op and step.step == "sending"}
            if len(made) > 1 and len(runs) == 1:
                self._found("applied twice", made[1])
            for event in made:
                if event.over is None:
                    self._found("unconditional", event)
            sent = {event.transmission: event for event in mine}
            for over in {event.over for event in mine}:
                ours = [event for event in sent.values() if event.over == over]
                if len(ours) > overs.count(over):
                    self._found("sent by itself", ours[-1])

    def _check_leases(self, address: str, mine: Sequence[Step]) -> None:
        asked = {step["lease"]: step.at for step in reversed(mine) if step["action"] in ("acquire", "change")}
        released: set[str] = set()
        for event in self.truth.of[address]:
            if event.what == "PUT lease:acquire" and asked and asked.get(event.proposed, event.sent + 1) > event.sent:
                self._found("asked unsaid", event)
        for step in mine:
            if step["action"] == "acquire" and step["lease"] in released:
                self._found("id used again", step)
            if step.step == "released" and not step["code"]:
                released.add(step["lease"])
            is_over = step.step == "released" and (step["code"] or self._may_have_ended(step, mine))
            if step.step in _PROOFS and not is_over and not self.truth.is_told(step, *_PROOFS[step.step]):
                self._found("false hold", step)

    def _may_have_ended(self, step: Step, mine: Sequence[Step]) -> bool:
        ends = (e.what in _ENDS_OF_LEASE and e.committed and e.sent < step.at for e in self.truth.of[step.address])
        return any(ends) or _find_end(step["lease"], mine, step.at) < step.at

    def _check_holders(self, address: str, mine: Sequence[Step]) -> None:
        holders = [step for step in mine if step.step == "held" and step["lease"]]
        for before, held in pairwise(holders):
            if (held["fence"] or 0) <= (before["fence"] or 0):
                self._found("fence fell", held)
            if self._still_holds(before, held, mine):
                self._found("two holders", held)

    def _still_holds(self, before: Step, held: Step, mine: Sequence[Step]) -> bool:
        """Return whether a holder counted its lock as held when the next was granted it, though nobody broke it."""
        at = max((s.at for s in mine if s.step == "acquired" and s["lease"] == held["lease"]), default=held.at)
        theirs = (step for step in mine if step.at < at and step["lease"] == before["lease"])
        left = any(step.step == "lost" or step["action"] == "release" for step in theirs)
        ended = any(e.what in _ENDS_OF_LEASE and e.committed and e.sent < at for e in self.truth.of[held.address])
        return not left and not ended and _find_end(before["lease"], mine, at) > at

    def _check_claims(self, mine: Sequence[Step]) -> None:
        until, owner, is_done = 0.0, None, False
        asked: dict[str, Step] = {}
        for step in mine:
            claim = step["claim"]
            if step.step == "claiming":
                asked[claim] = step
            elif step.step == "claimed":
                if is_done and asked[claim].at > until:
                    self._found("done again", step)
                elif owner not in (None, claim) and step.at < until:
                    self._found("claimed beside", step)
                owner, until = claim, asked[claim].at + asked[claim]["seconds"]
            elif step.step == "extended" and claim == owner:
                until = step.at - 1 + step["seconds"]
            elif step.step in ("done", "failed", "poisoned") and claim == owner:
                until, is_done = step.at, step.step == "done"
                owner = owner if is_done else None

    def _check_messages(self) -> None:
        claims: dict[str, str] = {}
        settled: set[str] = set()
        for step in self.steps:
            if step.step == "claiming":
                claims[step["claim"]] = step["message"]
            elif step.step in ("done", "done before"):
                settled.add(claims.get(step["claim"], ""))
            elif step.step == "copied":
                settled.add(step["message"])
            elif step.step == "deleted" and step["key"] and step["message"] not in settled:
                self._found("deleted undone", step)


def _find_end(lease: str, mine: Sequence[Step], at: float) -> float:
    """Return when a lease ends at the latest that its holder counts on, as of a moment."""
    theirs = [step for step in mine if step["lease"] == lease and step.at < at]
    seconds = next((step["seconds"] for step in theirs if step["action"] == "acquire"), None)
    if seconds is None:
        return float("inf")
    begun = [before.at for before, step in pairwise(theirs) if step.step in ("acquired", "renewed")]
    return max(begun, default=0.0) + float(seconds)
