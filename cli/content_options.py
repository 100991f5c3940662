"""The options about content and its headers, which blobs and files share."""

from dataclasses import dataclass
from typing import Annotated

import typer

from azguard.cli import options, values


@dataclass(frozen=True)
class PutContentOptions:
    """What a put writes, and its content headers, as typed."""

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

    def read_headers(self, name: str) -> dict[str, str | None]:
        """Return the content headers, by their names in the core, of what is put under a name.

        Raises:
            UsageError: an option is malformed.
        """
        kind = values.content_type(self.content_type, name, self.file)
        return {"content_type": kind, **_read_others(self)}


@dataclass(frozen=True)
class HeaderOptions:
    """The content headers to set, as typed."""

    content_type: Annotated[
        str | None, typer.Option("--content-type", metavar="TYPE", help="Set Content-Type, such as text/html.")
    ] = None
    content_encoding: options.ContentEncoding = None
    content_language: options.ContentLanguage = None
    content_disposition: options.ContentDisposition = None
    content_cache: options.ContentCache = None
    content_md5: Annotated[
        str | None, typer.Option("--content-md5", metavar="BASE64", help="Set the MD5 that readers are told.")
    ] = None

    def read_headers(self) -> dict[str, str | None]:
        """Return the content headers, by their names in the core.

        Raises:
            UsageError: an option is malformed.
        """
        return {"content_type": values.header(self.content_type, "--content-type"), **_read_others(self)}


def _read_others(given: PutContentOptions | HeaderOptions) -> dict[str, str | None]:
    return {
        "content_encoding": values.header(given.content_encoding, "--content-encoding"),
        "content_language": values.header(given.content_language, "--content-language"),
        "content_disposition": values.header(given.content_disposition, "--content-disposition"),
        "cache_control": values.header(given.content_cache, "--content-cache"),
        "content_md5": values.md5(given.content_md5),
    }
