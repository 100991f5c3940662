"""The list of leases and their holders: once, or again and again."""

import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from time import monotonic, sleep
from typing import TYPE_CHECKING, Annotated

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.cli.context import Environment
from azguard.cli.options.types import DURATION
from azguard.cli.output import terminal
from azguard.cli.output.json_form import pick_from_line, to_json_form
from azguard.cli.output.results import CHUNK
from azguard.cli.parsing.rows import flag, option
from azguard.cli.rules import excludes
from azguard.errors import AzguardError
from azguard.frozen import frozen
from azguard.leases.owners import make_digest
from azguard.times import say_count

if TYPE_CHECKING:
    from azguard.leases.conventions import Holding
    from azguard.leases.holdings import HoldingsList, Selection

WholeAccount = Annotated[bool, flag("--account", "List all containers of the account.")]
OlderThan = Annotated[
    float | None, option("--older-than", "DURATION", "List only what was taken longer ago than this.", DURATION)
]
Watch = Annotated[bool, flag("--watch", "Look again every few seconds, until Ctrl-C.")]

#: One container is listed, or all of them.
ONE_OR_ALL = excludes(
    "--account",
    "CONTAINER",
    "it lists all containers",
    "leave one of them out, or: --account --prefix CONTAINER/",
)
_PAUSE_SECONDS = 5.0
_WITHOUT_FILES = (
    "the service does not list the leases on files, so that they are not in this list: "
    "azguard lease show file:SHARE/PATH shows one"
)


@frozen
class HoldingsView:
    """What to list, and how to show it."""

    env: Environment
    selection: "Selection"
    #: One container; None is the whole account.
    container: Target | None
    limit: int | None = None

    def show(self) -> None:
        """Print the leases that are held, as they are found.

        Raises:
            Partial: a container could not be listed.
        """
        # A table is printed once there are so many rows of it, and elsewhere than on a terminal nothing else is seen.
        out, hides_all = self.env.out, not terminal.is_terminal(sys.stdout)
        with out.progress_bar("look for leases", unit="blobs", is_beside_content=out.format != "table") as progress:
            listing = self._build_list(self._report, progress.at)
            found = islice(self._list(listing), self.limit)
            first = list(islice(found, CHUNK)) if out.format == "table" else []
            if hides_all:
                out.show_each(chain(first, found), counts=False)
        if not hides_all:
            out.show_each(chain(first, found))
        self._tell_of_files(listing)
        if listing.tally.undated:
            count = say_count(listing.tally.undated, "more lease")
            self.env.out.info(f"{count}: since when is not known, so that they are not in the list")
        listing.tally.check(self._address)

    def watch(self) -> None:
        """Print the changes, a line each; on a terminal, a table that is drawn anew in its place."""
        from azguard.leases import holdings

        told = set[str | None]()

        def report(error: AzguardError) -> None:
            if error.address not in told:
                told.add(error.address)
                self._report(error)

        is_live = self.env.out.format == "table" and terminal.is_terminal(sys.stdout)
        screen = terminal.Screen()
        before = None
        while True:
            began = monotonic()
            listing = self._build_list(report)
            found = list(islice(self._list(listing), self.limit))
            now = holdings.carry_over(before or {}, holdings.index(found), listing.tally)
            if before is None:
                self._tell_of_files(listing)
            if is_live:
                screen.draw(self._render(found))
            elif before is not None:
                for each in holdings.compare(before, now):
                    self.env.out.show_picked(pick_from_line(self.env.out.query, to_json_form(each)), each)
            before = now
            sleep(max(_PAUSE_SECONDS, monotonic() - began))

    @property
    def _address(self) -> str:
        return "container:" if self.container is None else str(self.container.address)

    def _build_list(
        self, report: Callable[[AzguardError], None], progress: Callable[[int], object] = lambda looked: None
    ) -> "HoldingsList":
        from azguard.leases.holdings import HoldingsList

        return HoldingsList(self.selection, self.env.deadline, report, progress)

    def _list(self, listing: "HoldingsList") -> "Iterator[Holding]":
        if self.container is not None:
            return listing.of_container(self.container)
        return listing.of_account(self.env.account)

    def _tell_of_files(self, listing: "HoldingsList") -> None:
        if listing.tally.has_shares:
            self.env.out.say(_WITHOUT_FILES)

    def _report(self, error: AzguardError) -> None:
        what = "the shares" if error.address in (None, f"{Kind.SHARE}:") else error.address
        self.env.out.warn(f"{what} could not be listed: {error.message}")

    def _render(self, found: "Iterable[Holding]") -> list[str]:
        from azguard.cli.output import rendering

        out, rows = self.env.out, list(found)
        return rendering.render(out.pick(to_json_form(rows)), rendering.of(rows), color=out.color)


def digests_of_scope(env: Environment) -> frozenset[str]:
    """Return by what records name the leases that this scope holds."""
    return frozenset(make_digest(each.lease_id) for each in env.cache.list_held(env.scope))
