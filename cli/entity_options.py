"""The options of the commands about entities."""

from dataclasses import dataclass, field
from typing import Annotated

import typer

from azguard.cli import completers, options
from azguard.cli.lock_options import TableLock
from azguard.errors import UsageError

Entity = Annotated[
    str,
    typer.Argument(metavar="TABLE/PARTITION/ROW", help="The entity, or its URL.", autocompletion=completers.entities),
]
Select = Annotated[
    list[str] | None,
    typer.Option("--select", metavar="NAME,…", help="Read only these properties, the keys, the ETag."),
]


@dataclass(frozen=True)
class EntityOptions:
    """The options that insert, replace, merge, upsert and delete share, as typed."""

    properties: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME[:TYPE]=VALUE", help="Its properties, such as status=shipped n:int64=5."),
    ] = None
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", metavar="FILE|-", help="Read JSON from this file; by default, stdin."),
    ] = None
    no_lineage: options.NoLineage = False
    lock: TableLock = field(default_factory=TableLock)

    def check(self) -> None:
        """Refuse options that contradict each other.

        Raises:
            UsageError: names the options.
        """
        if self.properties and self.file is not None:
            raise UsageError(
                f"-f {self.file} and {self.properties[0]!r} do not go together", hint="leave one of them out"
            )
        self.lock.check()
