"""``azguard safe-update``: read, change and write back, retried on conflict, applied exactly once."""

from typing import Annotated

import typer

from azguard.cli import context, options, signals, update_options, updates, values
from azguard.cli.command_spec import CommandSpec
from azguard.cli.groups import alone
from azguard.conditions import fences
from azguard.errors import UsageError
from azguard.updates import update as core


def safe_update(
    ctx: typer.Context,
    address: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS", help="What to update: blob:CONTAINER/NAME, entity:TABLE/PARTITION/ROW, or table:NAME."
        ),
    ],
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- CMD...]", help="Gets the content on stdin, gives the new content on stdout."),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option("--where", metavar="ODATA", help="Of a table: update each entity that matches this filter."),
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option("--param", metavar="NAME[:TYPE]=VALUE", help="The value of @NAME in the filter; repeat for more."),
    ] = None,
    jobs: Annotated[
        str | None, typer.Option("--jobs", metavar="N", help="With --where: how many at a time; 16 by default.")
    ] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="PATH=JSON", help="Set a value.")] = None,
    unset: Annotated[list[str] | None, typer.Option("--unset", metavar="PATH", help="Remove a value.")] = None,
    increment: Annotated[
        list[str] | None, typer.Option("--increment", metavar="PATH[=N]", help="Add N (1) to a number.")
    ] = None,
    merge_patch: Annotated[
        list[str] | None,
        typer.Option("--merge-patch", metavar="FILE|-", help="Apply a JSON merge patch (RFC 7396)."),
    ] = None,
    json_patch: Annotated[
        list[str] | None,
        typer.Option("--json-patch", metavar="FILE|-", help="Apply a JSON patch (RFC 6902)."),
    ] = None,
    append: Annotated[
        list[str] | None, typer.Option("--append", metavar="TEXT", help="Add text at the end, as it stands.")
    ] = None,
    metadata: Annotated[
        bool,
        typer.Option("--metadata", help="Update the metadata, a JSON object of strings, not the content."),
    ] = False,
    create: Annotated[
        str | None,
        typer.Option(
            "--create",
            metavar="[INITIAL]",
            help="Where there is nothing, start from this ({} for JSON edits).",
        ),
    ] = None,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="The command may print nothing where there was something.")
    ] = False,
    any_content: Annotated[
        bool, typer.Option("--any-content", help="What was JSON may become something else.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print a diff, write nothing.")] = False,
    op_id: Annotated[
        str | None,
        typer.Option(
            "--op-id",
            metavar="KEY",
            help="Your idempotency key: run again with it, and nothing is done twice. It is for this resource in this "
            "account: by its own name, secondary or private link, but not by a domain of yours.",
        ),
    ] = None,
    status: Annotated[
        bool,
        typer.Option(
            "--status",
            help="Say the outcome of --op-id: exit 0 committed, 44 not, or there is nothing, 74 unknown.",
        ),
    ] = False,
    guard: Annotated[
        str | None,
        typer.Option(
            "--guard",
            metavar="lineage|lease|ledger",
            help="lease (blobs), ledger (entities): sound beside writers that are not azguard.",
        ),
    ] = None,
    lease_id: Annotated[
        str | None, typer.Option("--lease-id", metavar="ID|@held", help="Work inside a lease you hold.")
    ] = None,
    fence: Annotated[
        str | None,
        typer.Option(
            "--fence",
            metavar="N",
            help="The lock you hold, by its number: refused (exit 77) once a holder with a higher one has written.",
        ),
    ] = None,
    wait_lease: Annotated[
        bool, typer.Option("--wait-lease", help="Wait for the lease of another holder, up to the timeout.")
    ] = False,
    no_lineage: options.NoLineage = False,
    max_attempts: Annotated[
        str | None, typer.Option("--max-attempts", metavar="N", help="Give up after so many writes.")
    ] = None,
    timeout: Annotated[
        str | None,
        typer.Option("--timeout", metavar="DURATION", help="Give up after so long; 60s by default."),
    ] = None,
) -> None:
    """Read, change, write back: again on conflict, and applied exactly once.

    The change is a command after --, or built-in edits, applied in the order they are written. The command may run
    more than once and must depend on its input alone. If it fails, nothing is written (exit 65).

    Nor is anything written (exit 65) if the command prints nothing where there was something, unless --allow-empty is
    given, or prints something else where there was JSON, unless --any-content is given. JSON is what parses as a whole
    as an object or an array, or as any value if the name ends in .json or the content type is JSON; but not where name
    or content type say JSON lines or YAML.

    Exactly once holds even when responses get lost, because every write records its id and the version it replaced
    in the metadata key azguardlineage. If a writer that is not azguard wipes that key at the wrong moment, the answer
    is "unknown" (exit 74), never a guess; --guard lease is sound beside any writer. A response counts as lost after
    20s of silence; AZGUARD_WRITE_TIMEOUT sets another duration. Creating is weaker: a create that was delivered late
    can bring back a blob that was deleted meanwhile; where blobs are deleted, keep an empty blob as a tombstone
    instead.

    --fence is kept in an index tag, which needs t in a SAS or the role Storage Blob Data Owner, and an account
    without hierarchical namespace. It is recorded even where the content stays as it is. A write of metadata cannot
    carry tags: with --metadata it is compared only, and does not stop a holder with a lower one afterwards.

    An entity is JSON with the types of its properties, which edits keep. --guard ledger writes a row ~op~ID beside it
    in the same transaction, which is sound beside any writer, for creating too. These rows stay: azguard entity query
    TABLE --filter "RowKey ge '~op~' and RowKey lt '~op~~'" finds them.

    --where updates all entities of a table that match, each by itself, with --timeout for each; the rows of a ledger
    are left out. One that does not match any more when it is read again is skipped. If any fails, the exit status is
    20, and each of those has a line of JSON with its own.

    Example: azguard safe-update blob:site/config.json --increment replicas
    """
    env = context.of(ctx)
    asked = update_options.UpdateOptions(
        edits=update_options.in_order(ctx),
        command=tuple(command or ()),
        metadata=metadata,
        create=create,
        op_id=op_id,
        guard=guard,
        lease_id=lease_id,
        fence=None if fence is None else fences.parse(fence),
        wait_lease=wait_lease,
        no_lineage=no_lineage,
        max_attempts=values.count(max_attempts, "--max-attempts"),
        timeout=timeout,
        allow_empty=allow_empty,
        any_content=any_content,
    )
    if where is None and (param or jobs):
        raise UsageError("--param and --jobs are for many entities", hint="choose them with --where")
    if status and (dry_run or op_id is None or where is not None):
        raise UsageError(
            "--status asks for the outcome of an update", hint="name it with --op-id KEY, without --dry-run or --where"
        )
    if status:
        env.answer(*updates.status(env, address, asked))
    elif where is not None:
        from azguard.cli import updates_where

        every = updates_where.planned(env, address, where, param or (), asked)
        every.show() if dry_run else every.run(updates_where.jobs(jobs))
    elif dry_run:
        updates.show_preview(env, address, asked)
    else:
        update = updates.planned(env, address, asked)
        with signals.until_committed():
            ended = core.update(update.resource, update.plan, update.deadline, update.tools)
        env.show(update.finish(ended))


_SPEC = CommandSpec(
    why_no_conditions="safe-update guards each write by the version it has just read", optional_value="--create"
)
app = alone(safe_update, "safe-update", _SPEC)
