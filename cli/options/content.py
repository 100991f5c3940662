"""The options of content: headers and SMB properties, which bytes, where a get writes it, where a copy is from."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, ClassVar

from azguard.accounts.account import Account, Auth, Target, parse_sas
from azguard.address import Kind
from azguard.cli import completers
from azguard.cli.context import Environment
from azguard.cli.input import streams
from azguard.cli.input.streams import Overwrite, to_file, to_stream
from azguard.cli.nouns import Noun
from azguard.cli.options import common
from azguard.cli.options.types import (
    HEADER,
    MD5,
    SIZE,
    SNAPSHOT,
    TEXT,
    ValueType,
    require_text,
    size,
    whole,
)
from azguard.cli.parsing.rows import option
from azguard.cli.parsing.tree import Group
from azguard.cli.rules import Rule, any_of, at_most_one, checked, excludes, needs
from azguard.errors import UsageError
from azguard.frozen import frozen
from azguard.guards.versions import SeenVersion
from azguard.naming import same_host

if TYPE_CHECKING:
    from azguard.files.entries import SmbProperties
    from azguard.guards.resolve import Conditions
    from azguard.resources.copies import SourcePiece
    from azguard.resources.ranges import Span
    from azguard.wire.rows import Operation


_KNOWN = (
    "ReadOnly", "Hidden", "System", "None", "Directory", "Archive", "Temporary", "Offline", "NotContentIndexed",
    "NoScrubData",
)  # fmt: skip


def _read_attributes(text: str, name: str) -> str:
    known = {each.lower(): each for each in _KNOWN}
    chosen = [each.strip().lower() for each in require_text(text, name).split("|")]
    for each in chosen:
        if each not in known:
            raise UsageError(f"{name}: {each!r} is no attribute", hint=", ".join(_KNOWN))
    return "|".join(known[each] for each in chosen)


def _read_time(text: str, name: str) -> str:
    """Return a time as the service takes it, in UTC."""
    try:
        moment = datetime.fromisoformat(require_text(text, name))
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (OverflowError, ValueError):
        raise UsageError(f"{name}: {text!r} is no time", hint=f"{name} 2026-01-31T12:00:00Z") from None
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}0Z"


_ATTRIBUTES = ValueType("attributes", _read_attributes)
_TIME = ValueType("time", _read_time)
# The options of content headers.
HEADERS = "--content-type --content-encoding --content-language --content-disposition --content-cache --content-md5"
SMB = "--attributes --created --written --changed --permission-key"
NOTHING_TO_SET = "nothing to set"
NAME_HEADER = "name a header: --content-type text/html"


def guess_content_type(given: str | None, name: str, file: str | None) -> str:
    """Return the content type: as given, or guessed from the blob's name, then from the file's."""
    if given is not None:
        return given
    import mimetypes

    guessed = mimetypes.guess_type(name)[0] or mimetypes.guess_type(file or "")[0]
    return guessed or "application/octet-stream"


@frozen
class HeaderOptions:
    """The content headers to set."""

    content_type: Annotated[
        str | None, option("--content-type", "TYPE", "Set Content-Type, such as text/html.", HEADER)
    ] = None
    content_encoding: common.ContentEncoding = None
    content_language: common.ContentLanguage = None
    content_disposition: common.ContentDisposition = None
    content_cache: common.ContentCache = None
    content_md5: Annotated[str | None, option("--content-md5", "BASE64", "Set the MD5 that readers are told.", MD5)] = (
        None
    )

    def read_headers(self) -> dict[str, str | None]:
        """Return the content headers, by their names in the core."""
        return {
            "content_type": self.content_type,
            "content_encoding": self.content_encoding,
            "content_language": self.content_language,
            "content_disposition": self.content_disposition,
            "cache_control": self.content_cache,
            "content_md5": self.content_md5,
        }


@frozen
class ContentOptions:
    """What is written: a file, stdin or a text."""

    file: common.InputFile = None
    content: common.Content = None

    RULES: ClassVar[tuple[Rule, ...]] = (at_most_one("--file --content"),)

    def open(self, *, takes_folders: bool = False) -> AbstractContextManager[BinaryIO]:
        """Return the content to read; see ``streams.content``."""
        return streams.content(self.file, takes_folders=takes_folders, text=self.content)

    def may_be_empty(self, *, allowed: bool) -> bool:
        """Return whether empty content may be meant: it was said, or a file was named that holds it."""
        return allowed or streams.keeps_content(self.file)


@frozen
class PutContentOptions(HeaderOptions, ContentOptions):
    """What a put writes, and its content headers, as typed; in help the file is the first."""

    content_type: Annotated[
        str | None, option("--content-type", "TYPE", "Set Content-Type.", HEADER, otherwise="from the name")
    ] = None
    content_md5: Annotated[
        str | None,
        option("--content-md5", "BASE64", "Refuse content with another MD5.", MD5),
    ] = None

    RULES: ClassVar[tuple[Rule, ...]] = (
        excludes("--recursive", "--content --content-md5", "each file has content of its own", "leave it out"),
    )

    def read_headers_of(self, name: str) -> dict[str, str | None]:
        """Return the content headers of a put under this name; see ``read_headers``."""
        return {**self.read_headers(), "content_type": guess_content_type(self.content_type, name, self.file)}


@frozen
class SmbPropertyOptions:
    """What SMB clients see: the fields of ``SmbProperties``, as typed."""

    attributes: Annotated[
        str | None,
        option("--attributes", "A|B", "Set these attributes alone, such as 'Hidden|Archive'.", _ATTRIBUTES),
    ] = None
    created: Annotated[str | None, option("--created", "TIME", "Set when it was created: ISO 8601.", _TIME)] = None
    written: Annotated[str | None, option("--written", "TIME", "Set when it was last written: ISO 8601.", _TIME)] = None
    changed: Annotated[str | None, option("--changed", "TIME", "Set when it was last changed: ISO 8601.", _TIME)] = None
    permission_key: Annotated[
        str | None, option("--permission-key", "KEY", "Set the permission that this key stands for.", TEXT)
    ] = None

    def build(self) -> "SmbProperties":
        from azguard.files.entries import SmbProperties

        return SmbProperties(**vars(self))


#: Of a command that sets nothing else.
SOME_SMB_PROPERTY = any_of(SMB, NOTHING_TO_SET, "name a property: --attributes Hidden")


@frozen
class DownloadOptions:
    """Where a get writes content, and its result."""

    file: Annotated[str | None, option("--file, -f", "FILE|-", "Write to this file.", TEXT, otherwise="to stdout")] = (
        None
    )
    result: Annotated[str | None, option("--result", "FILE", "Write the result here as JSON.", TEXT)] = None
    overwrite: Overwrite = False

    def get(self, env: Environment, target: Target, plan: Callable[[], Callable[[], Any]], span: "Span") -> None:
        """Download what ``plan`` returns the beginning of, and remember its version if it is whole."""
        from azguard.resources import delivery

        path, beside = streams.choose_places(self.file, self.result, env.out.query)
        begin = plan()
        with env.out.progress_bar(f"get {target}", is_beside_content=path is None) as progress:
            if path is None:
                got, lineage = delivery.to_stream(target, begin, streams.stdout(), progress.at)
                place = to_stream(streams.stdout(), got.length)
            else:
                admit = partial(env.reads.check_copy, target, path, overwrites=self.overwrite)
                got, lineage = delivery.to_file(target, begin, path, env.deadline, progress.at, admit)
                place = to_file(path, got.inode)
        if place.is_kept and span.is_whole:
            env.reads.record(target, got, place.copy, lineage)
        if beside is not None:
            streams.write_json(beside, got)
        # Without a file the content itself went to stdout.
        if path is not None:
            env.out.show(got)


# What az counts in: the service's own numbers of bytes have 63 bits.
_LARGEST = 2**63 - 1


@frozen
class ListedRangeOptions:
    """Which ranges a list shows."""

    previous_snapshot: Annotated[
        str | None, option("--previous-snapshot", "TIME", "Show only what differs from this snapshot.", SNAPSHOT)
    ] = None
    offset: Annotated[int | None, option("--offset", "SIZE", "Begin at this byte.", SIZE)] = None
    length: Annotated[int | None, option("--length", "SIZE", "List this many bytes.", size(1))] = None
    num_results: common.Limit = None


@frozen
class SpanOptions:
    """Which bytes a get reads."""

    offset: Annotated[int, option("--offset, --start-range", "SIZE", "Begin at this byte.", SIZE)] = 0
    length: Annotated[int | None, option("--length", "SIZE", "Read this many bytes.", size(1))] = None
    end_range: Annotated[
        int | None, option("--end-range", "N", "End with this byte, included, as az has it.", whole(0, _LARGEST))
    ] = None

    RULES: ClassVar[tuple[Rule, ...]] = (
        at_most_one("--length --end-range"),
        excludes("--recursive", "--offset --length --end-range", "it is for one file"),
        checked("--end-range", "not before --offset", "content.build_span"),
    )

    def build_span(self) -> "Span":
        """Return which bytes are meant.

        Raises:
            UsageError: they end before they begin.
        """
        from azguard.resources.ranges import Span

        if self.end_range is None:
            return Span(self.offset, None if self.length is None else self.offset + self.length)
        if self.end_range < self.offset:
            raise UsageError("--end-range is before --offset", hint="both are counted from 0, and included")
        return Span(self.offset, self.end_range + 1)


# What az calls the two commands, behind ``blob copy``.
_OF_AZ = {
    "start": "copy PLACE PLACE",
    "cancel": "abort-copy PLACE --copy-id ID",
}

CopyId = Annotated[str | None, option("--copy-id", "ID", "Stop this copy.", TEXT, otherwise="the pending one")]
#: Which rules every copy has.
RULES = (
    any_of("DESTINATION --source", "where to copy it to is missing", "type the source first, then the destination"),
    excludes("DESTINATION", "--source", "a copy has one source", "leave --source out"),
    checked("SOURCE", "no word of az", "content.find_ends"),
    checked("--source-sas", "no SAS in the URL of the source, too", "content.locate_source"),
)


def find_ends(first: str, second: str | None, source: str | None, noun: str = "blob") -> tuple[str, str]:
    """Return the source and the destination: two words, or the destination and --source.

    Raises:
        UsageError: the first is a word of az.
    """
    if first in _OF_AZ:
        ours = _OF_AZ[first].replace("PLACE", Kind(noun).form)
        raise UsageError(f"the address is missing; {first} is a word of az", hint=f"azguard {noun} {ours}")
    if source is not None:
        return source, first
    assert second is not None
    return first, second


def locate_source(env: Environment, target: Target, source: str, sas: str | None, kind: Kind = Kind.BLOB) -> Target:
    """Return the source of a copy: in the account of its destination, or where its URL leads.

    The credentials of the destination's account are not sent elsewhere: a source in another account needs a
    SAS, or has to be public.

    Raises:
        UsageError: it is malformed, or has two SAS.
        ConfigError: --source-sas is malformed.
    """
    location = env.location(source, kind)
    own = target.account.endpoints.get(kind.service, "")
    if sas is not None:
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


def find_version_of(env: Environment, target: Target, file: str) -> SeenVersion:
    """Return the version that came with a copy of a resource on this machine.

    Raises:
        UsageError: the file cannot be read, or it is no copy that this scope has read.
    """
    with streams.source(file) as stream:
        copy = streams.copy(stream)
    known = None if copy is None else env.reads.recall(target, copy)
    if known is None or known.copy is None or known.other is not None:
        raise UsageError(
            f"--version-of: {file} came with no version of {target}",
            hint=f"name the version: --etag ETAG, or read it: azguard {target.kind} get {target} -f FILE",
        )
    return SeenVersion(known.copy.etag)


def declare_abort(app: Group, noun: Noun, operation: "Operation", note: str = "") -> None:
    """Declare the command that stops a pending copy; ``note`` stands in its help."""

    def abort_copy(env: Environment, resource: Any, copy_id: CopyId = None, *, dry_run: common.DryRun = False) -> None:
        from azguard.resources import copies

        target = noun.locate(env, resource)
        done = copies.abort(target, copy_id, env.conditions(target), env.deadline, only_tells=dry_run)
        if not dry_run:
            env.reads.forget(target)
        env.out.show(done)

    line = f"azguard {noun.kind} abort-copy {noun.example}"
    text = f"""Stop a copy that is pending. The destination is then an empty {noun.kind}.

    {note}

    If the copy was stopped before, the exit status is 0 and the outcome is unchanged. If it has ended otherwise, the
    exit status is 42: there is nothing to stop, and the destination stays as it is.

    Examples:
        {line}
        {line} --copy-id "$COPY_ID"

    Topics: {noun.topic}
    """
    noun.declare(app, "abort-copy", common.operation(operation), text, abort_copy)


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
CreatedType = Annotated[
    str | None, option("--content-type", "TYPE", "Set it on a created blob.", HEADER, otherwise="from the name")
]
OF_SOURCE = needs("--source-sas --source-encryption-key", "--source")
OF_CREATED = needs("--content-type --metadata", "--create", "they are set on a blob that is created")


def read_source(
    env: Environment, target: Target, url: str, sas: str | None, key: str | None, conditions: "Conditions"
) -> "Iterator[SourcePiece]":
    """Yield the ranges of the source, which is read with its own key, under the conditions on it."""
    from azguard.cli.input.accounts import read_encryption_key
    from azguard.resources import copies

    source = locate_source(env, target, url, sas)
    encryption = read_encryption_key("--source-encryption-key", key)
    replace(target.account, encryption=encryption).endpoint("blob")  # the key goes there, too
    source = source._replace(account=replace(source.account, encryption=encryption))
    return copies.read_pieces(source, conditions.source_headers, env.deadline)
