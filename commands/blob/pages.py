"""``azguard blob``: page."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, ClassVar

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.cli import completers, nouns
from azguard.cli.context import Environment
from azguard.cli.input import streams
from azguard.cli.options import common
from azguard.cli.options.content import (
    OF_CREATED,
    OF_SOURCE,
    ContentOptions,
    CreatedType,
    ListedRangeOptions,
    SourceUrl,
    guess_content_type,
    read_source,
)
from azguard.cli.options.types import SIZE, size, whole
from azguard.cli.parsing.rows import argument, flag, option
from azguard.cli.parsing.tree import Group
from azguard.cli.rules import at_most_one, checked, one_of
from azguard.errors import UsageError
from azguard.frozen import frozen
from azguard.guards.requested import RequestedConditions
from azguard.guards.resolve import Conditions
from azguard.requests.results import WOULD_CLEAR
from azguard.times import say_count
from azguard.wire.operations.blobs import (
    BLOB_CLEAR_PAGE,
    BLOB_GET_PAGE_RANGES,
    BLOB_PUT_PAGE,
    BLOB_PUT_PAGE_FROM_URL,
    BLOB_RESIZE,
    BLOB_SET_SEQUENCE_NUMBER,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from azguard.blobs.content.page_blob import PageWrite
    from azguard.resources.copies import SourcePiece

_PageBlob = Annotated[str, argument("BLOB", "The page blob: CONTAINER/NAME, or its URL.", completer=completers.blobs)]
_Offset = Annotated[int, option("--offset", "SIZE", "Begin at this byte, a multiple of 512.", SIZE)]
_WHOLE_PAGES = checked("--offset --length", "whole pages of 512 bytes", "page_blob.check_range")
# The longest page blob: 8 TiB.
_LENGTH = size(0, 8 * 1024**4)
_NUMBER = whole(0, 2**63 - 1)

app = Group()
page_app = Group("Pages of a page blob: put, clear, resize, set-sequence-number, ranges.")
app.add("page", page_app)


# A page: the service counts nothing smaller.
_LEAST_BYTES = 512


@frozen
class PagePutOptions(ContentOptions):
    """The options of blob page put."""

    offset: _Offset = 0
    source_url: SourceUrl = None
    source_sas: common.SourceSas = None
    source_key: common.SourceKey = None
    create: Annotated[
        int | None,
        option("--create", "SIZE", "Create it with this length if it is missing.", size(_LEAST_BYTES)),
    ] = None
    content_type: CreatedType = None
    metadata: common.Metadata = None

    RULES: ClassVar = (
        at_most_one("--file --content --source"),
        OF_SOURCE,
        OF_CREATED,
        checked("--create", "whole pages, and room for the content", "pages.build_write"),
    )

    def open_here(self) -> AbstractContextManager[BinaryIO | None]:
        """Return the content that is to be read; None where the service reads it."""
        return nullcontext() if self.source_url is not None else self.open()

    def read(self, env: Environment, write: "PageWrite", stream: BinaryIO | None) -> "BinaryIO | Iterator[SourcePiece]":
        if stream is not None:
            return stream
        return read_source(env, write.target, self.source_url or "", self.source_sas, self.source_key, write.conditions)

    def build_write(self, env: Environment, target: Target, size: int | None) -> "PageWrite":
        """Return the write that the options describe; ``size`` is the length of the content, where it is known.

        Raises:
            UsageError: the content does not consist of whole pages, or the blob to create has no room for it.
        """
        from azguard.blobs.content.page_blob import MOST_BYTES, PAGE_BYTES, check_range
        from azguard.blobs.content.upload import Settings

        check_range(self.offset, None)
        if size is not None and size % PAGE_BYTES:
            raise UsageError(
                f"the content has {say_count(size, 'byte')}, and a page has {PAGE_BYTES}",
                reason="content_not_whole_pages",
            )
        if self.create is None:
            return plan_pages(env, target, self.offset)
        check_range(self.offset, self.create, "create")
        if self.create > MOST_BYTES or (size is not None and self.offset + size > self.create):
            raise UsageError(
                f"--create: {self.create:,} bytes are too few for this content, or more than the service takes",
                hint="name a size from the end of the content up to 8 TiB",
            )
        settings = Settings(
            content_type=guess_content_type(self.content_type, target.address.name, self.file),
            metadata=self.metadata or {},
        )
        planned = plan_pages(env, target, self.offset, creates=True)
        return replace(planned, create_bytes=self.create, settings=settings)


def plan_pages(env: Environment, target: Target, offset: int, *, creates: bool = False) -> "PageWrite":
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


def record_pages(env: Environment, write: "PageWrite", done: Any) -> None:
    """Record the version that was written, if what stands in the other pages is known here."""
    if write.conditions.expected_etag is not None or done.created:
        env.reads.record(write.target, done, lineage=write.conditions.lineage)


@page_app.command("put", spec=common.operation(BLOB_PUT_PAGE_FROM_URL, BLOB_PUT_PAGE))
def put_pages(env: Environment, blob: _PageBlob, given: PagePutOptions) -> None:
    """Write content over pages, but only of the version you have seen.

    A page has 512 bytes. The content and the place at which it begins are multiples of that. Other pages stay as they
    are.

    azguard holds a lease for a moment, so that a lost answer can be settled. If the blob is leased, give --lease-id. A
    lost answer is then unknown (exit 74), because other processes may use that lease too.

    More than 4 MiB are written in several pieces, each over the version of the one before. If that stops in the middle,
    the exit status is 20, and the error says at which byte to go on.

    Examples:
        azguard blob page put disks/a -f boot.img --create 1MiB
        azguard blob page put disks/a -f boot.img --offset 4096
        azguard blob page put disks/a -f boot.img --if-sequence-number-le 7

    Topics: conditions, leases
    """
    from azguard.blobs.content import page_write

    target = env.locate(blob, Kind.BLOB, writable=True)
    with given.open_here() as stream:
        size = streams.size(stream)
        write = given.build_write(env, target, size)
        with env.out.progress_bar(f"put {target}", size) as progress:
            done = page_write.put(write, given.read(env, write, stream), env.lease_records, progress.at)
    record_pages(env, write, done)
    env.out.show(done)


@page_app.command(
    "clear",
    spec=common.operation(BLOB_CLEAR_PAGE),
    rules=(one_of("--length", "how many bytes to clear", "--length 512"), _WHOLE_PAGES),
)
def clear_pages(
    env: Environment,
    blob: _PageBlob,
    length: common.ClearedLength = None,
    offset: _Offset = 0,
    dry_run: common.DryRun = False,
) -> None:
    """Clear pages, so that they hold zeros and cost nothing.

    Examples:
        azguard blob page clear disks/a --offset 512 --length 1KiB

    Topics: conditions, leases
    """
    from azguard.blobs import listing
    from azguard.blobs.content import page_write

    target = env.locate(blob, Kind.BLOB, writable=True)
    assert length is not None  # says the rule
    write = plan_pages(env, target, offset)
    if dry_run:
        look = lambda: listing.show(target, Conditions(), env.deadline)  # noqa: E731  # asked again after a doubt
        nouns.show_doomed(env, target, write.conditions, look, outcome=WOULD_CLEAR)
        return
    done = page_write.clear(write, length, env.lease_records)
    record_pages(env, write, done)
    env.out.show(done)


@page_app.command(
    "resize",
    spec=common.operation(BLOB_RESIZE),
    rules=(
        one_of("SIZE --size", "how long the blob is to be", "write it behind the blob, as in: disks/a 1MiB"),
        checked("SIZE --size", "whole pages of 512 bytes", "page_blob.check_range"),
    ),
)
def resize_pages(
    env: Environment,
    blob: _PageBlob,
    length: Annotated[int | None, argument("[SIZE]", "The new length.", _LENGTH)] = None,
    size: Annotated[int | None, option("--size", "SIZE", "The new length, as another way to say it.", _LENGTH)] = None,
) -> None:
    """Set the length of a page blob, if it is still the version that you read.

    What was added is zeros. The pages behind a shorter length are gone.

    azguard holds a lease for a moment, so that a lost answer can be settled. If the blob is leased, give --lease-id.

    Examples:
        azguard blob page resize disks/a 4MiB

    Topics: conditions, leases
    """
    from azguard.blobs.content.page_blob import PageBlobChange

    target = env.locate(blob, Kind.BLOB, writable=True)
    conditions = env.conditions(target)
    change = PageBlobChange(length=size if length is None else length)
    done, made = change.make(target, conditions, env.lease_records, env.deadline)
    if conditions.expected_etag is not None:
        env.reads.record(target, done, lineage=made.lineage)
    env.out.show(done)


@page_app.command(
    "set-sequence-number",
    spec=common.operation(BLOB_SET_SEQUENCE_NUMBER),
    rules=(one_of("--update --max --increment", "which number it gets"),),
)
def set_sequence_number(
    env: Environment,
    blob: _PageBlob,
    update: Annotated[int | None, option("--update", "N", "Set it to N.", _NUMBER)] = None,
    most: Annotated[int | None, option("--max", "N", "Set it to N, unless it is higher.", _NUMBER)] = None,
    increment: Annotated[bool, flag("--increment", "Raise it by one.")] = False,
) -> None:
    """Set the sequence number of a page blob, if it is still the version that you read.

    Writers of pages name it with --if-sequence-number-eq and the like. Here the service compares no sequence number:
    the version guards it. The ETag changes, the content does not.

    azguard holds a lease for a moment, so that a lost answer can be settled. If the blob is leased, give --lease-id.

    Examples:
        azguard blob page set-sequence-number disks/a --increment
        azguard blob page set-sequence-number disks/a --max 7

    Topics: conditions, leases
    """
    from azguard.blobs.content.page_blob import PageBlobChange

    target = env.locate(blob, Kind.BLOB, writable=True)
    action = "increment" if increment else "max" if update is None else "update"
    change = PageBlobChange(action=action, number=most if update is None else update)
    done, made = change.make(target, env.conditions(target), env.lease_records, env.deadline)
    env.reads.follow(target, made.before, done.etag, made.lineage)
    env.out.show(done)


@page_app.command("ranges", spec=common.operation(BLOB_GET_PAGE_RANGES), rules=(_WHOLE_PAGES,))
def list_pages(
    env: Environment,
    blob: _PageBlob,
    given: ListedRangeOptions,
) -> None:
    """List the ranges of a page blob that hold pages; the rest is zeros.

    Examples:
        azguard blob page ranges disks/a
        azguard blob page ranges disks/a --offset 0 --length 1KiB
        azguard blob page ranges disks/a --query '[].start' -o tsv

    Topics: conditions
    """
    from azguard.blobs.content import page_blob

    target = env.locate(blob, Kind.BLOB)
    found = page_blob.list_ranges(
        target,
        env.conditions(target),
        env.deadline,
        offset=0 if given.offset is None and given.length is not None else given.offset,
        length=given.length,
        previous=given.previous_snapshot,
    )
    env.out.show_each(islice(found, given.num_results))
