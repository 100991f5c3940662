"""``azguard lock``: hold, check, release."""

import os
from dataclasses import field, replace
from typing import Annotated, ClassVar

from azguard.address import Kind
from azguard.cli import completers, context, signals
from azguard.cli.context import Environment
from azguard.cli.input import addresses
from azguard.cli.input.addresses import Lock
from azguard.cli.options import common, leases
from azguard.cli.options.leases import LockOptions
from azguard.cli.options.types import DURATION, GUID, TEXT, ValueType, read_duration, read_whole, require_text, whole
from azguard.cli.output import stream
from azguard.cli.parsing.rows import argument, flag, option
from azguard.cli.parsing.tree import Group
from azguard.cli.rules import checked, excludes, needs, only_for
from azguard.errors import GaveUp, UsageError
from azguard.frozen import frozen
from azguard.locks import job_locks
from azguard.locks.background_holder import HoldPlan
from azguard.locks.environment import StepVariables
from azguard.locks.hold_records import JobScope
from azguard.locks.job_locks import JobLock
from azguard.locks.steps import HeldUntil, StepHold, StepRelease
from azguard.processes.identity import KnownProcess
from azguard.times import parse_http_date, read_http_date

app = Group()
_OwnLock = Annotated[
    str | None,
    argument("[ADDRESS]", "The lock.", completer=completers.locks, otherwise="all that this job holds"),
]
#: What else than a blob is held for later steps: its lease ends by itself if the process that renews it is killed.
_HELD = (Kind.SHARE,)
_LARGEST_PID = 2**31 - 1
EnvFile = Annotated[
    str | None,
    option("--env-file", "FILE", "Append the variables for later steps to this file too.", TEXT),
]


def _read_busy_status(text: str, name: str) -> int:
    if text.strip("0") == "" and text:
        raise UsageError(f"{name} 0: the steps that follow would run without the lock", hint="-E 1 to 255")
    return read_whole(text, name, 1, 255)


def _read_until(text: str, name: str) -> HeldUntil:
    require_text(text, name)
    try:
        return HeldUntil(seconds=read_duration(text, name))
    except UsageError:
        pass  # It is a time, or nothing.
    try:
        return HeldUntil(moment=read_http_date(parse_http_date(text, "until")))
    except UsageError:
        raise UsageError(
            f"{name}: {text!r} is neither a duration nor a time", hint="--until 4h, --until 2026-12-01T06:00Z"
        ) from None


BUSY_STATUS = ValueType("integer", _read_busy_status, bounds=(1, 255))
UNTIL = ValueType("time or duration", _read_until)


@frozen
class HoldOptions(common.WaitOptions):
    """The options of lock hold, as typed."""

    conflict_exit_code: Annotated[
        int, option("--conflict-exit-code, -E", "N", "Exit with N if others hold it.", BUSY_STATUS)
    ] = GaveUp.exit_code
    for_: Annotated[
        float | None, option("--for", "DURATION", "Release it after this time.", DURATION, otherwise="never")
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
        checked("ADDRESS", "no file, which lock run alone holds", "addresses.lock"),
        checked("--while-pid", "a process that runs here", "hold.find_watched"),
        checked("--sticky", "this job does not hold the lock already", "steps.StepHold"),
        needs("--until", "--sticky", hint="--for 2h, or add --sticky"),
        excludes(
            "--sticky",
            "--for --while-pid --lease-duration --slots --shared --metrics",
            "there is no process",
            "leave out --sticky, or say --until",
        ),
        needs("--sticky", "--reason", "waiters are told it", "--reason 'incident 4711'"),
        only_for("--sticky", "blob", "it takes blobs beside the lock", "lock a name instead"),
    )

    def find_watched(self) -> KnownProcess | None:
        if self.while_pid is None:
            return None
        found = KnownProcess.find(self.while_pid)
        if found is None:
            raise UsageError(
                f"--while-pid {self.while_pid}: no such process runs here", hint="in a shell its own pid is $$"
            )
        return found


def _plan_hold(env: Environment, name: str, given: HoldOptions) -> StepHold:
    target = addresses.lock(env, name, given.lock.lock_container, also=_HELD)
    settings = given.lock.settings(env, leases.this_process(env, f"azguard {env.command}", given.lock.reason))
    plan = HoldPlan(
        request=given.lock.request(target),
        settings=replace(settings, keeps_log=given.lock.log and target.kind is Kind.BLOB),
        wait=given.wait_seconds,
        holds=env.holds,
        own=JobScope(env.scope, env.job),
        lasts=given.for_,
        watched=given.find_watched(),
        env_file=None if given.env_file is None else os.path.abspath(given.env_file),
        metrics=given.lock.metrics_file,
    )
    seconds = plan.wait + (plan.lasts or given.lock.lease_duration)
    return StepHold(
        plan=plan,
        until=(given.until or HeldUntil()) if given.sticky else None,
        variables=StepVariables.of(given.env_file, env.environ, stream.write_command),
        environ=env.environ,
        begin=lambda: context.warn_of_end(plan.request.target, seconds, env.out.warn_once),
        busy_status=given.conflict_exit_code,
    )


def _find_known(
    env: Environment, name: str | None, lock_container: str | None, lease_id: str | None = None
) -> list[JobLock]:
    """Return the lock of a name that this job holds, or held; without a name, all of them.

    Raises:
        NotFound: nothing says that this job holds it, or any.
    """
    holds, own = env.holds, JobScope(env.scope, env.job)
    if lease_id is not None:
        target = addresses.lock(env, str(name), lock_container, also=addresses.FILES)
        return [job_locks.of_lease(target, lease_id, None, holds)]
    names = [name] if name is not None else job_locks.list_addresses(env.environ, holds, own)
    targets = [addresses.lock(env, each, lock_container, also=addresses.FILES) for each in names]
    return [job_locks.find(target, env.environ, holds, own) for target in targets]


@app.command(spec=common.remote("the lease of the lock is what guards it"))
def hold(env: Environment, address: Lock, given: HoldOptions) -> None:
    """Take a lock for the steps that follow, and leave a small process that renews it.

    The command returns when the lock is held. The process, lock-holder, renews the lease. It releases the lock and ends
    when the lock is released, when --for is over, or when the process of --while-pid has ended. If it is killed, or the
    machine ends, nothing renews the lease, and it ends by itself, at most 60 s later.

    Later steps find AZGUARD_LOCK, AZGUARD_LEASE_ID and AZGUARD_FENCE in their environment: in a GitHub workflow by
    GITHUB_ENV, in Azure Pipelines by a logging command on stderr, elsewhere by --env-file FILE, which a shell reads.
    There azguard works as inside lock run: @held is this lease, and lock run of the same lock starts at once. Without
    them a lock run in the same scope would wait for its own job: it is refused at once, with exit status 49.

    With --sticky there is no process. The lease lasts until azguard lock release, or azguard lock break. Waiters see
    the --reason. After --until, by the clock of the service, the next one may take the lock. Run it again to change the
    time and the reason.

    A share is a lock too, by its own lease: share:NAME. It has no queue, no --slots, no --shared, no --sticky and no
    history. For a file there is lock run.

    Begin each later step with azguard lock check. It exits with 77 if the lock was lost. Nothing ends a step that runs
    when the lock is lost, unless it runs under lock run.

    lock-holder needs no terminal and none of the files of its step. It has the credentials in memory, and writes none.
    Its log is named in the result. The runners of GitHub and Azure Pipelines end it at the end of the job.

    Examples:
        azguard lock hold deploy-prod --wait 20m --for 2h
        azguard lock release deploy-prod
        azguard lock hold deploy-prod --sticky --reason "incident 4711" --until 4h

    Topics: locks, fences
    """
    with signals.until_committed():
        done = _plan_hold(env, address, given).take()
    env.out.show(done)


@app.command(spec=common.remote("lock check only looks"))
def check(env: Environment, address: _OwnLock = None, lock_container: common.LockContainer = None) -> None:
    """Check that this job still holds its lock, or exit with 77.

    The locks are those in AZGUARD_LOCK, and those that this scope took with lock hold, in CI in this job. azguard asks
    the service with the id of the lease. The lock counts as lost also when its process lock-holder was killed, although
    the lease has not ended yet. If this job holds no lock, the exit status is 44. If the service cannot be asked, it is
    53. -o tsv prints the seconds that are left.

    Examples:
        azguard lock check
        azguard lock check deploy-prod -o tsv

    Topics: locks
    """
    found = _find_known(env, address, lock_container)
    checked = [job_locks.check(each, env.deadline.fresh()) for each in found]
    if len(checked) == 1:
        env.out.show(checked[0], alone="seconds_left")
    else:
        env.out.show(checked)


@app.command(
    spec=common.remote("only the lease of this job is released, by its id"),
    rules=(needs("--lease-id", "ADDRESS", "it is of one lock", "name the lock too"),),
)
def release(
    env: Environment,
    address: _OwnLock = None,
    lease_id: Annotated[
        str | None,
        option("--lease-id", "ID", "Release the lock with this lease, wherever it was taken.", GUID),
    ] = None,
    env_file: EnvFile = None,
    lock_container: common.LockContainer = None,
) -> None:
    """Release a lock that this job holds, and no other's.

    Its process lock-holder is ended first. A second release does nothing, and exits with 0. If the lock was lost
    before, the exit status is 77; without a name, that is told once. If this job holds no lock, it is 44. Later steps
    do not find its variables any more.

    Examples:
        azguard lock release
        azguard lock release deploy-prod

    Topics: locks
    """
    found = _find_known(env, address, lock_container, lease_id)
    variables = StepVariables.of(env_file, env.environ, stream.write_command)
    ending = StepRelease(found, variables, env.environ, env.holds, env.lease_records)
    done = ending.make(env.deadline, env.out.info)
    env.out.show(done[0] if len(done) == 1 else done)
