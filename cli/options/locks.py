"""From the options of the lock commands to a plan for the core."""

import os
import random
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, ClassVar

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.cli import completers, context, redaction
from azguard.cli.context import Environment
from azguard.cli.input.addresses import FILES, locks
from azguard.cli.options import common, leases
from azguard.cli.options.guarded_runs import GuardedRunOptions
from azguard.cli.options.types import TEXT, whole
from azguard.cli.parsing.rows import flag, option
from azguard.cli.rules.engine import excludes, only_for
from azguard.leases.actions import DEFAULT_SECONDS
from azguard.leases.owner_records import ProcessLeases
from azguard.leases.owners import Owner
from azguard.locks.environment import is_under_lock
from azguard.locks.guarded_run import GuardedCommand
from azguard.locks.lock_blobs import ANSWER_SECONDS, AcquireSettings, LockRequest
from azguard.locks.run import LockPlan
from azguard.processes import child
from azguard.requests.deadline import Deadline
from azguard.wire import listeners

if TYPE_CHECKING:
    from azguard.locks.terraform import StateGuard


# As large as the ids of CI runs, and what other tools can read as a number.
_HIGHEST_SEQUENCE = 2**63 - 1


@dataclass(frozen=True)
class LockOptions:
    """What lock run and lock hold say of the lock."""

    slots: Annotated[
        int, option("--slots", "N", "Let N jobs hold it at a time; all give the same N.", whole(1, 1000))
    ] = 1
    fair: Annotated[bool, flag("--fair/--no-fair", "Wait in the order of arrival.")] = True
    sequence: Annotated[
        int | None,
        option(
            "--sequence", "N", "Refuse to run (exit 42) once a higher N has had the lock.", whole(0, _HIGHEST_SEQUENCE)
        ),
    ] = None
    shared: Annotated[
        bool, flag("--shared", "Hold it as a reader, beside others; a run without --shared is alone.")
    ] = False
    lease_duration: leases.LeaseDuration = DEFAULT_SECONDS
    no_create: Annotated[bool, flag("--no-create", "Do not create a lock blob that is missing.")] = False
    lock_container: common.LockContainer = None
    reason: common.Reason = None
    log: Annotated[bool, flag("--log/--no-log", "Add a line to the lock's history.")] = True

    RULES: ClassVar = (
        excludes("--shared", "--slots", "readers have no number, and writers are alone"),
        excludes("--shared", "--sequence", "of readers beside each other, none is the newest"),
        excludes("--shared", "--no-fair", "the queue is what lets a writer in between readers"),
        excludes("--sequence", "--slots", "of runs beside each other, none is the newest"),
        only_for("--slots --shared", "blob", "it takes blobs beside the lock", "lock a name instead"),
    )

    def request(self, target: Target) -> LockRequest:
        """Return which lock is asked for."""
        return LockRequest(target, self.slots, self.sequence, self.shared)

    def settings(self, env: Environment, owner: Owner) -> AcquireSettings:
        """Return how the lock is acquired."""
        found = acquire_settings(env, owner, self.lease_duration, create=not self.no_create)
        return replace(found, is_fair=self.fair, keeps_log=self.log)


@dataclass(frozen=True)
class RunOptions:
    """The options of lock run."""

    run: GuardedRunOptions = field(default_factory=GuardedRunOptions)
    lock: LockOptions = field(default_factory=LockOptions)
    terraform: Annotated[
        str | None,
        option(
            "--terraform",
            "ADDRESS",
            "Wait for this Terraform state; unlock it if the run dies.",
            TEXT,
            completer=completers.blobs,
        ),
    ] = None
    publish_command: Annotated[
        bool,
        flag("--publish-command", "Record the arguments too, for all readers; those named like a secret are masked."),
    ] = False


def plan_run(env: Environment, addresses: Sequence[str], command: Sequence[str], given: RunOptions) -> LockPlan:
    """Return the plan that the options describe.

    Raises:
        UsageError: the options contradict each other, or one is malformed.
        CommandNotFound, NotExecutable: there is no such command.
    """
    run, seconds = given.run, given.lock.lease_duration
    run.check_grace(seconds, "the lease's term", "which renewals need")
    targets = locks(env, addresses, given.lock.lock_container, also=FILES)
    requests = [given.lock.request(target) for target in targets]
    child.check(command, env.environ)
    for each in requests:
        context.warn_of_end(each.target, run.wait_seconds + seconds, env.out.warn_once)
    return LockPlan(
        locks=requests,
        command=GuardedCommand(
            words=command,
            environ=env.environ,
            grace=run.grace,
            on_lost=run.on_lost,
            say=env.out.say,
            address=str(targets[0].address) if len(targets) == 1 else None,
            heartbeat=run.heartbeat,
            is_nested=is_under_lock(env.environ),
            busy_status=run.conflict_exit_code,
            lost_status=run.lost_exit_code,
        ),
        settings=given.lock.settings(env, _owner(env, command, given)),
        wait=run.wait_seconds,
        on_held=lambda held: env.out.note(f"holding {held.target}{_describe_fence(held.fence)}"),
        state=None if given.terraform is None else _state_guard(env, given.terraform, run.wait_seconds),
    )


def _state_guard(env: Environment, text: str, wait: float) -> "StateGuard":
    """Return the guard that waits for a Terraform state, and releases the lock that a dead run left on the state."""
    from azguard.locks.terraform import RunNotes, StateGuard

    return StateGuard(
        target=env.locate(text, Kind.BLOB, writable=True),
        notes=RunNotes(env.folders.runs),
        wait_seconds=wait,
        say=env.out.say,
        uniform=random.SystemRandom().uniform,
    )


def _describe_fence(fence: int | None) -> str:
    return "" if fence is None else f" (fence {fence})"


def acquire_settings(env: Environment, owner: Owner, seconds: int, *, create: bool) -> AcquireSettings:
    """Return how a lock is acquired; ``seconds`` is the term of its lease."""
    from azguard.locks import job_locks  # a help text must not wait for it
    from azguard.locks.hold_records import JobScope

    def refuse_own(request: LockRequest, wait: float) -> None:
        job_locks.refuse_own(request, wait, env.holds, JobScope(env.scope, env.job), env.deadline.fresh())

    return AcquireSettings(
        owner=owner,
        seconds=seconds,
        create=create,
        patience=Deadline(env.deadline.seconds, answer_seconds=ANSWER_SECONDS),
        records=env.lease_records,
        processes=ProcessLeases(env.folders.process_leases),
        say=env.out.say,
        tell=listeners.tell_listeners,
        uniform=random.SystemRandom().uniform,
        refuse_own=refuse_own,
    )


def _owner(env: Environment, command: Sequence[str], given: RunOptions) -> Owner:
    """Return the record of a run: the program's name, and its arguments only if that was asked for."""
    masked = redaction.mask_arguments(command)
    published = shlex.join(masked) if given.publish_command else os.path.basename(command[0])
    return leases.this_process(env, published, given.lock.reason)
