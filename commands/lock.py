"""``azguard lock``: run, hold, check, release, log, show, list, break."""

from typing import Annotated

from azguard.address import Kind
from azguard.cli import completers, signals
from azguard.cli.context import Environment
from azguard.cli.input.addresses import FILES, Lock, choose_container, lock
from azguard.cli.options import common, guarded_runs, holds, leases, locks
from azguard.cli.options.holds import HoldOptions
from azguard.cli.options.leases import BreakOptions
from azguard.cli.options.locks import RunOptions
from azguard.cli.options.types import COUNT, GUID
from azguard.cli.output import holdings
from azguard.cli.parsing.rows import argument, flag, option
from azguard.cli.parsing.tree import Group
from azguard.cli.rules.engine import needs
from azguard.locks import run as core
from azguard.wire.operations.blobs import BLOB_LEASE_BREAK

_OwnLock = Annotated[
    str | None,
    argument("[ADDRESS]", "The lock.", completer=completers.locks, otherwise="all that this job holds"),
]
# More lines than the service takes.
_MOST = 1_000_000

app = Group("Locks: hold one for a command or for many steps; see and break them.")


@app.command(spec=common.remote("the lease of the lock is what guards it"))
def run(
    env: Environment,
    words: Annotated[
        list[str],
        argument(
            "ADDRESS... -- CMD [ARG...]",
            "The locks: names, blobs, tables, shares or files; and the command.",
            completer=completers.locks,
        ),
    ],
    given: RunOptions,
) -> int:
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
    addresses, command = guarded_runs.split(words, env.argv, needs_lock=given.terraform is None)
    return core.run(locks.plan_run(env, addresses, command, given))


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
        done = holds.plan_hold(env, address, given).take()
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
    from azguard.locks import job_locks

    found = holds.find_known(env, address, lock_container)
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
    env_file: holds.EnvFile = None,
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
    found = holds.find_known(env, address, lock_container, lease_id)
    done = holds.plan_release(env, found, env_file).make(env.deadline, env.out.info)
    env.out.show(done[0] if len(done) == 1 else done)


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
    rules=(holdings.one_or_all("CONTAINER"),),
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


@app.command(name="break", spec=common.operation(BLOB_LEASE_BREAK))
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
