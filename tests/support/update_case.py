"""One update of a resource in memory: its faults, the others who write in between, and the truth."""

import random
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from azguard.errors import AzguardError
from azguard.requests.lineage import Lineage, new_op
from azguard.updates.resource import UpdateHooks, UpdatePlan, UpdateResult
from azguard.updates.update import update
from tests.support.fake_resource import FakeResource, Fault, Store

OP = new_op(bytes(12))
OTHER = new_op(b"\1" * 12)
ABORT = new_op(b"\2" * 12)


def plus_one(content: bytes) -> bytes:
    return b"%d" % (int(content or b"0") + 1)


@dataclass
class Case:
    """One update of a store, with faults in order and others who act before its requests."""

    store: Store
    faults: tuple[Fault, ...] = ()
    #: By number of the request, from 1.
    others: dict[int, Callable[[], object]] = field(default_factory=dict)
    timeout: float = 60.0
    #: Reads get no answer from this request on.
    silent_from: int | None = None
    queue: Callable[[], AbstractContextManager[Any]] = nullcontext
    kept: list[tuple[str, bytes | None]] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)
    seen: int = 0

    def __post_init__(self) -> None:
        self.resource = FakeResource(self.store, iter(self.faults), self._before)

    def end(self, transform: Callable[[bytes], bytes] = plus_one, **plan: Any) -> UpdateResult:
        tools = UpdateHooks(
            chance=random.Random(1),
            new_op=lambda: ABORT,
            new_lease_id=lambda: "our lease",
            queue=self.queue,
            tell=self.told.append,
            warn=self.warned.append,
            keep=self._keep,
        )
        return update(self.resource, UpdatePlan(transform, OP, **plan), self.store.clock.deadline(self.timeout), tools)

    @property
    def pauses(self) -> list[float]:
        """Return how long it paused after a conflict or without an answer, in seconds."""
        return [float(told.split()[-2]) for told in self.told if told.endswith(" s") and " in " in told]

    def _keep(self, error: AzguardError, content: bytes | None) -> AzguardError:
        self.kept.append((error.kind, content))
        return error

    def outcome(self, transform: Callable[[bytes], bytes] = plus_one, **plan: Any) -> object:
        """Return the outcome and the ETag, or the kind of error."""
        try:
            ended = self.end(transform, **plan)
        except AzguardError as error:
            return error.kind
        except KeyboardInterrupt:
            return "interrupted"
        return ended.outcome, ended.committed.etag

    def _before(self, name: str) -> None:
        self.seen += 1
        self.resource.silent = self.silent_from is not None and self.seen >= self.silent_from
        self.others.get(self.seen, lambda: None)()

    def truth(self) -> tuple[bytes | None, int]:
        """Return what is there once everything has arrived, and how many times our op was applied."""
        while self.store.held:
            self.store.deliver()
        return (self.store.current.content if self.store.current else None), len(self.store.commits_of(OP))


def stored(content: bytes = b"1", **settings: Any) -> Store:
    return Store.holding(content, **settings)


def others_update(store: Store, op: str = OTHER) -> Callable[[], object]:
    """Return another azguard's update of the store."""

    def act() -> None:
        now = store.current
        assert now is not None
        lineage = Lineage.parse(now.lineage).after(op, now.etag)
        store.put(now.etag, plus_one(now.content), op, str(lineage), None)

    return act
