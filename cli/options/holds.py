"""From the options of ``lock hold``, ``check`` and ``release`` to the core."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Annotated, ClassVar

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.cli import context
from azguard.cli.context import Environment
from azguard.cli.input import addresses, values
from azguard.cli.options import guarded_runs, leases, steps
from azguard.cli.options.locks import LockOptions
from azguard.cli.options.steps import StepVariables
from azguard.cli.options.types import DURATION, ValueType, whole
from azguard.cli.parsing.rows import flag, option
from azguard.cli.rules.engine import at_most_one, checked, excludes, needs, only_for
from azguard.errors import AzguardError, GaveUp, LockLost, UsageError
from azguard.guards.requested import parse_guid
from azguard.locks import background_holder, environment, job_locks, queue, readers
from azguard.locks.background_holder import HoldPlan
from azguard.locks.hold_records import HoldRecord
from azguard.locks.job_locks import JobLock
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


def _read_busy_status(text: str, name: str) -> int:
    if text.strip("0") == "" and text:
        raise UsageError(f"{name} 0: the steps that follow would run without the lock", hint="-E 1 to 255")
    return values.whole(text, name, 1, 255)


def _read_until(text: str, name: str) -> HeldUntil:
    values.not_empty(text, name)
    try:
        return HeldUntil(seconds=values.duration(text, name))
    except UsageError:
        pass  # It is a time, or nothing.
    try:
        return HeldUntil(moment=parsedate_to_datetime(parse_http_date(text, "until")))
    except UsageError:
        raise UsageError(
            f"{name}: {text!r} is neither a duration nor a time", hint="--until 4h, --until 2026-12-01T06:00Z"
        ) from None


BUSY_STATUS = ValueType("integer", _read_busy_status, bounds=(1, 255))
UNTIL = ValueType("time or duration", _read_until)


@dataclass(frozen=True)
class HoldOptions:
    """The options of lock hold, as typed."""

    wait: guarded_runs.Wait = guarded_runs.WAIT_SECONDS
    no_wait: guarded_runs.NoWait = False
    conflict_exit_code: Annotated[
        int, option("--conflict-exit-code, -E", "N", "Exit with N if others hold it.", BUSY_STATUS)
    ] = GaveUp.exit_code
    for_: Annotated[
        float | None, option("--for", "DURATION", "Release it after this time; by default, never.", DURATION)
    ] = None
    while_pid: Annotated[
        int | None, option("--while-pid", "PID", "Release it when this process has ended.", whole(1, _LARGEST_PID))
    ] = None
    env_file: EnvFile = None
    lock: LockOptions = field(default_factory=LockOptions)
    sticky: Annotated[bool, flag("--sticky", "Hold it without a process, until it is released.")] = False
    until: Annotated[
        HeldUntil | None,
        option("--until", "TIME|DURATION", "After this time the next one may take the lock.", UNTIL),
    ] = None

    RULES: ClassVar = (
        at_most_one("--wait --no-wait"),
        checked("ADDRESS", "no file, which lock run alone holds", "addresses.lock"),
        checked("--while-pid", "a process that runs here", "holds.find_watched"),
        checked("--sticky", "this job does not hold the lock already", "holds.hold"),
        needs("--until", "--sticky", hint="--for 2h, or add --sticky"),
        excludes(
            "--sticky",
            "--for --while-pid --lease-duration --slots --shared",
            "there is no process",
            "leave out --sticky, or say --until",
        ),
        needs("--sticky", "--reason", "waiters are told it", "--reason 'incident 4711'"),
        only_for("--sticky", "blob", "it takes blobs beside the lock", "lock a name instead"),
    )

    def find_watched(self) -> KnownProcess | None:
        """Return the process of --while-pid."""
        if self.while_pid is None:
            return None
        found = KnownProcess.find(self.while_pid)
        if found is None:
            raise UsageError(
                f"--while-pid {self.while_pid}: no such process runs here", hint="in a shell its own pid is $$"
            )
        return found


def hold(env: Environment, name: str, given: HoldOptions) -> "HoldResult":
    """Hold a lock, and tell later steps.

    Raises:
        GaveUp: others hold it, and the time for waiting is over.
        Locked: this job holds it, and its environment does not say so.
    """
    target = addresses.lock(env, name, given.lock.lock_container, also=_HELD)
    plan = _plan(env, target, given)
    sticky = StickyHold(plan, given.until or HeldUntil()) if given.sticky else None
    variables = StepVariables.of(given.env_file, env.environ)
    around = job_locks.find_held_around(plan.request.target, env.environ, plan.holds)
    if around is not None and (sticky is None or not around.is_sticky):
        if queue.is_reader_of(str(around.target.address), plan.request.target):
            readers.check_reads(plan.request)
        job_locks.confirm(around, plan.request, plan.settings)
        if sticky is not None:
            raise UsageError(f"this job holds {around.target} already", hint="release it first: azguard lock release")
        return _describe(env, around, (), "already_held")
    context.warn_of_end(plan.request.target, plan.wait + (plan.lasts or given.lock.lease_duration), env.out.warn_once)
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
        raise error.but(message=words, exit_status=given.conflict_exit_code) from error
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
        target = addresses.lock(env, str(name), lock_container, also=addresses.FILES)
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
    records = env.lease_records
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


def _plan(env: Environment, target: Target, given: HoldOptions) -> HoldPlan:
    settings = given.lock.settings(env, leases.this_process(env, f"azguard {env.command}", given.lock.reason))
    return HoldPlan(
        request=given.lock.request(target),
        settings=replace(settings, keeps_log=given.lock.log and target.kind is Kind.BLOB),
        wait=0.0 if given.no_wait else given.wait,
        holds=steps.holds_of(env),
        own=steps.own_of(env),
        lasts=given.for_,
        watched=given.find_watched(),
        env_file=None if given.env_file is None else os.path.abspath(given.env_file),
    )


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
