"""The options of ``azguard lease list``."""

from dataclasses import dataclass
from typing import Annotated

import typer

from azguard.cli import completers, holdings_view, options
from azguard.errors import UsageError

Container = Annotated[
    str | None,
    typer.Argument(
        metavar="[CONTAINER]",
        help="The container whose leased blobs to list, or its URL.",
        autocompletion=completers.containers,
    ),
]


@dataclass(frozen=True)
class LeaseListOptions:
    """The options of lease list as typed."""

    account: holdings_view.WholeAccount = False
    state: Annotated[
        str | None,
        typer.Option("--state", metavar="LIST", help="Choose from available, leased, breaking, broken, expired."),
    ] = None
    prefix: options.Prefix = None
    num_results: options.Limit = None
    stale: holdings_view.Stale = None
    watch: holdings_view.Watch = False
    held: Annotated[bool, typer.Option("--held", help="List only what is held now: the default.")] = False
    mine: Annotated[bool, typer.Option("--mine", help="List the leases that this scope holds.")] = False
    all_scopes: options.AllScopes = False

    def check(self, container: str | None) -> None:
        """Refuse what contradicts itself.

        Raises:
            UsageError: it does, or no container is named.
        """
        holdings_view.check_place(container, account=self.account)
        others = (container, self.account, self.state, self.prefix, self.num_results, self.stale, self.watch, self.held)
        if self.mine and any(others):
            raise UsageError("--mine lists what this scope holds, in any container", hint="leave the rest out")
        if not self.mine and ((container is None and not self.account) or self.all_scopes):
            raise UsageError(
                "no container is named",
                hint="name one: azguard lease list CONTAINER; or --account; or the leases of this scope: "
                "azguard lease list --mine [--all-scopes]",
            )
        if self.held and self.state is not None:
            raise UsageError("--held and --state both choose by state", hint="leave one of them out")
