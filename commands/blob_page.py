"""``azguard blob page``: put, clear, ranges."""

from typing import Annotated

import typer

from azguard.address import Kind
from azguard.cli import completers, context, inputs, options, values
from azguard.cli.groups import group
from azguard.cli.lease_options import CacheRecords
from azguard.cli.page_options import PagePutOptions, plan, record
from azguard.conditions import operations
from azguard.errors import UsageError

app = group("Pages of a page blob: put, clear, ranges.")

_Blob = Annotated[
    str, typer.Argument(metavar="CONTAINER/NAME", help="The page blob, or its URL.", autocompletion=completers.blobs)
]
_Offset = Annotated[str, typer.Option("--offset", metavar="BYTES", help="Begin at this byte, a multiple of 512.")]


@app.command(spec=options.operation(operations.BLOB_PUT_PAGE_FROM_URL, operations.BLOB_PUT_PAGE))
def put(ctx: typer.Context, blob: _Blob, given: PagePutOptions) -> None:
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

    env = context.of(ctx)
    target = env.locate(blob, Kind.BLOB, writable=True)
    with given.open() as stream:
        size = None if stream is None else inputs.size(stream)
        write = given.check(env, target, size)
        with env.out.progress_bar(f"put {target}", size) as progress:
            done = page_write.put(write, given.read(env, write, stream), CacheRecords(env), progress.at)
    record(env, write, done)
    env.out.show(done)


@app.command(spec=options.operation(operations.BLOB_CLEAR_PAGE))
def clear(
    ctx: typer.Context,
    blob: _Blob,
    length: Annotated[
        str | None,
        typer.Option("--length", metavar="BYTES", help="Clear this many bytes, a multiple of 512; always needed."),
    ] = None,
    offset: _Offset = "0",
) -> None:
    """Clear pages, so that they hold zeros and cost nothing.

    Examples:
        azguard blob page clear disks/a --offset 512 --length 1KiB

    Topics: conditions, leases
    """
    from azguard.blobs.content import page_write

    env = context.of(ctx)
    target = env.locate(blob, Kind.BLOB, writable=True)
    if length is None:
        raise UsageError("--length is missing", hint="how many bytes to clear: --length 512")
    write = plan(env, target, values.size(offset, "--offset"))
    done = page_write.clear(write, values.size(length, "--length", least=1), CacheRecords(env))
    record(env, write, done)
    env.out.show(done)


@app.command(spec=options.operation(operations.BLOB_GET_PAGE_RANGES))
def ranges(
    ctx: typer.Context,
    blob: _Blob,
    previous_snapshot: Annotated[
        str | None,
        typer.Option("--previous-snapshot", metavar="TIME", help="Show only what differs from this snapshot."),
    ] = None,
    offset: Annotated[str | None, typer.Option("--offset", metavar="BYTES", help="Begin at this byte.")] = None,
    length: Annotated[str | None, typer.Option("--length", metavar="BYTES", help="List this many bytes.")] = None,
) -> None:
    """List the ranges of a page blob that hold pages; the rest is zeros.

    Examples:
        azguard blob page ranges disks/a
        azguard blob page ranges disks/a --offset 0 --length 1KiB
        azguard blob page ranges disks/a --query '[].start' -o tsv

    Topics: conditions
    """
    from azguard.blobs.content import page_blob

    env = context.of(ctx)
    target = env.locate(blob, Kind.BLOB)
    is_part = offset is not None or length is not None
    found = page_blob.list_ranges(
        target,
        env.conditions(target),
        env.deadline,
        offset=values.size("0" if offset is None else offset, "--offset") if is_part else None,
        length=None if length is None else values.size(length, "--length", least=1),
        previous=values.snapshot_time(previous_snapshot, "--previous-snapshot"),
    )
    env.out.show_each(found)
