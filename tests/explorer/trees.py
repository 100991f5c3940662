"""A folder of two files, put into a container and run again, and what is under a prefix, deleted."""

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.blobs.trees import BlobTree
from azguard.guards.requested import RequestedConditions
from azguard.guards.resolve import Conditions, resolve
from azguard.resources.pool import StoppableClock
from azguard.trees.deletes import Deleting, TreeDelete
from azguard.trees.names import Patterns
from azguard.trees.runs import CREATED, DELETED, Control, Failures, TreeSummary
from azguard.trees.uploads import TreeUpload
from tests.explorer import foreign
from tests.explorer.blob_service import Blob, BlobService
from tests.explorer.foreign import PATH
from tests.explorer.player import Ended, Process, Program
from tests.explorer.scenario import (
    STOPPED,
    STOPPED_BESIDE,
    Bound,
    Effect,
    Foreign,
    Rules,
    Scenario,
    Services,
    Violation,
)
from tests.explorer.updates import ONCE, REFUSED, with_pair
from tests.explorer.world import UNKNOWN

_FOLDER = Path(__file__).parents[1] / "data" / "tree"
_PATHS = tuple(f"site/{each.name}" for each in sorted(_FOLDER.iterdir()))


class Ghost(NamedTuple):
    """What the rules remember."""

    #: Who has applied a write of each blob.
    applied: tuple[tuple[str, tuple[str, ...]], ...] = ()
    #: How each file of each process ended: its outcome, and the exit status of an error.
    items: tuple[tuple[str, tuple[str, int]], ...] = ()
    #: Blobs that other programs have changed.
    touched: frozenset[str] = frozenset()


class TreeRules(Rules):
    """Each file ends as it is said, no other version goes than was listed, and a second run knows the first."""

    def __init__(self, *, deletes: bool, is_again: bool) -> None:
        self._deletes = deletes
        #: Whether the second run is the first one again, of which it recognizes what was written.
        self._is_again = is_again

    def begin(self) -> Ghost:
        return Ghost()

    def see_effect(self, ghost: Ghost, effect: Effect) -> Ghost:
        path = effect.asked.path
        before: Blob | None = effect.before["blob"].blobs.get(path)
        after: Blob | None = effect.after["blob"].blobs.get(path)
        if not self._deletes and before is not None:
            raise Violation(f"{effect.who} replaced {path}, which it had not read")
        if self._deletes and effect.asked.header("if-match") != getattr(before, "etag", None):
            raise Violation(f"{effect.who} deleted another version of {path} than was listed")
        if after is not None and after.content != path[-1:].encode():
            raise Violation(f"{effect.who} wrote other content to {path} than its file has")
        appliers = dict(ghost.applied).get(path, ())
        if appliers and path not in ghost.touched:
            raise Violation(f"{path} was applied twice")
        said = dict(ghost.items).get(f"{effect.who} {path}", ("", 0))
        if said[1] in REFUSED and said[1]:
            raise Violation(f"{effect.who} ended {said[1]} for {path}, and it was applied afterwards")
        return ghost._replace(applied=with_pair(ghost.applied, path, (*appliers, effect.who)))

    def see_foreign(self, ghost: Ghost, before: Services, after: Services) -> Ghost:
        return ghost._replace(touched=ghost.touched | {PATH})

    def see_told(self, ghost: Ghost, who: str, event: tuple[Any, ...], now: float) -> Ghost:
        _, address, outcome, status = event
        path = address.partition(":")[2]
        if outcome in (CREATED, DELETED) and not dict(ghost.applied).get(path):
            raise Violation(f"{who} says {outcome} of {path}, and it was not applied")
        if status in REFUSED and self._is_own(ghost, who, path) and path not in ghost.touched:
            raise Violation(f"{who} ended {status} for {path}, and it was applied")
        if status not in (0, 74, *REFUSED):
            raise Violation(f"{who} ended {status} for {path}: {outcome}")
        return ghost._replace(items=with_pair(ghost.items, f"{who} {path}", (outcome, status)))

    def _is_own(self, ghost: Ghost, who: str, path: str) -> bool:
        """Return whether this process has applied a write, or the run before that it is again."""
        appliers = dict(ghost.applied).get(path, ())
        return bool(appliers) if self._is_again and not self._deletes else who in appliers

    def see_end(self, ghost: Ghost, who: str, ended: Ended, services: Services, now: float) -> Ghost:
        if ended.status not in (0, 20, 42, 53):
            raise Violation(f"{who} ended {ended.status}: {ended.outcome}")
        items = {name: item for name, item in ghost.items if name.startswith(f"{who} ")}
        is_well = all(status == 0 for _, status in items.values())
        if (ended.status == 0) is not is_well and ended.status != 53:
            raise Violation(f"{who} ended {ended.status}, and its files: {sorted(items.items())}")
        if ended.status == 0 and not self._deletes and len(items) < len(_PATHS):
            raise Violation(f"{who} ended 0, and has written only {sorted(items)}")
        return ghost

    def check_over(self, ghost: Ghost, services: Services, now: float) -> None:
        """Nothing is left of a tree but its files."""

    def find_truth(self, ghost: Ghost, who: str, what: str) -> Hashable:
        return "applied" if self._is_own(ghost, who, what.partition(":")[2]) else "not applied"


class _Reads:
    """What a scope knows that has read nothing."""

    def resolve_conditions(
        self, operation: Any, asked: RequestedConditions, target: Target, copy: object = None
    ) -> Conditions:
        return resolve(operation, asked, target)

    def record(self, *done: object) -> None:
        """Remember nothing."""

    record_deleted = record


@dataclass
class _Run:
    """A run of the jobs of a tree, one after the other: a thread is no process of the explorer."""

    process: Process

    def run(self, tree: TreeUpload | TreeDelete) -> str:
        process = self.process
        control = Control(process.deadline(30), clock=StoppableClock(process.clock))
        failures, counts = Failures(), Counter[str]()
        for phase in tree.phases(control):
            for job in phase:
                done = job.run()
                status = 0 if done.error is None else done.error.exit_code
                process.tell("doubts" if status == UNKNOWN else "item", done.address, done.outcome, status)
                failures.note(done)
                counts[done.outcome] += 1
            TreeSummary.of(tree.address, counts).check(failures)
        return "done"


def _store(process: Process) -> BlobTree:
    return BlobTree(root=Target(process.account, Address(Kind.CONTAINER, ("site",))), prefix="")


def _put(process: Process, scope: str) -> str:
    reads: Any = _Reads()
    tree = TreeUpload(
        store=_store(process),
        reads=reads,
        asked=RequestedConditions(),
        scope=scope,
        folder=_FOLDER,
        patterns=Patterns(),
    )
    return _Run(process).run(tree)


def _delete(process: Process, scope: str) -> str:
    reads: Any = _Reads()
    deleting = Deleting(store=_store(process), reads=reads, asked=RequestedConditions(last_writer_wins=True))
    return _Run(process).run(TreeDelete(deleting=deleting, patterns=Patterns()))


def _delete_other(services: Services, now: float) -> Services | None:
    blobs: BlobService = services["blob"]
    other = _PATHS[-1]
    return {**services, "blob": blobs.delete(other)} if other in blobs.blobs else None


_NAMES = ("writes, and keeps the metadata", "deletes the blob")
_FOREIGN: dict[str, Foreign] = {**{name: foreign.FOREIGN[name] for name in _NAMES}, "creates the blob": foreign.create}
_BEYOND: dict[str, Foreign] = {**_FOREIGN, "deletes the other blob": _delete_other}
_KILLED = Bound(faults=1, foreign=1, kills=1)
_DEEP = Bound(faults=2, foreign=1, kills=1)
_BESIDE = Bound(faults=1, foreign=1)


def scenarios() -> Iterator[Scenario]:
    """Yield the scenarios of trees of two files."""
    nothing, both = BlobService(page=1), BlobService(page=1)
    for path in _PATHS:
        both = both.write(path, 0.0, content=path[-1:].encode())
    for name, run, blobs in (("put", _put, nothing), ("delete", _delete, both)):
        first = Program("A", partial(_call, run, "s"))
        rules = [TreeRules(deletes=run is _delete, is_again=each) for each in (False, True)]
        again = Program("B", partial(_call, run, "s"), after="A")
        beside = Program("B", partial(_call, run, "t"))
        deep = Bound(faults=2, foreign=1, kills=1)
        yield _scenario(
            f"tree {name}, again", first, again, blobs, rules[True], Bound(faults=1, foreign=1, kills=1), deep
        )
        yield _scenario(
            f"trees {name}", first, beside, blobs, rules[False], Bound(faults=1), Bound(faults=1, foreign=1)
        )


def _call(run: Any, scope: str, process: Process) -> str:
    ended: str = run(process, scope)
    return ended


def _scenario(
    name: str, first: Program, second: Program, blobs: BlobService, rules: TreeRules, bound: Bound, deep: Bound
) -> Scenario:
    return Scenario(
        name=name,
        programs=(first, second),
        services={"blob": blobs},
        rules=rules,
        bound=bound,
        short=Bound(faults=1),
        stopped=STOPPED if second.after else STOPPED_BESIDE,
        deep=deep,
        foreign=_FOREIGN,
        alphabet=ONCE,
        beyond=_BEYOND,
        # Which scope each has makes no difference.
        is_symmetric=second.after is None,
        has_own_clocks=True,
    )
