"""``azguard dir``: create, show, exists, list, delete, rename, properties, metadata."""

from typing import Annotated

from azguard.address import Kind
from azguard.cli import completers, nouns
from azguard.cli.context import Environment
from azguard.cli.input import addresses
from azguard.cli.nouns import Noun, declare_exists, declare_show
from azguard.cli.options import common
from azguard.cli.options.content import SOME_SMB_PROPERTY, SmbPropertyOptions
from azguard.cli.parsing.rows import argument
from azguard.cli.parsing.tree import Group
from azguard.cli.parts import declare_metadata
from azguard.files import directories, entries
from azguard.wire.operations.shares import (
    DIRECTORY_CREATE,
    DIRECTORY_DELETE,
    DIRECTORY_GET_PROPERTIES,
    DIRECTORY_RENAME,
    DIRECTORY_SET_METADATA,
    DIRECTORY_SET_PROPERTIES,
)

app = Group()
_DIRECTORY = Noun(Kind.DIR, addresses.Directory, "team/reports", "files", describe=entries.describe_directory)
declare_metadata(
    app,
    _DIRECTORY,
    DIRECTORY_GET_PROPERTIES,
    DIRECTORY_SET_METADATA,
    """A directory has no lease that could guard this write. With --allow-race azguard compares the version with the one
    that you read last, or with --etag. Another writer can still come in between.""",
    first=" --last-writer-wins",
    last=" --allow-race",
)


nouns.declare_create(
    app,
    _DIRECTORY,
    DIRECTORY_CREATE,
    """Create a directory; one that exists is left alone (exit 45, or 0 with --if-exists skip).

    Its parent directory must exist. Creating is atomic: if several try, one succeeds.

    Examples:
        azguard dir create team/reports
        azguard dir create team/reports --if-exists skip

    Topics: files
    """,
)
declare_show(app, _DIRECTORY, DIRECTORY_GET_PROPERTIES, _DIRECTORY.look)
declare_exists(app, _DIRECTORY, DIRECTORY_GET_PROPERTIES, _DIRECTORY.look)


nouns.declare_entries(
    app,
    """List the directories in a share or directory. For files too, see azguard file list.

    Examples:
        azguard dir list team
        azguard dir list team/reports --query '[].name' -o tsv

    Topics: files
    """,
    Kind.DIR,
)


nouns.declare_delete(
    app,
    _DIRECTORY,
    DIRECTORY_DELETE,
    """Delete a directory, if it is empty.

    A directory that is not empty is never deleted (exit 40). The service cannot guard the version of a directory:
    --etag needs --allow-race, and another writer can come between the comparison and the delete.
    A second delete of what this scope deleted needs no --allow-race, and ends with 44.

    Examples:
        azguard dir delete team/reports --last-writer-wins
        azguard dir delete team/reports --etag @last --allow-race

    Topics: files
    """,
    send=lambda _, target, conditions, deadline: directories.delete(target, conditions, deadline),
    look=_DIRECTORY.look,
)


@app.command(spec=common.operation(DIRECTORY_RENAME))
def rename(
    env: Environment,
    directory: Annotated[str, argument("OLD", "The directory: SHARE/PATH, or its URL.", completer=completers.files)],
    new: Annotated[str, argument("NEW", "Its new address: SHARE/PATH.", completer=completers.files)],
    dry_run: common.DryRun = False,
) -> None:
    """Rename a directory with all that is in it, inside its share, and replace nothing.

    What is at the new address stays, and the exit status is 45. With --last-writer-wins a file that is there is
    replaced; --lease-id is the lease of that file. A directory there is never replaced.

    Examples:
        azguard dir rename team/reports team/archive

    Topics: files
    """
    source = env.locate(directory, Kind.DIR, writable=True)
    target = env.locate(new, Kind.DIR, writable=True)
    replaced = directories.find_replaced(target)
    last = env.reads.find_last(source)
    conditions = env.conditions(replaced)
    if dry_run:
        env.out.show(directories.preview_rename(source, target, None, conditions, env.deadline))
        return
    result = directories.rename_directory(source, target, conditions, env.deadline)
    env.reads.move_leases(source, target)
    env.reads.forget(source)
    env.reads.forget(replaced)
    if last is not None and last.etag == result.previous_etag:
        env.reads.record(target, result)
    else:
        env.reads.forget(target)
    env.out.show(result)


properties_app = Group("The properties of a directory: set.")
app.add("properties", properties_app)


@properties_app.command(
    "set",
    spec=common.operation(DIRECTORY_SET_PROPERTIES),
    rules=(SOME_SMB_PROPERTY,),
)
def set_properties(env: Environment, directory: addresses.Directory, given: SmbPropertyOptions) -> None:
    """Change attributes and times of a directory. What you do not name stays.

    A directory has no lease that could guard this write. With --allow-race azguard compares the version with the one
    that you read last, or with --etag. Another writer can still come in between.

    Examples:
        azguard dir properties set team/reports --attributes Hidden --last-writer-wins

    Topics: files
    """
    target = env.locate(directory, Kind.DIR, writable=True)
    wanted = given.build()
    conditions = env.conditions(target)
    done = entries.change_directory(target, wanted, conditions, env.deadline)
    env.reads.follow(target, conditions.expected_etag, done.etag, None)
    env.out.show(done)
