"""``azguard file get``."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from azguard.address import Kind
from azguard.cli import context, deliveries, file_options, inputs, options, values
from azguard.cli.groups import group
from azguard.cli.tree_get_options import TreeGetOptions
from azguard.conditions import operations
from azguard.errors import UsageError

if TYPE_CHECKING:
    from azguard.files.download import Span

_LARGEST = 2**63 - 1

app = group("Read a file.")


@app.command(spec=options.operation(operations.FILE_GET))
def get(
    ctx: typer.Context,
    file: file_options.File,
    to: Annotated[
        str | None,
        typer.Option("--file", "-f", metavar="FILE", help="Write to this file; by default, to stdout."),
    ] = None,
    result: Annotated[
        str | None, typer.Option("--result", metavar="FILE", help="Write the result here as JSON.")
    ] = None,
    start_range: Annotated[
        str | None, typer.Option("--start-range", metavar="N", help="Begin at this byte, counted from 0.")
    ] = None,
    end_range: Annotated[
        str | None, typer.Option("--end-range", metavar="N", help="End with this byte, included.")
    ] = None,
    *,
    overwrite: deliveries.Overwrite = False,
    tree: TreeGetOptions,
) -> None:
    """Read a file and remember its version, which guards the next put.

    The content is of one version, never a mixture of two: the ETag of each part is compared. A local file is written
    whole or not at all. If the file is overwritten while it goes to stdout, the exit status is 42. A part of a file
    guards no put.

    A local file that you changed since you got it is not replaced (exit 42); --overwrite replaces it. The shell's >
    empties a file before azguard can look at it.

    An unchanged ETag does not prove that no program has the file open over SMB.

    With --recursive all files below a directory are read into a folder. Each has a line that says how it ended. If one
    fails, the others go on, and the exit status is 20, or 42 if all that failed are conflicts.

    Examples:
        azguard file get team/plan.txt -f plan.txt
        azguard file get team/plan.txt > copy.txt
        azguard file get team/plan.txt --start-range 0 --end-range 3
        azguard file get team/ -f copy --recursive

    Topics: files, scopes, trees
    """
    from azguard.files import download

    env = context.of(ctx)
    deliveries.check_overwrite(to, tree.if_exists, overwrite=overwrite)
    if tree.recursive:
        from azguard.cli import tree_plans, tree_stores

        _refuse_of_one({"--start-range": start_range, "--end-range": end_range, "--result": result})
        tree_plans.get(env, lambda: tree_stores.files(env, file, writable=False), to, tree, overwrites=overwrite)
        return
    tree.check(env)
    target = env.locate(file, Kind.FILE)
    span = _read_span(start_range, end_range)
    path, beside = inputs.choose_places(to, result, env.out.query)
    conditions = env.conditions(target)
    with env.out.progress_bar(f"get {target}", is_beside_content=path is None) as progress:
        if path is None:
            got, lineage = download.to_stream(target, conditions, span, inputs.stdout(), env.deadline, progress.at)
            place = deliveries.to_stream(inputs.stdout(), got.length)
        else:
            admit = partial(env.reads.check_copy, target, path, overwrites=overwrite)
            got, lineage = download.to_file(target, conditions, span, path, env.deadline, progress.at, admit=admit)
            place = deliveries.to_file(path, got.inode)
    if place.is_kept and span.is_whole:
        env.reads.record(target, got, place.copy, lineage)
    if beside is not None:
        inputs.write_json(beside, got)
    # Without a file the content itself went to stdout.
    if path is not None:
        env.out.show(got)


def _refuse_of_one(given: Mapping[str, str | None]) -> None:
    for option, value in given.items():
        if value is not None:
            raise UsageError(f"{option} is for one file, and --recursive is for many", hint=f"leave {option} out")


def _read_span(start: str | None, end: str | None) -> "Span":
    from azguard.files.download import Span

    begin = 0 if start is None else values.whole(start, "--start-range", 0, _LARGEST)
    last = None if end is None else values.whole(end, "--end-range", 0, _LARGEST)
    if last is not None and last < begin:
        raise UsageError("--end-range is before --start-range", hint="both are counted from 0, and included")
    return Span(begin, None if last is None else last + 1)
