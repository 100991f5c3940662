"""``azguard blob``: get, put, delete."""

from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.cli.context import Environment
from azguard.cli.input import streams
from azguard.cli.options import common
from azguard.cli.options.content import DownloadOptions, PutContentOptions, SpanOptions, find_version_of
from azguard.cli.options.trees import Folder, TreeGetOptions, TreeOptions, TreePutOptions, refuse_second
from azguard.cli.options.types import choice
from azguard.cli.parsing.rows import argument, flag, option
from azguard.cli.parsing.tree import Group
from azguard.cli.rules import Rule, excludes, needs
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.requests.results import Written
from azguard.wire.operations.blobs import BLOB_DELETE, BLOB_GET, BLOB_PUT_BLOCK_BLOB

if TYPE_CHECKING:
    from collections.abc import Callable

    from azguard.blobs.content.upload import Settings, Upload


app = Group()


@frozen
class BlobPutOptions(PutContentOptions):
    """The options of blob put."""

    tier: common.Tier = None
    metadata: common.Metadata = None
    tags: common.Tags = None
    allow_empty: Annotated[
        bool,
        flag("--allow-empty", "Write an empty blob if the input is empty; let --mirror delete all."),
    ] = False
    if_exists: common.IfExists = None
    blob_type: Annotated[
        str | None,
        option("--blob-type", "block", "Replace also a blob of another type.", choice),
    ] = None
    no_lineage: common.NoLineage = False
    snapshot_first: common.SnapshotFirst = False

    RULES: ClassVar[tuple[Rule, ...]] = (
        excludes("--recursive", "--snapshot-first", hint="azguard blob snapshot keeps one blob"),
        excludes(
            "--snapshot-first",
            "--if-none-match --if-modified-since --if-unmodified-since --if-tags --fence --last-writer-wins",
            "else another version may be replaced than the one that was kept",
            "name the version that is to be replaced: --etag ETAG",
        ),
    )

    def build_settings(self, name: str) -> "Settings":
        """Return the settings of a blob of this name, besides its content."""
        from azguard.blobs.content.upload import Settings

        headers = self.read_headers_of(name)
        return Settings(**headers, tier=self.tier, metadata=self.metadata or {}, tags=self.tags or {})

    def write_keeping_snapshot(self, upload: "Upload", write: "Callable[[Upload], Any]") -> Any:
        """Return the result of the write; with --snapshot-first, keep a snapshot of the replaced version before."""
        if not self.snapshot_first:
            return write(upload)
        from azguard.blobs import snapshots

        return snapshots.write_keeping(upload, write)


@frozen
class BlobGetOptions(SpanOptions):
    """What a get of one blob takes."""

    wait_changed: Annotated[
        bool,
        flag("--wait-changed", "Wait until the version differs from the one you last read, then read it."),
    ] = False
    waiting: common.WaitOptions = field(default_factory=common.WaitOptions)
    validate_content: Annotated[
        bool,
        flag("--validate-content", "Ask the service for the MD5 of each range, and compare it."),
    ] = False

    RULES: ClassVar[tuple[Rule, ...]] = (
        needs("--wait --no-wait", "--wait-changed"),
        excludes("--recursive", "--wait-changed --validate-content", "it is for one blob"),
    )

    def conditions(self, env: "Environment", target: Target) -> Conditions:
        """Return the conditions of a get, after waiting for a change if that is asked for.

        The get carries them too, so that it never delivers the version that was to be waited past.
        """
        if not self.wait_changed:
            return env.conditions(target)
        from azguard.blobs.waiting import Until, wait
        from azguard.commands.blob.listing import describe_wait, resolve_change

        conditions = resolve_change(env, target, BLOB_GET)
        wait(
            target,
            Until.CHANGED,
            conditions,
            describe_wait(env, target, Until.CHANGED, self.waiting.wait_seconds),
        )
        return conditions


@app.command(spec=common.operation(BLOB_GET))
def get(
    env: Environment,
    blob: common.Blob,
    folder: Folder = None,
    *,
    to: DownloadOptions,
    given: BlobGetOptions,
    tree: TreeGetOptions,
) -> None:
    """Read a blob and remember its version, which guards the next put.

    azguard remembers the version of a file that you wrote with -f or with the shell's >, also after you move the file.
    Content sent to /dev/null does not count as read.

    A local file that you changed since you got it is not replaced (exit 42); --overwrite replaces it. The shell's >
    empties a file before azguard can look at it.

    --offset and --length read a part. A part guards no put.

    --wait-changed waits for another version than the one that you last read, or than the ETag of --if-none-match. It
    asks every few seconds, in small requests. If the blob is deleted meanwhile, the exit status is 44.

    With --recursive all blobs below a prefix are read into a folder. Each has a line that says how it ended. If one
    fails, the others go on, and the exit status is 20, or 42 if all that failed are conflicts.

    Examples:
        azguard blob get site/config.json -f config.json
        azguard blob get site/config.json > copy.json
        azguard blob get site/ copy --recursive

    Topics: scopes, trees
    """
    from azguard.blobs.content.download import BlobDownload

    if tree.recursive:
        from azguard.cli.input import addresses

        tree.get(env, addresses.blob_tree(env, blob), folder, overwrites=to.overwrite)
        return
    refuse_second(env, folder)
    target, span = env.locate(blob, Kind.BLOB), given.build_span()

    def plan() -> partial[BlobDownload]:
        conditions = given.conditions(env, target)
        validates = given.validate_content
        return partial(BlobDownload, target, conditions, env.deadline.fresh, validates=validates, span=span)

    to.get(env, target, plan, span)


@app.command(
    spec=common.operation(BLOB_PUT_BLOCK_BLOB),
    rules=(
        needs(
            "--recursive",
            "CONTAINER/PREFIX/",
            "where the folder goes",
            "azguard blob put DIR CONTAINER/PREFIX/ --recursive",
        ),
    ),
)
def put(
    env: Environment,
    blob: common.Blob,
    to: Annotated[
        str | None,
        argument("CONTAINER/PREFIX/", "With --recursive: where the folder before it goes."),
    ] = None,
    *,
    given: BlobPutOptions,
    tree: TreePutOptions,
) -> None:
    """Write a blob, but only over the version you have seen.

    If you never read the blob, put creates it; if it exists, the exit status is 45. If the blob changed since you read
    it, the exit status is 42. A put replaces metadata, tags and headers too. azguard safe-update keeps them.

    A put does not replace an append or page blob (exit 40) unless you give --blob-type block. azguard knows the type
    from your read, else it asks the service.

    If the blob is leased, the exit status is 49, also if you never read it. On the emulator it is then 45.

    Empty input is refused (exit 2), because the command before the pipe may have failed. --allow-empty accepts it. An
    empty file that -f names is accepted too. azguard cannot see that the command failed after its first byte: use set
    -o pipefail. A file that changes while it is read is refused (exit 42), because it could be half old and half new.

    With --fence the number of your lock guards the write, not the version. The write is refused if a holder with a
    higher number has written. This works only if every writer of the blob gives a fence, because a write without a
    fence can remove the tag.

    Examples:
        azguard blob put site/config.json -f config.json
        azguard blob put site/config.json --content '{"replicas": 3}'
        azguard blob put dist site/v1/ --recursive

    Topics: conditions, fences, trees
    """
    from azguard.blobs.content import put_blob
    from azguard.blobs.content.upload import Upload, create_only
    from azguard.requests.lineage import fresh_op

    if tree.recursive:
        _put_tree(env, (blob, to), given, tree)
        return
    refuse_second(env, to)
    target = env.locate(blob, Kind.BLOB, writable=True)
    skip = given.if_exists is not None
    with given.open(takes_folders=True) as stream:
        copy, size = streams.copy(stream), streams.size(stream)
        upload = Upload(
            target=target,
            settings=given.build_settings(target.address.name),
            conditions=create_only(target) if skip else env.conditions(target, copy),
            deadline=env.deadline,
            op=fresh_op(),
            any_type=given.blob_type is not None,
        ).add_lineage(wanted=not given.no_lineage)
        with env.out.progress_bar(f"put {target}", size) as progress:
            allows_empty = given.may_be_empty(allowed=given.allow_empty)
            write = partial(put_blob.put, source=stream, progress=progress.at, allow_empty=allows_empty)
            written = given.write_keeping_snapshot(upload, _or_leave_alone(write) if skip else write)
    env.reads.follow_parts(target, upload.conditions.expected_etag, written.etag, upload.stamp)
    # A file of another size was read from its middle, or changed meanwhile.
    whole = copy if size == getattr(written, "content_length", None) else None
    env.reads.record(target, written, whole, upload.stamp)
    env.out.show(written)


def _put_tree(env: Environment, words: tuple[str, str | None], given: BlobPutOptions, tree: TreePutOptions) -> None:
    from azguard.cli.input import addresses

    open_store = partial(
        addresses.blob_tree,
        env,
        settings=given.build_settings,
        stamps=not given.no_lineage,
        any_type=given.blob_type is not None,
    )
    tree.put(env, words, given, open_store)


def _or_leave_alone(write: "Callable[[Upload], Any]") -> "Callable[[Upload], Any]":
    """Return a write that creates, and tells of what is there already."""
    from azguard.resources import lifecycles
    from azguard.resources.lifecycles import find_existing

    return lambda ready: lifecycles.create_unless_exists(
        lambda: write(ready), lambda: find_existing(ready.target, ready.op, ready.deadline), skip=True
    )


@app.command(
    spec=common.operation(BLOB_DELETE),
    rules=(excludes("--version-of", "--if-match"),),
)
def delete(
    env: Environment,
    blob: common.Blob,
    delete_snapshots: Annotated[
        str | None,
        option(
            "--delete-snapshots",
            "include|only",
            "Delete its snapshots too, or only those.",
            choice,
        ),
    ] = None,
    version_of: common.VersionOf = None,
    snapshot_first: common.NoSnapshotFirst = False,
    *,
    tree: TreeOptions,
) -> None:
    """Delete a blob, but only the version you have seen.

    With --fence the number of your lock guards the delete, not the version. The fence is deleted with the blob, so a
    holder with a lower number can create the blob again. If that matters, keep an empty blob.

    --dry-run looks whether the version is there still, and whether the blob is leased; it does not look for snapshots.

    Examples:
        azguard blob delete site/config.json
        azguard blob delete site/config.json --etag @last
        azguard blob delete site/config.json --version-of config.json
        azguard blob delete site/config.json --last-writer-wins

    Topics: conditions, fences, trees
    """
    from azguard.blobs import deletes
    from azguard.cli.input import addresses

    addresses.refuse_snapshot_first(blob, given=snapshot_first)
    if tree.recursive:
        tree.delete(env, addresses.blob_tree(env, blob, snapshots=delete_snapshots))
        return
    target = env.locate(blob, Kind.BLOB)
    copy = None if version_of is None else find_version_of(env, target, version_of)
    conditions = env.conditions(target, copy)
    if tree.dry_run:
        env.out.show(deletes.preview(target, conditions, env.deadline))
        return

    def send() -> Written:
        return deletes.delete(target, conditions, delete_snapshots, env.deadline)

    # Without its snapshots a blob is still there.
    env.out.show(send() if delete_snapshots == "only" else env.reads.delete(target, conditions, send))
