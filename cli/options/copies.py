"""The options of ``blob copy`` and ``file copy``, and what names the source of a copy."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar

from azguard.accounts.account import Account, Auth, Target
from azguard.address import Kind
from azguard.cli import completers
from azguard.cli.context import Environment
from azguard.cli.options import common
from azguard.cli.options.content_headers import SmbPropertyOptions
from azguard.cli.options.types import DURATION, TEXT
from azguard.cli.parsing.rows import flag, option
from azguard.cli.rules.engine import any_of, at_most_one, checked, excludes, needs
from azguard.errors import UsageError
from azguard.naming import same_host

if TYPE_CHECKING:
    from collections.abc import Iterator

    from azguard.blobs.copies import BlobCopy, CopySettings
    from azguard.blobs.copy_sources import SourcePiece
    from azguard.files.copies import FileCopySettings
    from azguard.guards.resolve import Conditions
    from azguard.requests.results import Written
    from azguard.resources.copies import Copied


_PLACES = {"blob": "CONTAINER/NAME", "file": "SHARE/PATH"}
# What az calls the two commands, behind ``blob copy``.
_OF_AZ = {
    "start": "copy PLACE PLACE",
    "cancel": "abort-copy PLACE --copy-id ID",
}
# How long file copy waits for a byte.
WAIT_SECONDS = 3600.0

CopyId = Annotated[str | None, option("--copy-id", "ID", "Stop this copy.", TEXT, otherwise="the pending one")]
_LAST = "@last"
_ENDS = (
    any_of("DESTINATION --source", "where to copy it to is missing", "type the source first, then the destination"),
    excludes("DESTINATION", "--source", "a copy has one source", "leave --source out"),
)


@dataclass(frozen=True)
class CopyOptions:
    """The options of blob copy."""

    source: Annotated[
        str | None,
        option(
            "--source, --source-uri",
            "BLOB|URL",
            "Copy this; the only word is then the destination.",
            TEXT,
            completer=completers.blobs,
        ),
    ] = None
    source_sas: common.SourceSas = None
    wait: Annotated[
        float | None,
        option(
            "--wait",
            "[DURATION]",
            "Wait this long for the end of the copy (exit 75); alone, 60s.",
            DURATION,
            bare=DURATION.write(60),
        ),
    ] = None
    no_wait: Annotated[bool, flag("--no-wait", "Do not wait; the default.")] = False
    metadata: common.Metadata = None
    tags: common.Tags = None
    tier: common.Tier = None
    if_exists: common.IfExists = None
    no_lineage: common.NoLineage = False

    RULES: ClassVar = (
        at_most_one("--wait --no-wait"),
        *_ENDS,
        checked("SOURCE", "no word of az", "copies.find_ends"),
        checked("--source-sas", "no SAS in the URL of the source, too", "copies.locate_source"),
    )

    def build_settings(self) -> "CopySettings":
        """Return the settings of the copy, besides its content."""
        from azguard.blobs.copies import CopySettings

        return CopySettings(metadata=self.metadata, tags=self.tags or {}, tier=self.tier)


def find_ends(first: str, second: str | None, source: str | None, noun: str = "blob") -> tuple[str, str]:
    """Return the source and the destination: two words, or the destination and --source.

    Raises:
        UsageError: the first is a word of az.
    """
    if first in _OF_AZ:
        ours = _OF_AZ[first].replace("PLACE", _PLACES[noun])
        raise UsageError(f"the address is missing; {first} is a word of az", hint=f"azguard {noun} {ours}")
    if source is not None:
        return source, first
    assert second is not None
    return first, second


def locate_source(env: Environment, target: Target, source: str, sas: str | None, kind: Kind = Kind.BLOB) -> Target:
    """Return the source of a copy: in the account of its destination, or where its URL leads.

    The credentials of the destination's account are not sent elsewhere: a source in another account needs a SAS, or is
    read as what is public.

    Raises:
        UsageError: it is malformed, or has two SAS.
        ConfigError: what was given as a SAS is none.
    """
    location = env.location(source, kind)
    own = target.account.endpoints.get(kind.service, "")
    if sas is not None:
        from azguard.accounts.account import parse_sas
        from azguard.cli.input.accounts import secret

        if location.sas is not None:
            raise UsageError("--source has a SAS already, and --source-sas is another", hint="leave one of them out")
        token = parse_sas(secret(sas), "--source-sas")
        location = replace(location, endpoint=location.endpoint or target.account.endpoint(kind.service), sas=token)
    if location.sas is not None:
        return Target(env.find_account_of_url(location), location.address)
    if location.endpoint is None or same_host(location.endpoint) == same_host(own):
        return Target(target.account, location.address)
    if kind is Kind.FILE:
        raise UsageError(
            f"{location.endpoint} is another account, whose files are read with a SAS only",
            hint="give one: --source-sas @FILE",
        )
    public = Account(location.account_name or "", {kind.service: location.endpoint}, Auth.ANONYMOUS)
    return Target(public, location.address)


def say_waiting(env: Environment, copied: "Copied") -> None:
    """Say that a copy is waited for, and what becomes of it if the wait is interrupted."""
    if copied.copy_status != "success":
        name = copied.address.partition(":")[2]
        env.out.info(f"waiting for copy {copied.copy_id} to {name}; it goes on if you stop waiting")


def record_copy(env: Environment, target: Target, copied: "Written", plan: "BlobCopy") -> None:
    """Record the version that a copy has written; a copy that is pending gets another version when it ends."""
    if getattr(copied, "copy_status", None) == "pending":
        env.reads.forget(target)
        return
    env.reads.record(target, copied, lineage=plan.stamp)


@dataclass(frozen=True)
class FileCopyOptions:
    """The options of file copy."""

    smb: SmbPropertyOptions
    source: Annotated[
        str | None,
        option(
            "--source, --source-uri",
            "FILE|BLOB|URL",
            "Copy this; the only word is then the destination.",
            TEXT,
            completer=completers.file_sources,
        ),
    ] = None
    source_sas: common.SourceSas = None
    source_etag: Annotated[
        str | None,
        option("--source-etag", "ETAG|@last", "Copy only this version of the source.", TEXT),
    ] = None
    wait: Annotated[
        float | None,
        option(
            "--wait",
            "[DURATION]",
            "Stop the copy if it has not ended by then (exit 75).",
            DURATION,
            bare=DURATION.write(60),
            otherwise="wait as long as it goes on",
        ),
    ] = None
    no_wait: Annotated[bool, flag("--no-wait", "Stop the copy if it does not end at once.")] = False
    preserve_info: Annotated[
        bool, flag("--preserve-info", "Copy the attributes and times too, if the source is a file.")
    ] = False
    preserve_permissions: Annotated[
        bool, flag("--preserve-permissions", "Copy the permission too, if the source is a file.")
    ] = False
    metadata: common.Metadata = None
    if_exists: common.IfExists = None

    RULES: ClassVar = (
        at_most_one("--wait --no-wait"),
        *_ENDS,
        checked("SOURCE", "no word of az", "copies.find_ends"),
        checked("--source-sas", "no SAS in the URL of the source, too", "copies.locate_source"),
        checked("--preserve-info --preserve-permissions", "the source is a file", "copies.build_settings"),
        checked("--source-etag", "@last: the source was read here", "copies.read_source_etag"),
        excludes("--preserve-permissions", "--permission-key"),
    )

    def build_settings(self, source: Target) -> "FileCopySettings":
        """Return the settings of the copy of this source, besides its content.

        Raises:
            UsageError: the source is a blob, which has nothing to preserve.
        """
        from azguard.files.copies import FileCopySettings

        if source.kind is not Kind.FILE and (self.preserve_info or self.preserve_permissions):
            option = "--preserve-info" if self.preserve_info else "--preserve-permissions"
            raise UsageError(f"{option} is for files, and the source is a blob", hint=f"leave {option} out")
        return FileCopySettings(
            smb=self.smb.build(),
            metadata=self.metadata,
            keeps_info=self.preserve_info,
            keeps_permission=self.preserve_permissions,
        )

    def read_source_etag(self, env: Environment, source: Target) -> str | None:
        """Return the version of the source that is wanted; None is the one that is there.

        Raises:
            UsageError: it is malformed, or this scope never read the source.
        """
        from azguard.guards import versions

        text = self.source_etag
        if text != _LAST:
            return None if text is None else versions.parse_blob_etag(text, "source_etag")
        last = env.reads.find_last(source)
        if last is None:
            raise UsageError(f"--source-etag @last: {source} was never read here", hint="name its ETag, or read it")
        return last.etag


def locate_file_source(env: Environment, target: Target, text: str, sas: str | None) -> Target:
    """Return the source of a copy: a file, or a blob, in the account of its destination or where its URL leads.

    Raises:
        UsageError: it is malformed, or names something else.
    """
    is_blob = text.startswith(f"{Kind.BLOB}:") or env.find_service(text) == "blob"
    return locate_source(env, target, text, sas, Kind.BLOB if is_blob else Kind.FILE)


SourceUrl = Annotated[
    str | None,
    option(
        "--source, --source-uri",
        "BLOB|URL",
        "Let the service read the content from this blob.",
        TEXT,
        completer=completers.blobs,
    ),
]
OF_SOURCE = needs("--source-sas", "--source")
OF_CREATED = needs("--content-type --metadata", "--create", "they are set on a blob that is created")


def read_source(
    env: Environment, target: Target, url: str, sas: str | None, conditions: "Conditions"
) -> "Iterator[SourcePiece]":
    """Yield the ranges of the source, under the conditions on it."""
    from azguard.blobs import copy_sources

    source = locate_source(env, target, url, sas)
    return copy_sources.read_pieces(source, conditions.source_headers, env.deadline)
