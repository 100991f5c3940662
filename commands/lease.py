"""``azguard lease``: acquire, renew, change, release, break, show, list, wait."""

import uuid
from collections.abc import Iterator
from typing import Annotated, ClassVar

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.cli import completers
from azguard.cli.context import Environment
from azguard.cli.options import common, leases
from azguard.cli.options.leases import BreakOptions
from azguard.cli.options.types import GUID, ValueType, read_choice
from azguard.cli.output import holdings
from azguard.cli.parsing.rows import argument, flag, option
from azguard.cli.parsing.tree import Group
from azguard.cli.rules import checked, excludes, needs, one_of, only_for
from azguard.errors import UsageError
from azguard.frozen import frozen
from azguard.guards.requested import HELD
from azguard.leases import own as held_leases
from azguard.leases import owner_records, shown
from azguard.leases import state as lease_state
from azguard.leases.actions import LeaseDone
from azguard.leases.own import CheckedLease, OwnLeaseStatus, Standing
from azguard.leases.owners import Owner
from azguard.leases.recorded import LeaseRequest, RecordedLease
from azguard.leases.state import DEFAULT_SECONDS, LOCKED, STATES, Action, kind_of
from azguard.wire.operations.blobs import (
    BLOB_GET_PROPERTIES,
    BLOB_LEASE_ACQUIRE,
    BLOB_LEASE_BREAK,
    BLOB_LEASE_CHANGE,
    BLOB_LEASE_RELEASE,
    BLOB_LEASE_RENEW,
)
from azguard.wire.operations.containers import CONTAINER_LIST_BLOBS

_Leasable = Annotated[
    str,
    argument(
        "ADDRESS",
        "blob:CONTAINER/NAME, container:NAME, share:NAME or file:SHARE/PATH, or its URL.",
        completer=completers.leasable_addresses,
        rules=(
            checked("ADDRESS", "a resource that can be leased, no snapshot or version of a blob", "lease.locate"),
            only_for("--encryption-key --encryption-scope", "blob"),
        ),
    ),
]
_HeldLease = Annotated[str, option("--lease-id", "ID|@held", "The id of the lease; @held is the one this scope holds.")]
_ProposedLeaseId = Annotated[
    str | None, option("--proposed-lease-id", "GUID", "Use this id.", GUID, otherwise="a new one")
]
_Container = Annotated[
    str | None,
    argument("[CONTAINER]", "The container whose leased blobs to list, or its URL.", completer=completers.containers),
]
# The list of held leases is of what is remembered; the service is asked for no longer than this.
_ASK_SECONDS = 2.0
_HOW_ENDED = {
    Standing.GONE: "was deleted; the lease that this scope had on it is over",
    Standing.RELEASED: "is free: the lease that this scope had on it was released",
    Standing.BROKEN: "is free, or soon is: the lease that this scope had on it was broken",
    Standing.TAKEN: "is leased by another: the lease that this scope had on it is over",
}


def _read_states(text: str, name: str) -> frozenset[str]:
    return frozenset(read_choice(each.strip(), name, STATES) for each in text.split(","))


_LEASE_STATES = ValueType("states", _read_states, lambda states: ",".join(each for each in STATES if each in states))


@frozen
class _ListOptions:
    """The options of lease list as typed."""

    account: holdings.WholeAccount = False
    state: Annotated[
        frozenset[str],
        option("--state", "LIST", "Choose from available, leased, breaking, broken, expired.", _LEASE_STATES),
    ] = LOCKED
    prefix: common.Prefix = None
    num_results: common.Limit = None
    older_than: holdings.OlderThan = None
    watch: holdings.Watch = False
    held: Annotated[bool, flag("--held", "List only what is held now: the default.")] = False
    mine: Annotated[bool, flag("--mine", "List the leases that this scope holds.")] = False
    all_scopes: common.AllScopes = False

    RULES: ClassVar = (
        holdings.ONE_OR_ALL,
        excludes(
            "--mine",
            "CONTAINER --account --state --prefix --num-results --older-than --watch --held",
            "it lists what this scope holds, in any container",
            "leave the rest out",
        ),
        one_of(
            "CONTAINER --account --mine",
            hint="name a container: azguard lease list CONTAINER; or --account; or the leases of this scope: "
            "azguard lease list --mine [--all-scopes]",
        ),
        needs("--all-scopes", "--mine"),
        excludes("--held", "--state", "both choose by state"),
    )


app = Group("Leases of blobs, containers, shares and files: acquire, renew, change, release, break, show, list, wait.")


def locate(env: Environment, address: str) -> Target:
    """Return the resource of an address, if it is of a kind that can be leased.

    Raises:
        UsageError: it cannot.
    """
    target = env.locate(address)
    kind_of(target)
    # A snapshot of a share has a lease of its own.
    if target.kind is not Kind.SHARE and (target.address.snapshot or target.address.version):
        raise UsageError(
            f"{target} is a snapshot or version, which cannot be leased", hint="leave ?snapshot=… or ?versionid=… out"
        )
    return target


@app.command(
    spec=common.operation(BLOB_LEASE_ACQUIRE),
    rules=(excludes("--infinite", "--lease-duration"),),
)
def acquire(
    env: Environment,
    address: _Leasable,
    lease_duration: leases.LeaseDuration = DEFAULT_SECONDS,
    infinite: Annotated[bool, flag("--infinite", "Keep it until it is released or broken.")] = False,
    proposed_lease_id: _ProposedLeaseId = None,
    *,
    given: common.OptionalWaitOptions,
    reason: common.Reason = None,
) -> None:
    """Acquire a lease, which keeps others from writing or deleting.

    azguard records the id on this machine before it sends the request. Other commands take it as --lease-id @held.
    After a crash, "lease list --mine" shows it, and "lease release" releases it. -o tsv prints the id alone.

    The lease of a file has no term: --infinite is its only one, so that it stays when its holder dies.

    --reason writes a record into the metadata of the blob, share or file: who holds the lease, since when, and why.
    "lease show" and refused writers show it. This write changes the ETag, and azguard remembers the new one. "lease
    release" removes the record. A write that replaces the metadata, such as blob put, removes it too.

    Not guaranteed: a finite lease ends by itself, also while its holder is paused. After that the service refuses only
    those writes of the holder that carry the lease id. The lease of a container prevents its deletion, nothing else.
    That of a share guards the share itself, not the files in it.

    Examples:
        azguard lease acquire blob:site/config.json --lease-duration 30s
        azguard lease acquire blob:site/config.json --infinite --reason "migration"
        azguard lease acquire blob:site/config.json --wait 60s

    Topics: leases
    """
    target = locate(env, address)
    seconds = None if infinite else lease_duration
    lease_id = proposed_lease_id or str(uuid.uuid4())
    patience = None if given.wait is None else env.patience(None, given.wait)
    owner = _build_owner(env, target, reason)
    lease = _build_kept_lease(env, target)
    conditions = leases.conditions(env, target, Action.ACQUIRE)
    request = LeaseRequest(lease_id, seconds, conditions, owner, is_named=proposed_lease_id is not None)
    done = lease.acquire(request) if patience is None else lease.acquire_when_free(request, patience)
    env.out.show(done, alone="lease_id")


@app.command(spec=common.operation(BLOB_LEASE_RENEW))
def renew(env: Environment, address: _Leasable, lease_id: _HeldLease = "@held") -> None:
    """Renew a lease for its own term from now.

    Examples:
        azguard lease renew blob:site/config.json
        azguard lease renew blob:site/config.json --lease-id @held
    """
    target = locate(env, address)
    conditions = leases.conditions(env, target, Action.RENEW, lease_id)
    env.out.show(_build_kept_lease(env, target).renew(conditions))


@app.command(spec=common.operation(BLOB_LEASE_CHANGE))
def change(
    env: Environment,
    address: _Leasable,
    lease_id: _HeldLease = "@held",
    proposed_lease_id: _ProposedLeaseId = None,
) -> None:
    """Change the id of a lease; the old one is worth nothing from then on.

    Examples:
        azguard lease change blob:site/config.json
    """
    target = locate(env, address)
    proposed = proposed_lease_id or str(uuid.uuid4())
    conditions = leases.conditions(env, target, Action.CHANGE, lease_id)
    env.out.show(_build_kept_lease(env, target).change(conditions, proposed), alone="lease_id")


@app.command(spec=common.operation(BLOB_LEASE_RELEASE))
def release(env: Environment, address: _Leasable, lease_id: _HeldLease = "@held") -> None:
    """Release a lease, so that others can acquire it at once.

    If the lease was not held until then, the exit status is 77: it was broken, another has taken it, or its term was
    over and another has written since. A second release by this scope does nothing, and exits with 0.

    If the lease is held no more and nothing tells why, the outcome is gone, with exit status 0 and a warning: it was
    released before, or it was lost. Not guaranteed: a loss is not seen if this scope has read the blob since.

    Examples:
        azguard lease release blob:site/config.json
        azguard lease release blob:site/config.json --lease-id @held
    """
    target = locate(env, address)
    env.out.show(_release(env, target, lease_id))


@app.command(name="break", spec=common.operation(BLOB_LEASE_BREAK))
def break_(env: Environment, address: _Leasable, given: BreakOptions) -> None:
    """Break the lease of another holder, after showing who that is.

    By default a finite lease runs to its end, and cannot be renewed. So its holder notices before the next holder
    starts. An infinite lease ends at once. If there is no lease, or it is broken already, the exit status is 44. In a
    script, confirm with --yes, --if-owner, --if-older-than, --if-run-finished or --if-match.
    Only the lease that was shown is broken. If another holder with a record took it since, the exit status is 42. So it
    is if the record is of an earlier lease, and --if-owner, --if-older-than or --if-run-finished is given. Not
    guaranteed: azguard cannot see that the holder changed if the next holder leaves no record.

    --if-older-than uses the clock of the service. The record of Terraform has the time of the holder's own machine, so
    it does not count: there the last write of the blob must be older.

    Examples:
        azguard lease break blob:site/config.json --yes
        azguard lease break blob:site/config.json --yes --lease-break-period 0

    Topics: leases, locks
    """
    env.out.show(leases.break_lease(env, locate(env, address), given))


@app.command(spec=common.operation(BLOB_GET_PROPERTIES))
def show(env: Environment, address: _Leasable) -> None:
    """Show the state of a lease, who holds it and since when, as azguard's owner record or Terraform's lock info says.

    With --lease-id it says whether that one is held (exit 49 if not). A record speaks for the lease under which it was
    written. If the lease is free, or the record is of an earlier lease, it is shown as last_owner. Ages are by the
    service's clock; Terraform notes the time of its own machine, which can be wrong (clock: holder).

    Examples:
        azguard lease show blob:site/config.json
        azguard lease show blob:site/config.json --query state -o tsv
    """
    target = locate(env, address)
    asked = leases.conditions(env, target, None)
    env.out.show(shown.summarize(lease_state.look(target, env.deadline, asked.lease_id, asked)))


@app.command(name="list", spec=common.operation(CONTAINER_LIST_BLOBS))
def list_(env: Environment, container: _Container = None, *, given: _ListOptions) -> None:
    """List the leased blobs of a container, or with --mine the leases that this scope has not released.

    Leased and breaking ones by default; --state chooses others. To find them, the service lists all blobs. With --mine
    the service is asked for each; what it proves to be over, because it was deleted, broken or taken by another, is
    forgotten. Without an answer the list is of what is remembered (state: unknown, or ended). In CI the leases of other
    jobs with this scope are left out; --all-scopes lists them too, and their jobs.

    --account lists the leases of all containers, and those on the containers and shares themselves. The service does
    not list the leases on files: they are missing. A container that you may not list is named, the others are listed,
    and the exit status is 20. If the shares cannot be listed, a warning says so.

    The columns are those of lock list: who holds it, since when and why, as far as a record says; and whether it was
    renewed past one term (alive). --watch shows on a terminal a table, which is drawn again every 5 s. Elsewhere it
    prints a line for each change (taken, freed, changed), in JSON an object.

    Examples:
        azguard lease list site
        azguard lease list --account
        azguard lease list --mine

    Topics: leases
    """
    if given.mine:
        env.out.show_each(_list_own(env, None if given.all_scopes else env.scope))
        return
    target = None if given.account else env.locate(str(container), Kind.CONTAINER)
    limit = given.num_results
    if target is not None:
        env.conditions(target)
    from azguard.leases.holdings import Selection

    selection = Selection(prefix=given.prefix or "", states=given.state, stale_seconds=given.older_than)
    view = holdings.HoldingsView(env, selection, target, limit)
    view.watch() if given.watch else view.show()


@app.command(
    name="wait",
    spec=common.remote("lease wait only looks, until the lease is free", takes_key=True),
)
def wait_(
    env: Environment,
    address: _Leasable,
    given: common.WaitOptions,
    timeout: common.NoTimeout = None,  # it is refused
) -> None:
    """Wait until a lease is free to be acquired.

    Not guaranteed: another may be quicker. To wait and acquire in one go: azguard lease acquire --wait 60s.

    Examples:
        azguard lease wait blob:site/config.json
        azguard lease wait blob:site/config.json --wait 10m && echo free
    """
    target = locate(env, address)
    env.out.show(shown.summarize(leases.wait_free(env, target, env.patience(None, given.wait_seconds))))


def _list_own(env: Environment, scope: str | None) -> Iterator[OwnLeaseStatus]:
    remembered = list(env.cache.list_held(scope))
    account = env.account_if_known if remembered else None
    patience = env.deadline.briefly(_ASK_SECONDS)

    def forget(known: CheckedLease) -> None:
        if env.cache.forget_lease_unless_renewed(known.lease):
            env.out.info(f"{known.lease.address} {_HOW_ENDED[known.standing]}")

    return held_leases.check_each(remembered, account, lambda: patience, forget)


def _build_kept_lease(env: Environment, target: Target) -> RecordedLease:
    """Return a resource's lease, whose record is kept in this scope's cache."""
    return RecordedLease(
        target, env.lease_records, env.deadline, env.out.warn, lambda state: leases.say_waiting(env, state)
    )


def _release(env: Environment, target: Target, lease_id: str) -> LeaseDone:
    """Release a lease; ``@held`` is also the last one for which this scope has sent a release before."""
    if lease_id == HELD and env.reads.find_held_id(target) is None:
        lease_id = env.lease_records.find_released(target) or lease_id
    return held_leases.release(_build_kept_lease(env, target), leases.conditions(env, target, Action.RELEASE, lease_id))


def _build_owner(env: Environment, target: Target, reason: str | None) -> Owner | None:
    """Return the record to leave on a blob; None if no --reason was given.

    Raises:
        UsageError: the reason is no plain text, or the resource cannot carry a record.
    """
    if reason is None:
        return None
    owner_records.check_kind(target)
    return leases.this_process(env, f"azguard {env.command}", reason, is_lasting=True)
