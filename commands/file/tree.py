"""``azguard file``: show, exists, list, delete, prune, resize, properties, permission, metadata."""

from dataclasses import field
from datetime import timedelta
from typing import Annotated, ClassVar

from azguard.address import Kind
from azguard.cli import nouns, parts
from azguard.cli.context import Environment
from azguard.cli.input import addresses, streams
from azguard.cli.nouns import Noun, declare_exists, declare_show
from azguard.cli.options import common
from azguard.cli.options.content import (
    HEADERS,
    NAME_HEADER,
    NOTHING_TO_SET,
    SMB,
    ContentOptions,
    HeaderOptions,
    SmbPropertyOptions,
    find_version_of,
)
from azguard.cli.options.trees import FileTreeDeleteOptions
from azguard.cli.options.types import DURATION, TEXT, require_text
from azguard.cli.options.types import size as size_type
from azguard.cli.parsing.rows import argument, flag, option
from azguard.cli.parsing.tree import Group
from azguard.cli.rules import Rule, any_of, at_most_one, one_of
from azguard.files import entries, files
from azguard.frozen import frozen
from azguard.resources.properties import ContentHeaders
from azguard.wire.operations.shares import (
    FILE_DELETE,
    FILE_GET_PROPERTIES,
    FILE_SET_METADATA,
    FILE_SET_PROPERTIES,
    SHARE_CREATE_PERMISSION,
    SHARE_GET_PERMISSION,
)

# The service's limit for one file: 4 TiB.
_SIZE = size_type(0, 4 * 1024**4)

app = Group()
_FILE = Noun(Kind.FILE, addresses.File, "team/plan.txt", "files", describe=entries.describe_file)
parts.declare_metadata(
    app,
    _FILE,
    FILE_GET_PROPERTIES,
    FILE_SET_METADATA,
    """The service does not compare the ETag here. So azguard takes a lease, compares, writes. The ETag changes, the
    content does not. So a file that you read with file get can still be put.""",
)


@frozen
class FilePropertyOptions(HeaderOptions):
    """The content headers, and what SMB clients see."""

    smb: SmbPropertyOptions = field(kw_only=True)

    RULES: ClassVar[tuple[Rule, ...]] = (
        any_of(f"{HEADERS} {SMB}", NOTHING_TO_SET, NAME_HEADER.replace("header", "property")),
    )


declare_show(app, _FILE, FILE_GET_PROPERTIES, _FILE.look, "content_length")
declare_exists(app, _FILE, FILE_GET_PROPERTIES, _FILE.look, " Where its share does not exist, an error says so (44).")


nouns.declare_entries(
    app,
    """List the directories and files in a share or directory, not those below its directories.

    Examples:
        azguard file list team
        azguard file list team/reports --prefix 2026
        azguard file list team --query "[?type=='file'].name" -o tsv

    Topics: files
    """,
)


@app.command(spec=common.operation(FILE_DELETE))
def delete(
    env: Environment,
    file: addresses.File,
    version_of: common.VersionOf = None,
    *,
    tree: FileTreeDeleteOptions,
) -> None:
    """Delete a file, if it is still the version that you read.

    The service does not compare the ETag. So azguard takes a lease, compares, deletes. An unchanged ETag does not
    prove that no program has the file open over SMB; the lease does: it is not granted then (exit 49).

    With --recursive all files below a directory are deleted, each under its guard, then the directories that are
    empty.

    Examples:
        azguard file delete team/plan.txt
        azguard file delete team/plan.txt --version-of plan.txt
        azguard file delete team/plan.txt --last-writer-wins
        azguard file delete team/reports/ --recursive

    Topics: files, trees
    """
    if tree.recursive:
        tree.delete(env, addresses.file_tree(env, file), keeps_folders=tree.keep_directories)
        return
    target = env.locate(file, Kind.FILE, writable=True)
    copy = None if version_of is None else find_version_of(env, target, version_of)
    conditions = env.conditions(target, copy)
    if tree.dry_run:
        nouns.show_doomed(env, target, conditions, lambda: _FILE.look(target, conditions, env.deadline))
        return
    guarding = addresses.guarding(env)
    env.out.show(env.reads.delete(target, conditions, lambda: files.delete(target, conditions, guarding, env.deadline)))


@app.command(spec=common.remote("each temporary file is deleted as the version that was judged"))
def prune(
    env: Environment,
    folder: addresses.Folder,
    older_than: Annotated[
        float | None,
        option("--older-than", "DURATION", "Delete also those that were not written for this long.", DURATION),
    ] = None,
    recursive: Annotated[bool, flag("--recursive, -r", "Include the directories below.")] = False,
    dry_run: Annotated[bool, flag("--dry-run", "Show what would be deleted; delete nothing.")] = False,
) -> None:
    """Delete the temporary files that killed writes left in a share or directory.

    A command that writes a whole file, such as file put or safe-update, first writes a temporary file beside it, whose
    name begins with .azguard-. If azguard is killed, the temporary file stays. prune deletes those whose process on
    this machine has ended. The next file put in the directory does the same.

    Another machine may still be writing the others, so they are kept, and shown. With --older-than they are deleted if
    they were not written for this long, by the clock of the service. Choose a time that is longer than any pause of an
    upload. A file that is written or leased meanwhile stays.

    Examples:
        azguard file prune team -r --dry-run
        azguard file prune team -r
        azguard file prune team/reports --older-than 7d

    Topics: files
    """
    target = addresses.locate_folder(env, folder, writable=True)
    age = None if older_than is None else timedelta(seconds=older_than)
    pruning = files.Pruning(addresses.guarding(env), env.deadline, older_than=age, only_tells=dry_run)
    env.out.show_each(files.prune(target, pruning, recursive=recursive))


@app.command(
    spec=common.operation(FILE_SET_PROPERTIES),
    rules=(one_of("SIZE --size", "how long the file is to be", "write it behind the file, as in: team/plan.txt 1MiB"),),
)
def resize(
    env: Environment,
    file: addresses.File,
    length: Annotated[int | None, argument("[SIZE]", "The new length.", _SIZE)] = None,
    size: Annotated[int | None, option("--size", "SIZE", "The new length, as another way to say it.", _SIZE)] = None,
) -> None:
    """Set the length of a file, if it is still the version that you read.

    Bytes that are cut off are lost. Bytes that are added are zeros and take no room.

    Examples:
        azguard file resize team/plan.txt 1MiB --last-writer-wins

    Topics: files
    """
    from azguard.files import content

    target = env.locate(file, Kind.FILE, writable=True)
    wanted = size if length is None else length
    assert wanted is not None
    conditions = env.conditions(target)
    done = content.resize_file(target, wanted, conditions, addresses.guarding(env), env.deadline)
    addresses.record_written(env, target, conditions, done)
    env.out.show(done)


properties_app = Group("The properties of a file: set.")
app.add("properties", properties_app)


@properties_app.command("set", spec=common.operation(FILE_SET_PROPERTIES))
def set_properties(env: Environment, file: addresses.File, given: FilePropertyOptions) -> None:
    """Change content headers, attributes and times of a file, but only of the version you have seen.

    What you do not name stays. The service does not compare the ETag here. So azguard takes a lease, compares, writes.

    Examples:
        azguard file properties set team/plan.txt --content-type text/plain
        azguard file properties set team/plan.txt --attributes 'Hidden|Archive'

    Topics: files
    """
    target = env.locate(file, Kind.FILE, writable=True)
    wanted = ContentHeaders(**given.read_headers()), given.smb.build()
    conditions = env.conditions(target)
    done = entries.change_file(target, wanted, conditions, addresses.guarding(env), env.deadline)
    env.reads.follow(target, conditions.expected_etag, done.etag, None)
    env.out.show(done)


permission_app = Group("Permissions of files, in SDDL: show, create.")
app.add("permission", permission_app)


@permission_app.command("show", spec=common.operation(SHARE_GET_PERMISSION))
def show_permission(
    env: Environment,
    path: addresses.Path,
    key: Annotated[str | None, argument("[KEY]", "The key of a permission of that share.", TEXT)] = None,
) -> None:
    """Show the permission of a file or directory, or that of a key, in SDDL.

    Examples:
        azguard file permission show team/plan.txt
        azguard file permission show team --query permission -o tsv

    Topics: files
    """
    from azguard.files import shares

    target = addresses.locate_path(env, path)
    env.conditions(target)
    env.out.show(shares.show_permission(target, key, env.deadline))


@permission_app.command(
    "create", spec=common.operation(SHARE_CREATE_PERMISSION), rules=(at_most_one("SDDL --file --content"),)
)
def create_permission(
    env: Environment,
    share: addresses.Share,
    text: Annotated[str | None, argument("[SDDL]", "The permission; else --file, or stdin.", TEXT)] = None,
    *,
    given: ContentOptions,
) -> None:
    """Keep a permission in a share, and show the key by which files get it.

    A permission never changes, and none is deleted. Give the key to file properties set --permission-key. After a lost
    answer it is sent again, which may leave two that are equal.

    Examples:
        azguard file permission create team 'O:SYG:SYD:(A;;FA;;;WD)'
        azguard file permission create team -f permission.sddl

    Topics: files
    """
    from azguard.files import shares

    target = env.locate(share, Kind.SHARE, writable=True)
    env.conditions(target)
    with streams.content(given.file, text=given.content if text is None else text) as stream:
        permission = require_text(stream.read().decode(errors="replace").strip(), "the permission")
    env.out.show(shares.create_permission(target, permission, env.deadline))
