"""``azguard lock``: hold, check, release."""

from typing import Annotated

import typer

from azguard.cli import completers, context, hold_options, lock_names, options, signals
from azguard.cli.groups import group
from azguard.cli.hold_options import HoldOptions

_OwnLock = Annotated[
    str | None,
    typer.Argument(
        metavar="[ADDRESS]", help="The lock; by default, all that this job holds.", autocompletion=completers.locks
    ),
]

app = group("Locks that are held beyond one command: hold, check, release.")


@app.command(spec=options.remote("the lease of the lock is what guards it"))
def hold(ctx: typer.Context, address: lock_names.Lock, given: HoldOptions) -> None:
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
    env = context.of(ctx)
    with signals.until_committed():
        done = hold_options.hold(env, address, given)
    env.out.show(done)


@app.command(spec=options.remote("lock check only looks"))
def check(ctx: typer.Context, address: _OwnLock = None, lock_container: options.LockContainer = None) -> None:
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
    from azguard.locks import checking

    env = context.of(ctx)
    found = hold_options.find_known(env, address, lock_container)
    checked = [checking.check(each, env.deadline.fresh()) for each in found]
    if len(checked) == 1:
        env.out.show(checked[0], alone="seconds_left")
    else:
        env.out.show(checked)


@app.command(spec=options.remote("only the lease of this job is released, by its id"))
def release(
    ctx: typer.Context,
    address: _OwnLock = None,
    lease_id: Annotated[
        str | None,
        typer.Option("--lease-id", metavar="ID", help="Release the lock with this lease, wherever it was taken."),
    ] = None,
    env_file: hold_options.EnvFile = None,
    lock_container: options.LockContainer = None,
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
    env = context.of(ctx)
    found = hold_options.find_known(env, address, lock_container, lease_id)
    done = hold_options.release(env, found, env_file)
    env.out.show(done[0] if len(done) == 1 else done)
