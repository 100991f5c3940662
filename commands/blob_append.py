"""``azguard blob append`` and ``azguard blob append seal``."""

from typing import Annotated

import typer

from azguard.address import Kind
from azguard.cli import completers, context, options
from azguard.cli.append_options import AppendOptions
from azguard.cli.groups import group
from azguard.conditions import operations

app = group("Append blobs: append, seal.")

_Blob = Annotated[
    str, typer.Argument(metavar="CONTAINER/NAME", help="The append blob, or its URL.", autocompletion=completers.blobs)
]


@app.command(spec=options.operation(operations.BLOB_APPEND_BLOCK_FROM_URL, operations.BLOB_APPEND_BLOCK))
def append(ctx: typer.Context, blob: _Blob, given: AppendOptions) -> None:
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

    With --source-url the service takes the content of another blob, in the version that it has now. azguard does not
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
    from azguard.cli.lease_options import CacheRecords

    env = context.of(ctx)
    target = env.locate(blob, Kind.BLOB, writable=True)
    given.check(env)
    plan = given.plan(env, target)
    with given.open() as source, env.out.progress_bar(f"append {target}", given.find_size(source)) as progress:
        done = append_write.append(
            plan, given.read(env, plan, source), CacheRecords(env), progress.at, allow_empty=given.takes_empty
        )
    append_write.remember_append(plan, done, env.reads)
    env.out.show(done)


@app.command(name="append seal", spec=options.operation(operations.BLOB_SEAL_APPEND_BLOB))
def seal(ctx: typer.Context, blob: _Blob) -> None:
    """Seal an append blob, so that nothing can be appended any more.

    There is no way back. Metadata and tags of a sealed blob can still be changed, and it can be deleted.

    Examples:
        azguard blob append seal logs/night
        azguard blob append seal logs/night --append-position 12

    Topics: appends, conditions
    """
    from azguard.blobs.content import append_end

    env = context.of(ctx)
    target = env.locate(blob, Kind.BLOB, writable=True)
    conditions = env.conditions(target)
    done = append_end.seal(target, conditions, env.deadline)
    env.reads.follow(target, conditions.expected_etag, done.etag, conditions.lineage)
    env.out.show(done)
