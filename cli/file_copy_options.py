"""The options of ``file copy``, and what its source is."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from azguard.accounts.target import Target
from azguard.address import Kind
from azguard.cli import completers, copy_options, options, values
from azguard.cli.context import Environment
from azguard.cli.file_property_options import SmbPropertyOptions
from azguard.errors import UsageError

if TYPE_CHECKING:
    from azguard.files.copy_runs import FileCopySettings

_LAST = "@last"


@dataclass(frozen=True)
class FileCopyOptions:
    """The options of file copy, as typed."""

    smb: SmbPropertyOptions
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            "--source-uri",
            metavar="SHARE/PATH|URL",
            help="Copy this file or blob; always needed.",
            autocompletion=completers.file_sources,
        ),
    ] = None
    source_sas: copy_options.SourceSas = None
    source_etag: Annotated[
        str | None,
        typer.Option("--source-etag", metavar="ETAG|@last", help="Copy only this version of the source."),
    ] = None
    preserve_info: Annotated[
        bool, typer.Option("--preserve-info", help="Copy the attributes and times too, if the source is a file.")
    ] = False
    preserve_permissions: Annotated[
        bool, typer.Option("--preserve-permissions", help="Copy the permission too, if the source is a file.")
    ] = False
    metadata: options.Metadata = None
    if_exists: options.IfExists = None

    def check(self, source: Target) -> "FileCopySettings":
        """Return what the copy of this source is to be besides its content.

        Raises:
            UsageError: an option is malformed, or contradicts another or the source.
        """
        from azguard.files.copy_runs import FileCopySettings

        if source.kind is not Kind.FILE and (self.preserve_info or self.preserve_permissions):
            option = "--preserve-info" if self.preserve_info else "--preserve-permissions"
            raise UsageError(f"{option} is for files, and the source is a blob", hint=f"leave {option} out")
        if self.preserve_permissions and self.smb.permission_key is not None:
            raise UsageError(
                "--preserve-permissions and --permission-key contradict each other", hint="leave one of them out"
            )
        return FileCopySettings(
            smb=self.smb.read(),
            metadata=None if self.metadata is None else values.metadata(self.metadata),
            keeps_info=self.preserve_info,
            keeps_permission=self.preserve_permissions,
        )

    def read_source_etag(self, env: Environment, source: Target) -> str | None:
        """Return the version of the source that is wanted; None is the one that is there.

        Raises:
            UsageError: it is malformed, or this scope never read the source.
        """
        from azguard.conditions import etags

        text = values.not_empty(self.source_etag, "--source-etag")
        if text != _LAST:
            return None if text is None else etags.parse_blob_etag(text, "source_etag")
        last = env.reads.find_last(source)
        if last is None:
            raise UsageError(f"--source-etag @last: {source} was never read here", hint="name its ETag, or read it")
        return last.etag


def locate_source(env: Environment, target: Target, given: FileCopyOptions) -> Target:
    """Return the source of a copy: a file, or a blob, in the account of its destination or where its URL leads.

    Raises:
        UsageError: it is malformed, or names something else.
    """
    text = given.source or ""
    is_blob = text.startswith(f"{Kind.BLOB}:") or env.find_service(text) == "blob"
    return copy_options.locate_source(env, target, text, given.source_sas, Kind.BLOB if is_blob else Kind.FILE)
