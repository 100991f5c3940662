"""Updates of one blob: the processes, and what must be true of them.

Each update adds its own letter to the content, so that the content tells what was applied, and how often.
"""

import random
from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.blobs.updates import BlobContent
from azguard.errors import TransformFailed
from azguard.requests.deadline import SETTLE_SECONDS
from azguard.requests.lineage import Lineage, new_op
from azguard.updates.doubt import find_status
from azguard.updates.local_runs import WriteJournal
from azguard.updates.resource import Change, UpdateHooks, UpdatePlan, UpdateResult
from azguard.updates.update import update
from tests.explorer import faults, foreign, service
from tests.explorer.blob_service import Blob, BlobService
from tests.explorer.faults import Fault
from tests.explorer.foreign import BEYOND, CREATED_AGAIN, FOREIGN, LINEAGE, PATH, TRIMS
from tests.explorer.player import LAST_BREATH, Ended, Process, Program
from tests.explorer.scenario import STOPPED_ALONE, Bound, Effect, Rules, Scenario, Services, Violation
from tests.explorer.wire import Asked

# These say that nothing was applied, and that nothing will be.
REFUSED = (2, 34, 42, 44, 45, 49, 53, 65, 75)


class Even(random.Random):
    """No chance: each pause is the longest."""

    def uniform(self, a: float, b: float) -> float:
        return b


class MemoryJournal(WriteJournal):
    """The journal on a disk that a story remembers."""

    def __init__(self, process: Process, op: str, *, keyed: bool) -> None:
        super().__init__(Path("/nowhere"), op, keyed=keyed)
        self._process = process
        self._op = op

    def read_pending(self) -> str | None:
        self._kept = dict(self._process.given).get(self._op)
        return None if self._kept is None else self._kept.split()[0]

    def _write(self, line: bytes) -> None:
        self._process.tell("disk", self._op, line.decode().strip())

    def forget(self) -> None:
        if self._kept is not None:
            self._process.tell("disk", self._op, None)
        self._kept = None

    def close(self) -> None:
        """Nothing is open."""


class Ghost(NamedTuple):
    """What the rules remember."""

    #: Who applied each op.
    applied: tuple[tuple[str, tuple[str, ...]], ...] = ()
    #: Ops that another program has made azguard forget, as docs/safe-update.md says: they may be applied again.
    forgotten: frozenset[str] = frozenset()
    #: Ops that another program has made azguard forget while a process had not ended that may have found them.
    wiped: frozenset[str] = frozenset()
    #: The exit status of each process that ended, and what it said.
    ends: tuple[tuple[str, Ended], ...] = ()
    #: What is on the disk of the one machine whose files matter.
    disk: tuple[tuple[str, str], ...] = ()
    #: Whether no program has written that is not azguard.
    is_alone: bool = True
    #: Ops that stand in the lineage, or stood there: also those of which the change was there before.
    recorded: frozenset[str] = frozenset()
    #: The lease that each process has acquired.
    leases: tuple[tuple[str, str], ...] = ()
    #: When each process was stopped first.
    stopped: tuple[tuple[str, float], ...] = ()
    #: The processes that have sent nothing since they gave their lease back.
    giving_back: frozenset[str] = frozenset()
    #: Those that were asked for the op of another, or came with another change, once it was applied.
    informed: frozenset[str] = frozenset()
    #: The version that each op has made.
    made: tuple[tuple[str, str], ...] = ()


class UpdateRules(Rules):
    """Exit 0 is applied exactly once, a refusal never, and nothing is overwritten that was not read."""

    def __init__(self, programs: tuple[Program, ...], *, creates: bool = False, knows: bool = True) -> None:
        #: Whether azguard knows how each write of its own ended, as long as no other program writes.
        self._knows = knows
        self._ops = {each.name: each.op or each.name for each in programs}
        #: The process that ran before on the same machine.
        self._before = {each.name: each.after for each in programs if each.after is not None}
        self._creates = creates
        #: Processes that apply no op of their own: they ask for that of others, or come with another change.
        self._others = {each.name: each.other for each in programs if each.other is not None}

    def begin(self) -> Ghost:
        return Ghost()

    def find_given(self, ghost: Ghost, program: Program) -> tuple[tuple[str, str], ...]:
        return ghost.disk

    def find(self, services: Services) -> Blob | None:
        """Return what is updated, as a blob."""
        found: Blob | None = services["blob"].blobs.get(PATH)
        return found

    def see_sent(self, ghost: Ghost, who: str, asked: Asked, services: Services, now: float) -> Ghost:
        """Note that a lease was given back, as far as azguard can do it: if that is lost, it ends by itself."""
        if who in self._others and self._ops[who] in dict(ghost.applied):
            ghost = ghost._replace(informed=ghost.informed | {who})
        if asked.action != "PUT lease release":
            return ghost._replace(giving_back=ghost.giving_back - {who})
        return ghost._replace(leases=with_pair(ghost.leases, who, None), giving_back=ghost.giving_back | {who})

    def see_effect(self, ghost: Ghost, effect: Effect) -> Ghost:
        before, after = self.find(effect.before), self.find(effect.after)
        if after is None and before is None:
            return ghost  # It wrote what stands beside it.
        if after is None:
            raise Violation(f"{effect.who} deleted the blob")
        old, op = b"" if before is None else before.content, self._ops[effect.who]
        if before is not None and _others(before) != _others(after):
            raise Violation(f"{effect.who} changed metadata or headers that it was not to change")
        ghost = self._note(ghost, effect, after)
        if after.content == old and before is not None:
            return ghost
        if after.content != old + op.encode():
            raise Violation(f"{effect.who} wrote over a version that it had not read")
        appliers = (*dict(ghost.applied).get(op, ()), effect.who)
        if len(appliers) > 1 and op not in ghost.forgotten:
            raise Violation(f"{op} was applied twice")
        said = self._find_done(ghost, op)
        if said and op not in ghost.forgotten and effect.who not in said:
            raise Violation(f"{said[0]} ended 0, and {op} was applied afterwards")
        for who, ended in ghost.ends:
            if (ended.status in REFUSED or ended.outcome == "unchanged") and who == effect.who:
                raise Violation(f"{who} ended {ended.status} ({ended.outcome}), and {op} was applied afterwards")
        made = with_pair(ghost.made, op, after.etag)
        return ghost._replace(applied=with_pair(ghost.applied, op, appliers), made=made)

    def _note(self, ghost: Ghost, effect: Effect, after: Blob) -> Ghost:
        """Note what an effect has acquired and recorded."""
        op, asked = self._ops[effect.who], effect.asked
        # A late copy that comes while one is stopped that has done all but end is none that it could know of.
        is_over = effect.who in ghost.giving_back and effect.who in dict(ghost.stopped)
        if asked.action == "PUT lease acquire" and effect.who not in dict(ghost.ends) and not is_over:
            lease_id = asked.header("x-ms-proposed-lease-id")
            ghost = ghost._replace(leases=with_pair(ghost.leases, effect.who, lease_id))
        is_recorded = _is_named(op, after.meta(LINEAGE) or "")
        return ghost._replace(recorded=ghost.recorded | {op}) if is_recorded else ghost

    def see_foreign(self, ghost: Ghost, before: Services, after: Services) -> Ghost:
        """Note what is forgotten: what an update that has ended had recorded, or a create that was deleted."""
        kept = "" if (blob := self.find(after)) is None else blob.meta(LINEAGE) or ""
        known = {self._ops[who] for who, ended in ghost.ends if ended.status == 0}
        was = "" if (found := self.find(before)) is None else found.meta(LINEAGE) or ""
        wiped = {op for op in self._ops.values() if _is_named(op, was) and not _is_named(op, kept)}
        lost = wiped & known
        if self._creates and (blob is None or blob.content == CREATED_AGAIN):
            lost |= {op for op, _ in ghost.applied}
        there = {op for op in self._ops.values() if op not in dict(ghost.applied) and self._is_there(op, after)}
        ghost = ghost._replace(recorded=ghost.recorded | there, is_alone=False)
        return ghost._replace(forgotten=ghost.forgotten | lost, wiped=ghost.wiped | wiped)

    def see_told(self, ghost: Ghost, who: str, event: tuple[Any, ...], now: float) -> Ghost:
        if event[0] == "wrote":
            if event[1] != dict(ghost.made).get(self._ops[who]):
                raise Violation(f"{who} says that it has made a version that another has made")
            return ghost
        kind, op, text = event
        assert kind == "disk"
        # The change stands behind the version, until its run knows how it ended.
        changes = [line.split()[1:] for line in (dict(ghost.disk).get(op), text) if line]
        if self._others.get(who) == "changes" and len(changes) > 1 and all(changes) and changes[0] != changes[1]:
            raise Violation(f"{who} sends another change under the key of a write that is not settled")
        return ghost._replace(disk=with_pair(ghost.disk, op, text))

    def see_stop(self, ghost: Ghost, who: str, now: float) -> Ghost:
        return ghost._replace(stopped=with_pair(ghost.stopped, who, dict(ghost.stopped).get(who, now)))

    def see_end(self, ghost: Ghost, who: str, ended: Ended, services: Services, now: float) -> Ghost:
        op = self._ops[who]
        appliers = dict(ghost.applied).get(op, ())
        if who in self._others:
            self._check_other(ghost, who, ended, services)
            return ghost._replace(ends=with_pair(ghost.ends, who, ended))
        is_done = (
            op in (*ghost.forgotten, *ghost.recorded) or self._find_done(ghost, op) or self._is_there(op, services)
        )
        if ended.status == 0 and len(appliers) != 1 and not is_done:
            raise Violation(f"{who} ended 0 ({ended.outcome}), and {op} was not applied")
        if ended.status in REFUSED and self._is_denied(ghost, who, appliers):
            raise Violation(f"{who} ended {ended.status} ({ended.outcome}), and {op} was applied")
        if ended.status not in (0, 74, *REFUSED):
            raise Violation(f"{who} ended {ended.status}: {ended.outcome}")
        is_late = now > dict(ghost.stopped).get(who, now) + SETTLE_SECONDS
        if ended.status == 74 and self._knows and ghost.is_alone and not is_late:
            raise Violation(f"{who} ended 74 ({ended.outcome}), and no other program has written")
        blob = self.find(services)
        if blob is not None and blob.lease is not None and dict(ghost.leases).get(who) == blob.lease.id:
            raise Violation(f"{who} ended {ended.status}, and left its lease")
        if ended.status == 0 and op in ghost.wiped:
            ghost = ghost._replace(forgotten=ghost.forgotten | {op})
        return ghost._replace(ends=with_pair(ghost.ends, who, ended))

    def _check_other(self, ghost: Ghost, who: str, ended: Ended, services: Services) -> None:
        """Check what a process says of the op of another: that its key names another change, or how that ended."""
        op = self._ops[who]
        appliers = dict(ghost.applied).get(op, ())
        if ended.outcome == "committed" and not appliers and not self._is_there(op, services):
            raise Violation(f"{who} says of {op} that it was applied, and it was not")
        if ended.outcome == "not_committed" and who in ghost.informed and op not in ghost.forgotten:
            raise Violation(f"{who} says of {op} that it was not applied, and it was")
        if ended.outcome == "applied_before" and self._others[who] == "changes":
            raise Violation(f"{who} took the key of another change for its own")
        self._check_status(ghost, who, ended, 0, 2, 44, 45, 53, 74)

    def _check_status(self, ghost: Ghost, who: str, ended: Ended, *known: int) -> None:
        """Check the exit status of a process; one that was stopped may give up."""
        if ended.status not in known and not (ended.status == 75 and who in dict(ghost.stopped)):
            raise Violation(f"{who} ended {ended.status}: {ended.outcome}")

    def _find_done(self, ghost: Ghost, op: str) -> list[str]:
        """Return the processes that ended 0 for an op."""
        ended = (who for who, ended in ghost.ends if ended.status == 0 and who not in self._others)
        return [who for who in ended if self._ops[who] == op]

    def _is_there(self, op: str, services: Services) -> bool:
        """Return whether the content has the letter of an op all the same, so that there was nothing to apply."""
        blob = self.find(services)
        return blob is not None and op.encode() in blob.content

    def _is_denied(self, ghost: Ghost, who: str, appliers: tuple[str, ...]) -> bool:
        """Return whether a refusal denies what this process has applied, or one before it that did not say so."""
        before = self._before.get(who)
        said = dict(ghost.ends).get(before or "")
        return who in appliers or (before in appliers and (said is None or said.status != 0))

    def check_over(self, ghost: Ghost, services: Services, now: float) -> None:
        blob = self.find(services)
        lease = None if blob is None else blob.lease
        if lease is not None and lease.term == float("inf"):
            raise Violation("a lease without end is left")

    def find_truth(self, ghost: Ghost, who: str, what: str) -> Hashable:
        appliers = dict(ghost.applied).get(self._ops[who], ())
        is_applied = appliers if who in self._others else {who, self._before.get(who)} & set(appliers)
        return "applied" if is_applied else "not applied"


class AskedRules(UpdateRules):
    """What is true of what is said of an op that azguards forget, which know that they do."""

    def see_foreign(self, ghost: Ghost, before: Services, after: Services) -> Ghost:
        return ghost._replace(is_alone=False)


def op_of(name: str) -> str:
    """Return the op id that a name stands for."""
    return new_op(name.encode().ljust(12, b"-"))


def _is_named(op: str, lineage: str) -> bool:
    """Return whether a lineage has an op, among its entries or among its keys."""
    return op_of(op) in lineage or Lineage.parse(lineage).find_key(op_of(op)) is not None


def _others(blob: Blob) -> object:
    return tuple(pair for pair in blob.metadata if pair[0] != LINEAGE), blob.content_type, blob.kind


def with_pair(pairs: tuple[tuple[str, Any], ...], key: str, value: Any) -> tuple[tuple[str, Any], ...]:
    """Return pairs with another value of a key; None is without it."""
    rest = {**dict(pairs), key: value}
    return tuple(sorted((name, each) for name, each in rest.items() if each is not None))


def updater(name: str, *, op: str | None = None, after: str | None = None, **plan: Any) -> Program:
    """Return a process that adds a letter to the content, by an op of its own or under a key."""
    letter = (op or name).encode()
    key = op_of(op or name)
    other, seconds, lingers = plan.pop("other", None), plan.pop("seconds", 60.0), plan.pop("lingers", False)
    if op is not None:
        plan = {"is_keyed": True, "change": Change.of([op, other or ""], op), **plan}
    transform: Callable[[bytes], bytes] = plan.pop("transform", lambda content: content + letter)

    def main(process: Process) -> str:
        target = Target(process.account, Address(Kind.BLOB, tuple(PATH.split("/", 1))))
        settings = UpdatePlan(transform, key, **plan)
        once_told: list[Callable[[], None]] = []
        hooks = UpdateHooks(
            chance=Even(),
            new_op=lambda: new_op(process.make(12)),
            now=lambda: service.moment(process.now),
            journal=MemoryJournal(process, key, keyed=settings.is_keyed),
            once_told=once_told.append,
        )
        outcome = tell_version(
            process, update(BlobContent(target, settings.lease_id), settings, process.deadline(seconds), hooks)
        )
        if lingers:
            process.sleep(LAST_BREATH.seconds)
        for each in once_told:
            each()
        return outcome

    return Program(name, main, after=after, op=op, other=other, lingers=lingers, own=letter.decode())


def tell_version(process: Process, found: UpdateResult) -> str:
    """Tell the version that an update says that it has made, if it says so, and return how it ended."""
    if found.outcome == "committed" and found.committed.etag is not None:
        process.tell("wrote", found.committed.etag)
    return found.outcome


def asker(name: str, op: str, after: str) -> Program:
    """Return a process that asks how an op ended, as ``--status`` does."""

    def main(process: Process) -> str:
        target = Target(process.account, Address(Kind.BLOB, tuple(PATH.split("/", 1))))
        return find_status(BlobContent(target, None), op_of(op), process.deadline(30), is_keyed=True).outcome

    return Program(name, main, after=after, op=op, other="asks")


def stored(content: bytes = b"s", path: str = PATH, *, conceals: bool = False) -> Services:
    """Return services with one blob, which an azguard has written that has ended."""
    metadata = (LINEAGE, f"{op_of('first')}.-"), ("owner", "them")
    return {"blob": BlobService(conceals=conceals).write(path, 0.0, content=content, metadata=metadata)}


_KEEPS = {"writes, and keeps the metadata": FOREIGN["writes, and keeps the metadata"]}
# A network that sends a write twice, and a program that drops the lineage before azguard looks, are one too many: the
# refusal of the second copy then looks like that of the only one. docs/guarantees.md says so.
ONCE = tuple(each for each in faults.USUAL if each is not Fault.TWICE)
_FORGET = ("wipes the metadata", "writes, and keeps the metadata")
_REPLACES = {"writes other content, and keeps the metadata": foreign.change_blob(content=b"g")}


def _add_to_own(content: bytes) -> bytes:
    """Add the letter of A to what no other program has written."""
    if content.endswith(b"f"):
        raise TransformFailed("it is of another program")
    return content + b"A"


_SAME: dict[str, Any] = {"transform": lambda content: content if b"K" in content else content + b"K"}


def scenarios() -> Iterator[Scenario]:
    """Yield the scenarios of updates of one blob."""
    deep: dict[str, Any] = {"deep": Bound(faults=2, foreign=1, switches=1), "is_symmetric": True}
    # With two faults the turns are bounded; with one the next scenario has all of them.
    taken = Bound(faults=1, foreign=1, switches=0)
    both = updater("A"), updater("B")
    yield _scenario("updates, lineage", *both, bound=taken, alphabet=ONCE, slow_seconds=0.0, **deep)
    own: dict[str, Any] = {"is_symmetric": True, "has_own_clocks": True}
    yield _scenario(
        "updates, lineage, in turns",
        *both,
        alphabet=ONCE,
        slow_seconds=0.0,
        is_symmetric=True,
    )
    kept: dict[str, Any] = {"deep": Bound(faults=2, foreign=1, switches=0), **own}
    yield _scenario("updates, lineage kept", updater("A"), updater("B"), foreign=_KEEPS, **kept)
    lease: dict[str, Any] = {"guard_by_lease": True}
    yield _scenario(
        "updates, lease",
        updater("A", **lease),
        updater("B", **lease),
        bound=Bound(faults=1),
        slow_seconds=0.0,
        stopped=STOPPED_ALONE,
        is_symmetric=True,
        deep=Bound(faults=1, foreign=1, switches=1),
    )
    bare: dict[str, Any] = {"stamps": False}
    unknown: dict[str, Any] = {"knows": False}
    both = updater("A", **bare), updater("B", **bare)
    yield _scenario("updates, no lineage", *both, alphabet=ONCE, slow_seconds=0.0, **unknown, **deep)
    most: dict[str, Any] = {"bound": Bound(faults=2, foreign=1)}
    yield _scenario("update, lineage", updater("A"), alphabet=ONCE, **most)
    yield _scenario("update, lease", updater("A", **lease), alphabet=faults.OF_TIME)
    yield _scenario("update, no lineage", updater("A", **bare), alphabet=ONCE, **most, **unknown)
    twice: dict[str, Any] = {"alphabet": (Fault.TWICE,), "foreign": {}, **unknown}
    yield _scenario("update, no lineage, sent twice", updater("A", **bare), **twice)
    yield _scenario(
        "update, lease, sent twice",
        updater("A", **lease),
        alphabet=(Fault.TWICE,),
        bound=Bound(faults=1, foreign=2),
        short=Bound(faults=1, foreign=2),
    )
    # Refused after a stop, because the lease had ended; then copies of both requests come late.
    yield _scenario(
        "update, lease, copied",
        updater("A", **lease),
        foreign={},
        alphabet=(Fault.COPIED,),
        bound=Bound(faults=2),
        short=Bound(faults=2),
        stopped=Bound(faults=2, stops=1),
    )
    # Refused, and then leased again on a version of which nothing can be made.
    yield _scenario(
        "update, lease, on what is refused",
        updater("A", transform=_add_to_own, **lease),
        services=stored(),
        foreign={name: FOREIGN[name] for name in ("breaks the lease", "writes, and drops the metadata")},
        bound=Bound(foreign=2),
        short=Bound(foreign=2),
        alphabet=ONCE,
    )
    late = updater("A", seconds=0.01, **lease)
    yield _scenario("update, lease, given up", late, alphabet=ONCE, foreign={})
    hurried = updater("A", seconds=0.01)
    yield _scenario("update, given up", hurried, alphabet=ONCE, bound=Bound(faults=2, foreign=1))
    held: BlobService = stored(conceals=True)["blob"]
    yield _scenario(
        "update, caller's lease",
        updater("A", lease_id=_LEASE),
        services={"blob": held.with_lease(PATH, service.Lease(_LEASE, 60.0, 60.0))},
        bound=Bound(faults=1, foreign=2),
        short=Bound(faults=1, foreign=1),
        alphabet=ONCE,
    )
    killed: dict[str, Any] = {
        "bound": Bound(faults=1, foreign=1, kills=1),
        "short": Bound(faults=1, kills=1),
        "deep": Bound(faults=2, foreign=1, kills=1),
        "has_own_clocks": True,
    }
    yield _scenario("op-id twice", updater("A", op="K"), updater("B", op="K", after="A"), alphabet=ONCE, **killed)
    yield _scenario(
        "op-id, killed at its end",
        updater("A", op="K", lingers=True),
        updater("B", op="K", after="A"),
        alphabet=ONCE,
        foreign={**{name: FOREIGN[name] for name in _FORGET}, **TRIMS},
        **{**killed, "short": Bound(foreign=1, kills=1), "deep": Bound(faults=1, foreign=2, kills=1)},
    )
    same = updater("A", op="K", **_SAME), updater("B", op="K", after="A", **_SAME)
    yield _scenario("op-id unchanged", *same, services=stored(), alphabet=ONCE, **killed)
    yield _scenario(
        "op-id, nothing to change",
        *same,
        services=stored(b"sK"),
        alphabet=ONCE,
        foreign=_REPLACES,
        bound=Bound(faults=1, foreign=1, kills=1),
        short=Bound(foreign=1),
    )
    yield _scenario(
        "op-id of another change",
        updater("A", op="K"),
        updater("B", op="K", after="A", other="changes"),
        asker("C", "K", after="B"),
        alphabet=ONCE,
        **killed,
    )
    asked = updater("A", op="K"), asker("C", "K", after="A")
    forgets: dict[str, Any] = {"foreign": TRIMS, "short": Bound(foreign=1)}
    trimmed = _scenario("op-id, asked after many updates", *asked, alphabet=ONCE, **{**killed, **forgets})
    yield replace(trimmed, rules=AskedRules(asked))
    at_once = updater("A", op="K"), updater("B", op="K")
    yield _scenario("op-id at once", *at_once, foreign=_KEEPS, is_symmetric=True)
    empty = {"blob": BlobService(conceals=True)}
    made = updater("A", create=b""), updater("B", create=b"")
    most = {"services": empty, "alphabet": ONCE, "deep": Bound(faults=2, foreign=1, switches=0), **own}
    yield _scenario("creates", *made, creates=True, knows=False, **most)


#: A lease that the caller of an update holds.
_LEASE = "0ea5e000-0000-4000-8000-000000000000"
_BOUND = Bound(faults=1, foreign=1)
_SHORT = Bound(faults=1)


def _scenario(
    name: str,
    *programs: Program,
    services: Services | None = None,
    bound: Bound = _BOUND,
    short: Bound = _SHORT,
    creates: bool = False,
    knows: bool = True,
    **more: Any,
) -> Scenario:
    return Scenario(
        name=name,
        programs=programs,
        services=services or stored(conceals=True),
        rules=UpdateRules(programs, creates=creates, knows=knows),
        bound=bound,
        short=short,
        foreign=more.pop("foreign", FOREIGN),
        beyond=BEYOND,
        **more,
    )
