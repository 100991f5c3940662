"""From the options of ``lock hold``, ``check`` and ``release`` to the core."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Annotated

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.cli import context
from azguard.cli.context import Environment
from azguard.cli.input import addresses, values
from azguard.cli.options import common, guarded_runs, leases, steps
from azguard.cli.options.locks import (
    CheckedLockOptions,
    Fair,
    KeepLog,
    LockOptions,
    NoCreate,
    SequenceNumber,
    Shared,
    Slots,
    WaitForOne,
    acquire_settings,
    check_kinds,
)
from azguard.cli.options.steps import StepVariables
from azguard.cli.parsing.rows import flag, option
from azguard.errors import AzguardError, GaveUp, LockLost, UsageError
from azguard.guards.values import parse_guid
from azguard.locks import background_holder, environment, job_locks, queue, readers
from azguard.locks.background_holder import HoldPlan
from azguard.locks.hold_records import HoldRecord
from azguard.locks.job_locks import JobLock
from azguard.locks.settings import LockRequest
from azguard.locks.sticky import HeldUntil, StickyHold
from azguard.processes.identity import KnownProcess
from azguard.times import parse_http_date

if TYPE_CHECKING:
    from azguard.locks.shown import HoldResult, ReleaseResult

#: What else than a blob is held for later steps: its lease ends by itself if the process that renews it is killed.
_HELD = (Kind.SHARE,)
_LARGEST_PID = 2**31 - 1
EnvFile = Annotated[
    str | None,
    option("--env-file", "FILE", "Append the variables for later steps to this file too."),
]


@dataclass(frozen=True)
class HoldOptions:
    """The options of lock hold, as typed."""

    wait: WaitForOne = None
    no_wait: guarded_runs.NoWait = False
    conflict_exit_code: Annotated[
        str | None,
        option("--conflict-exit-code, -E", "N", "Exit with N if others hold it; by default, 75."),
    ] = None
    for_: Annotated[str | None, option("--for", "DURATION", "Release it after this time; by default, never.")] = None
    while_pid: Annotated[str | None, option("--while-pid", "PID", "Release it when this process has ended.")] = None
    env_file: EnvFile = None
    slots: Slots = None
    shared: Shared = False
    fair: Fair = True
    sequence: SequenceNumber = None
    lease_duration: common.LeaseDuration = None
    no_create: NoCreate = False
    lock_container: common.LockContainer = None
    reason: common.Reason = None
    log: KeepLog = True
    sticky: Annotated[bool, flag("--sticky", "Hold it without a process, until it is released; needs --reason.")] = (
        False
    )
    until: Annotated[
        str | None,
        option("--until", "TIME|DURATION", "With --sticky: after this time the next one may take the lock."),
    ] = None

    def check_sticky(self) -> HeldUntil:
        """Return when a lock without a process may be taken."""
        others = (
            ("--for", self.for_),
            ("--while-pid", self.while_pid),
            ("--lease-duration", self.lease_duration),
            ("--slots", self.slots),
            ("--shared", "given" if self.shared else None),
        )
        for name, value in others:
            if value is not None:
                raise UsageError(
                    f"{name} is not for a lock without a process", hint="leave out --sticky, or say --until"
                )
        if self.reason is None:
            raise UsageError("--sticky needs --reason: who waits is told it", hint="--reason 'incident 4711'")
        return _parse_until(values.not_empty(self.until, "--until"))

    def check(self) -> CheckedLockOptions:
        """Return the checked values of the options that ``lock run`` has too.

        Raises:
            UsageError: the options contradict each other, or one is malformed.
        """
        if self.until is not None and not self.sticky:
            raise UsageError("--until is for a lock without a process", hint="--for 2h, or add --sticky")
        shared = {each.name for each in fields(self)} & {each.name for each in fields(LockOptions)}
        checked = LockOptions(**{name: getattr(self, name) for name in shared}).check()
        if not checked.busy_status:
            raise UsageError(
                "--conflict-exit-code 0: the steps that follow would run without the lock", hint="-E 1 to 255"
            )
        return checked

    def find_watched(self) -> KnownProcess | None:
        """Return the process of --while-pid."""
        if self.while_pid is None:
            return None
        pid = values.whole(self.while_pid, "--while-pid", 1, _LARGEST_PID)
        found = KnownProcess.find(pid)
        if found is None:
            raise UsageError(f"--while-pid {pid}: no such process runs here", hint="in a shell its own pid is $$")
        return found


def hold(env: Environment, name: str, given: HoldOptions) -> "HoldResult":
    """Hold a lock, and tell later steps.

    Raises:
        GaveUp: others hold it, and the time for waiting is over.
        Locked: this job holds it, and its environment does not say so.
    """
    checked = given.check()
    target = addresses.lock(env, name, given.lock_container, also=_HELD)
    asked = {"--slots": given.slots is not None, "--shared": given.shared, "--sticky": given.sticky}
    check_kinds([target], asked)
    plan = _plan(env, target, given, checked)
    sticky = StickyHold(plan, given.check_sticky()) if given.sticky else None
    variables = StepVariables.of(given.env_file, env.environ)
    around = job_locks.find_held_around(plan.request.target, env.environ, plan.holds)
    if around is not None and (sticky is None or not around.is_sticky):
        if queue.is_reader_of(str(around.target.address), plan.request.target):
            readers.check_reads(plan.request)
        job_locks.confirm(around, plan.request, plan.settings)
        if sticky is not None:
            raise UsageError(f"this job holds {around.target} already", hint="release it first: azguard lock release")
        return _describe(env, around, (), "already_held")
    context.warn_of_end(plan.request.target, checked.wait + (plan.lasts or checked.seconds), env.out.warn_once)
    if sticky is not None and (own := sticky.find_own()) is not None:
        prolonged = sticky.prolong(own)
        if prolonged is not None:
            return _describe(env, prolonged, (), "prolonged")
    plan.settings.refuse_own(plan.request, plan.wait)
    exported: list[str] = []

    def publish(held: HoldRecord) -> None:
        lines = steps.list_lines(env.environ, variables, plan.holds)
        exported.extend(variables.write(steps.add(lines, held)))

    try:
        held = background_holder.hold(plan, publish) if sticky is None else sticky.hold(publish)
    except GaveUp as error:
        words = f"{plan.request.target.address} is held by others; this job does not hold it"
        raise error.but(message=words, exit_status=checked.busy_status) from error
    return _describe(env, job_locks.of_hold(plan.request.target, held), tuple(exported), "held")


def find_known(
    env: Environment, name: str | None, lock_container: str | None, lease_id: str | None = None
) -> list[JobLock]:
    """Return the lock of a name that this job holds, or held; without a name, all of them.

    Raises:
        NotFound: nothing says that this job holds it, or any.
    """
    holds, own = steps.holds_of(env), steps.own_of(env)
    if lease_id is not None:
        parse_guid(lease_id, "lease_id")
        if name is None:
            raise UsageError("--lease-id is of one lock", hint="name the lock too")
        target = addresses.lock(env, name, lock_container, also=addresses.FILES)
        return [job_locks.of_lease(target, lease_id, None, holds)]
    names = [name] if name is not None else job_locks.list_addresses(env.environ, holds, own)
    targets = [addresses.lock(env, each, lock_container, also=addresses.FILES) for each in names]
    return [job_locks.find(target, env.environ, holds, own) for target in targets]


def release(env: Environment, locks: Iterable[JobLock], env_file: str | None) -> "list[ReleaseResult]":
    """Release locks, and tell later steps. One that fails does not keep the others from being released.

    Raises:
        LockLost: one was lost before.
    """
    variables = StepVariables.of(env_file, env.environ)
    records = leases.CacheRecords(env)
    done: list[ReleaseResult] = []
    failed: list[AzguardError] = []
    lines = steps.list_lines(env.environ, variables, steps.holds_of(env))
    for each in locks:
        try:
            done.append(job_locks.release(each, steps.holds_of(env), records, env.deadline.fresh(), env.out.info))
        except LockLost as error:
            failed.append(error)
            lines = [line for line in lines if line.lease_id != each.lease_id]
        except AzguardError as error:
            failed.append(error)
        else:
            lines = [line for line in lines if line.lease_id != each.lease_id]
    variables.write(environment.export_lines(lines))
    if failed:
        for one in done:
            env.out.info(f"{one.outcome.replace('_', ' ')}: {one.address}")
        first, *others = failed
        raise first.but(detail=(*first.detail, *(error.message for error in others)))
    return done


def _plan(env: Environment, target: Target, given: HoldOptions, checked: CheckedLockOptions) -> HoldPlan:
    owner = leases.this_process(env, f"azguard {env.command}", given.reason)
    return HoldPlan(
        request=LockRequest(target, checked.slots, checked.sequence, checked.is_shared),
        settings=replace(
            acquire_settings(env, owner, checked.seconds, create=not given.no_create),
            is_fair=given.fair,
            keeps_log=given.log and target.kind is Kind.BLOB,
        ),
        wait=checked.wait,
        holds=steps.holds_of(env),
        own=steps.own_of(env),
        lasts=None if given.for_ is None else values.duration(given.for_, "--for"),
        watched=given.find_watched(),
        env_file=None if given.env_file is None else os.path.abspath(given.env_file),
    )


def _parse_until(text: str | None) -> HeldUntil:
    if text is None:
        return HeldUntil()
    try:
        return HeldUntil(seconds=values.duration(text, "--until"))
    except UsageError:
        pass  # It is a time, or nothing.
    try:
        return HeldUntil(moment=parsedate_to_datetime(parse_http_date(text, "until")))
    except UsageError:
        raise UsageError(
            f"--until: {text!r} is neither a duration nor a time", hint="--until 4h, --until 2026-12-01T06:00Z"
        ) from None


def _describe(env: Environment, lock: JobLock, exported: tuple[str, ...], outcome: str) -> "HoldResult":
    from azguard.locks.shown import HoldResult  # which a run under a lock does not need

    hold = lock.hold
    return HoldResult(
        address=str(lock.target.address),
        state="held",
        lease_id=lock.lease_id,
        fence=lock.fence,
        duration=None if hold is None else hold.seconds or "infinite",
        since=None if hold is None else hold.since,
        until=None if hold is None else hold.until,
        pid=None if hold is None else hold.pid,
        log=None if hold is None else hold.log,
        holder_file=None if hold is None else str(steps.holds_of(env).file(hold.lease_id, "json")),
        exported=exported,
        outcome=outcome,
    )
