"""``azguard file``: get, put, range."""

from dataclasses import field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Annotated

from azguard.address import Kind
from azguard.cli import nouns
from azguard.cli.context import Environment
from azguard.cli.input import addresses, streams
from azguard.cli.options import common
from azguard.cli.options.content import (
    ContentOptions,
    DownloadOptions,
    ListedRangeOptions,
    PutContentOptions,
    SmbPropertyOptions,
    SpanOptions,
)
from azguard.cli.options.trees import FileTreePutOptions, Folder, TreeGetOptions, refuse_second
from azguard.cli.options.types import SIZE
from azguard.cli.parsing.rows import argument, flag, option
from azguard.cli.parsing.tree import Group
from azguard.cli.rules import checked, needs, one_of
from azguard.frozen import frozen
from azguard.requests.lineage import fresh_op
from azguard.requests.results import WOULD_CLEAR
from azguard.resources import lifecycles
from azguard.resources.properties import ContentHeaders
from azguard.wire.operations.shares import FILE_GET, FILE_LIST_RANGES, FILE_PUT_RANGE, FILE_RENAME

if TYPE_CHECKING:
    from azguard.files.content import RangeWrite
    from azguard.files.entries import SmbProperties

_Offset = Annotated[int, option("--offset", "SIZE", "Begin at this byte.", SIZE)]

app = Group()
range_app = Group("Ranges of a file: put, clear, list.")
app.add("range", range_app)


@frozen
class FilePutOptions(PutContentOptions):
    """The options of file put."""

    smb: SmbPropertyOptions = field(kw_only=True)
    metadata: common.Metadata = None
    allow_empty: Annotated[
        bool,
        flag("--allow-empty", "Write an empty file if the input is empty; let --mirror delete all."),
    ] = False
    if_exists: common.IfExists = None

    def build_properties(self, name: str) -> tuple[ContentHeaders, "SmbProperties"]:
        """Return the properties of a file of this name, besides its content."""
        return ContentHeaders(**self.read_headers_of(name)), self.smb.build()


@app.command(spec=common.operation(FILE_GET))
def get(
    env: Environment,
    path: addresses.File,
    folder: Folder = None,
    *,
    to: DownloadOptions,
    given: SpanOptions,
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
        azguard file get team/plan.txt --offset 0 --length 4
        azguard file get team/ copy --recursive

    Topics: files, scopes, trees
    """
    from azguard.files.content import FileDownload

    if tree.recursive:
        tree.get(env, addresses.file_tree(env, path, writable=False), folder, overwrites=to.overwrite)
        return
    refuse_second(env, folder)
    target = env.locate(path, Kind.FILE)
    span = given.build_span()

    def plan() -> partial[FileDownload]:
        return partial(FileDownload, target, env.conditions(target).lease_id, env.deadline.fresh, span)

    to.get(env, target, plan, span)


@app.command(
    spec=common.operation(FILE_RENAME),
    rules=(
        needs(
            "--recursive", "SHARE/PREFIX/", "where the folder goes", "azguard file put DIR SHARE/PREFIX/ --recursive"
        ),
    ),
)
def put(
    env: Environment,
    path: addresses.File,
    to: Annotated[
        str | None,
        argument("SHARE/PREFIX/", "With --recursive: where the folder before it goes."),
    ] = None,
    *,
    given: FilePutOptions,
    tree: FileTreePutOptions,
) -> None:
    """Write a file, but only over the version you have seen, and whole or not at all.

    If you never read the file, put creates it; if it exists, the exit status is 45. If the file changed since you read
    it, the exit status is 42. The content goes to a temporary file in the same directory, which is then renamed. Until
    then readers see the old file. A temporary file that a crash leaves has a name that begins with .azguard-.

    The service does not compare the ETag. So azguard takes a lease, compares, renames. An unchanged ETag does not prove
    that no program has the file open over SMB; the lease does: it is not granted then (exit 49).

    A put replaces metadata and content headers. Attributes, the creation time and the permission stay, unless you
    set them. Under your own --lease-id the new version is leased as the old one was.

    Empty input is refused (exit 2), because the command before the pipe may have failed. --allow-empty accepts it. An
    empty file that -f names is accepted too. A file that changes while it is read is refused (exit 42), because it
    could be half old and half new.

    Examples:
        azguard file put team/new.txt -f config.json
        azguard file get team/plan.txt > plan.txt
        azguard file put team/plan.txt -f plan.txt
        azguard file put dist team/v1/ --recursive

    Topics: files, conditions, trees
    """
    from azguard.files import replacing

    if tree.recursive:
        _put_tree(env, (path, to), given, tree)
        return
    refuse_second(env, to)
    target = env.locate(path, Kind.FILE, writable=True)
    skip = given.if_exists is not None
    headers, smb = given.build_properties(target.address.name)
    allows_empty = given.may_be_empty(allowed=given.allow_empty)
    with given.open(takes_folders=True) as stream:
        copy, size = streams.copy(stream), streams.size(stream)
        upload = replacing.FileUpload(
            target=target,
            headers=headers,
            smb=smb,
            metadata=given.metadata or {},
            conditions=replacing.create_only(target) if skip else env.conditions(target, copy),
            deadline=env.deadline,
            op=fresh_op(),
        )
        guarding = addresses.guarding(env)
        with env.out.progress_bar(f"put {target}", size) as progress:
            written = lifecycles.create_unless_exists(
                lambda: replacing.put(upload, stream, size, guarding, progress.at, allow_empty=allows_empty),
                lambda: lifecycles.find_existing(target, upload.op, env.deadline),
                skip=skip,
            )
    lineage = getattr(written, "lineage", None)
    env.reads.follow_parts(target, upload.conditions.expected_etag, written.etag, lineage)
    # A file of another size was read from its middle, or changed meanwhile.
    whole = copy if size == getattr(written, "content_length", None) else None
    env.reads.record(target, written, whole, lineage)
    env.out.show(written)


def _put_tree(env: Environment, words: tuple[str, str | None], given: FilePutOptions, tree: FileTreePutOptions) -> None:
    from azguard.files.trees import FileSettings

    metadata = given.metadata or {}
    open_store = partial(
        addresses.file_tree, env, settings=lambda name: FileSettings(*given.build_properties(name), metadata)
    )
    tree.put(env, words, given, open_store, keeps_folders=tree.keep_directories)


@range_app.command("put", spec=common.operation(FILE_PUT_RANGE))
def put_range(
    env: Environment,
    path: addresses.File,
    given: ContentOptions,
    offset: _Offset = 0,
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
    from azguard.files import content

    write = _plan(env, path, offset)
    with (
        given.open() as stream,
        env.out.progress_bar(f"put {write.target}", streams.size(stream)) as progress,
    ):
        done = content.put_range(write, stream, progress.at)
    addresses.record_written(env, write.target, write.conditions, done)
    env.out.show(done)


@range_app.command(
    "clear",
    spec=common.operation(FILE_PUT_RANGE),
    rules=(
        one_of("--length", "how many bytes to clear", "--length 512"),
        checked("--offset --length", "whole blocks of 512 bytes", "content.clear_range"),
    ),
)
def clear_range(
    env: Environment,
    file: addresses.File,
    length: common.ClearedLength = None,
    offset: _Offset = 0,
    dry_run: common.DryRun = False,
) -> None:
    """Clear a range of a file, so that it holds zeros and takes no room.

    Whole blocks of 512 bytes are cleared. Elsewhere, write zeros with azguard file range put.

    Examples:
        azguard file range clear team/disk.img --length 1KiB --last-writer-wins

    Topics: files
    """
    from azguard.files import content, entries
    from azguard.resources import properties

    write = _plan(env, file, offset)
    if dry_run:

        def look() -> entries.FileShown:
            found = properties.fetch(write.target, write.conditions, env.deadline)
            return entries.describe_file(write.target.address, found)

        nouns.show_doomed(env, write.target, write.conditions, look, outcome=WOULD_CLEAR)
        return
    done = content.clear_range(write, length or 0)
    addresses.record_written(env, write.target, write.conditions, done)
    env.out.show(done)


@range_app.command(name="list", spec=common.operation(FILE_LIST_RANGES))
def list_ranges(
    env: Environment,
    file: addresses.File,
    given: ListedRangeOptions,
) -> None:
    """List the ranges of a file that hold data; the rest is zeros.

    Examples:
        azguard file range list team/disk.img
        azguard file range list team/disk.img --offset 0 --length 1KiB
        azguard file range list team/disk.img --query '[].start' -o tsv

    Topics: files
    """
    from azguard.files import content

    target = env.locate(file, Kind.FILE)
    asked = content.RangesAsked(offset=given.offset, length=given.length, previous=given.previous_snapshot)
    found = content.list_ranges(target, asked, env.conditions(target), env.deadline)
    env.out.show_each(islice(found, given.num_results))


def _plan(env: Environment, file: str, offset: int) -> "RangeWrite":
    """Return the write of a range, under the conditions of this run."""
    from azguard.files.content import RangeWrite

    target = env.locate(file, Kind.FILE, writable=True)
    return RangeWrite(target, env.conditions(target), addresses.guarding(env), env.deadline, offset)
