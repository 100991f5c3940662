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
from azguard.blobs.update_content import BlobContent
from azguard.requests.lineage import new_op
from azguard.updates.local_runs import WriteJournal
from azguard.updates.plan import UpdateHooks, UpdatePlan
from azguard.updates.resource import Change
from azguard.updates.update import update
from tests.explorer import faults, service
from tests.explorer.blob_service import Blob, BlobService
from tests.explorer.faults import Fault
from tests.explorer.player import Ended, Process, Program
from tests.explorer.world import Bound, Effect, Foreign, Scenario, Services, Violation

PATH = "site/a"
#: What a program writes that has deleted the blob.
CREATED_AGAIN = b"n"
LINEAGE = "azguardlineage"
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
    #: The exit status of each process that ended, and what it said.
    ends: tuple[tuple[str, Ended], ...] = ()
    #: What is on the disk of the one machine whose files matter.
    disk: tuple[tuple[str, str], ...] = ()


class UpdateRules:
    """Exit 0 is applied exactly once, a refusal never, and nothing is overwritten that was not read."""

    def __init__(self, programs: tuple[Program, ...], *, creates: bool = False) -> None:
        self._ops = {each.name: each.op or each.name for each in programs}
        #: The process that ran before on the same machine.
        self._before = {each.name: each.after for each in programs if each.after is not None}
        self._creates = creates

    def begin(self) -> Ghost:
        return Ghost()

    def find_given(self, ghost: Ghost, program: Program) -> tuple[tuple[str, str], ...]:
        return ghost.disk

    def find(self, services: Services) -> Blob | None:
        """Return what is updated, as a blob."""
        found: Blob | None = services["blob"].blobs.get(PATH)
        return found

    def see_effect(self, ghost: Ghost, effect: Effect) -> Ghost:
        before, after = self.find(effect.before), self.find(effect.after)
        if after is None:
            raise Violation(f"{effect.who} deleted the blob")
        old, op = b"" if before is None else before.content, self._ops[effect.who]
        if before is not None and _others(before) != _others(after):
            raise Violation(f"{effect.who} changed metadata or headers that it was not to change")
        if after.content == old and before is not None:
            return ghost
        if after.content != old + op.encode():
            raise Violation(f"{effect.who} wrote over a version that it had not read")
        appliers = (*dict(ghost.applied).get(op, ()), effect.who)
        if len(appliers) > 1 and op not in ghost.forgotten:
            raise Violation(f"{op} was applied twice")
        for who, ended in ghost.ends:
            if ended.status in REFUSED and who == effect.who:
                raise Violation(f"{who} ended {ended.status} ({ended.outcome}), and {op} was applied afterwards")
        return ghost._replace(applied=with_pair(ghost.applied, op, appliers))

    def see_foreign(self, ghost: Ghost, before: Services, after: Services) -> Ghost:
        """Note what is forgotten: what an update that has ended had recorded, or a create that was deleted."""
        kept = "" if (blob := self.find(after)) is None else blob.meta(LINEAGE) or ""
        known = {self._ops[who] for who, ended in ghost.ends if ended.status == 0}
        if self._creates and (blob is None or blob.content == CREATED_AGAIN):
            known |= {op for op, _ in ghost.applied}
        lost = {op for op in known if op_of(op) not in kept}
        return ghost._replace(forgotten=ghost.forgotten | lost)

    def see_told(self, ghost: Ghost, who: str, event: tuple[Any, ...], now: float) -> Ghost:
        kind, op, text = event
        assert kind == "disk"
        return ghost._replace(disk=with_pair(ghost.disk, op, text))

    def see_kill(self, ghost: Ghost, who: str) -> Ghost:
        return ghost

    def see_end(self, ghost: Ghost, who: str, ended: Ended, services: Services) -> Ghost:
        op = self._ops[who]
        appliers = dict(ghost.applied).get(op, ())
        if ended.status == 0 and len(appliers) != 1 and op not in ghost.forgotten and not self._is_there(op, services):
            raise Violation(f"{who} ended 0 ({ended.outcome}), and {op} was not applied")
        if ended.status in REFUSED and self._is_denied(ghost, who, appliers):
            raise Violation(f"{who} ended {ended.status} ({ended.outcome}), and {op} was applied")
        if ended.status not in (0, 74, *REFUSED):
            raise Violation(f"{who} ended {ended.status}: {ended.outcome}")
        return ghost._replace(ends=with_pair(ghost.ends, who, ended))

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

    def find_truth(self, ghost: Ghost, who: str) -> Hashable:
        appliers = dict(ghost.applied).get(self._ops[who], ())
        return "applied" if {who, self._before.get(who)} & set(appliers) else "not applied"


def op_of(name: str) -> str:
    """Return the op id that a name stands for."""
    return new_op(name.encode().ljust(12, b"-"))


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
    if op is not None:
        plan = {"is_keyed": True, "change": Change.of([op], op), **plan}
    transform: Callable[[bytes], bytes] = plan.pop("transform", lambda content: content + letter)

    def main(process: Process) -> str:
        target = Target(process.account, Address(Kind.BLOB, tuple(PATH.split("/", 1))))
        settings = UpdatePlan(transform, key, **plan)
        hooks = UpdateHooks(
            chance=Even(),
            new_op=lambda: new_op(process.make(12)),
            now=lambda: service.moment(process.now),
            journal=MemoryJournal(process, key, keyed=settings.is_keyed),
        )
        return update(BlobContent(target, settings.lease_id), settings, process.deadline(60), hooks).outcome

    return Program(name, main, after=after, op=op)


def stored(content: bytes = b"s", path: str = PATH) -> Services:
    """Return services with one blob, which an azguard has written that has ended."""
    metadata = (LINEAGE, f"{op_of('first')}.-"), ("owner", "them")
    return {"blob": BlobService().write(path, 0.0, content=content, metadata=metadata)}


def _change_blob(**changes: Any) -> Foreign:
    """Return a write that drops the metadata, unless it says which."""

    def act(services: Services, now: float) -> Services | None:
        blobs: BlobService = services["blob"]
        if (blob := blobs.blobs.get(PATH)) is None or service.is_locked(blob.lease, now):
            return None
        made = {name: value(blob) if callable(value) else value for name, value in changes.items()}
        return {**services, "blob": blobs.write(PATH, now, **made)}

    return act


def _take_back(blob: Blob) -> tuple[tuple[str, str], ...]:
    """Return the metadata without the last entry of the lineage."""
    rest = (blob.meta(LINEAGE) or "").partition(",")[2]
    others = tuple(pair for pair in blob.metadata if pair[0] != LINEAGE)
    return tuple(sorted((*others, (LINEAGE, rest)))) if rest else others


def _delete(services: Services, now: float) -> Services | None:
    blobs: BlobService = services["blob"]
    blob = blobs.blobs.get(PATH)
    if blob is None or service.is_locked(blob.lease, now):
        return None
    return {**services, "blob": blobs.delete(PATH)}


def _recreate(services: Services, now: float) -> Services | None:
    deleted = _delete(services, now)
    if deleted is None:
        return None
    return {**services, "blob": deleted["blob"].write(PATH, now, content=CREATED_AGAIN)}


def _break(services: Services, now: float) -> Services | None:
    blobs: BlobService = services["blob"]
    blob = blobs.blobs.get(PATH)
    if blob is None or blob.lease is None or not service.is_locked(blob.lease, now):
        return None
    return {**services, "blob": blobs.with_lease(PATH, replace(blob.lease, broken=now))}


FOREIGN: dict[str, Foreign] = {
    "writes, and drops the metadata": _change_blob(content=lambda blob: blob.content + b"f", metadata=()),
    "writes, and keeps the metadata": _change_blob(content=lambda blob: blob.content + b"f"),
    "writes other content and metadata that it had read before": _change_blob(content=b"g", metadata=_take_back),
    "wipes the metadata": _change_blob(metadata=()),
    "deletes the blob": _delete,
    "deletes the blob and creates it again": _recreate,
    "breaks the lease": _break,
}
_KEEPS = {"writes, and keeps the metadata": FOREIGN["writes, and keeps the metadata"]}
# A network that sends a write twice, and a program that drops the lineage before azguard looks, are one too many: the
# refusal of the second copy then looks like that of the only one. docs/guarantees.md says so.
ONCE = tuple(each for each in faults.USUAL if each is not Fault.TWICE)
_SAME: dict[str, Any] = {"transform": lambda content: content if b"K" in content else content + b"K"}


def scenarios() -> Iterator[Scenario]:
    """Yield the scenarios of updates of one blob."""
    yield _scenario("updates, lineage", updater("A"), updater("B"), alphabet=ONCE, slow_seconds=0.0)
    yield _scenario("updates, lineage kept", updater("A"), updater("B"), foreign=_KEEPS, judges_doubts=False)
    lease: dict[str, Any] = {"guard_by_lease": True}
    yield _scenario(
        "updates, lease",
        updater("A", **lease),
        updater("B", **lease),
        bound=Bound(faults=1),
        slow_seconds=0.0,
    )
    bare: dict[str, Any] = {"stamps": False}
    both = updater("A", **bare), updater("B", **bare)
    yield _scenario("updates, no lineage", *both, alphabet=ONCE, slow_seconds=0.0)
    most: dict[str, Any] = {"bound": Bound(faults=2, foreign=1)}
    yield _scenario("update, lineage", updater("A"), alphabet=ONCE, **most)
    yield _scenario("update, lease", updater("A", **lease), alphabet=faults.OF_TIME)
    yield _scenario("update, no lineage", updater("A", **bare), alphabet=ONCE, **most)
    held: BlobService = stored()["blob"]
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
    }
    yield _scenario("op-id twice", updater("A", op="K"), updater("B", op="K", after="A"), alphabet=ONCE, **killed)
    unchanged = updater("B", op="K", after="A", **_SAME)
    yield _scenario("op-id unchanged", updater("A", op="K", **_SAME), unchanged, alphabet=ONCE, **killed)
    yield _scenario("op-id at once", updater("A", op="K"), updater("B", op="K"), foreign=_KEEPS, judges_doubts=False)
    empty = {"blob": BlobService()}
    made = updater("A", create=b""), updater("B", create=b"")
    yield _scenario("creates", *made, services=empty, alphabet=ONCE, creates=True)


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
    **more: Any,
) -> Scenario:
    return Scenario(
        name=name,
        programs=programs,
        services=services or stored(),
        rules=UpdateRules(programs, creates=creates),
        bound=bound,
        short=short,
        foreign=more.pop("foreign", FOREIGN),
        **more,
    )
