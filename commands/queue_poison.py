"""``azguard queue poison``: list."""

from pathlib import Path
from typing import Annotated

import typer

from azguard.address import Kind
from azguard.cli import completers, context, message_options, options, values
from azguard.cli.groups import group
from azguard.conditions import operations

app = group("The messages that could not be handled: list.")


@app.command(name="list", spec=options.operation(operations.QUEUE_PEEK_MESSAGES))
def list_(
    ctx: typer.Context,
    queue: options.Queue,
    once_table: Annotated[
        str | None,
        typer.Option(
            "--once-table",
            metavar="TABLE",
            help="The table of queue work --once-table; it tells why.",
            autocompletion=completers.tables,
        ),
    ] = None,
    events: Annotated[
        str | None, typer.Option("--events", metavar="FILE", help="The file of queue work --events; it tells why.")
    ] = None,
    poison_queue: Annotated[
        str | None, typer.Option("--poison-queue", metavar="QUEUE", help="The poison queue; by default, QUEUE-poison.")
    ] = None,
) -> None:
    """Show the messages in the poison queue of a queue, and why each is there, without receiving them.

    A message cannot hold a reason. queue work keeps it in the table azguardpoison of the same account, in the table of
    --once-table and in the file of --events. Each message shows its reason, the exit status of the command, how often
    it was received and the id that it had. If another program put it there, these are empty.

    The service shows the first 32 messages. If there are more, a line says so.

    Examples:
        azguard queue poison list jobs
        azguard queue poison list jobs --once-table Once
        azguard queue poison list jobs --events events.jsonl -o table

    Topics: worker, once, queues
    """
    from azguard.worker import poisoned

    env = context.of(ctx)
    target = env.locate(queue, Kind.QUEUE)
    env.conditions(target)
    table = None if once_table is None else env.locate(once_table, Kind.TABLE)
    file = values.not_empty(events, "--events")
    found = poisoned.list_poisoned(
        target,
        message_options.locate_poison(env, target, poison_queue),
        table,
        None if file is None else Path(file),
        env.deadline,
    )
    if found.count > len(found.messages):
        env.out.warn(
            f"about {found.count:,} messages are in {found.queue}, and the service shows {len(found.messages):,}: some "
            "are hidden, or there are more than it shows at once"
        )
    if found.reasons_error is not None:
        env.out.warn(f"why messages are there could not be read: {found.reasons_error.message}")
    env.out.show_each(found.messages)
