"""The options of ``file put``."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from azguard.cli import options, values
from azguard.cli.content_options import PutContentOptions
from azguard.cli.file_property_options import SmbPropertyOptions

if TYPE_CHECKING:
    from azguard.files.properties import FileHeaders, SmbProperties


@dataclass(frozen=True)
class FilePutOptions(PutContentOptions):
    """The options of file put, as typed."""

    smb: SmbPropertyOptions = field(kw_only=True)
    metadata: options.Metadata = None
    allow_empty: Annotated[
        bool,
        typer.Option("--allow-empty", help="Write an empty file if the input is empty; let --mirror delete all."),
    ] = False
    if_exists: options.IfExists = None

    def check(self, name: str) -> "tuple[FileHeaders, SmbProperties]":
        """Return what a file of this name is to be besides its content.

        Raises:
            UsageError: an option is malformed.
        """
        from azguard.files.properties import FileHeaders

        return FileHeaders(**self.read_headers(name)), self.smb.read()

    def read_metadata(self) -> dict[str, str]:
        """Return the metadata that it is to have.

        Raises:
            UsageError: they are malformed.
        """
        return values.metadata(self.metadata)

    @property
    def takes_empty(self) -> bool:
        """Return whether empty content may be meant: it was said, or a file was named that holds it."""
        from azguard.cli import inputs

        return self.allow_empty or inputs.keeps_content(self.file)
