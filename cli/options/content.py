"""The options of content and its headers: what puts it, sets its properties, or waits for it."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from azguard.accounts.account import Target
from azguard.cli import context
from azguard.cli.input import values
from azguard.cli.options import common
from azguard.cli.parsing.rows import flag, option
from azguard.errors import UsageError
from azguard.guards.operations import BLOB_GET, Operation
from azguard.guards.requested import RequestedConditions
from azguard.guards.resolve import Conditions
from azguard.times import span

if TYPE_CHECKING:
    from collections.abc import Callable

    from azguard.blobs.content.upload import ContentHeaders, Settings, Upload
    from azguard.blobs.waiting import Waiting
    from azguard.cli.context import Environment
    from azguard.files.properties import FileHeaders, SmbProperties


_KNOWN = (
    "ReadOnly", "Hidden", "System", "None", "Directory", "Archive", "Temporary", "Offline", "NotContentIndexed",
    "NoScrubData",
)  # fmt: skip
# How long a wait lasts by default.
WAIT_SECONDS = 60.0
_LAST = "@last"
_NOW = {
    "exists": "does not exist yet",
    "absent": "still exists",
    "changed": "is unchanged",
}


@dataclass(frozen=True)
class HeaderOptions:
    """The content headers to set, as typed."""

    content_type: Annotated[str | None, option("--content-type", "TYPE", "Set Content-Type, such as text/html.")] = None
    content_encoding: common.ContentEncoding = None
    content_language: common.ContentLanguage = None
    content_disposition: common.ContentDisposition = None
    content_cache: common.ContentCache = None
    content_md5: Annotated[str | None, option("--content-md5", "BASE64", "Set the MD5 that readers are told.")] = None

    def read_headers(self) -> dict[str, str | None]:
        """Return the content headers, by their names in the core."""
        return {
            "content_type": values.header(self.content_type, "--content-type"),
            "content_encoding": values.header(self.content_encoding, "--content-encoding"),
            "content_language": values.header(self.content_language, "--content-language"),
            "content_disposition": values.header(self.content_disposition, "--content-disposition"),
            "cache_control": values.header(self.content_cache, "--content-cache"),
            "content_md5": values.md5(self.content_md5),
        }


@dataclass(frozen=True)
class _SourceOptions:
    file: Annotated[str | None, option("--file, -f", "FILE|-", "Read this file; by default, stdin.")] = None


@dataclass(frozen=True)
class PutContentOptions(HeaderOptions, _SourceOptions):
    """What a put writes, and its content headers, as typed; in help the file is the first."""

    content_type: Annotated[
        str | None, option("--content-type", "TYPE", "Set Content-Type; by default, from the name.")
    ] = None
    content_md5: Annotated[
        str | None,
        option("--content-md5", "BASE64", "Refuse content with another MD5."),
    ] = None

    def read_headers_of(self, name: str) -> dict[str, str | None]:
        """Return the content headers of what is put under a name; see ``read_headers``."""
        return {**self.read_headers(), "content_type": values.content_type(self.content_type, name, self.file)}

    def may_be_empty(self, allowed: bool) -> bool:
        """Return whether empty content may be meant: it was said, or a file was named that holds it."""
        from azguard.cli.input import streams

        return allowed or streams.keeps_content(self.file)


@dataclass(frozen=True)
class PropertyOptions(HeaderOptions):
    """The content headers, as typed."""

    clear_content_settings: Annotated[
        bool, flag("--clear-content-settings", "Clear the headers that you do not set.")
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


@dataclass(frozen=True)
class BlobPutOptions(PutContentOptions):
    """The options of blob put, as typed."""

    tier: common.Tier = None
    metadata: common.Metadata = None
    tags: common.Tags = None
    allow_empty: Annotated[
        bool,
        flag("--allow-empty", "Write an empty blob if the input is empty; let --mirror delete all."),
    ] = False
    if_exists: common.IfExists = None
    blob_type: Annotated[
        str | None,
        option("--blob-type", "block", "Replace also a blob of another type."),
    ] = None
    no_lineage: common.NoLineage = False
    snapshot_first: common.SnapshotFirst = False

    def check(self, name: str) -> "Settings":
        """Return the settings of a blob of this name, besides its content.

        Raises:
            UsageError: an option is malformed.
        """
        from azguard.blobs.content.upload import Settings

        values.choice(self.blob_type, "--blob-type", ("block",))
        return Settings(
            **self.read_headers_of(name),
            tier=values.tier(self.tier),
            metadata=values.metadata(self.metadata),
            tags=values.tags(self.tags),
        )

    @property
    def takes_empty(self) -> bool:
        """Return whether empty content may be meant."""
        return self.may_be_empty(self.allow_empty)

    def write_keeping_snapshot(self, upload: "Upload", write: "Callable[[Upload], Any]") -> Any:
        """Return the result of the write; with --snapshot-first, keep a snapshot of the replaced version before."""
        if not self.snapshot_first:
            return write(upload)
        from azguard.blobs import snapshots

        return snapshots.write_keeping(upload, write)


@dataclass(frozen=True)
class SmbPropertyOptions:
    """What SMB clients see, as typed."""

    attributes: Annotated[
        str | None,
        option("--attributes", "A|B", "Set these attributes alone, such as 'Hidden|Archive'."),
    ] = None
    created: Annotated[str | None, option("--created", "TIME", "Set when it was created: ISO 8601.")] = None
    written: Annotated[str | None, option("--written", "TIME", "Set when it was last written: ISO 8601.")] = None
    changed: Annotated[str | None, option("--changed", "TIME", "Set when it was last changed: ISO 8601.")] = None
    permission_key: Annotated[
        str | None, option("--permission-key", "KEY", "Set the permission that this key stands for.")
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
        """Return the properties to set.

        Raises:
            UsageError: an option is malformed, or no option is given.
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


@dataclass(frozen=True)
class FilePutOptions(PutContentOptions):
    """The options of file put, as typed."""

    smb: SmbPropertyOptions = field(kw_only=True)
    metadata: common.Metadata = None
    allow_empty: Annotated[
        bool,
        flag("--allow-empty", "Write an empty file if the input is empty; let --mirror delete all."),
    ] = False
    if_exists: common.IfExists = None

    def check(self, name: str) -> "tuple[FileHeaders, SmbProperties]":
        """Return the properties of a file of this name, besides its content.

        Raises:
            UsageError: an option is malformed.
        """
        from azguard.files.properties import FileHeaders

        return FileHeaders(**self.read_headers_of(name)), self.smb.read()

    def read_metadata(self) -> dict[str, str]:
        """Return the metadata that it is to have.

        Raises:
            UsageError: they are malformed.
        """
        return values.metadata(self.metadata)

    @property
    def takes_empty(self) -> bool:
        """Return whether empty content may be meant."""
        return self.may_be_empty(self.allow_empty)


@dataclass(frozen=True)
class ReadOptions:
    """What a get of one blob takes."""

    wait_changed: Annotated[
        bool,
        flag("--wait-changed", "Wait until the version differs from the one you last read, then read it."),
    ] = False
    wait: Annotated[
        str | None,
        option("--wait", "DURATION", "Wait this long (exit 75); by default, 60s."),
    ] = None
    validate_content: Annotated[
        bool,
        flag("--validate-content", "Ask the service for the MD5 of each range, and compare it."),
    ] = False

    def check(self, *, is_tree: bool) -> None:
        """Refuse what means nothing.

        Raises:
            UsageError: it is said how long to wait, but not for what, or for the change of many blobs.
        """
        if self.wait is not None and not self.wait_changed:
            raise UsageError("--wait says how long --wait-changed waits, which is missing", hint="add --wait-changed")
        if is_tree and (self.wait_changed or self.validate_content):
            option = "--wait-changed" if self.wait_changed else "--validate-content"
            raise UsageError(f"{option} is for one blob, and --recursive is for many", hint="leave one of them out")

    def conditions(self, env: "Environment", target: Target) -> Conditions:
        """Return the conditions of a get, after waiting for a change if that is asked for.

        The get carries them too, so that it never delivers the version that was to be waited past.
        """
        if not self.wait_changed:
            return env.conditions(target)
        from azguard.blobs.waiting import Until, wait

        conditions = resolve_change(env, target, BLOB_GET)
        wait(target, Until.CHANGED, conditions, describe_wait(env, target, Until.CHANGED, self.wait, "--wait"))
        return conditions


def describe_wait(env: "Environment", target: Target, until: str, text: str | None, option: str) -> "Waiting":
    """Return how to wait: for as long as the text of an option says, telling what is waited for.

    Raises:
        UsageError: the text is no duration.
    """
    import random

    from azguard.blobs.waiting import Waiting
    from azguard.cli.options import leases

    if text is not None:
        values.duration(text, option)
    patience = env.patience(text, WAIT_SECONDS)
    context.warn_of_end(target, patience.seconds, env.out.warn_once)
    return Waiting(
        patience=patience,
        tell=lambda: env.out.info(f"waiting up to {span(patience.seconds)}: {target.address} {_NOW[until]}"),
        tell_lease=lambda state: leases.say_waiting(env, state),
        uniform=random.SystemRandom().uniform,
    )


def resolve_change(env: "Environment", target: Target, operation: Operation, etag: str | None = None) -> Conditions:
    """Return the conditions of a read that answers only with another version: than ``etag``, or than what was read.

    Raises:
        Changed: this scope never read the blob, so that there is no version to compare with.
    """
    from azguard.blobs.waiting import check_was_read

    asked = RequestedConditions.of(env.shared)
    if etag is not None:
        asked = replace(asked, if_none_match=etag)
    if asked.if_none_match is None and asked.if_modified_since is None:
        asked = replace(asked, if_none_match=_LAST)
    if asked.if_none_match == _LAST:
        check_was_read(target, env.reads.find_last(target))
    return env.reads.resolve_conditions(operation, asked, target)
