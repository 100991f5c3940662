"""``azguard cache``: the ETags this machine remembers."""

from datetime import timedelta
from typing import Annotated

import typer

from azguard.cache import lookup
from azguard.cli import completers, context, inputs, options, values
from azguard.cli.context import Environment
from azguard.cli.groups import group
from azguard.errors import UsageError

app = group("The ETags this machine remembers, and for whom.")


@app.command(name="list")
def list_(ctx: typer.Context, prefix: options.Prefix = None, all_scopes: options.AllScopes = False) -> None:
    """List what this scope has read, newest first.

    Examples:
        azguard cache list
        azguard cache list --all-scopes
        azguard cache list --prefix blob:site/

    Topics: scopes
    """
    env = context.of(ctx)
    env.cache.require_readable()
    env.out.show_each(env.cache.list_entries(None if all_scopes else env.scope, prefix))


@app.command()
def show(
    ctx: typer.Context,
    address: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS", help="The resource, such as blob:site/config.json.", autocompletion=completers.addresses
        ),
    ],
) -> None:
    """Show what this scope has read of one resource, and into which files.

    Examples:
        azguard cache show blob:site/config.json
    """
    env = context.of(ctx)
    env.cache.require_readable()
    env.out.show(lookup.require_entries(env.cache, env.location(address), env.scope))


@app.command()
def forget(
    ctx: typer.Context,
    addresses: Annotated[
        list[str],
        typer.Argument(metavar="ADDRESS...", help="The resources to forget.", autocompletion=completers.addresses),
    ],
    all_scopes: options.AllScopes = False,
) -> None:
    """Forget what was read; the next write then needs a condition.

    Examples:
        azguard cache forget blob:site/config.json
    """
    env = context.of(ctx)
    scope = None if all_scopes else env.scope
    _show_change(env, forgotten=sum(lookup.forget(env.cache, env.location(each), scope) for each in addresses))


@app.command()
def clear(ctx: typer.Context, all_scopes: options.AllScopes = False) -> None:
    """Forget everything that this scope has read.

    Examples:
        azguard cache clear
        azguard cache clear --all-scopes
    """
    env = context.of(ctx)
    _show_change(env, forgotten=env.cache.clear(None if all_scopes else env.scope))


@app.command()
def prune(
    ctx: typer.Context,
    older_than: Annotated[
        str,
        typer.Option("--older-than", metavar="DURATION", help="Forget entries older than this."),
    ] = "30d",
) -> None:
    """Forget old entries, of all scopes.

    Examples:
        azguard cache prune --older-than 7d
    """
    env = context.of(ctx)
    age = timedelta(seconds=values.duration(older_than, "--older-than"))
    _show_change(env, forgotten=env.cache.prune(age))


@app.command()
def export(ctx: typer.Context, all_scopes: options.AllScopes = False) -> None:
    """Print what was read as JSON lines, for the next CI job to import.

    Examples:
        azguard cache export
    """
    env = context.of(ctx)
    env.cache.require_readable()
    env.out.json_lines(env.cache.export(None if all_scopes else env.scope))


@app.command(name="import")
def import_(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="The file that export printed.")] = "-",
) -> None:
    """Import the lines that export printed: all of them, or none if a line is malformed.

    Examples:
        azguard cache export | azguard cache import
    """
    env = context.of(ctx)
    if file == "-" and inputs.stdin_is_terminal():
        raise UsageError("nothing to import: stdin is a terminal", hint="azguard cache import FILE")
    if not file.strip():
        raise UsageError("FILE is empty", hint="an unset shell variable looks like this; leave it out for stdin")
    _show_change(env, imported=env.cache.import_records(inputs.json_lines(file)))


@app.command()
def path(ctx: typer.Context) -> None:
    """Show where the cache is.

    Examples:
        azguard cache path
    """
    env = context.of(ctx)
    env.out.show({"path": str(env.cache.path), "scope": env.scope})


def _show_change(env: Environment, **counts: int) -> None:
    env.cache.require_written()
    env.out.show(counts)
