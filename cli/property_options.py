"""The options of ``blob set-properties``."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from azguard.cli import options, values
from azguard.errors import UsageError

if TYPE_CHECKING:
    from azguard.blobs.headers import ContentHeaders


@dataclass(frozen=True)
class PropertyOptions:
    """The content headers, as typed."""

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
    clear_content_settings: Annotated[
        bool, typer.Option("--clear-content-settings", help="Clear the headers that you do not set.")
    ] = False

    def check(self) -> "ContentHeaders":
        """Return the headers to set.

        Raises:
            UsageError: an option is malformed, or none is given.
        """
        from azguard.blobs.headers import ContentHeaders

        found = ContentHeaders(
            content_type=values.not_empty(self.content_type, "--content-type"),
            content_encoding=values.not_empty(self.content_encoding, "--content-encoding"),
            content_language=values.not_empty(self.content_language, "--content-language"),
            content_disposition=values.not_empty(self.content_disposition, "--content-disposition"),
            cache_control=values.not_empty(self.content_cache, "--content-cache"),
            content_md5=values.md5(self.content_md5),
        )
        if not found.given and not self.clear_content_settings:
            raise UsageError("nothing to set", hint="name a header: --content-type text/html")
        return found
