"""``azguard file range``: put, clear, list."""

from typing import TYPE_CHECKING, Annotated

import typer

from azguard.address import Kind, is_snapshot_time
from azguard.cli import context, file_options, inputs, options, values
from azguard.cli.context import Environment
from azguard.cli.groups import group
from azguard.conditions import operations
from azguard.errors import UsageError

if TYPE_CHECKING:
    from azguard.files.ranges import RangeWrite

app = group("Ranges of a file: put, clear, list.")

_Offset = Annotated[str, typer.Option("--offset", metavar="BYTES", help="Begin at this byte.")]


@app.command(spec=options.operation(operations.FILE_PUT_RANGE))
def put(
    ctx: typer.Context,
    path: file_options.File,
    file: Annotated[
        str | None, typer.Option("--file", "-f", metavar="FILE|-", help="Write this file; by default, stdin.")
    ] = None,
    offset: _Offset = "0",
) -> None:
    """Write content over a range of a file, if it is still the version that you read.

    The file keeps its length; to write behind its end, first make it longer with azguard file resize. Other ranges stay
    as they are.

    More than 4 MiB are written in several pieces, under one lease. If that stops in the middle, the exit status is 20,
    and the error says at which byte to go on. A reader may see some of the pieces without the others.

    Examples:
        azguard file range put team/disk.img -f boot.img --last-writer-wins

    Topics: files
    """
    from azguard.files import ranges

    env = context.of(ctx)
    write = _plan(env, path, offset)
    with inputs.content(file) as stream, env.out.progress_bar(f"put {write.target}", inputs.size(stream)) as progress:
        done = ranges.put_range(write, stream, progress.at)
    file_options.record_written(env, write.target, write.conditions, done)
    env.out.show(done)


@app.command(spec=options.operation(operations.FILE_PUT_RANGE))
def clear(
    ctx: typer.Context,
    file: file_options.File,
    length: Annotated[
        str | None,
        typer.Option("--length", metavar="BYTES", help="Clear this many bytes, a multiple of 512; always needed."),
    ] = None,
    offset: _Offset = "0",
) -> None:
    """Clear a range of a file, so that it holds zeros and takes no room.

    Whole blocks of 512 bytes are cleared. Elsewhere, write zeros with azguard file range put.

    Examples:
        azguard file range clear team/disk.img --length 1KiB --last-writer-wins

    Topics: files
    """
    from azguard.files import ranges

    env = context.of(ctx)
    write = _plan(env, file, offset)
    if length is None:
        raise UsageError("--length is missing", hint="how many bytes to clear: --length 512")
    done = ranges.clear_range(write, values.size(length, "--length", least=1))
    file_options.record_written(env, write.target, write.conditions, done)
    env.out.show(done)


@app.command(name="list", spec=options.operation(operations.FILE_LIST_RANGES))
def list_(
    ctx: typer.Context,
    file: file_options.File,
    previous_snapshot: Annotated[
        str | None,
        typer.Option("--previous-snapshot", metavar="TIME", help="Show only what differs from this snapshot."),
    ] = None,
    offset: Annotated[str | None, typer.Option("--offset", metavar="BYTES", help="Begin at this byte.")] = None,
    length: Annotated[str | None, typer.Option("--length", metavar="BYTES", help="List this many bytes.")] = None,
) -> None:
    """List the ranges of a file that hold data; the rest is zeros.

    Examples:
        azguard file range list team/disk.img
        azguard file range list team/disk.img --offset 0 --length 1KiB
        azguard file range list team/disk.img --query '[].start' -o tsv

    Topics: files
    """
    from azguard.files import ranges

    env = context.of(ctx)
    target = env.locate(file, Kind.FILE)
    asked = ranges.RangesAsked(
        offset=None if offset is None else values.size(offset, "--offset"),
        length=None if length is None else values.size(length, "--length", least=1),
        previous=_read_snapshot(previous_snapshot, target.address.container),
    )
    env.out.show_each(ranges.list_ranges(target, asked, env.conditions(target), env.deadline))


def _read_snapshot(text: str | None, share: str) -> str | None:
    if values.not_empty(text, "--previous-snapshot") is None or is_snapshot_time(str(text)):
        return text
    raise UsageError(
        f"--previous-snapshot: {text!r} is not the time of a snapshot",
        hint=f"azguard share list --include-snapshots --prefix {share}",
    )


def _plan(env: Environment, file: str, offset: str) -> "RangeWrite":
    """Return the write of a range, under the conditions of this run."""
    from azguard.files.ranges import RangeWrite

    target = env.locate(file, Kind.FILE, writable=True)
    begin = values.size(offset, "--offset")
    return RangeWrite(target, env.conditions(target), file_options.guarding(env), env.deadline, begin)
