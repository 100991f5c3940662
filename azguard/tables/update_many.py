"""One update of many entities: all that a query finds, each by itself, a few at a time.

``update_all`` runs it and counts how the updates ended, ``preview_all`` shows what it would do.

The query delivers each entity with its version, so that the first attempt needs no other read. After a conflict the
service is asked for the entity again under the same filter: if it does not match any more, it is *skipped*.

Not guaranteed: entities that begin to match while the query is under way may or may not be found.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from azguard.accounts.target import Target
from azguard.accounts.transport import CONNECTIONS
from azguard.address import Address, Kind
from azguard.errors import AzguardError, NotFound, OutcomeUnknown, Partial, TransformFailed
from azguard.requests.deadline import Deadline
from azguard.tables import calls, ledger
from azguard.tables.calls import Stored
from azguard.tables.edm import PARTITION_KEY, ROW_KEY
from azguard.tables.ledger import LedgeredEntity
from azguard.tables.updating import VersionedEntity
from azguard.updates import update as updates
from azguard.updates.journal import WriteJournal
from azguard.updates.op_ids import choose_op
from azguard.updates.plan import UpdateHooks, UpdatePlan
from azguard.updates.update import Preview

# More threads than these would wait for each other: Python runs one at a time.
DEFAULT_JOBS, MOST_JOBS = 16, CONNECTIONS
UPDATED, UNCHANGED, SKIPPED, FAILED, UNKNOWN = "updated", "unchanged", "skipped", "failed", "unknown"
# Longer than any deadline.
_FOREVER_SECONDS = 1e9


@dataclass(frozen=True)
class Update:
    """One entity's update, ready to run."""

    resource: VersionedEntity
    plan: UpdatePlan
    deadline: Deadline
    tools: UpdateHooks


@dataclass(frozen=True)
class Done:
    """How one entity's update ended."""

    address: str
    outcome: str
    #: Why it failed or is unknown; None of one that ended well.
    error: AzguardError | None = None


@dataclass(frozen=True)
class Summary:
    """How many entities matched, and how their updates ended."""

    address: str
    matched: int
    updated: int
    unchanged: int
    #: They did not match any more, or were deleted.
    skipped: int
    failed: int
    unknown: int

    @classmethod
    def of(cls, table: Target, counts: Mapping[str, int]) -> "Summary":
        """Return the summary of so many updates of each outcome."""
        return cls(
            address=str(table.address),
            matched=sum(counts.values()),
            updated=counts[UPDATED],
            unchanged=counts[UNCHANGED],
            skipped=counts[SKIPPED],
            failed=counts[FAILED],
            unknown=counts[UNKNOWN],
        )

    def check(self, table: Target) -> None:
        """Refuse to call it done if not all updates ended well.

        Raises:
            Partial: some failed, or their outcome is unknown.
        """
        wrong = self.failed + self.unknown
        if wrong:
            raise Partial(
                f"{wrong} of {self.matched} entities of {table}: {self.failed} not updated, {self.unknown} unknown",
                address=self.address,
                reason="some_updates_failed",
            )


@dataclass(frozen=True, kw_only=True)
class ManyUpdates:
    """The same update of every entity of a table that matches a filter."""

    table: Target
    where: str
    #: Makes the new content of an entity, within the deadline of its update.
    change: Callable[[Target, Deadline, bytes], bytes]
    #: The key of the caller's, of which each entity gets an op of its own; None for fresh ones.
    key: str | None
    stamps: bool
    #: Whether each op is kept in a ledger.
    ledger: bool
    max_attempts: int | None
    #: How long, in seconds, the service may be unreachable while nothing is in doubt; None is the whole deadline.
    reach_seconds: float | None
    #: How long each page of the query may take.
    query_deadline: Deadline
    #: As long as each update may take.
    patience: Deadline
    #: The folder of the journals of writes.
    journals: Path
    #: Is told each event of an update.
    tell: Callable[[Target, Deadline, str], None] = lambda target, deadline, text: None

    def updates(self, clock: "StoppableClock") -> Iterator[Update]:
        """Yield the update of each entity; its deadline goes by the clock."""
        for target, found in matches(self.table, self.where, self.query_deadline):
            deadline = Deadline(self.patience.seconds, clock, self.patience.sleep, self.patience.answer_seconds)
            resource, plan = self.prepare(target, found, deadline)
            yield Update(resource, plan, deadline, self._hooks(target, plan, deadline))

    def prepare(self, target: Target, found: Stored, deadline: Deadline) -> tuple[VersionedEntity, UpdatePlan]:
        """Return one entity that the query has found, and the plan of its update."""
        op, matched = choose_op(target, self.key), Matched(found, self.where)
        resource = VersionedEntity(target, matched)
        if self.ledger:
            resource = LedgeredEntity(target, matched, op=op, asks=self.key is not None)
        plan = UpdatePlan(
            transform=matched.only(lambda content: self.change(target, deadline, content)),
            op=op,
            stamps=self.stamps,
            ledger=self.ledger,
            max_attempts=self.max_attempts,
            reach_seconds=self.reach_seconds,
        )
        return resource, plan

    def _hooks(self, target: Target, plan: UpdatePlan, deadline: Deadline) -> UpdateHooks:
        return UpdateHooks(
            attempts=WriteJournal(self.journals, plan.op, keyed=self.key is not None),
            tell=lambda text: self.tell(target, deadline, text),
        )


def update_all(
    many: ManyUpdates, jobs: int, on_failure: Callable[[Done], None], on_end: Callable[[Summary], None]
) -> None:
    """Make so many updates at a time.

    ``on_failure`` is told of each that failed, or whose outcome is unknown, as it ends; ``on_end`` how all ended, also
    where they are interrupted after the first.

    Raises:
        Partial: some failed, or their outcome is unknown.
    """
    clock, counts = StoppableClock(), Counter[str]()
    try:
        for done in update_each(many.updates(clock), jobs, clock.stop):
            counts[done.outcome] += 1
            if done.error is not None:
                on_failure(done)
    except BaseException:
        if counts:  # Else there is nothing to tell: the query itself failed.
            on_end(Summary.of(many.table, counts))
        raise
    summary = Summary.of(many.table, counts)
    on_end(summary)
    summary.check(many.table)


def preview_all(many: ManyUpdates) -> Iterator[tuple[Target, Preview]]:
    """Yield what each update would do now; nothing is written."""
    for target, found in matches(many.table, many.where, many.query_deadline):
        resource, plan = many.prepare(target, found, many.query_deadline)
        yield target, updates.preview(resource, plan, many.query_deadline)


class StoppableClock:
    """Time that can be made to run out: then every deadline is over that began before, and none that begins after."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._stopped = clock, threading.Event()

    def __call__(self) -> float:
        return self._clock() + (_FOREVER_SECONDS if self._stopped.is_set() else 0.0)

    def stop(self) -> None:
        """Let every deadline pass."""
        self._stopped.set()


class Matched:
    """Reads an entity that a query has found: at first as the query delivered it, then under the query's filter."""

    def __init__(self, found: Stored, where: str) -> None:
        self._found: Stored | None = found
        self._where = where
        self.matches = True

    def __call__(self, target: Target, deadline: Deadline) -> Stored:
        """Return the entity; whether it matches is known afterwards."""
        if self._found is not None:
            found, self._found = self._found, None
            return found
        again = self._again(target, deadline)
        self.matches = again is not None
        return again or calls.get(target, deadline)

    def only(self, transform: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
        """Return the transform, refused for what does not match any more."""

        def checked(content: bytes) -> bytes:
            if not self.matches:
                raise _NoLongerMatches("the entity does not match any more")
            return transform(content)

        return checked

    def _again(self, target: Target, deadline: Deadline) -> Stored | None:
        _, partition, row = target.address.parts
        mine = f"{PARTITION_KEY} eq {_quote(partition)} and {ROW_KEY} eq {_quote(row)} and ({self._where})"
        found = (each for page in calls.pages(target, deadline, mine) for each in page)
        return next(found, None)


class _NoLongerMatches(TransformFailed):
    """Another writer changed the entity, so that the update is none for it."""


def matches(table: Target, where: str, deadline: Deadline) -> Iterator[tuple[Target, Stored]]:
    """Yield the entities of a table that match a filter, in constant memory; the rows of a ledger stay out."""
    for page in calls.pages(table, deadline, where):
        for found in page:
            if not ledger.is_row(found.entity):
                parts = (table.address.container, found.entity[PARTITION_KEY], found.entity[ROW_KEY])
                yield Target(table.account, Address(Kind.ENTITY, parts)), found


def update_each(updates: Iterable[Update], jobs: int, stop: Callable[[], None]) -> Iterator[Done]:
    """Run the updates, so many at a time, and yield how each ended, in the order in which they end.

    Whatever interrupts it, Ctrl-C or an error of ``updates``: nothing new is begun, ``stop`` is called, and what is
    under way is settled and yielded before the interruption goes on.
    """
    with ThreadPoolExecutor(jobs, "update") as pool:
        running: set[Future[Done]] = set()
        try:
            for update in updates:
                running.add(pool.submit(_run_one, update))
                if len(running) == jobs:  # None waits, since its deadline has begun.
                    ended, running = wait(running, return_when=FIRST_COMPLETED)
                    yield from (each.result() for each in ended)
            while running:
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (each.result() for each in ended)
        except GeneratorExit:
            stop()
            raise
        except BaseException:
            stop()
            yield from (each.result() for each in wait(running).done)
            raise


def _run_one(update: Update) -> Done:
    address = str(update.resource.target.address)
    try:
        ended = updates.update(update.resource, update.plan, update.deadline, update.tools)
    except _NoLongerMatches:
        return Done(address, SKIPPED)
    except AzguardError as error:
        if isinstance(error, NotFound) and error.service_code is None:
            return Done(address, SKIPPED)  # It was deleted meanwhile.
        outcome = UNKNOWN if isinstance(error, OutcomeUnknown) else FAILED
        return Done(address, outcome, error.but(address=error.address or address))
    # One entity's failure must not hide the outcomes of the others; how far an unexpected one got is not known.
    except Exception as error:  # noqa: BLE001
        return Done(address, UNKNOWN, AzguardError(f"{type(error).__name__}: {error}", address=address))
    # Without an attempt it was an earlier run of the same key that wrote it.
    return Done(address, UPDATED if ended.outcome == "committed" and ended.attempts else UNCHANGED)


def _quote(text: str) -> str:
    """Return a text as a filter has it."""
    return "'" + text.replace("'", "''") + "'"
