"""One update of many entities: all that a query finds, each by itself, a few at a time.

``update_all`` runs it and counts how the updates ended, ``preview_all`` shows what it would do.

The query delivers each entity with its version, so that the first attempt needs no other read. After a conflict the
service is asked for the entity again under the same filter: if it does not match any more, it is *skipped*.

Not guaranteed: entities that begin to match while the query is under way may or may not be found.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import field, replace
from io import BytesIO
from pathlib import Path

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import NotFound, Partial, TransformFailed, Unavailable
from azguard.frozen import frozen
from azguard.requests.deadline import Deadline
from azguard.resources.pool import FAILED, UNKNOWN, Done, StoppableClock, conclude, run_phases
from azguard.tables import entities
from azguard.tables.edm import PARTITION_KEY, ROW_KEY
from azguard.tables.entities import Stored
from azguard.tables.updates import LedgeredEntity, VersionedEntity, is_row
from azguard.times import say_count
from azguard.updates import update as updates
from azguard.updates.local_runs import WriteJournal
from azguard.updates.resource import UpdateHooks, UpdatePlan, choose_op
from azguard.updates.update import Preview

UPDATED = "updated"
UNCHANGED = "unchanged"
APPLIED_BEFORE = "applied_before"
SKIPPED = "skipped"


class NoLongerMatches(TransformFailed):
    """Another writer changed the entity, so that it is not to be updated any more."""


@frozen
class _EntityUpdate:
    """One entity's update, ready to run."""

    resource: VersionedEntity
    plan: UpdatePlan
    deadline: Deadline
    tools: UpdateHooks

    def run(self) -> Done:
        address = str(self.resource.target.address)
        return conclude(address, lambda: self._run(address))

    def _run(self, address: str) -> Done:
        try:
            ended = updates.update(self.resource, self.plan, self.deadline, self.tools)
        except NoLongerMatches:
            return Done(address, SKIPPED)
        except NotFound as error:
            if error.service_code is not None:
                raise
            return Done(address, SKIPPED)  # It was deleted meanwhile.
        return Done(address, UPDATED if ended.outcome == "committed" else ended.outcome, result=ended.created_keys)


@frozen
class Summary:
    """How many entities matched, and how their updates ended."""

    address: str
    matched: int
    updated: int
    unchanged: int
    #: An earlier run of the key updated them.
    applied_before: int
    #: They did not match any more, or were deleted.
    skipped: int
    failed: int
    unknown: int
    #: The keys that an increment created in any of them, because nothing was there.
    created_keys: tuple[str, ...] = ()

    @classmethod
    def of(cls, table: Target, counts: Counter[str], created_keys: Iterable[str]) -> "Summary":
        """Return the summary of so many updates of each outcome, which created these keys."""
        return cls(
            address=str(table.address),
            matched=counts.total(),
            updated=counts[UPDATED],
            unchanged=counts[UNCHANGED],
            applied_before=counts[APPLIED_BEFORE],
            skipped=counts[SKIPPED],
            failed=counts[FAILED],
            unknown=counts[UNKNOWN],
            created_keys=tuple(created_keys),
        )


@frozen(kw_only=True)
class ManyUpdates:
    """The same update of every entity of a table that matches a filter."""

    table: Target
    where: str
    #: Makes the new content of an entity, within the deadline of its update.
    change: Callable[[Target, Deadline, bytes], bytes]
    #: The key of the caller's, of which each entity gets an op of its own; None for fresh ones.
    key: str | None
    #: What all updates have in common: each has a transform and an op of its own.
    plan: UpdatePlan
    #: How long each page of the query may take.
    query_deadline: Deadline
    #: As long as each update may take.
    patience: Deadline
    #: The folder of the journals of writes.
    journals: Path
    #: The ops whose journals are deleted once the summary is told, a line each: they may be very many.
    untold: BytesIO = field(default_factory=BytesIO)
    #: Called with each event of an update.
    tell: Callable[[Target, Deadline, str], None] = lambda target, deadline, text: None
    #: Called with what the caller has to know although an update ended well.
    warn: Callable[[str], None] = lambda text: None

    def updates(self, clock: StoppableClock) -> Iterator[_EntityUpdate]:
        """Yield the update of each entity; its deadline goes by the clock."""
        for target, found in find_matches(self.table, self.where, self.query_deadline):
            deadline = self.patience.restart_on(clock)
            resource, plan = self.prepare(target, found, deadline)
            yield _EntityUpdate(
                resource=resource,
                plan=plan,
                deadline=deadline,
                tools=self._hooks(target, plan, deadline),
            )

    def prepare(self, target: Target, found: Stored, deadline: Deadline) -> tuple[VersionedEntity, UpdatePlan]:
        """Return one entity that the query has found, and the plan of its update."""
        op = choose_op(target, self.key)
        matched = Matched(found, self.where)
        resource = VersionedEntity(target, matched)
        if self.plan.ledger:
            change = None if self.plan.change is None else self.plan.change.digest
            resource = LedgeredEntity(target, matched, op=op, asks=self.key is not None, change=change)
        transform = matched.guard(lambda content: self.change(target, deadline, content))
        return resource, replace(self.plan, transform=transform, op=op, is_keyed=self.key is not None)

    def _hooks(self, target: Target, plan: UpdatePlan, deadline: Deadline) -> UpdateHooks:
        return UpdateHooks(
            journal=WriteJournal(self.journals, plan.op, keyed=self.key is not None),
            tell=lambda text: self.tell(target, deadline, text),
            warn=self.warn,
            once_told=lambda _: self.untold.write(f"{plan.op}\n".encode()),
        )

    def forget(self) -> None:
        """Delete the records of the updates whose end is known, which the summary has told."""
        for op in self.untold.getvalue().split():
            with suppress(OSError):  # as WriteJournal.forget: if it stays, the next run settles it again
                (self.journals / op.decode()).unlink()


def update_all(
    many: ManyUpdates, jobs: int, on_update: Callable[[Done], None], on_end: Callable[[Summary], None]
) -> None:
    """Make so many updates at a time.

    ``on_update`` is called for each as it ends. ``on_end`` is called once with the summary, also after an interruption
    if one update had begun. An interruption after the last update is ignored.

    Raises:
        Partial: some failed, or their outcome is unknown.
    """
    clock = StoppableClock()
    created: dict[str, None] = {}

    def report(done: Done) -> None:
        created.update(dict.fromkeys(done.result or ()))
        on_update(done)

    ended = run_phases([many.updates(clock)], jobs, report, clock.stop)
    summary = Summary.of(many.table, ended.counts, created)
    on_end(summary)
    if ended.interruption is not None:
        raise _explain(ended.interruption, summary, many.key)
    wrong = summary.failed + summary.unknown
    if wrong:
        ends = f"{summary.failed} not updated, {summary.unknown} unknown"
        words = f"{wrong} of {say_count(summary.matched, 'entity')} of {many.table}: {ends}"
        raise _say_why(Partial(words, summary.address), summary, many.key)


def _explain(error: BaseException, summary: Summary, key: str | None) -> BaseException:
    """Return the error for a query that failed: a partial success if updates were made before."""
    if isinstance(error, Unavailable) and (summary.updated or summary.unknown):
        words = f"{summary.address} could not be queried any more: {error.message}"
        return _say_why(error.as_kind(Partial, message=words, address=summary.address), summary, key)
    return error


def _say_why(error: Partial, summary: Summary, key: str | None) -> Partial:
    """Return the error with its reason: without a key another run does not know which updates were made."""
    if key is None and (summary.updated or summary.unknown):
        return error.but(reason="updates_without_key_failed")
    return error.but(reason="some_updates_failed")


def preview_all(many: ManyUpdates) -> Iterator[tuple[Target, Preview]]:
    """Yield the outcome that each update would have now; nothing is written."""
    for target, found in find_matches(many.table, many.where, many.query_deadline):
        resource, plan = many.prepare(target, found, many.query_deadline)
        yield target, updates.preview(resource, plan, many.query_deadline)


class Matched:
    """Reads an entity that a query has found: at first as the query delivered it, then under the query's filter."""

    def __init__(self, found: Stored, where: str) -> None:
        self._found: Stored | None = found
        self._where = where
        self.matches = True

    def __call__(self, target: Target, deadline: Deadline) -> Stored:
        """Return the entity; whether it matches is known afterwards."""
        if self._found is not None:
            found = self._found
            self._found = None
            return found
        again = self._read_again(target, deadline)
        self.matches = again is not None
        return again or entities.get(target, deadline)

    def guard(self, transform: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
        """Return the transform, which then fails for an entity that does not match any more."""

        def transform_match(content: bytes) -> bytes:
            if not self.matches:
                raise NoLongerMatches("the entity does not match any more")
            return transform(content)

        return transform_match

    def _read_again(self, target: Target, deadline: Deadline) -> Stored | None:
        _, partition, row = target.address.parts
        keys = f"{PARTITION_KEY} eq {entities.quote_text(partition)} and {ROW_KEY} eq {entities.quote_text(row)}"
        mine = f"{keys} and ({self._where})"
        found = (each for page, _ in entities.walk_pages(target, deadline, mine) for each in page)
        return next(found, None)


def find_matches(table: Target, where: str, deadline: Deadline) -> Iterator[tuple[Target, Stored]]:
    """Yield the entities of a table that match a filter, in constant memory; the rows of a ledger stay out."""
    for page, _ in entities.walk_pages(table, deadline, where):
        for found in page:
            if not is_row(found.entity):
                parts = (table.address.container, found.entity[PARTITION_KEY], found.entity[ROW_KEY])
                yield Target(table.account, Address(Kind.ENTITY, parts)), found
