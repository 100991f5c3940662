"""The options of ``blob page``."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from azguard.accounts.target import Target
from azguard.cli import copy_options, inputs, options, source_options, values
from azguard.cli.context import Environment
from azguard.conditions.requested import RequestedConditions
from azguard.conditions.resolve import Conditions
from azguard.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from azguard.blobs.content.page_blob import PageWrite
    from azguard.blobs.copy_sources import SourcePiece


@dataclass(frozen=True)
class PagePutOptions:
    """The options of blob page put, as typed."""

    file: Annotated[
        str | None, typer.Option("--file", "-f", metavar="FILE|-", help="Write this file; by default, stdin.")
    ] = None
    offset: Annotated[str, typer.Option("--offset", metavar="BYTES", help="Begin at this byte, a multiple of 512.")] = (
        "0"
    )
    source_url: source_options.SourceUrl = None
    source_sas: copy_options.SourceSas = None
    create: Annotated[
        str | None,
        typer.Option("--create", metavar="BYTES", help="Create it with this length if it is missing."),
    ] = None
    content_type: Annotated[
        str | None,
        typer.Option("--content-type", metavar="TYPE", help="Set it on a created blob; by default, from the name."),
    ] = None
    metadata: options.Metadata = None

    def open(self) -> AbstractContextManager[BinaryIO | None]:
        """Return the content that is to be read; None where the service reads it."""
        return nullcontext() if self.source_url is not None else inputs.content(self.file)

    def read(self, env: Environment, write: "PageWrite", stream: BinaryIO | None) -> "BinaryIO | Iterator[SourcePiece]":
        """Return the content, or the ranges of the source."""
        if stream is not None:
            return stream
        return source_options.read(env, write.target, self.source_url or "", self.source_sas, write.conditions)

    def check(self, env: Environment, target: Target, size: int | None) -> "PageWrite":
        """Return the write that the options describe; ``size`` is the length of the content, where it is known.

        Raises:
            UsageError: an option is malformed, or the content does not consist of whole pages.
        """
        from azguard.blobs.content.page_blob import MOST_BYTES, PAGE_BYTES, check_range
        from azguard.blobs.content.upload import Settings

        source_options.check(self.source_url, self.source_sas, self.file)
        offset = values.size(self.offset, "--offset")
        check_range(offset, None)
        if size is not None and size % PAGE_BYTES:
            raise UsageError(
                f"the content has {size:,} bytes, and a page has {PAGE_BYTES}", reason="content_not_whole_pages"
            )
        if self.create is None and (self.content_type is not None or self.metadata):
            raise UsageError("--content-type and --metadata are for a blob that is created", hint="add --create BYTES")
        if self.create is None:
            return plan(env, target, offset)
        length = values.size(self.create, "--create", least=PAGE_BYTES)
        check_range(offset, length, "create")
        if length > MOST_BYTES or (size is not None and offset + size > length):
            raise UsageError(
                f"--create {self.create}: a blob of {length:,} bytes is not what this content needs",
                hint="from the end of the content up to 8 TiB",
            )
        settings = Settings(
            content_type=values.content_type(self.content_type, target.address.name, self.file),
            metadata=values.metadata(self.metadata),
        )
        return replace(plan(env, target, offset, creates=True), create_bytes=length, settings=settings)


def plan(env: Environment, target: Target, offset: int, *, creates: bool = False) -> "PageWrite":
    """Return the write of pages at a place, under the conditions of this run."""
    from azguard.blobs.content.page_blob import PageWrite

    asked = RequestedConditions.of(env.shared)
    is_bare = all(each.of_source for each in asked.values) and asked.etag is None and not asked.last_writer_wins
    if creates and is_bare and env.reads.find_last(target) is None:
        # Nothing guards what is not there: only the conditions on the source are left to be asked for.
        of_source = replace(asked, lease_id=None, last_writer_wins=True)
        assert env.operation is not None
        conditions = Conditions(
            headers=env.reads.resolve_conditions(env.operation, of_source, target).source_headers,
            guard="if-none-match",
            lease_id=env.reads.choose_lease_id(target, asked.lease_id),
            never_read=True,
        )
    else:
        creates = False
        conditions = env.conditions(target)
    return PageWrite(
        target=target,
        conditions=conditions,
        deadline=env.deadline,
        offset=offset,
        is_unconditional=not conditions.without_source().headers and not creates,
    )


def record(env: Environment, write: "PageWrite", done: Any) -> None:
    """Record the version that was written, if what stands in the other pages is known here."""
    if write.conditions.expected_etag is not None or done.created:
        env.reads.record(write.target, done, lineage=write.conditions.lineage)
