"""``azguard lock``: run, show, list, break.

What only an operator's commands need is imported there: a run of a command under a lock shall begin at once.
"""

from typing import Annotated

import typer

from azguard.address import Kind
from azguard.cli import completers, context, lock_options, options
from azguard.cli.groups import group
from azguard.conditions import operations
from azguard.locks import run as core

_Lock = Annotated[
    str,
    typer.Argument(
        metavar="ADDRESS",
        help="The lock, e.g. deploy-prod (which is blob:locks/deploy-prod), blob:site/state or table:Orders.",
        autocompletion=completers.locks,
    ),
]

app = group("Locks: run a command while holding one; see and break them.")


@app.command(spec=options.remote("the lease of the lock is what guards it"))
def run(
    ctx: typer.Context,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="ADDRESS... -- CMD [ARG...]",
            help="The locks: names, blobs or tables; and the command.",
            autocompletion=completers.locks,
        ),
    ],
    wait: Annotated[
        str | None, typer.Option("--wait", metavar="DURATION", help="Wait this long for the locks; by default, 60s.")
    ] = None,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Do not wait.")] = False,
    conflict_exit_code: Annotated[
        str | None,
        typer.Option(
            "--conflict-exit-code", "-E", metavar="N", help="Exit with N if others hold a lock; by default, 75."
        ),
    ] = None,
    slots: Annotated[
        str | None,
        typer.Option("--slots", metavar="N", help="Let N jobs hold it at a time; all give the same N."),
    ] = None,
    lease_duration: options.LeaseDuration = None,
    grace: Annotated[
        str | None,
        typer.Option("--grace", metavar="DURATION", help="Wait between TERM and KILL; by default, 5s."),
    ] = None,
    on_lost: Annotated[
        str,
        typer.Option("--on-lost", metavar="term|kill|continue", help="Choose how the command ends if a lock is lost."),
    ] = "term",
    heartbeat_file: Annotated[
        str | None,
        typer.Option("--heartbeat-file", metavar="FILE", help="Keep this file as long as the locks are held."),
    ] = None,
    no_create: Annotated[bool, typer.Option("--no-create", help="Do not create a lock blob that is missing.")] = False,
    lock_container: options.LockContainer = None,
    reason: options.Reason = None,
    publish_command: Annotated[
        bool,
        typer.Option(
            "--publish-command",
            help="Record the arguments too; all readers see them.",
        ),
    ] = False,
) -> None:
    """Run a command while holding locks, and exit with its status.

    A lock is a lease on a blob. A missing blob is created. A bare NAME is blob:locks/NAME. azguard renews the lease
    while the command runs, and releases it when the command ends. If the lock is lost (another broke it, or the
    network is down for too long), the command and all that it started get TERM, and KILL after --grace. Then the exit
    status is 77. azguard notices a lost lock within 5 s. kill -9 of azguard, or of its process lock-guardian, ends
    the command too.

    azguard passes TERM, INT and HUP on to the command. After the command has ended, all that it left running gets
    TERM, and KILL after --grace. Then azguard releases the lock.

    All who can read the lock see its holder: user, host, pid, name of the program, --reason, CI run.

    The command gets AZGUARD_LOCK, AZGUARD_LEASE_ID and AZGUARD_FENCE in its environment. Each lock has a line. The
    fence is a number that grows with each holder. azguard blob put --fence "$AZGUARD_FENCE" is refused by the storage
    if a later holder has written. Inside the command, lock run of the same lock starts at once.

    Not guaranteed: a lease stops only those who ask for it. A process that was paused or disconnected can still
    finish a write to a place that does not check the fence. azguard does not end what runs as another user. Outside
    Linux it does not end what left the process group of the command. If azguard and lock-guardian are killed at the
    same moment, Linux kills the command, but not what it started. What the command leaves running when it ends by
    itself keeps running, without the lock.

    Examples:
        azguard lock run deploy-prod --wait 10m -- ./deploy.sh
        azguard lock run table:Orders --no-wait -- ./deploy.sh
        azguard lock run api --slots 3 -- ./deploy.sh

    Topics: locks, fences
    """
    env = context.of(ctx)
    addresses, command = lock_options.split(words, env.argv)
    given = lock_options.LockOptions(
        wait=wait,
        no_wait=no_wait,
        conflict_exit_code=conflict_exit_code,
        slots=slots,
        lease_duration=lease_duration,
        grace=grace,
        on_lost=on_lost,
        no_create=no_create,
        heartbeat_file=heartbeat_file,
        lock_container=lock_container,
        reason=reason,
        publish_command=publish_command,
    )
    plan, busy = lock_options.plan(env, addresses, command, given)
    raise typer.Exit(core.run(plan, busy))


@app.command(spec=options.remote("lock show only looks"))
def show(
    ctx: typer.Context,
    address: _Lock,
    lock_container: options.LockContainer = None,
) -> None:
    """Show who holds a lock, since when, and with which fence; if it is free, who held it last (last_owner).

    A lock with several slots has one entry for each slot. After a crash the holder is shown until its lease ends, at
    most 60 seconds later by default. Ages are counted by the clock of the service.

    Examples:
        azguard lock show deploy-prod
        azguard lock show deploy-prod --query state -o tsv

    Topics: locks
    """
    from azguard.locks import listing

    env = context.of(ctx)
    found = listing.show(lock_options.lock(env, address, lock_container), env.deadline)
    env.out.show(found[0] if len(found) == 1 else found)


@app.command(name="list", spec=options.remote("lock list only looks"))
def list_(
    ctx: typer.Context,
    container: Annotated[
        str | None,
        typer.Argument(
            metavar="CONTAINER",
            help="The container of the locks; by default, locks.",
            autocompletion=completers.containers,
        ),
    ] = None,
    prefix: options.Prefix = None,
    held: Annotated[bool, typer.Option("--held", help="List only locks that are held now.")] = False,
) -> None:
    """List the locks in a container: the blobs that were ever locked, and what is leased now, by Terraform for example.

    Examples:
        azguard lock list
        azguard lock list locks --held
    """
    from azguard.locks import listing

    env = context.of(ctx)
    where = lock_options.choose_container(env.environ, None) if container is None else container
    found = listing.list_locks(env.locate(where, Kind.CONTAINER), env.deadline, prefix)
    env.out.show_each(each for each in found if each.held or not held)


@app.command(name="break", spec=options.operation(operations.BLOB_LEASE_BREAK))
def break_(
    ctx: typer.Context,
    address: _Lock,
    lease_break_period: options.BreakPeriod = None,
    yes: options.Yes = False,
    if_owner: options.IfOwner = None,
    if_older_than: options.IfOlderThan = None,
    wait: options.WaitUntilFree = False,
    lock_container: options.LockContainer = None,
) -> None:
    """Break a lock, after showing who holds it; its command is ended and exits with 77.

    By default the lease runs to its end. So the command of the holder has ended before the next command starts. With
    --lease-break-period 0 both run at the same time until the holder notices. In a script, confirm with --yes,
    --if-owner, --if-older-than or --if-match. If another holder took the lock since it was shown, nothing is broken
    (exit 42).

    Examples:
        azguard lock break deploy-prod --yes
        azguard lock break deploy-prod --yes --lease-break-period 0

    Topics: locks
    """
    from azguard.cli import breaking, lease_options, signals

    env = context.of(ctx)
    target, period = lock_options.lock(env, address, lock_container), breaking.period_of(lease_break_period)
    done = breaking.broken(env, target, period, breaking.safeguards(if_owner, if_older_than), yes=yes)
    if wait:
        with signals.heed():
            lease_options.wait_free(env, target, breaking.after(env, done))
    env.out.show(done)
