"""The options of the commands about entities."""

from dataclasses import dataclass, field
from typing import Annotated

import typer

from azguard.cli import completers
from azguard.cli.lock_options import TableLock
from azguard.errors import UsageError

Entity = Annotated[
    str,
    typer.Argument(metavar="TABLE/PARTITION/ROW", help="The entity, or its URL.", autocompletion=completers.entities),
]
Select = Annotated[
    list[str] | None,
    typer.Option("--select", metavar="NAME,…", help="Only these properties; the keys and the ETag come along."),
]
NoLineage = Annotated[
    bool,
    typer.Option(
        "--no-lineage",
        help="Write no property azguardlineage. A lost response can then end as exit 74 instead of being settled.",
    ),
]


@dataclass(frozen=True)
class EntityOptions:
    """The options that insert, replace, merge, upsert and delete share, as typed."""

    properties: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME[:TYPE]=VALUE", help="Its properties, e.g. status=shipped n:int64=5; or use -f."),
    ] = None
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", metavar="FILE|-", help="Read the entity from here, as JSON; stdin by default."),
    ] = None
    no_lineage: NoLineage = False
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
