"""The options of content: its headers and SMB properties, which bytes of it, and where a get writes it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, ClassVar

from azguard.cli.input import streams
from azguard.cli.input.streams import Overwrite, to_file, to_stream
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
from azguard.cli.rules import Rule, any_of, at_most_one, checked, excludes
from azguard.errors import UsageError
from azguard.frozen import frozen

if TYPE_CHECKING:
    from azguard.accounts.account import Target
    from azguard.cli.context import Environment
    from azguard.files.entries import SmbProperties
    from azguard.requests.delivery import Span


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
        """Return the content headers of what is put under a name; see ``read_headers``."""
        return {**self.read_headers(), "content_type": guess_content_type(self.content_type, name, self.file)}


@frozen
class SmbPropertyOptions:
    """What SMB clients see."""

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
        """Return the properties to set, if any."""
        from azguard.files.entries import SmbProperties

        return SmbProperties(
            attributes=self.attributes,
            created=self.created,
            written=self.written,
            changed=self.changed,
            permission_key=self.permission_key,
        )


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

    def get(self, env: "Environment", target: "Target", plan: Callable[[], Callable[[], Any]], span: "Span") -> None:
        """Download what ``plan`` returns the beginning of, and remember its version if it is whole."""
        from azguard.resources import downloads

        path, beside = streams.choose_places(self.file, self.result, env.out.query)
        begin = plan()
        with env.out.progress_bar(f"get {target}", is_beside_content=path is None) as progress:
            if path is None:
                got, lineage = downloads.to_stream(target, begin, streams.stdout(), progress.at)
                place = to_stream(streams.stdout(), got.length)
            else:
                admit = partial(env.reads.check_copy, target, path, overwrites=self.overwrite)
                got, lineage = downloads.to_file(target, begin, path, env.deadline, progress.at, admit)
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
        checked("--end-range", "not before --offset", "content_headers.build_span"),
    )

    def build_span(self) -> "Span":
        """Return which bytes are meant.

        Raises:
            UsageError: they end before they begin.
        """
        from azguard.requests.delivery import Span

        if self.end_range is None:
            return Span(self.offset, None if self.length is None else self.offset + self.length)
        if self.end_range < self.offset:
            raise UsageError("--end-range is before --offset", hint="both are counted from 0, and included")
        return Span(self.offset, self.end_range + 1)
