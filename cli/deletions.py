"""Before a container or a table is deleted: what is in it goes with it, and that has to be meant."""

from collections.abc import Callable
from typing import Annotated

import typer

from azguard.accounts.target import Target
from azguard.cli import asking
from azguard.cli.context import Environment
from azguard.errors import Changed
from azguard.requests.contents import Contents
from azguard.requests.deadline import Deadline

WithContents = Annotated[
    bool, typer.Option("--with-contents", help="Delete it with all that is in it, without looking or asking.")
]
#: What counts the blobs of a container, or the entities of a table.
Count = Callable[[Target, Deadline], Contents]


def check_contents(count: Count, env: Environment, target: Target, *, with_contents: bool) -> None:
    """See that it is empty, or that its contents are meant to be deleted too.

    Raises:
        Changed: it is not empty, and there is no terminal to ask on.
        Interrupted: the answer was no.
    """
    if with_contents:
        return
    found = count(target, env.deadline.fresh())
    if not found.number:
        return
    if asking.on_terminal():
        asking.confirm(f"delete {target} and the {found} in it?", "nothing was deleted")
        return
    raise Changed(
        f"{target} is not empty: {found} would be deleted with it",
        address=str(target.address),
        facts={"contents": found.number, "contents_counted": not found.more},
    )
