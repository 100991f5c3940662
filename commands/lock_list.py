"""``azguard lock list``."""

from typing import Annotated

import typer

from azguard.address import Kind
from azguard.cli import completers, context, holdings_view, lock_names, options, values
from azguard.cli.groups import group

app = group("List locks.")


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
    account: holdings_view.WholeAccount = False,
    prefix: options.Prefix = None,
    held: Annotated[bool, typer.Option("--held", help="List only what is held now.")] = False,
    mine: Annotated[bool, typer.Option("--mine", help="List only what this scope holds.")] = False,
    num_results: options.Limit = None,
    stale: holdings_view.Stale = None,
    watch: holdings_view.Watch = False,
) -> None:
    """List the locks in a container: the blobs that were ever locked, and what is leased now, by Terraform for example.

    It shows who holds each, since when and why, the fence, whether it is alive, and when it ends. Alive is "yes" if
    a lease with a term is held for longer than the term: a process renews it. Without such a proof it is "unknown".
    Locks of other programs are listed with their kind: terraform, pulumi, webjobs (also Functions), event-hubs,
    restic, vm-disk.

    --account lists all containers, and the leases on the containers and shares themselves. Its --prefix is of
    CONTAINER/NAME. A container that you may not list is named, the others are listed, and the exit status is 20. The
    service does not list the leases on files: they are missing. --mine lists what this scope holds, by its records.

    The age is by the clock of the service. Of event-hubs and restic it is the time since the last renewal. --stale
    leaves out locks whose start is not certain, and says how many.

    --watch shows on a terminal a table, which is drawn again every 5 s. Elsewhere it prints a line for each change
    (taken, freed, changed), in JSON an object, and nothing for what is held when it starts.

    Examples:
        azguard lock list
        azguard lock list --account --stale 2h
        azguard lock list locks --held

    Topics: locks
    """
    env = context.of(ctx)
    holdings_view.check_place(container, account=account)
    target = None
    if not account:
        where = lock_names.choose_container(None, env.environ) if container is None else container
        target = env.locate(where, Kind.CONTAINER)
    from azguard.leases.holdings import Selection

    selection = Selection(
        prefix=prefix or "",
        held_only=held,
        digests=holdings_view.digests_of_scope(env) if mine else None,
        stale_seconds=holdings_view.stale_seconds(stale),
    )
    view = holdings_view.HoldingsView(env, selection, target, values.count(num_results, "--num-results"))
    view.watch() if watch else view.show()
