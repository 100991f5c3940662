"""``azguard lock list``."""

from typing import Annotated

import typer

from azguard.address import Kind
from azguard.cli import completers, context, holdings_view, lock_names, options
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
    held: Annotated[bool, typer.Option("--held", help="List only locks that are held now.")] = False,
    stale: holdings_view.Stale = None,
    watch: holdings_view.Watch = False,
) -> None:
    """List the locks in a container: the blobs that were ever locked, and what is leased now, by Terraform for example.

    With --account, --stale or --watch it also lists the locks of other programs, with their kind: terraform, pulumi,
    webjobs (also Functions), event-hubs, restic, vm-disk. JSON is one object a line then, unless --query picks from
    the list. The --prefix of --account is of CONTAINER/NAME. A container that you may not list is named, the others
    are listed, and the exit status is 20. Shares that are leased are listed too.

    The age is by the clock of the service. Of event-hubs and restic it is the time since the last renewal. --stale
    leaves out locks whose start is not certain, and says how many.

    --watch shows on a terminal a table, which is drawn again every 5 s. Elsewhere it prints a line for each change
    (taken, freed, changed), and nothing for what is held when it starts.

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
    if target is not None and stale is None and not watch:
        from azguard.locks import listing

        found = listing.list_locks(target, env.deadline, prefix)
        env.out.show_each(each for each in found if each.held or not held)
        return
    from azguard.leases.holdings import Selection

    selection = Selection(
        prefix=prefix or "", held_only=held or watch, stale_seconds=holdings_view.stale_seconds(stale)
    )
    view = holdings_view.HoldingsView(env, selection, target)
    view.watch() if watch else view.show()
