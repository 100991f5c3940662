"""``azguard blob wait``."""

from typing import Annotated

import typer

from azguard.address import Kind
from azguard.cli import completers, context, options, values, wait_options
from azguard.cli.groups import group
from azguard.conditions.operations import BLOB_GET_PROPERTIES
from azguard.conditions.resolve import Conditions
from azguard.errors import UsageError

app = group("Wait for a blob.")

_UNTIL = ("exists", "absent", "changed", "unleased")


@app.command(spec=options.remote("blob wait only looks, until the blob is as you say"))
def wait(
    ctx: typer.Context,
    blob: options.Blob,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="|".join(_UNTIL), help="Say what to wait for."),
    ] = None,
    if_none_match: Annotated[
        str | None,
        typer.Option(
            "--if-none-match",
            metavar="ETAG|@last",
            help="With --until changed: from this version; by default, from what you last read.",
            autocompletion=completers.etags,
        ),
    ] = None,
    timeout: Annotated[
        str | None,
        typer.Option("--timeout", metavar="DURATION", help="Give up after this long (exit 75); by default, 60s."),
    ] = None,
) -> None:
    """Wait until a blob exists, is absent, has changed or is not leased.

    changed: the blob is another version than the one that you last read, or than the ETag of --if-none-match. If it is
    deleted meanwhile, the exit status is 44. To wait and read in one go: azguard blob get --wait-changed.

    absent: where the container does not exist, nothing proves that the name is right: the exit status is 44.

    Each look is one small request, every few seconds. Errors that may pass are tolerated until the time is up. A change
    that is undone between two looks is not noticed.

    Examples:
        azguard blob wait site/config.json --until exists --timeout 10m
        azguard blob wait site/config.json --until changed --if-none-match 0x8DC1
        azguard blob wait site/config.json --until unleased && echo free

    Topics: conditions, leases
    """
    from azguard.blobs import waiting

    env = context.of(ctx)
    if until is None:
        raise UsageError("what to wait for is missing", hint=f"--until {'|'.join(_UNTIL)}")
    which = waiting.Until(values.choice(until, "--until", _UNTIL) or until)
    target = env.locate(blob, Kind.BLOB)
    conditions = Conditions()
    if which is waiting.Until.CHANGED:
        conditions = wait_options.resolve_change(env, target, BLOB_GET_PROPERTIES, if_none_match)
    elif if_none_match is not None:
        raise UsageError(f"--if-none-match means nothing with --until {which}", hint="--until changed")
    env.out.show(
        waiting.wait(target, which, conditions, wait_options.describe_wait(env, target, which, timeout, "--timeout"))
    )
