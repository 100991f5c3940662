"""The options of ``blob set-properties``."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from azguard.cli.content_options import HeaderOptions
from azguard.errors import UsageError

if TYPE_CHECKING:
    from azguard.blobs.content.upload import ContentHeaders


@dataclass(frozen=True)
class PropertyOptions(HeaderOptions):
    """The content headers, as typed."""

    clear_content_settings: Annotated[
        bool, typer.Option("--clear-content-settings", help="Clear the headers that you do not set.")
    ] = False

    def check(self) -> "ContentHeaders":
        """Return the headers to set.

        Raises:
            UsageError: an option is malformed, or none is given.
        """
        from azguard.blobs.content.upload import ContentHeaders

        found = ContentHeaders(**self.read_headers())
        if not found.given and not self.clear_content_settings:
            raise UsageError("nothing to set", hint="name a header: --content-type text/html")
        return found
