"""The options of ``azguard edit``, and what of them goes together."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from azguard.address import Address
from azguard.cli import options, update_parts, values
from azguard.cli.update_options import AnyChange, UpdateOptions


@dataclass(frozen=True)
class EditorOptions:
    """The options of edit, as typed."""

    metadata: Annotated[bool, typer.Option("--metadata", help="Edit the metadata, not the content.")] = False
    tags: Annotated[bool, typer.Option("--tags", help="Edit the index tags, not the content.")] = False
    allow_race: update_parts.AllowRace = False
    create: Annotated[
        str | None,
        typer.Option("--create", metavar="[INITIAL]", help="Create it, beginning with INITIAL, if it is missing."),
    ] = None
    resume: Annotated[
        str | None, typer.Option("--resume", metavar="FILE", help="Continue the edit that was kept in FILE.")
    ] = None
    allow_empty: Annotated[bool, typer.Option("--allow-empty", help="Let the content become empty.")] = False
    any_content: Annotated[bool, typer.Option("--any-content", help="Let JSON or YAML become something else.")] = False
    op_id: Annotated[
        str | None,
        typer.Option(
            "--op-id", metavar="KEY", help="Apply this change at most once for KEY, such as the id of a CI run."
        ),
    ] = None
    op_id_any_change: AnyChange = False
    guard: Annotated[
        str | None,
        typer.Option("--guard", metavar="lineage|lease|ledger", help="Choose the guard; see azguard help updates."),
    ] = None
    lease_id: Annotated[
        str | None, typer.Option("--lease-id", metavar="ID|@held", help="Use the lease that you hold.")
    ] = None
    fence: Annotated[
        str | None,
        typer.Option("--fence", metavar="N", help="Your lock's number: refused if a later holder has written."),
    ] = None
    wait_lease: Annotated[bool, typer.Option("--wait-lease", help="Wait until another holder releases its lease.")] = (
        False
    )
    no_lineage: options.NoLineage = False
    timeout: Annotated[
        str | None,
        typer.Option("--timeout", metavar="DURATION", help="Give up a write after this long; by default, 60s."),
    ] = None

    def as_update(self) -> UpdateOptions:
        """Return the options of the update that an edit is: one by a command, which is a person."""
        return UpdateOptions(
            command=["edit"],
            metadata=self.metadata,
            tags=self.tags,
            allow_race=self.allow_race,
            create=self.create,
            allow_empty=self.allow_empty,
            any_content=self.any_content,
            op_id=self.op_id,
            op_id_any_change=self.op_id_any_change,
            guard=self.guard,
            lease_id=self.lease_id,
            fence=self.fence,
            wait_lease=self.wait_lease,
            no_lineage=self.no_lineage,
            timeout=self.timeout,
        )

    def check(self, address: Address) -> None:
        """Refuse what contradicts itself, is malformed, or does not apply to what is edited.

        Raises:
            UsageError: names the options, and what goes instead.
        """
        self.as_update().check(address)
        values.not_empty(self.resume, "--resume")

    def read_resumed(self) -> Path | None:
        """Return the file of an earlier edit to go on with.

        Raises:
            UsageError: an edit did not leave it.
        """
        from azguard.updates import editing

        if self.resume is None:
            return None
        path = Path(self.resume).absolute()
        editing.check_resumable(path)
        return path
