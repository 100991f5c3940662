"""The options of ``file put``."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from azguard.cli import options, values
from azguard.cli.file_property_options import SmbPropertyOptions

if TYPE_CHECKING:
    from azguard.files.properties import FileHeaders, SmbProperties


@dataclass(frozen=True)
class FilePutOptions:
    """The options of file put, as typed."""

    smb: SmbPropertyOptions
    file: Annotated[
        str | None, typer.Option("--file", "-f", metavar="FILE|-", help="Read this file; by default, stdin.")
    ] = None
    content_type: Annotated[
        str | None, typer.Option("--content-type", metavar="TYPE", help="Set Content-Type; by default, from the name.")
    ] = None
    content_encoding: options.ContentEncoding = None
    content_language: options.ContentLanguage = None
    content_disposition: options.ContentDisposition = None
    content_cache: options.ContentCache = None
    content_md5: Annotated[
        str | None,
        typer.Option("--content-md5", metavar="BASE64", help="Refuse content with another MD5."),
    ] = None
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

        headers = FileHeaders(
            content_type=values.content_type(self.content_type, name, self.file),
            content_encoding=values.not_empty(self.content_encoding, "--content-encoding"),
            content_language=values.not_empty(self.content_language, "--content-language"),
            content_disposition=values.not_empty(self.content_disposition, "--content-disposition"),
            cache_control=values.not_empty(self.content_cache, "--content-cache"),
            content_md5=values.md5(self.content_md5),
        )
        return headers, self.smb.read()

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
