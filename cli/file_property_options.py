"""The options of ``file set-properties`` and ``dir set-properties``."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from azguard.cli import values
from azguard.cli.content_options import HeaderOptions
from azguard.errors import UsageError

if TYPE_CHECKING:
    from azguard.files.properties import FileHeaders, SmbProperties

_KNOWN = (
    "ReadOnly", "Hidden", "System", "None", "Directory", "Archive", "Temporary", "Offline", "NotContentIndexed",
    "NoScrubData",
)  # fmt: skip


@dataclass(frozen=True)
class SmbPropertyOptions:
    """What SMB clients see, as typed."""

    attributes: Annotated[
        str | None,
        typer.Option("--attributes", metavar="A|B", help="Set these attributes alone, such as 'Hidden|Archive'."),
    ] = None
    created: Annotated[
        str | None, typer.Option("--created", metavar="TIME", help="Set when it was created: ISO 8601.")
    ] = None
    written: Annotated[
        str | None, typer.Option("--written", metavar="TIME", help="Set when it was last written: ISO 8601.")
    ] = None
    changed: Annotated[
        str | None, typer.Option("--changed", metavar="TIME", help="Set when it was last changed: ISO 8601.")
    ] = None
    permission_key: Annotated[
        str | None, typer.Option("--permission-key", metavar="KEY", help="Set the permission that this key stands for.")
    ] = None

    def check(self) -> "SmbProperties":
        """Return the properties to set.

        Raises:
            UsageError: an option is malformed, or none is given.
        """
        found = self.read()
        if not found.is_given:
            raise UsageError("nothing to set", hint="name a property: --attributes Hidden")
        return found

    def read(self) -> "SmbProperties":
        """Return the properties to set, if any.

        Raises:
            UsageError: an option is malformed.
        """
        from azguard.files.properties import SmbProperties

        return SmbProperties(
            attributes=_read_attributes(self.attributes),
            created=_read_time(self.created, "--created"),
            written=_read_time(self.written, "--written"),
            changed=_read_time(self.changed, "--changed"),
            permission_key=values.not_empty(self.permission_key, "--permission-key"),
        )


@dataclass(frozen=True)
class FilePropertyOptions(HeaderOptions):
    """The content headers, and what SMB clients see, as typed."""

    smb: SmbPropertyOptions = field(kw_only=True)

    def check(self) -> "tuple[FileHeaders, SmbProperties]":
        """Return what to set.

        Raises:
            UsageError: an option is malformed, or none is given.
        """
        from azguard.files.properties import FileHeaders

        headers = FileHeaders(**self.read_headers())
        smb = self.smb.read()
        if not headers.is_given and not smb.is_given:
            raise UsageError("nothing to set", hint="name a property: --content-type text/html")
        return headers, smb


def _read_attributes(text: str | None) -> str | None:
    if values.not_empty(text, "--attributes") is None:
        return None
    known = {each.lower(): each for each in _KNOWN}
    chosen = [each.strip().lower() for each in str(text).split("|")]
    for each in chosen:
        if each not in known:
            raise UsageError(f"--attributes: {each!r} is no attribute", hint=", ".join(_KNOWN))
    return "|".join(known[each] for each in chosen)


def _read_time(text: str | None, option: str) -> str | None:
    """Return a time as the service takes it, in UTC."""
    if values.not_empty(text, option) is None:
        return None
    try:
        moment = datetime.fromisoformat(str(text))
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (OverflowError, ValueError):
        raise UsageError(f"{option}: {text!r} is no time", hint=f"{option} 2026-01-31T12:00:00Z") from None
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}0Z"
