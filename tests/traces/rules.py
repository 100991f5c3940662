"""The rules of the protocol as transitions, and the replay of traces by them beside the log of the service.

A rule is what a step may follow, or what the service must have done for it. Each has its line in ``RULES``, from which
``docs/protocol.md`` has its table, and a test in ``test_rules`` with a trace that breaks it.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from azguard.requests.lineage import ABSENT
from tests.traces.records import PROOFS, Event, Step, Truth, find_end, is_sent_again

RULES = {
    "another version": "an update is sent over the version that it read last",
    "applied already": "nothing is sent once the version that was read has the op of the update",
    "beside a doubt": "while an attempt over one version is in doubt, none is sent over another",
    "not looked": "after a write without an answer, or a refused one, the resource is asked before the next step",
    "answer of another": "a write counts as committed only if the service has committed it",
    "false never": "a write is given up as impossible only if a recorded successor proves it, and it never comes",
    "false commit": "what is settled as committed is there, under the version that is told",
    "false refusal": "what is settled as not applied is not there, and never comes",
    "left in doubt": "an update does not end as not applied while a write of it may still come: a fence goes first",
    "known doubt": "what is settled as unknown has a write without an answer, or one that was refused",
    "applied twice": "one op is applied once",
    "sent by itself": "each transmission of a write is a step: nothing below sends it again",
    "unconditional": "each write of an update depends on the version that it replaces",
    "asked unsaid": "a lease is noted before it is asked for",
    "id used again": "the id of a lease that was released is never asked for again",
    "false hold": "a lease counts as acquired, renewed or released only if the service says so",
    "two holders": "a lock has one holder at a time, unless its lease was broken or has ended",
    "fence fell": "each holder of a lock has a higher fence than the one before",
    "claimed beside": "a key that is claimed is claimed by no other before its time is over",
    "done again": "a key that is done is never claimed again",
    "deleted undone": "a message is deleted after its key is noted as done, or its copy is in the poison queue",
}
# How the codes end of refusals that an earlier copy of the same request explains.
_EXPLAINED = ("ConditionNotMet", "ConditionNotSatisfied", "AlreadyExists", "BlobNotFound")
# The place of a waiter in the queue of a lock. It promises nothing: one that comes again, late, is passed over.
_TICKET = re.compile(r".+![0-9]{10}")
# How many lines before and after a step are its neighbours.
_NEIGHBOURS = 6


@dataclass(frozen=True)
class Violation:
    """A step that a rule does not allow, with its neighbours."""

    rule: str
    step: Step | Event
    neighbours: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return it as a report shows it."""
        return "\n    ".join((f"{self.rule}, but not here: {RULES[self.rule]}", *self.neighbours))


@dataclass
class _Write:
    """A write under way: an update, or a single one, which has a number."""

    truth: Truth
    found: Callable[[str, Step | Event], None]
    address: str
    op: str | None
    is_update: bool
    guard: str = ""
    read: str | None = None
    is_known: bool = False
    is_looked: bool = True
    refused: bool = False
    #: The versions over which a write of it may still come, or may be there.
    doubts: set[str | None] = field(default_factory=set)
    overs: list[str | None] = field(default_factory=list)
    _was_doubted: bool = False

    def take(self, step: Step) -> None:
        """Replay a step."""
        method = getattr(self, f"_on_{step.step}", None)
        if method is not None:
            method(step)

    def _on_read(self, step: Step) -> None:
        self.read, self.is_looked = step["version"], True
        lineage = self.truth.find_lineage(self.address, str(self.read))
        self.is_known = lineage is not None and self.op in lineage

    def _on_sending(self, step: Step) -> None:
        over, self.guard = step["over"], step["guard"]
        if self.is_update and over != self.read:
            self.found("another version", step)
        if self.is_known:
            self.found("applied already", step)
        # The row of a ledger excludes all but one attempt.
        if self.doubts - {over} and self.guard != "ledger":
            self.found("beside a doubt", step)
        if not self.is_looked:
            self.found("not looked", step)
        self._was_doubted = over in self.doubts
        self.doubts.add(over)
        self.overs.append(over)
        self.is_looked = False

    def _on_sent(self, step: Step) -> None:
        outcome, over = step["outcome"], step["over"]
        if outcome == "committed" and self._is_logged and not any(e.sent <= step.at for e in self._committed(over)):
            self.found("answer of another", step)
        if outcome != "in doubt" and not self._was_doubted:
            self.doubts.discard(over)
        self.refused = outcome == "refused"
        self.is_looked = outcome == "not sent" or (self.refused and not str(step["code"]).endswith(_EXPLAINED))

    def _on_looked(self, step: Step) -> None:
        over, self.is_looked = step["over"], True
        if step["found"] == "never" and self.is_update:
            lineage = self.truth.find_lineage(self.address, str(step["version"]))
            if self._committed(over) or (lineage is not None and lineage.successor(over) in (None, self.op)):
                self.found("false never", step)
            self.doubts.discard(over)
        if (
            step["where"] == "lineage"
            and self.is_known is False
            and self.truth.find_lineage(self.address, self.read or "")
        ):
            self.found("false commit", step)
        self.is_known = self.is_known or step["found"] == "committed"

    def _on_fencing(self, step: Step) -> None:
        if step["over"] != self.read:
            self.found("another version", step)

    def _on_fenced(self, step: Step) -> None:
        if step["outcome"] == "committed":
            self.doubts.clear()

    def _on_settled(self, step: Step) -> None:
        made = [event for over in set(self.overs) for event in self._committed(over)]
        outcome, told = step["outcome"], step["etag"]
        if outcome == "committed" and self._is_logged:
            # Where two runs have one key at once, the other one may have done it.
            named = self.truth.list_writes(self.address, self.op, None)
            made = made or [each for each in named if each.committed and each.op]
            if not made or (told and told not in self._list_versions(made)):
                self.found("false commit", step)
        elif (
            outcome == "applied_before" and self.truth.find_lineage(self.address, str(self.read)) and not self.is_known
        ):
            self.found("false commit", step)
        elif outcome == "unknown" and self.overs and not self.doubts and not self.refused:
            self.found("known doubt", step)
        elif outcome == "not applied":
            self._check_refusal(step, made)

    def _check_refusal(self, step: Step, made: Sequence[Event]) -> None:
        theirs = [event for event in made if event.op == self.op is not None]
        if theirs and not self.truth.is_deleted(self.address, min(each.answered for each in theirs), step.at):
            self.found("false refusal", step)
        if self.doubts and self.is_update:
            self.found("left in doubt", step)
        if self.refused and not self.is_looked:
            self.found("not looked", step)

    @property
    def _is_logged(self) -> bool:
        """Return whether the log tells of each op: it does of a blob, but not of its tags, which have no lineage."""
        is_of_tags = any("+" in str(over) for over in self.overs)
        return self.op is not None and self.address.startswith("blob:") and not is_of_tags

    def _committed(self, over: str | None) -> list[Event]:
        parents = (None, ABSENT) if over is None else (over,)
        writes = self.truth.list_writes(self.address, self.op, over)
        # Nothing tells of an entity who wrote it.
        is_told = not self.address.startswith("entity:")
        return [event for event in writes if event.committed and event.over in parents and (event.op or is_told)]

    def _list_versions(self, made: Sequence[Event]) -> set[str]:
        """Return the versions that an op made, and those of other writers after it, who left its lineage on top."""
        told = (event for event in self.truth.of[self.address] if event.lineage.entries)
        return {event.etag for event in made} | {e.etag for e in told if e.lineage.entries[0][0] == self.op}


class Checker:
    """The replay of all traces of one run."""

    def __init__(self, steps: Sequence[Step], events: Sequence[Event]) -> None:
        self.steps, self.truth = steps, Truth(events)
        self.violations: list[Violation] = []

    def check(self) -> list[Violation]:
        """Return each step that is not allowed."""
        writes: dict[tuple[object, ...], _Write] = {}
        places: dict[str, list[Step]] = defaultdict(list)
        for step in self.steps:
            places[step.address].append(step)
            name = step["write"] or step["op"]
            if name is not None:
                new = _Write(self.truth, self._found, step.address, step["op"], step["write"] is None)
                writes.setdefault((step.process, step.address, name), new).take(step)
        self._check_transmissions(writes)
        for address, mine in places.items():
            self._check_leases(address, mine)
            self._check_holders(mine)
            self._check_claims(mine)
        self._check_messages()
        return self.violations

    def _found(self, rule: str, step: Step | Event) -> None:
        if rule == "false refusal" and is_sent_again(self.steps, step):
            return  # As under a fence: what counts is its last end.
        times = [(each.at, str(each)) for each in self.steps if each.address == step.address]
        times += [(each.answered, str(each)) for each in self.truth.of[step.address]]
        lines = [line for _, line in sorted(times)]
        place = lines.index(str(step))
        lines[place] = f"> {step}"
        self.violations.append(Violation(rule, step, tuple(lines[max(0, place - _NEIGHBOURS) : place + _NEIGHBOURS])))

    def _check_transmissions(self, writes: Mapping[tuple[object, ...], _Write]) -> None:
        by_op: dict[tuple[str, str], list[tuple[object, _Write]]] = defaultdict(list)
        for (process, *_), write in writes.items():
            if write.op is not None and write.overs:
                by_op[write.address, write.op].append((process, write))
        for (address, op), mine in by_op.items():
            sent = [event for event in self.truth.of[address] if event.op == op and not event.is_of_lease]
            # What depends on no version may be done twice, as far as azguard knows.
            made = [event for event in sent if event.committed and event.over is not None]
            # A key that is run again after its version was forgotten is another run's: see test_history.
            is_of_one_run = len({process for process, _ in mine}) == 1
            # With what another program deletes goes all that told of the first time.
            again = [b for a, b in pairwise(made) if not self.truth.is_deleted(address, a.answered, b.answered)]
            if again and is_of_one_run and not _TICKET.fullmatch(address):
                self._found("applied twice", again[0])
            # Of a file the service compares no version: the lease keeps others out.
            is_bound = mine[0][1].is_update and mine[0][1].guard != "compare" and not address.startswith("file:")
            blind = [event for event in sent if event.over is None and is_bound]
            if blind:
                self._found("unconditional", blind[0])
            overs = [over for _, write in mine for over in write.overs]
            once = {event.transmission: event for event in sent}
            if len(once) > len(overs):
                self._found("sent by itself", max(once.values(), key=lambda event: event.sent))

    def _check_leases(self, address: str, mine: Sequence[Step]) -> None:
        asked = {step["lease"]: step.at for step in reversed(mine) if step["action"] in ("acquire", "change")}
        for event in self.truth.of[address]:
            if event.what == "PUT lease:acquire" and asked and asked.get(event.proposed, event.sent + 1) > event.sent:
                self._found("asked unsaid", event)
        released: set[str] = set()
        for step in mine:
            if step["action"] == "acquire" and step["lease"] in released:
                self._found("id used again", step)
            is_over = step.step == "released" and (step["code"] or self._may_have_ended(step, mine))
            if step.step in PROOFS and not is_over and not self.truth.is_told(step):
                self._found("false hold", step)
            if step.step == "released" and not step["code"]:
                released.add(step["lease"])

    def _may_have_ended(self, step: Step, mine: Sequence[Step]) -> bool:
        return self.truth.ends_lease(step.address, step.at) or find_end(step["lease"], mine, step.at) < step.at

    def _check_holders(self, mine: Sequence[Step]) -> None:
        for before, held in pairwise(step for step in mine if step.step == "held" and step["fence"]):
            if held["fence"] <= before["fence"]:
                self._found("fence fell", held)
            at = max((s.at for s in mine if s.step == "acquired" and s["lease"] == held["lease"]), default=held.at)
            theirs = (step for step in mine if step.at < at and step["lease"] == before["lease"])
            has_left = any(step.step == "lost" or step["action"] == "release" for step in theirs)
            if (
                not has_left
                and not self.truth.ends_lease(held.address, at)
                and find_end(before["lease"], mine, at) > at
            ):
                self._found("two holders", held)

    def _check_claims(self, mine: Sequence[Step]) -> None:
        asked = {step["claim"]: step for step in mine if step.step == "claiming"}
        until, owner, is_done = 0.0, None, False
        for step in (step for step in mine if step["claim"] in asked):
            began = asked[step["claim"]]
            if step.step == "claimed" and step.at < began.at + began["seconds"]:
                if is_done and began.at > until:
                    self._found("done again", step)
                elif owner not in (None, step["claim"]) and step.at < until:
                    self._found("claimed beside", step)
                owner, until = step["claim"], began.at + began["seconds"]
            elif step["claim"] == owner and step.step in ("done", "failed", "poisoned"):
                until, is_done = step.at, step.step == "done"
                owner = owner if is_done else None

    def _check_messages(self) -> None:
        claims = {step["claim"]: step["message"] for step in self.steps if step.step == "claiming"}
        settled: set[str] = set()
        for step in self.steps:
            if step.step in ("done", "done before"):
                settled.add(claims.get(step["claim"], ""))
            elif step.step == "copied":
                settled.add(step["message"])
            elif step.step == "deleted" and step["key"] and step["message"] not in settled:
                self._found("deleted undone", step)
