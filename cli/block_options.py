"""The options of ``blob block commit``."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from azguard.accounts.target import Target
from azguard.cli import inputs, values
from azguard.cli.context import Environment
from azguard.errors import UsageError

if TYPE_CHECKING:
    from azguard.blobs.content.upload import Upload


@dataclass(frozen=True)
class CommitOptions:
    """The options of blob block commit, as typed."""

    block_id: Annotated[
        list[str] | None,
        typer.Option("--block-id", metavar="BASE64", help="Use this block; repeat it for more, in their order."),
    ] = None
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", metavar="FILE|-", help="Read the block ids from this file, one per line."),
    ] = None
    content_type: Annotated[
        str | None, typer.Option("--content-type", metavar="TYPE", help="Set Content-Type; by default, it stays.")
    ] = None
    metadata: Annotated[
        list[str] | None,
        typer.Option("--metadata", metavar="KEY=VALUE", help="Replace the metadata; by default, they stay."),
    ] = None
    allow_empty: Annotated[bool, typer.Option("--allow-empty", help="Make an empty blob of no blocks.")] = False

    def read_ids(self) -> Sequence[str]:
        """Return the ids of the blocks.

        Raises:
            UsageError: one is malformed, they differ in length, or there are none.
        """
        from azguard.blobs.content import blocks

        if self.file is not None and self.block_id:
            raise UsageError("--block-id and --file do not go together", hint="leave one of them out")
        ids = [*(self.block_id or ())]
        if self.file is not None:
            values.not_empty(self.file, "--file")
            ids = inputs.read(self.file).decode("utf-8", "replace").split()
        if not ids and not self.allow_empty:
            raise UsageError(
                "no block is named", hint="name them with --block-id or -f FILE; for an empty blob: --allow-empty"
            )
        for block in ids:
            blocks.decode_id(block)
        blocks.check_ids(ids)
        return ids

    def to_upload(self, env: Environment, target: Target) -> "Upload":
        """Return the upload that the options describe."""
        from azguard.blobs.content.upload import Settings, Upload
        from azguard.requests.lineage import fresh_op

        settings = Settings(
            content_type=values.header(self.content_type, "--content-type"),
            metadata=None if self.metadata is None else values.metadata(self.metadata),
        )
        return Upload(
            target=target,
            settings=settings,
            conditions=env.conditions(target),
            deadline=env.deadline,
            op=fresh_op(),
        )
