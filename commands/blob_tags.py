"""``azguard blob tags``: get, set."""

import typer

from azguard.address import Kind
from azguard.cli import context, options, part_options
from azguard.cli.groups import group
from azguard.conditions import operations
from azguard.conditions.operations import Part
from azguard.conditions.requested import RequestedConditions
from azguard.errors import UsageError

app = group("The index tags of a blob: get, set.")


@app.command(spec=options.operation(operations.BLOB_GET_TAGS))
def get(ctx: typer.Context, blob: options.Blob) -> None:
    """Read the index tags of a blob and remember their version, which guards the next tags set.

    The service gives tags no version. azguard makes the ETag that it shows from the ETag of the blob and the tags.

    Examples:
        azguard blob tags get site/config.json
        azguard blob tags get site/config.json > tags.json

    Topics: conditions
    """
    from azguard.blobs import tags

    env = context.of(ctx)
    target = env.locate(blob, Kind.BLOB)
    part_options.deliver(env, target, Part.TAGS, tags.get(target, env.conditions(target), env.deadline))


@app.command(name="set", spec=options.operation(operations.BLOB_SET_TAGS))
def set_(
    ctx: typer.Context,
    blob: options.Blob,
    tags: options.Tags = None,
    file: part_options.File = None,
) -> None:
    """Replace all index tags of a blob, but only those you have seen, on the version you have seen.

    A file that tags get printed names its version, which guards the write. Without such a file, what tags get read last
    does. If another writer changed the tags or the blob since, the exit status is 42. To change one tag and keep the
    others, use azguard safe-update --tags.

    The service compares no version here. So azguard takes a lease of 15 seconds, compares, writes and releases it. With
    --lease-id it uses yours.

    --etag also takes the ETag of the blob. Then the tags are not compared: those of another writer are replaced.

    The tag of a fence stays, unless you set it. With --fence the number of your lock guards the write, not the version,
    and the blob gets a new version of the same content.

    A version, ?versionid=…, cannot be leased. Its tags are set only with --last-writer-wins.

    Examples:
        azguard blob tags set site/config.json --tags stage=live --last-writer-wins
        azguard blob tags get site/config.json > tags.json
        azguard blob tags set site/config.json -f tags.json

    Topics: conditions, fences
    """
    from azguard.blobs.tags import replace_all
    from azguard.cli.lease_options import CacheRecords
    from azguard.conditions import fences

    env = context.of(ctx)
    target = env.locate(blob, Kind.BLOB)
    if target.address.snapshot:
        raise UsageError(f"{target} is a snapshot, which keeps its tags", hint="leave ?snapshot=… out")
    wanted, seen = part_options.read_tags(tags, file)
    if tags and RequestedConditions.of(env.shared).fence is not None:
        fences.check_tags(wanted)
    written = replace_all(target, wanted, env.conditions(target, seen), CacheRecords(env), env.deadline)
    env.reads.record_part(target, Part.TAGS, written)
    env.out.show(written)
