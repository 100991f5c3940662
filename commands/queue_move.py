"""``azguard queue move``."""

from typing import TYPE_CHECKING, Annotated

import typer

from azguard.address import Kind
from azguard.cli import completers, context, message_options, options, signals, terminal, values
from azguard.cli.context import Environment
from azguard.cli.groups import group
from azguard.requests.pool import Done

if TYPE_CHECKING:
    from azguard.queues.moving import QueueMoved

app = group("Move messages.")

Destination = Annotated[
    str | None,
    typer.Argument(metavar="[TO]", help="The queue that gets them, or its URL.", autocompletion=completers.queues),
]


@app.command(spec=options.remote("a message is tied to its receipt, which queue move has just got"))
def move(
    ctx: typer.Context,
    queue: options.Queue,
    destination: Destination = None,
    count: Annotated[str | None, typer.Option("--count", metavar="N", help="Move at most N; by default, all.")] = None,
    time_to_live: message_options.MovedLife = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what is to be moved, and move nothing.")] = False,
) -> None:
    """Move messages to another queue, unchanged; without TO, from jobs-poison to jobs.

    Each message is put, then deleted, so that none is lost. If the delete fails, the message is in both queues (exit
    20). If the answer of the put is lost, the message stays, and may be in both (exit 74). Readers that take each key
    once, as queue work --once-key does, are safe from that.

    A moved message has a new id and a dequeue count of zero. It is kept for 7 days, or for the time left if that is
    longer; --time-to-live sets another time. While it is moved, it is hidden for 5 minutes; a message that was not
    moved is made visible again. After Ctrl-C the messages in work are finished.

    By default as many messages are moved as there are at the start, so that those that come back are not moved again.

    Examples:
        azguard queue move jobs-poison
        azguard queue move jobs-poison jobs --count 10
        azguard queue move jobs-poison --dry-run

    Topics: queues, once
    """
    from azguard.queues import messages, moving

    env = context.of(ctx)
    source = env.locate(queue, Kind.QUEUE)
    target = moving.guess_destination(source) if destination is None else env.locate(destination, Kind.QUEUE)
    life = message_options.moved_life(time_to_live)
    most = moving.prepare(source, target, env.deadline, values.count(count, "--count"))
    if dry_run:
        seen = messages.peek(source, min(most, messages.MOST_MESSAGES), env.deadline) if most else []
        env.out.info(
            f"about {terminal.count(most, 'message')} to be moved from {source} to {target}; what can be seen first:"
        )
        env.out.show_each(seen)
        return
    moved = moving.Move(
        source=source,
        destination=target,
        count=most,
        time_to_live=life,
        patience=env.deadline.fresh(),
        on_failure=lambda done: _show_failure(env, done),
    )
    with signals.until_committed():
        moving.run(moved, lambda result: _show(env, result))


def _show(env: Environment, moved: "QueueMoved") -> None:
    env.out.show(moved)
    if not (moved.moved or moved.duplicated or moved.failed or moved.unknown):
        env.out.info(f"nothing was moved: {moved.address} has no message that is visible now")


def _show_failure(env: Environment, done: Done) -> None:
    from azguard.cli import hints

    if done.error is not None:
        env.out.warn(hints.in_words(done.error).message)
