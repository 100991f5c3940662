"""The options of ``blob put``."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from azguard.cli import options, values
from azguard.cli.content_options import PutContentOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from azguard.blobs.content.upload import Settings, Upload


@dataclass(frozen=True)
class BlobPutOptions(PutContentOptions):
    """The options of blob put, as typed."""

    tier: Annotated[
        str | None, typer.Option("--tier", metavar="Hot|Cool|Cold|Archive", help="Set the access tier.")
    ] = None
    metadata: options.Metadata = None
    tags: options.Tags = None
    allow_empty: Annotated[
        bool,
        typer.Option("--allow-empty", help="Write an empty blob if the input is empty; let --mirror delete all."),
    ] = False
    if_exists: options.IfExists = None
    blob_type: Annotated[
        str | None,
        typer.Option("--blob-type", metavar="block", help="Replace also a blob of another type."),
    ] = None
    no_lineage: options.NoLineage = False
    snapshot_first: options.SnapshotFirst = False

    def check(self, name: str) -> "Settings":
        """Return what a blob of this name is to be besides its content.

        Raises:
            UsageError: an option is malformed.
        """
        from azguard.blobs.content.upload import Settings

        values.choice(self.blob_type, "--blob-type", ("block",))
        return Settings(
            **self.read_headers(name),
            tier=values.tier(self.tier),
            metadata=values.metadata(self.metadata),
            tags=values.tags(self.tags),
        )

    @property
    def takes_empty(self) -> bool:
        """Return whether empty content may be meant: it was said, or a file was named that holds it."""
        from azguard.cli import inputs

        return self.allow_empty or inputs.keeps_content(self.file)

    def keep_and_write(self, upload: "Upload", write: "Callable[[Upload], Any]") -> Any:
        """Return what was written; with --snapshot-first, what it replaces is kept before."""
        if not self.snapshot_first:
            return write(upload)
        from azguard.blobs import snapshots

        return snapshots.write_keeping(upload, write)
