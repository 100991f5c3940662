"""``azguard cache``: the ETags this machine remembers."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from azguard import folders
from azguard.cache import etag_cache
from azguard.cli import completers
from azguard.cli.context import Environment
from azguard.cli.input import streams
from azguard.cli.options import common
from azguard.cli.options.types import DURATION, TEXT
from azguard.cli.parsing.rows import argument, flag, option
from azguard.cli.parsing.tree import Group
from azguard.cli.rules import checked, excludes
from azguard.errors import UsageError
from azguard.times import say_count, span

if TYPE_CHECKING:
    from azguard.cache import kept_files

_DryRun = Annotated[bool, flag("--dry-run", "Show what would be forgotten and deleted; change nothing.")]

app = Group("The ETags this machine remembers, and for whom.")


@app.command(name="list", rules=(excludes("--prefix", "--kept", "it chooses among what was read"),))
def list_(
    env: Environment,
    prefix: common.Prefix = None,
    num_results: common.Limit = None,
    all_scopes: common.AllScopes = False,
    kept: Annotated[bool, flag("--kept", "List the files that azguard keeps on this machine instead.")] = False,
) -> None:
    """List what this scope has read, newest first; with --kept the files that azguard keeps beside that.

    The files of --kept are of all scopes: unsaved work, records of locks and of processes, updates in doubt, and the
    emulator. Each has its kind, its size, its age, its path and what it is for.

    Examples:
        azguard cache list
        azguard cache list --all-scopes
        azguard cache list --kept

    Topics: scopes
    """
    if kept:
        found = list(islice(_find_kept(env), num_results))
        env.out.show_each(found)
        if env.out.format == "table":
            for row in dict.fromkeys(each.row for each in found):
                stays = f"cache prune deletes it after {row.days} days" if row.days else "no command deletes it"
                env.out.info(f"{row.kind}: {row.purpose}; {stays}")
        return
    env.cache.require_readable()
    env.out.show_each(islice(env.cache.list_entries(None if all_scopes else env.scope, prefix), num_results))


@app.command()
def show(
    env: Environment,
    address: Annotated[
        str,
        argument("ADDRESS", "The resource, such as blob:site/config.json.", completer=completers.addresses),
    ],
) -> None:
    """Show what this scope has read of one resource, and into which files.

    Examples:
        azguard cache show blob:site/config.json
    """
    env.cache.require_readable()
    env.out.show(etag_cache.require_entries(env.cache, env.location(address), env.scope))


@app.command()
def forget(
    env: Environment,
    addresses: Annotated[
        list[str],
        argument("ADDRESS...", "The resources to forget.", completer=completers.addresses),
    ],
    all_scopes: common.AllScopes = False,
    dry_run: Annotated[bool, flag("--dry-run", "Show what would be forgotten; change nothing.")] = False,
) -> None:
    """Forget what was read; the next write then needs a condition.

    Examples:
        azguard cache forget blob:site/config.json
        azguard cache forget blob:site/config.json --dry-run
    """
    scope = None if all_scopes else env.scope
    known = [key for each in addresses for key in env.cache.list_known(env.location(each), scope)]
    if dry_run:
        env.cache.require_readable()
        forgotten = len(known)
    else:
        forgotten = sum(env.cache.forget(key, all_scopes=all_scopes) for key in known)
        env.cache.require_written()
    env.out.show({"forgotten": forgotten, "dry_run": dry_run})


@app.command(rules=(checked("--kept", "a terminal to ask on, --yes or --dry-run", "cache._confirm"),))
def clear(
    env: Environment,
    all_scopes: common.AllScopes = False,
    kept: Annotated[bool, flag("--kept", "Delete the files of cache list --kept, too.")] = False,
    yes: common.Yes = False,
    dry_run: _DryRun = False,
) -> None:
    """Forget everything that this scope has read.

    With --kept, the files of azguard cache list --kept are deleted too, those of all scopes, however young. Of unsaved
    work there is no other copy: you are asked first, and a script needs --yes. What is in use stays, and so does the
    emulator.

    Examples:
        azguard cache clear
        azguard cache clear --all-scopes
        azguard cache clear --kept --dry-run
    """
    scope = None if all_scopes else env.scope
    chosen = [each for each in _find_kept(env) if each.row.days is not None] if kept else []
    if any(not each.in_use for each in chosen) and not (yes or dry_run):
        _confirm(env, chosen)
    forgotten = env.cache.count_all(scope) if dry_run else env.cache.clear(scope)
    _end(env, forgotten, chosen, is_dry_run=dry_run)


@app.command()
def prune(
    env: Environment,
    older_than: Annotated[
        float,
        option("--older-than", "DURATION", "Forget what was read longer ago than this.", DURATION),
    ] = etag_cache.OLD_SECONDS,
    dry_run: _DryRun = False,
) -> None:
    """Forget what was read long ago, and delete the files that azguard has kept for long; of every scope.

    A file is deleted if it was not written for that long, nor for as long as its kind is kept, which the topic says. So
    a short --older-than deletes no unsaved work of last week. What is in use stays.

    Examples:
        azguard cache prune --older-than 7d
        azguard cache prune --dry-run

    Topics: environment
    """
    age = timedelta(seconds=older_than)
    forgotten = env.cache.count_old(age) if dry_run else env.cache.prune(age)
    _end(env, forgotten, [each for each in _find_kept(env) if each.is_due(age)], is_dry_run=dry_run)


@app.command()
def export(env: Environment, all_scopes: common.AllScopes = False) -> None:
    """Print what was read as JSON lines, for the next CI job to import.

    Examples:
        azguard cache export
    """
    env.cache.require_readable()
    env.out.json_lines(env.cache.export(None if all_scopes else env.scope))


@app.command(name="import", rules=(checked("FILE|-", "stdin is no terminal, and not empty", "cache.import_"),))
def import_(
    env: Environment,
    file: Annotated[str, argument("FILE|-", "The file that export printed.", TEXT)] = "-",
) -> None:
    """Import the lines that export printed: all of them, or none if a line is malformed.

    Empty input is refused (exit 2), because the command before the pipe may have failed. An empty file that is named
    is accepted.

    Examples:
        azguard cache export | azguard cache import
    """
    if file == "-" and streams.stdin_is_terminal():
        raise UsageError("nothing to import: stdin is a terminal", hint="azguard cache import FILE")
    imported = env.cache.import_records(streams.json_lines(file))
    if not imported and not streams.keeps_content(file):
        raise UsageError("nothing to import: the input is empty", hint="did the command before the pipe fail?")
    env.cache.require_written()
    env.out.show({"imported": imported})


@app.command()
def path(env: Environment) -> None:
    """Show where the cache is.

    Examples:
        azguard cache path
    """
    env.out.show({"path": str(env.cache.path), "scope": env.scope})


def _find_kept(env: Environment) -> Iterator["kept_files.KeptItem"]:
    from azguard.cache import kept_files

    return kept_files.find(env.folders.cache, datetime.now(UTC), _list_uses())


def _list_uses() -> "kept_files.Uses":
    from azguard.emulators import azurite_process, files_process
    from azguard.locks.hold_records import HoldRecords

    def is_running(folder: Path) -> bool:
        return azurite_process.load(folder) is not None or files_process.find_running(folder) is not None

    return {folders.HOLD.kind: HoldRecords.may_be_held, folders.EMULATOR.kind: is_running}


def _confirm(env: Environment, chosen: list["kept_files.KeptItem"]) -> None:
    """List the files to delete, and ask."""
    unused = [each for each in chosen if not each.in_use]
    _tell(env, unused, "to delete")
    if not streams.on_terminal():
        raise UsageError(
            f"{say_count(len(unused), 'kept file')} would be deleted, and there is no terminal to ask on",
            hint="to delete them all the same: --yes",
        )
    streams.confirm("delete them?", "nothing was deleted or forgotten")


def _end(env: Environment, forgotten: int, chosen: list["kept_files.KeptItem"], *, is_dry_run: bool) -> None:
    from azguard.cache import kept_files

    if is_dry_run:
        env.cache.require_readable()
        ended = [each for each in chosen if not each.in_use]
        _tell(env, ended, "would delete")
    else:
        env.cache.require_written()
        ended = list(kept_files.delete(chosen, _list_uses()))
    env.out.show(
        kept_files.CacheEnded(
            forgotten=forgotten,
            deleted=len(ended),
            deleted_bytes=sum(each.size for each in ended),
            in_use=len(chosen) - len(ended),
            dry_run=is_dry_run,
        )
    )


def _tell(env: Environment, items: list["kept_files.KeptItem"], what: str) -> None:
    for each in items:
        alone = ", the only copy" if each.row.is_only_copy else ""
        env.out.info(f"{what}: {each.path} ({each.kind}, {span(each.age)} old{alone})")
