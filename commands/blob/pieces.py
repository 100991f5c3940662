"""``azguard blob``: append, append seal, page, block."""

from itertools import islice
from typing import Annotated

from azguard.address import Kind
from azguard.cli import completers
from azguard.cli.context import Environment
from azguard.cli.input import streams
from azguard.cli.options import common, resources
from azguard.cli.options.partial_writes import (
    BLOCK_ID,
    AppendOptions,
    CommitOptions,
    PagePutOptions,
    plan_pages,
    record_pages,
)
from azguard.cli.options.types import SIZE, SNAPSHOT, TEXT, choice, size
from azguard.cli.parsing.rows import argument, option
from azguard.cli.parsing.tree import Group
from azguard.cli.rules.engine import at_most_one, checked, one_of
from azguard.guards.resolve import Conditions
from azguard.requests.results import WOULD_CLEAR
from azguard.wire.operations.blobs import (
    BLOB_APPEND_BLOCK,
    BLOB_APPEND_BLOCK_FROM_URL,
    BLOB_CLEAR_PAGE,
    BLOB_GET_BLOCK_LIST,
    BLOB_GET_PAGE_RANGES,
    BLOB_PUT_BLOCK,
    BLOB_PUT_BLOCK_LIST,
    BLOB_PUT_PAGE,
    BLOB_PUT_PAGE_FROM_URL,
    BLOB_SEAL_APPEND_BLOB,
)

_AppendBlob = Annotated[
    str, argument("BLOB", "The append blob: CONTAINER/NAME, or its URL.", completer=completers.blobs)
]
_PageBlob = Annotated[str, argument("BLOB", "The page blob: CONTAINER/NAME, or its URL.", completer=completers.blobs)]
_Offset = Annotated[int, option("--offset", "SIZE", "Begin at this byte, a multiple of 512.", SIZE)]
_WHOLE_PAGES = checked("--offset --length", "whole pages of 512 bytes", "page_blob.check_range")

_STATES = ("committed", "uncommitted", "all")

app = Group("Pieces of a blob: append, page, block.")
page_app = Group("Pages of a page blob: put, clear, ranges.")
app.add("page", page_app)
block_app = Group("Blocks of a block blob: stage, commit, list.")
app.add("block", block_app)


@app.command(spec=common.operation(BLOB_APPEND_BLOCK_FROM_URL, BLOB_APPEND_BLOCK))
def append(env: Environment, blob: _AppendBlob, given: AppendOptions) -> None:
    """Add content, or a line, to the end of an append blob, exactly once.

    If you read the blob, content is appended only to the version you have seen (exit 42). Otherwise it is appended at
    the end as it is now. A line never depends on a version: many writers can append lines, and no line is lost,
    doubled or cut.

    Each piece of content is sent for one position, so that it cannot be appended twice. If an answer is lost, azguard
    reads the bytes there. If they differ, the piece was not appended, and azguard sends it again. If they are equal,
    they may be yours or another writer's: then the exit status is 74. --guard content says that no other writer writes
    equal bytes, for example because each line has an id. --guard lease holds a lease for a moment, so that no other
    writer can write: that is safe for all content, but other writers fail during that time.

    More than 4 MiB are appended in several pieces. If that stops in the middle, the exit status is 20, and the error
    says how many bytes were appended and at which byte to go on.

    With --source the service takes the content of another blob, in the version that it has now. azguard does not
    see its bytes, so a lease guards the append.

    With --last-writer-wins the end is not looked up. That needs only the permission to add, and after a lost answer the
    exit status is 74.

    Examples:
        azguard blob append logs/deploys --line "deployed v42" --create
        azguard blob append logs/deploys -f config.json --create
        azguard blob append logs/deploys --line "rolled back" --guard lease --create

    Topics: appends, conditions
    """
    from azguard.blobs.content import append_write
    from azguard.cli.options.leases import CacheRecords

    target = env.locate(blob, Kind.BLOB, writable=True)
    plan = given.plan(env, target)
    with given.open() as source, env.out.progress_bar(f"append {target}", given.find_size(source)) as progress:
        done = append_write.append(
            plan, given.read(env, plan, source), CacheRecords(env), progress.at, allow_empty=given.takes_empty
        )
    append_write.remember_append(plan, done, env.reads)
    env.out.show(done)


@app.command(name="append seal", spec=common.operation(BLOB_SEAL_APPEND_BLOB))
def seal(env: Environment, blob: _AppendBlob) -> None:
    """Seal an append blob, so that nothing can be appended any more.

    There is no way back. Metadata and tags of a sealed blob can still be changed, and it can be deleted.

    Examples:
        azguard blob append seal logs/night
        azguard blob append seal logs/night --append-position 12

    Topics: appends, conditions
    """
    from azguard.blobs.content import append_end

    target = env.locate(blob, Kind.BLOB, writable=True)
    conditions = env.conditions(target)
    done = append_end.seal(target, conditions, env.deadline)
    env.reads.follow(target, conditions.expected_etag, done.etag, conditions.lineage)
    env.out.show(done)


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
    from azguard.cli.options.leases import CacheRecords

    target = env.locate(blob, Kind.BLOB, writable=True)
    with given.open() as stream:
        size = None if stream is None else streams.size(stream)
        write = given.build_write(env, target, size)
        with env.out.progress_bar(f"put {target}", size) as progress:
            done = page_write.put(write, given.read(env, write, stream), CacheRecords(env), progress.at)
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
    length: Annotated[
        int | None,
        option("--length", "SIZE", "Clear this many bytes, a multiple of 512; always needed.", size(1)),
    ] = None,
    offset: _Offset = 0,
    dry_run: resources.DryRun = False,
) -> None:
    """Clear pages, so that they hold zeros and cost nothing.

    Examples:
        azguard blob page clear disks/a --offset 512 --length 1KiB

    Topics: conditions, leases
    """
    from azguard.blobs import listing
    from azguard.blobs.content import page_write
    from azguard.cli.options.leases import CacheRecords

    target = env.locate(blob, Kind.BLOB, writable=True)
    assert length is not None  # says the rule
    write = plan_pages(env, target, offset)
    if dry_run:
        look = lambda: listing.show(target, Conditions(), env.deadline)  # noqa: E731
        resources.show_doomed(env, target, write.conditions, look, outcome=WOULD_CLEAR)
        return
    done = page_write.clear(write, length, CacheRecords(env))
    record_pages(env, write, done)
    env.out.show(done)


@page_app.command("ranges", spec=common.operation(BLOB_GET_PAGE_RANGES), rules=(_WHOLE_PAGES,))
def list_pages(
    env: Environment,
    blob: _PageBlob,
    previous_snapshot: Annotated[
        str | None,
        option("--previous-snapshot", "TIME", "Show only what differs from this snapshot.", SNAPSHOT),
    ] = None,
    offset: Annotated[int | None, option("--offset", "SIZE", "Begin at this byte.", SIZE)] = None,
    length: Annotated[int | None, option("--length", "SIZE", "List this many bytes.", size(1))] = None,
    num_results: common.Limit = None,
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
        offset=0 if offset is None and length is not None else offset,
        length=length,
        previous=previous_snapshot,
    )
    env.out.show_each(islice(found, num_results))


@block_app.command("stage", spec=common.operation(BLOB_PUT_BLOCK), rules=(at_most_one("--file --content"),))
def stage_blocks(
    env: Environment,
    blob: common.Blob,
    file: Annotated[str | None, option("--file, -f", "FILE|-", "Stage this file; by default, stdin.", TEXT)] = None,
    content: common.Content = None,
    block_id: Annotated[str | None, option("--block-id", "BASE64", "Stage one block under this id.", BLOCK_ID)] = None,
) -> None:
    """Stage blocks of a blob, which no reader sees until they are committed.

    Without --block-id the content is staged as blocks of 4 MiB, whose ids no other writer has. The ids of one blob must
    have one length. The service keeps staged blocks for a week. A commit of any writer discards those that it does not
    name.

    Examples:
        azguard blob block stage site/big -f config.json
        azguard blob block stage site/big -f config.json --query '[].block_id' -o tsv

    Topics: conditions
    """
    from azguard.blobs.content import blocks

    target = env.locate(blob, Kind.BLOB, writable=True)
    lease_id = env.conditions(target).lease_id
    with (
        streams.content(file, text=content) as source,
        env.out.progress_bar(f"stage {target}", streams.size(source)) as progress,
    ):
        staged = list(blocks.stage(target, source, block_id, lease_id, env.deadline, progress.at))
    env.out.show(staged)


@block_app.command("commit", spec=common.operation(BLOB_PUT_BLOCK_LIST))
def commit_blocks(env: Environment, blob: common.Blob, given: CommitOptions) -> None:
    """Make a blob of staged or committed blocks, but only of the version you have seen.

    The blocks stand in the order in which they are named. A block that was staged again is taken as staged. Blocks that
    are not named are discarded, also those of other writers: the result says how many.

    Headers, metadata, tags and tier of the version that is replaced stay. If you never read the blob, commit creates
    it; if it exists, the exit status is 45.

    Examples:
        azguard blob block commit site/big --block-id cGFydC0wMDAx
        azguard blob block commit site/big -f ids

    Topics: conditions, fences
    """
    from azguard.blobs.content import blocks

    target = env.locate(blob, Kind.BLOB, writable=True)
    upload = given.to_upload(env, target)
    done, stamp = blocks.commit(upload, given.read_ids())
    env.reads.record(target, done, lineage=stamp)
    if done.discarded_blocks:
        env.out.warn(f"{done.discarded_blocks} staged blocks of {target} that were not named are discarded")
    env.out.show(done)


@block_app.command(name="list", spec=common.operation(BLOB_GET_BLOCK_LIST))
def list_blocks(
    env: Environment,
    blob: common.Blob,
    state: Annotated[
        str,
        option("--state", "|".join(_STATES), "Show the blocks in this state.", choice),
    ] = "all",
    num_results: common.Limit = None,
) -> None:
    """List the blocks of a blob: the committed ones in their order, then those that are staged.

    Examples:
        azguard blob block list site/big
        azguard blob block list site/big --state uncommitted

    Topics: conditions
    """
    from azguard.blobs.content import blocks

    target = env.locate(blob, Kind.BLOB)
    env.out.show(blocks.list_blocks(target, env.conditions(target), state, env.deadline)[:num_results])
