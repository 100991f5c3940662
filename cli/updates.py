"""From safe-update's options to a plan for the core, and from its end to a result."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from azguard.accounts.target import Target
from azguard.address import Kind
from azguard.cli import ending, update_options
from azguard.cli.context import Environment
from azguard.cli.update_options import UpdateOptions
from azguard.cli.update_resume import keeper
from azguard.errors import UsageError
from azguard.requests.deadline import PATIENCE_SECONDS, Deadline
from azguard.updates import result
from azguard.updates import update as updates
from azguard.updates.journal import WriteJournal
from azguard.updates.plan import UpdateHooks, UpdatePlan, UpdateResult
from azguard.updates.resource import UpdatableResource
from azguard.updates.result import UpdateReport, UpdateStatus

# How long an update is tried for, unless --timeout says otherwise.
_SECONDS = 60.0
# The exit status that stands for the outcome of an op.
_STATUSES = {"committed": 0, "not_committed": 44, "unknown": 74}


@dataclass(frozen=True)
class Update:
    """One update, planned."""

    env: Environment
    target: Target
    resource: UpdatableResource
    plan: UpdatePlan
    deadline: Deadline
    tools: UpdateHooks
    metadata: bool
    #: Whether a command of the user's is given the content.
    shows_content: bool

    def finish(self, ended: UpdateResult) -> UpdateReport:
        """Remember the version that was written and return the report."""
        self._remember(ended)
        return UpdateReport.of(self.target, self.plan.op, ended, has_length=self._has_length)

    @property
    def _has_length(self) -> bool:
        return self.target.kind is Kind.BLOB and not self.metadata

    def _remember(self, ended: UpdateResult) -> None:
        if ended.content is None:
            return  # an earlier run of this key wrote it: nothing was read or written now
        if self.metadata:
            # The content is as it was: a scope that has read the version before has read this one too.
            self.env.reads.follow(self.target, ended.base, ended.landed.etag, ended.lineage)
            return
        if ended.outcome == "unchanged" and not self.shows_content:
            return  # the edits saw the content, and nothing else did
        self.env.reads.record_content(self.target, ended.landed, ended.content, ended.lineage)


def planned(env: Environment, address: str, asked: UpdateOptions) -> Update:
    """Return the update that the options describe.

    Raises:
        UsageError: they contradict each other, or one is malformed.
    """
    target = env.locate(address, writable=True)
    asked.check(target.kind)
    deadline = env.patience(asked.timeout, _SECONDS)
    ending.warn(target, deadline.seconds, env.warn_once)
    lease_id, change = env.reads.lease_id(target, asked.lease_id), update_options.changes(env, target.kind, asked)
    plan = UpdatePlan(
        transform=lambda content: change(target, deadline, content),
        op=update_options.op(target, asked.op_id),
        create=update_options.create(target, asked),
        accept=update_options.accept(target, asked),
        guard_by_lease=asked.guard == "lease",
        stamps=not asked.no_lineage,
        lease_id=lease_id,
        fence=asked.fence,
        ledger=asked.by_ledger,
        wait_lease=asked.wait_lease,
        max_attempts=asked.max_attempts,
        reach_seconds=PATIENCE_SECONDS if asked.timeout is None else None,
    )
    tell = _story(env, deadline)
    keep, past = keeper(env, target, plan), WriteJournal(env.folders.attempts, plan.op, keyed=asked.op_id is not None)
    tools = UpdateHooks(turn=lambda: _turn(env, target, deadline, tell), tell=tell, keep=keep, attempts=past)
    resource = update_options.resource(target, asked, plan.op, lease_id)
    return Update(env, target, resource, plan, deadline, tools, asked.metadata, bool(asked.command))


def show_preview(env: Environment, address: str, asked: UpdateOptions) -> None:
    """Print the diff of what an update would do: as text, or inside the result if a format was asked for."""
    from azguard.documents import diffs

    update = planned(env, address, asked)
    found = updates.preview(update.resource, update.plan, env.deadline)
    diff = diffs.compare(found.before or b"", found.after, update.target.address.short)
    outcome = "unchanged" if found.before == found.after else "dry_run"
    if env.shared.get("output") or env.out.query:
        env.show({"address": str(update.target.address), "etag": found.etag, "outcome": outcome, "diff": diff})
    elif diff:
        sys.stdout.write(diff if diff.endswith("\n") else diff + "\n")
    else:
        env.out.info(f"{update.target} would not change")


def status(env: Environment, address: str, asked: UpdateOptions) -> tuple[UpdateStatus, int]:
    """Return the outcome of an op, and the exit status that says so."""
    if asked.edits or asked.command:
        raise UsageError("--status changes nothing", hint="leave the edits and the command out")
    target = env.locate(address)
    asked.check(target.kind)
    op = update_options.op(target, asked.op_id)
    found = result.find_status(update_options.resource(target, asked, op), op, env.deadline)
    return found, _STATUSES[found.outcome]


def _story(env: Environment, deadline: Deadline) -> Callable[[str], None]:
    """Return what tells the story of an update for ``--verbose``: a line for each event, with the time elapsed."""
    return lambda text: env.out.verbose(f"{deadline.elapsed:7.3f} s  {text}")


def _turn(
    env: Environment, target: Target, deadline: Deadline, tell: Callable[[str], None]
) -> AbstractContextManager[Any]:
    from azguard.updates.local_queue import LocalQueue

    return LocalQueue(env.folders.queues, f"{target.endpoint} {target.address}", deadline, tell)
