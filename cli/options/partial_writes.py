"""The options of commands that write a part of a blob: ``blob append``, ``blob page`` and ``blob block``."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, ClassVar

from azguard.accounts import transport
from azguard.accounts.account import Target
from azguard.cli import completers
from azguard.cli.context import Environment
from azguard.cli.input import streams, values
from azguard.cli.options import common, copies
from azguard.cli.options.types import HEADER, METADATA, SIZE, TEXT, ValueType, choice, size
from azguard.cli.parsing.rows import flag, option
from azguard.cli.rules.engine import any_of, at_most_one, checked, excludes, needs
from azguard.errors import UsageError
from azguard.guards.requested import RequestedConditions
from azguard.guards.resolve import Conditions
from azguard.requests.deadline import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from azguard.blobs.content.append_request import Append, Proof
    from azguard.blobs.content.page_blob import PageWrite
    from azguard.blobs.content.upload import Settings, Upload
    from azguard.blobs.copy_sources import SourcePiece


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
# How long other writers are given way to, unless --timeout says otherwise.
_CONTENTION_SECONDS = 60.0


_NOT_SEEN = "the bytes of the source are not seen here, so a lease alone guards them"
_NAME_BLOCKS = "name them with --block-id or -f FILE; for an empty blob: --allow-empty"
_OF_SOURCE = needs("--source-sas", "--source")
_OF_CREATED = needs("--content-type --metadata", "--create", "they are set on a blob that is created")
# A page: the service counts nothing smaller.
_LEAST_BYTES = 512


def _read_line(text: str, name: str) -> str:
    if "\n" in str(values.not_empty(text, name)):
        raise UsageError(f"{name}: the text has more than one line", hint="repeat --line, or pipe it to --lines")
    return text


def _read_block_id(text: str, name: str) -> str:
    from azguard.blobs.content import blocks

    blocks.decode_id(str(values.not_empty(text, name)))
    return text


_LINE = ValueType("text", _read_line)
#: The id of a block, in base64.
BLOCK_ID = ValueType("base64", _read_block_id)


def _read_source(
    env: Environment, target: Target, url: str, sas: str | None, conditions: "Conditions"
) -> "Iterator[SourcePiece]":
    """Yield the ranges of the source, under the conditions on it."""
    from azguard.blobs import copy_sources

    source = copies.locate_source(env, target, url, sas)
    return copy_sources.read_pieces(source, conditions.source_headers, env.deadline)


@dataclass(frozen=True)
class AppendOptions:
    """The options of blob append."""

    file: Annotated[str | None, option("--file, -f", "FILE|-", "Append this file; by default, stdin.", TEXT)] = None
    content: common.Content = None
    line: Annotated[
        list[str] | None,
        option("--line", "TEXT", "Append this line; repeat it for more, which stay together.", _LINE),
    ] = None
    lines: Annotated[
        bool,
        flag("--lines", "Let lines of other writers come between the lines of the input."),
    ] = False
    source_url: SourceUrl = None
    source_sas: common.SourceSas = None
    guard: Annotated[
        str | None,
        option(
            "--guard",
            "position|content|lease",
            "Choose the guard; see azguard help appends.",
            choice,
        ),
    ] = None
    create: Annotated[bool, flag("--create", "Create the append blob if it is missing.")] = False
    content_type: Annotated[
        str | None,
        option("--content-type", "TYPE", "Set it on a created blob; by default, from the name.", HEADER),
    ] = None
    metadata: common.Metadata = None
    allow_empty: Annotated[bool, flag("--allow-empty", "Do nothing if the input is empty.")] = False

    RULES: ClassVar = (
        at_most_one("--file --content --line --source"),
        excludes("--line", "--lines"),
        excludes("--source", "--lines --guard=position --guard=content", _NOT_SEEN),
        _OF_SOURCE,
        _OF_CREATED,
        excludes("--guard=lease", "--lease-id"),
        excludes("--guard", "--last-writer-wins"),
    )

    @property
    def is_lines(self) -> bool:
        """Return whether lines are appended, between which those of other writers may stand."""
        return self.lines or bool(self.line)

    def plan(self, env: Environment, target: Target) -> "Append":
        """Return the append that the options describe."""
        from azguard.blobs.content.append_request import Append

        asked = RequestedConditions.of(env.shared)
        typed = env.timeout
        return Append(
            target=target,
            conditions=self._find_conditions(env, target, asked),
            deadline=env.patience(typed, PATIENCE_SECONDS),
            proof=self._choose_proof(asked),
            is_lines=self.is_lines,
            is_anywhere=asked.last_writer_wins,
            create=self._read_settings(target.address.name) if self.create else None,
            contention_seconds=env.patience(typed, _CONTENTION_SECONDS).seconds,
            queue=_join_queue(env, target),
        )

    def _choose_proof(self, asked: RequestedConditions) -> "Proof":
        from azguard.blobs.content.append_request import Proof

        if self.source_url is not None and asked.lease_id is None and not asked.last_writer_wins:
            return Proof.LEASE
        return Proof(self.guard or Proof.NONE)

    def open(self) -> AbstractContextManager[BinaryIO | None]:
        """Return the content that is to be read; None where it is a text or a source."""
        if self.content is not None:
            return streams.open_text(self.content)
        return nullcontext() if self.line or self.source_url is not None else streams.source(self.file)

    def read(self, env: Environment, given: "Append", source: BinaryIO | None) -> "Iterator[bytes | SourcePiece]":
        """Yield the pieces to append."""
        from azguard.blobs.content import append_request

        if self.source_url is not None:
            return _read_source(env, given.target, self.source_url, self.source_sas, given.conditions)
        if source is None:
            return iter([append_request.join_lines(self.line or ())])
        return append_request.read_lines(source) if self.lines else append_request.read_pieces(source)

    def find_size(self, source: BinaryIO | None) -> int | None:
        """Return how many bytes are to be read, where that is known."""
        return None if source is None else streams.size(source)

    @property
    def takes_empty(self) -> bool:
        """Return whether empty content may be meant: it was said, or a file was named that holds it."""
        return self.allow_empty or streams.keeps_content(self.file)

    def _find_conditions(self, env: Environment, target: Target, asked: RequestedConditions) -> Any:
        found = env.conditions(target)
        own = [each for each in asked.values if not each.of_source]
        is_default = not own and asked.etag is None and not asked.last_writer_wins
        return found.without_version() if self.is_lines and is_default else found

    def _read_settings(self, name: str) -> "Settings":
        from azguard.blobs.content.upload import Settings

        return Settings(content_type=values.content_type(self.content_type, name, None), metadata=self.metadata or {})


def _join_queue(env: Environment, target: Target) -> Callable[[], AbstractContextManager[Any]]:
    from azguard.updates.local_runs import LocalQueue

    key = f"{target.endpoint} {target.address}"
    return lambda: LocalQueue(
        env.folders.queues, key, env.patience(None, _CONTENTION_SECONDS), transport.tell_listeners
    )


@dataclass(frozen=True)
class PagePutOptions:
    """The options of blob page put."""

    file: Annotated[str | None, option("--file, -f", "FILE|-", "Write this file; by default, stdin.", TEXT)] = None
    content: common.Content = None
    offset: Annotated[int, option("--offset", "SIZE", "Begin at this byte, a multiple of 512.", SIZE)] = 0
    source_url: SourceUrl = None
    source_sas: common.SourceSas = None
    create: Annotated[
        int | None,
        option("--create", "SIZE", "Create it with this length if it is missing.", size(_LEAST_BYTES)),
    ] = None
    content_type: Annotated[
        str | None,
        option("--content-type", "TYPE", "Set it on a created blob; by default, from the name.", HEADER),
    ] = None
    metadata: common.Metadata = None

    RULES: ClassVar = (
        at_most_one("--file --content --source"),
        _OF_SOURCE,
        _OF_CREATED,
        checked("--create", "whole pages, and room for the content", "partial_writes.build_write"),
    )

    def open(self) -> AbstractContextManager[BinaryIO | None]:
        """Return the content that is to be read; None where the service reads it."""
        return nullcontext() if self.source_url is not None else streams.content(self.file, text=self.content)

    def read(self, env: Environment, write: "PageWrite", stream: BinaryIO | None) -> "BinaryIO | Iterator[SourcePiece]":
        """Return the content, or the ranges of the source."""
        if stream is not None:
            return stream
        return _read_source(env, write.target, self.source_url or "", self.source_sas, write.conditions)

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
                f"the content has {size:,} bytes, and a page has {PAGE_BYTES}", reason="content_not_whole_pages"
            )
        if self.create is None:
            return plan_pages(env, target, self.offset)
        check_range(self.offset, self.create, "create")
        if self.create > MOST_BYTES or (size is not None and self.offset + size > self.create):
            raise UsageError(
                f"--create: a blob of {self.create:,} bytes is not what this content needs",
                hint="from the end of the content up to 8 TiB",
            )
        settings = Settings(
            content_type=values.content_type(self.content_type, target.address.name, self.file),
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


@dataclass(frozen=True)
class CommitOptions:
    """The options of blob block commit."""

    block_id: Annotated[
        list[str] | None,
        option("--block-id", "BASE64", "Use this block; repeat it for more, in their order.", BLOCK_ID),
    ] = None
    file: Annotated[
        str | None,
        option("--file, -f", "FILE|-", "Read the block ids from this file, one per line.", TEXT),
    ] = None
    content_type: Annotated[
        str | None, option("--content-type", "TYPE", "Set Content-Type; by default, it stays.", HEADER)
    ] = None
    metadata: Annotated[
        dict[str, str] | None,
        option("--metadata", "KEY=VALUE", "Replace the metadata; by default, they stay.", METADATA),
    ] = None
    allow_empty: Annotated[bool, flag("--allow-empty", "Make an empty blob of no blocks.")] = False

    RULES: ClassVar = (
        excludes("--block-id", "--file"),
        any_of("--block-id --file --allow-empty", "no block is named", _NAME_BLOCKS),
        checked("--block-id --file", "some block, and ids of one length", "partial_writes.read_ids"),
    )

    def read_ids(self) -> Sequence[str]:
        """Return the ids of the blocks.

        Raises:
            UsageError: one is malformed, they differ in length, or there are none.
        """
        from azguard.blobs.content import blocks

        ids = self.block_id or []
        if self.file is not None:
            ids = streams.read(self.file).decode("utf-8", "replace").split()
        if not ids and not self.allow_empty:
            raise UsageError("no block is named", hint=_NAME_BLOCKS)
        for block in ids:
            blocks.decode_id(block)
        blocks.check_ids(ids)
        return ids

    def to_upload(self, env: Environment, target: Target) -> "Upload":
        """Return the upload that the options describe."""
        from azguard.blobs.content.upload import Settings, Upload
        from azguard.requests.lineage import fresh_op

        return Upload(
            target=target,
            settings=Settings(content_type=self.content_type, metadata=self.metadata),
            conditions=env.conditions(target),
            deadline=env.deadline,
            op=fresh_op(),
        )
