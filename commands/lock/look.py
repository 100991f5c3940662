"""``azguard lock``: log, show, list, break."""

from dataclasses import replace
from typing import Annotated

from azguard.address import Kind
from azguard.cli import completers
from azguard.cli.context import Environment
from azguard.cli.input.addresses import FILES, Lock, choose_container, lock
from azguard.cli.options import common, leases
from azguard.cli.options.leases import BreakOptions
from azguard.cli.options.types import COUNT
from azguard.cli.output import holdings
from azguard.cli.parsing.rows import argument, flag, option
from azguard.cli.parsing.tree import Group
from azguard.wire.operations.blobs import BLOB_LEASE_BREAK

# More lines than the service takes.
_MOST = 1_000_000


app = Group()


@app.command(spec=common.remote("lock log only looks"))
def log(
    env: Environment,
    address: Lock,
    num_results: Annotated[
        int | None, option("--num-results", "N", "Show the newest N holders.", COUNT, otherwise="all")
    ] = None,
    lock_container: common.LockContainer = None,
) -> None:
    """Show who held a lock, from when to when, how that ended, and why. The newest holder is last.

    lock run and lock hold add a line when they have released or lost a lock, unless --no-log is given. It has the
    exit status of the command, and the number of the signal that ended it. lock break and lease break add who broke
    the lock, when and why (--reason). A lock whose holder was broken and added no line is shown as broken. A run that
    took a lock, had to wait for its readers and gave up is shown as gave_up: its command was not run. A holder that
    was killed adds no line. It is shown as unknown once the next one has ended. Times are by the clock of the
    service.

    The lines are in the append blob NAME!log beside the lock. The service takes 50,000. Before that azguard moves them
    to NAME!log.ETAG, and begins anew. lock log reads them all. A history that cannot be read is an error.

    Not guaranteed: the history may lack a holder. A line that cannot be written in 2 s is left out, and the run says so
    on stderr.

    Examples:
        azguard lock log deploy-prod
        azguard lock log deploy-prod --num-results 5 -o json

    Topics: locks
    """
    from azguard.locks import log as history

    count = num_results or _MOST
    found = history.read(lock(env, address, lock_container), env.deadline, count)
    for gap in found.gaps:
        env.out.warn(gap)
    env.out.show_each(found.lines[-count:])


@app.command(spec=common.remote("lock show only looks"))
def show(env: Environment, address: Lock, lock_container: common.LockContainer = None) -> None:
    """Show who holds a lock, since when, and with which fence; if it is free, who held it last (last_owner).

    last_owner has the record of an earlier holder too, where another program holds the lock. A lock with several slots
    has one entry for each slot. After a crash the holder is shown until its lease ends, at most 60 seconds later by
    default. Ages are counted by the clock of the service.

    Examples:
        azguard lock show deploy-prod
        azguard lock show deploy-prod --query state -o tsv

    Topics: locks
    """
    from azguard.locks import shown

    found = shown.show(lock(env, address, lock_container, also=FILES), env.deadline)
    env.out.show(found[0] if len(found) == 1 else found)


@app.command(
    name="list",
    spec=common.remote("lock list only looks"),
    rules=(holdings.ONE_OR_ALL,),
)
def list_(
    env: Environment,
    container: Annotated[
        str | None,
        argument("CONTAINER", "The container of the locks.", completer=completers.containers, otherwise="locks"),
    ] = None,
    account: holdings.WholeAccount = False,
    prefix: common.Prefix = None,
    held: Annotated[bool, flag("--held", "List only what is held now.")] = False,
    mine: Annotated[bool, flag("--mine", "List only what this scope holds.")] = False,
    num_results: common.Limit = None,
    older_than: holdings.OlderThan = None,
    watch: holdings.Watch = False,
) -> None:
    """List the locks in a container: the blobs that were ever locked, and what is leased now, by Terraform for example.

    It shows who holds each, since when and why, the fence, whether it is alive, and when it ends. Alive is "yes" if
    a lease with a term is held for longer than the term: a process renews it. Without such a proof it is "unknown".
    Locks of other programs are listed with their kind: terraform, pulumi, webjobs (also Functions), event-hubs,
    restic, vm-disk.

    --account lists all containers, and the leases on the containers and shares themselves. Its --prefix is of
    CONTAINER/NAME. A container that you may not list is named, the others are listed, and the exit status is 20. The
    service does not list the leases on files: they are missing. --mine lists what this scope holds, by its records.

    The age is by the clock of the service. Of event-hubs and restic it is the time since the last renewal. --older-than
    leaves out locks whose start is not certain, and says how many.

    --watch shows on a terminal a table, which is drawn again every 5 s. Elsewhere it prints a line for each change
    (taken, freed, changed), in JSON an object, and nothing for what is held when it starts.

    Examples:
        azguard lock list
        azguard lock list --account --older-than 2h
        azguard lock list locks --held

    Topics: locks
    """
    target = None
    if not account:
        where = choose_container(None, env.environ) if container is None else container
        target = env.locate(where, Kind.CONTAINER)
    from azguard.leases.holdings import Selection

    selection = Selection(
        prefix=prefix or "",
        held_only=held,
        digests=holdings.digests_of_scope(env) if mine else None,
        stale_seconds=older_than,
    )
    view = holdings.HoldingsView(env, selection, target, num_results)
    view.watch() if watch else view.show()


@app.command(name="break", spec=replace(common.operation(BLOB_LEASE_BREAK), takes_key=False))
def break_(
    env: Environment,
    address: Lock,
    given: BreakOptions,
    lock_container: common.LockContainer = None,
) -> None:
    """Break a lock, after showing who holds it; its command is ended and exits with 77.

    By default the lease runs to its end. So the command of the holder has ended before the next command starts. With
    --lease-break-period 0 both run at the same time until the holder notices. In a script, confirm with --yes,
    --if-owner, --if-older-than, --if-run-finished or --if-match. If another holder took the lock since it was shown,
    nothing is broken (exit 42).

    --if-run-finished asks GitHub or Azure Pipelines about the run in the record. Nothing is broken if the run goes on
    (exit 42), or if that cannot be known (exit 53). The token is GITHUB_TOKEN or GH_TOKEN, SYSTEM_ACCESSTOKEN or
    AZURE_DEVOPS_EXT_PAT. Only github.com, dev.azure.com and the services that GITHUB_SERVER_URL and
    SYSTEM_COLLECTIONURI name are asked.

    Examples:
        azguard lock break deploy-prod --yes
        azguard lock break deploy-prod --yes --lease-break-period 0

    Topics: locks
    """
    target = lock(env, address, lock_container, also=FILES)
    env.out.show(leases.break_lease(env, target, given))
