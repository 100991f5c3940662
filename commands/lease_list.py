"""``azguard lease list``."""

from collections.abc import Iterator

import typer

from azguard.address import Kind
from azguard.cache.records import HeldLease
from azguard.cli import context, holdings_view, lease_list_options, lease_options, options, values
from azguard.cli.context import Environment
from azguard.cli.groups import group
from azguard.cli.lease_list_options import LeaseListOptions
from azguard.conditions import operations
from azguard.leases import own as held_leases
from azguard.leases.own import CheckedLease, OwnLeaseStatus, Standing

# The list of held leases is of what is remembered; the service is asked for no longer than this.
_ASK_SECONDS = 2.0
_HOW_ENDED = {
    Standing.GONE: "was deleted; the lease that this scope had on it is over",
    Standing.RELEASED: "is free: the lease that this scope had on it was released",
    Standing.BROKEN: "is free, or soon is: the lease that this scope had on it was broken",
    Standing.TAKEN: "is leased by another: the lease that this scope had on it is over",
}

app = group("List leases.")


@app.command(name="list", spec=options.operation(operations.CONTAINER_LIST_BLOBS))
def list_(ctx: typer.Context, container: lease_list_options.Container = None, *, given: LeaseListOptions) -> None:
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
    env = context.of(ctx)
    given.check(container)
    if given.mine:
        env.out.show_each(_list_own(env, None if given.all_scopes else env.scope))
        return
    target = None if given.account else env.locate(str(container), Kind.CONTAINER)
    states = lease_options.states(given.state)
    limit = values.count(given.num_results, "--num-results")
    if target is not None:
        env.conditions(target)
    from azguard.leases.holdings import Selection

    selection = Selection(
        prefix=given.prefix or "", states=states, stale_seconds=holdings_view.stale_seconds(given.stale)
    )
    view = holdings_view.HoldingsView(env, selection, target, limit)
    view.watch() if given.watch else view.show()


def _list_own(env: Environment, scope: str | None) -> Iterator[OwnLeaseStatus]:
    remembered = list(env.cache.list_held(scope))
    account = env.account_if_known if remembered else None
    patience = env.deadline.restart(seconds=min(_ASK_SECONDS, env.deadline.seconds))

    def forget(known: CheckedLease[HeldLease]) -> None:
        if env.cache.forget_lease_unless_renewed(known.lease):
            env.out.info(f"{known.lease.address} {_HOW_ENDED[known.standing]}")

    return held_leases.check_each(remembered, account, lambda: patience, forget)
