"""``safe-update --where``: one update of many entities, and how it went with each."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from azguard.accounts.target import Target
from azguard.address import Kind
from azguard.cli import hints, update_options, values
from azguard.cli.context import Environment
from azguard.cli.update_options import Change, UpdateOptions
from azguard.errors import Partial, UsageError
from azguard.requests.deadline import PATIENCE_SECONDS, Deadline
from azguard.tables import filters, update_many
from azguard.tables.calls import Stored
from azguard.tables.ledger import LedgeredEntity
from azguard.tables.update_many import Done, Matched, StoppableClock, Update
from azguard.tables.updating import VersionedEntity
from azguard.updates.journal import WriteJournal
from azguard.updates.plan import UpdateHooks, UpdatePlan
from azguard.updates.result import RAW_OP
from azguard.updates.update import preview

# How long one entity's update is tried for, unless --timeout says otherwise.
_SECONDS = 60.0


@dataclass(frozen=True)
class Summary:
    """How many entities matched, and how their updates ended. ``skipped`` did not match any more, or were deleted."""

    address: str
    matched: int
    updated: int
    unchanged: int
    skipped: int
    failed: int
    unknown: int


@dataclass(frozen=True)
class Where:
    """The entities of a table that match a filter, and what is to be done to each."""

    env: Environment
    table: Target
    filter: str
    asked: UpdateOptions
    change: Change

    def run(self, jobs: int) -> None:
        """Update them; print a line for each that failed, and a summary.

        Raises:
            Partial: some failed, or it is unknown what became of them.
        """
        clock, counts = StoppableClock(), Counter[str]()
        try:
            for done in update_many.update_each(self._updates(clock), jobs, clock.stop):
                counts[done.outcome] += 1
                if done.error is not None and self.env.out.format != "none":
                    self.env.out.json_lines([_line(done)])
        except BaseException:
            if counts:  # Else there is nothing to tell: the query itself failed.
                self.env.show(self._summary(counts))
            raise
        self.env.show(self._summary(counts))
        wrong = counts[update_many.FAILED] + counts[update_many.UNKNOWN]
        if wrong:
            raise Partial(
                f"{wrong} of {counts.total()} entities of {self.table}: {counts[update_many.FAILED]} not updated, "
                f"{counts[update_many.UNKNOWN]} unknown",
                address=str(self.table.address),
                hint="run it again: with --op-id KEY an update is never applied twice",
            )

    def show(self) -> None:
        """Print the difference that each update would make."""
        from azguard.documents import diffs

        for target, found in update_many.matches(self.table, self.filter, self.env.deadline):
            seen = preview(*self._planned(target, found, self.env.deadline))
            diff = diffs.compare(seen.before or b"", seen.after, target.address.short)
            sys.stdout.write(diff if not diff or diff.endswith("\n") else diff + "\n")

    def _updates(self, clock: StoppableClock) -> Iterator[Update]:
        for target, found in update_many.matches(self.table, self.filter, self.env.deadline):
            deadline = self._deadline(clock)
            resource, plan, _ = self._planned(target, found, deadline)
            past = WriteJournal(self.env.folders.attempts, plan.op, keyed=self.asked.op_id is not None)
            yield Update(resource, plan, deadline, UpdateHooks(attempts=past, tell=self._story(target, deadline)))

    def _deadline(self, clock: StoppableClock) -> Deadline:
        usual = self.env.patience(self.asked.timeout, _SECONDS)
        return Deadline(usual.seconds, clock, usual.sleep, usual.answer_seconds)

    def _planned(
        self, target: Target, found: Stored, deadline: Deadline
    ) -> tuple[VersionedEntity, UpdatePlan, Deadline]:
        op, matched = update_options.op(target, self.asked.op_id), Matched(found, self.filter)
        resource = VersionedEntity(target, matched)
        if self.asked.by_ledger:
            resource = LedgeredEntity(target, matched, op=op, asks=self.asked.op_id is not None)
        plan = UpdatePlan(
            transform=matched.only(lambda content: self.change(target, deadline, content)),
            op=op,
            stamps=not self.asked.no_lineage,
            ledger=self.asked.by_ledger,
            max_attempts=self.asked.max_attempts,
            reach_seconds=PATIENCE_SECONDS if self.asked.timeout is None else None,
        )
        return resource, plan, deadline

    def _story(self, target: Target, deadline: Deadline) -> Callable[[str], None]:
        return lambda text: self.env.out.verbose(f"{deadline.elapsed:7.3f} s  {target}: {text}")

    def _summary(self, counts: Mapping[str, int]) -> Summary:
        return Summary(
            address=str(self.table.address),
            matched=sum(counts.values()),
            updated=counts[update_many.UPDATED],
            unchanged=counts[update_many.UNCHANGED],
            skipped=counts[update_many.SKIPPED],
            failed=counts[update_many.FAILED],
            unknown=counts[update_many.UNKNOWN],
        )


def planned(env: Environment, address: str, where: str, parameters: Sequence[str], asked: UpdateOptions) -> Where:
    """Return the updates that the options describe.

    Raises:
        UsageError: they contradict each other, or do not apply to many entities.
    """
    table = env.locate(address, writable=True)
    if table.kind is not Kind.TABLE:
        raise UsageError(f"--where is about the entities of a table, not {table.address}", hint="table:NAME")
    values.not_empty(where, "--where")
    if asked.create is not None:
        raise UsageError("--create and --where do not go together", hint="name the entity: entity:TABLE/PARTITION/ROW")
    if asked.op_id is not None and asked.op_id.startswith(RAW_OP):
        raise UsageError("--op-id: an id that azguard made is of one entity", hint="choose a key of your own")
    asked.check(Kind.ENTITY)
    change = update_options.changes(env, Kind.ENTITY, asked)
    return Where(env, table, filters.bind_parameters(where, parameters, "where") or "", asked, change)


def jobs(text: str | None) -> int:
    """Return how many entities are updated at a time."""
    return update_many.DEFAULT_JOBS if text is None else values.whole(text, "--jobs", 1, update_many.MOST_JOBS)


def _line(done: Done) -> Mapping[str, object]:
    assert done.error is not None
    return {"address": done.address, "outcome": done.outcome, "error": hints.in_words(done.error).known()}
