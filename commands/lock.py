"""``azguard lock``: run, show.

What only an operator's commands need is imported there: a run of a command under a lock shall begin at once.
"""

from typing import Annotated

import typer

from azguard.cli import completers, context, guarded_options, lock_names, lock_options, options
from azguard.cli.groups import group
from azguard.cli.lock_options import LockOptions
from azguard.locks import run as core

app = group("Locks: hold one for a command or for many steps; see and break them.")


@app.command(spec=options.remote("the lease of the lock is what guards it"))
def run(
    ctx: typer.Context,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="ADDRESS... -- CMD [ARG...]",
            help="The locks: names, blobs, tables, shares or files; and the command.",
            autocompletion=completers.locks,
        ),
    ],
    given: LockOptions,
) -> None:
    """Run a command while holding locks, and exit with its status.

    A lock is a lease on a blob. A missing blob is created. A bare NAME is blob:locks/NAME. azguard renews the lease
    while the command runs, and releases it when the command ends. If the lock is lost (another broke it, or the network
    is down for too long), the command and all that it started get TERM, and KILL after --grace. Then the exit status is
    77, or --lost-exit-code. azguard notices a lost lock within 5 s. kill -9 of azguard, or of its process
    lock-guardian, ends the command too.

    Waiters are served in the order in which they came, on all machines. Each keeps a small blob beside the lock while
    it waits. A waiter that dies loses its turn within 15 s. Without the right to list the container there is no order.

    A share or a file is a lock too, by its own lease: share:NAME, file:SHARE/PATH. It must be there. It has no queue,
    no --slots, no --shared and no history. The lease of a file has no term: if azguard is killed, the next lock run of
    the file on this machine releases it; from another machine, azguard lock break does. azguard looks at it every 5 s,
    and ends the command if that fails for --lease-duration.

    With --shared any number of runs hold the lock beside each other, and a run without --shared waits until they have
    ended. Those that come after it wait behind it.

    azguard passes TERM, INT and HUP on to the command, and waits for it. When such a command has ended, all that it
    left running gets TERM, and KILL after --grace. Then azguard releases the lock.

    All who can read the lock see its holder: user, host, pid, name of the program, --reason, CI run. After the release
    the run is added to the history of the lock, see azguard lock log; that takes 2 s at most, and never fails a run.

    The command gets AZGUARD_LOCK, AZGUARD_LEASE_ID and AZGUARD_FENCE in its environment, with one line per lock. The
    fence is a number that grows with each holder. azguard blob put --fence "$AZGUARD_FENCE" is refused by the storage
    if a later holder has written. Inside the command, lock run of the same lock starts at once.

    --terraform ADDRESS waits for the lock that Terraform or OpenTofu holds on its state, and does not take it. If the
    run dies of a signal, or with azguard, its infinite lease is released by its id: by this azguard, or by the next one
    on this machine. azguard never touches a lock of another machine or user, or any lock while another Terraform runs
    here.

    Not guaranteed: a lease stops only those who ask for it. A process that was paused or disconnected can still
    finish a write to a place that does not check the fence. azguard does not end what runs as another user. Outside
    Linux it does not end what left the process group of the command. If azguard and lock-guardian are killed at the
    same moment, Linux kills the command, but not what it started. What the command leaves running when it ends by
    itself keeps running, without the lock.

    Examples:
        azguard lock run deploy-prod --wait 10m -- ./deploy.sh
        azguard lock run table:Orders --no-wait -- ./deploy.sh
        azguard lock run prod --sequence 42 -- ./deploy.sh

    Topics: locks, fences
    """
    env = context.of(ctx)
    addresses, command = guarded_options.split(words, env.argv, needs_lock=given.terraform is None)
    raise typer.Exit(core.run(lock_options.plan(env, addresses, command, given)))


@app.command(spec=options.remote("lock show only looks"))
def show(
    ctx: typer.Context,
    address: lock_names.Lock,
    lock_container: options.LockContainer = None,
) -> None:
    """Show who holds a lock, since when, and with which fence; if it is free, who held it last (last_owner).

    last_owner has the record of an earlier holder too, where another program holds the lock. A lock with several slots
    has one entry for each slot. After a crash the holder is shown until its lease ends, at most 60 seconds later by
    default. Ages are counted by the clock of the service.

    Examples:
        azguard lock show deploy-prod
        azguard lock show deploy-prod --query state -o tsv

    Topics: locks
    """
    from azguard.locks import listing

    env = context.of(ctx)
    found = listing.show(lock_names.lock(env, address, lock_container, also=lock_names.FILES), env.deadline)
    env.out.show(found[0] if len(found) == 1 else found)
