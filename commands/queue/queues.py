"""``azguard queue``: create, show, exists, list, delete, work, move, poison, metadata, acl."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from azguard.address import Kind
from azguard.cli import completers, nouns, signals
from azguard.cli.context import Environment
from azguard.cli.nouns import Noun, declare_exists, declare_list
from azguard.cli.options import common
from azguard.cli.options.messages import LIFE, PoisonQueue, locate_poison
from azguard.cli.options.types import COUNT, FILE
from azguard.cli.parsing.rows import argument, flag, option
from azguard.cli.parsing.tree import Group
from azguard.cli.parts import NO_ETAG, declare_part, declare_policies, declare_set
from azguard.queues import queues
from azguard.resources.parts import get_metadata, replace_metadata
from azguard.times import say_count
from azguard.wire.operations.queues import (
    QUEUE_CREATE,
    QUEUE_DELETE,
    QUEUE_GET_ACL,
    QUEUE_GET_METADATA,
    QUEUE_PEEK_MESSAGES,
    QUEUE_SET_ACL,
    QUEUE_SET_METADATA,
)
from azguard.wire.rows import Part

if TYPE_CHECKING:
    from azguard.queues.moving import QueueMoved
    from azguard.resources.pool import Done

Destination = Annotated[
    str | None,
    argument("[TO]", "The queue that gets them, or its URL.", completer=completers.queues),
]


_MovedLife = Annotated[
    int | None,
    option(
        "--time-to-live",
        "DURATION|-1",
        "Keep them this long from now; -1: for ever.",
        LIFE,
        otherwise="7d, or the time left if that is longer",
    ),
]

app = Group()
poison_app = Group("The messages that could not be handled: list.")
app.add("poison", poison_app)
_QUEUE = Noun(Kind.QUEUE, common.Queue, "jobs", "queues", describe=queues.describe_listed)
metadata = declare_part(app, _QUEUE, Part.METADATA, QUEUE_GET_METADATA, get_metadata, NO_ETAG)
declare_set(
    metadata,
    _QUEUE,
    Part.METADATA,
    QUEUE_SET_METADATA,
    lambda env, target, wanted, conditions: replace_metadata(target, wanted, conditions, env.deadline),
    """Replace all metadata of a queue. azguard keeps its own entry.

    The service cannot guard this write. With --allow-race azguard compares the metadata with those that you read
    last, or with --etag. Another writer can still come in between.

    Examples:
        azguard queue metadata set jobs --metadata owner=ops --last-writer-wins

    Topics: queues
    """,
)
declare_policies(app, _QUEUE, QUEUE_GET_ACL, QUEUE_SET_ACL, note=NO_ETAG)


nouns.declare_create(
    app,
    _QUEUE,
    QUEUE_CREATE,
    """Create a queue; one that exists is left alone (exit 45, or 0 with --if-exists skip).

    The queue gets a metadata entry of azguard's own. After a lost answer it proves that this create was applied. If
    another program then creates the queue with no metadata, the service answers it 409 instead of 204.

    The name of a queue that was just deleted is refused for a while (exit 49). --wait waits for that.

    Examples:
        azguard queue create orders
        azguard queue create orders --if-exists skip
        azguard queue create mails --metadata owner=ops

    Topics: queues
    """,
)


@app.command(spec=common.operation(QUEUE_GET_METADATA))
def show(env: Environment, queue: common.Queue) -> None:
    """Show a queue's metadata and about how many messages are in it.

    The count includes hidden messages. There may be fewer messages than it says, never more.

    Examples:
        azguard queue show jobs
        azguard queue show jobs --query approximate_message_count -o tsv

    Topics: queues
    """
    target = env.locate(queue, Kind.QUEUE)
    env.out.show(queues.show(target, env.conditions(target), env.deadline))


declare_exists(app, _QUEUE, QUEUE_GET_METADATA, queues.show)
declare_list(app, _QUEUE, common.remote("List Queues honours no conditions"), _QUEUE.find)


nouns.declare_delete(
    app,
    _QUEUE,
    QUEUE_DELETE,
    """Delete a queue, if it is empty. Nothing can guard that, so it has to be said: --last-writer-wins.

    A queue with messages in it, hidden ones included, is not deleted (exit 42) unless you give --with-contents. On a
    terminal azguard asks. Not guaranteed: a message that is put between the count and the delete is deleted too. If
    that matters, stop the writers first.

    If there is no such queue, the exit status is 44. The name is free again after 30 seconds or more. Until then a
    create ends with 49.

    Examples:
        azguard queue delete jobs --last-writer-wins
        azguard queue delete jobs --last-writer-wins --with-contents

    Topics: queues
    """,
    send=lambda _, target, conditions, deadline: queues.delete(target, conditions, deadline),
    look=queues.show,
    count=queues.count_messages,
)


@app.command(spec=common.remote("a message is tied to its receipt, which queue move has just got"))
def move(
    env: Environment,
    queue: Annotated[str, argument("FROM", "The queue that has them, or its URL.", completer=completers.queues)],
    destination: Destination = None,
    max_messages: Annotated[
        int | None, option("--max-messages", "N", "Move at most N.", COUNT, otherwise="all")
    ] = None,
    time_to_live: _MovedLife = None,
    dry_run: Annotated[bool, flag("--dry-run", "Show what is to be moved, and move nothing.")] = False,
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
        azguard queue move jobs-poison jobs --max-messages 10
        azguard queue move jobs-poison --dry-run

    Topics: queues, once
    """
    from azguard.queues import messages, moving

    source = env.locate(queue, Kind.QUEUE)
    target = moving.guess_destination(source) if destination is None else env.locate(destination, Kind.QUEUE)
    most = moving.prepare(source, target, env.deadline, max_messages)
    if dry_run:
        seen = messages.peek(source, min(most, messages.MOST_MESSAGES), env.deadline) if most else []
        env.out.info(
            f"about {say_count(most, 'message')} to be moved from {source} to {target}; what can be seen first:"
        )
        env.out.show_each(seen)
        return
    with signals.until_committed(), env.out.progress_bar(f"move {source}", unit="messages") as progress:

        def show(told: "QueueMoved | Done") -> None:
            progress.hide()
            _show(env, told)

        moved = moving.Move(
            source=source,
            destination=target,
            count=most,
            time_to_live=time_to_live,
            patience=env.deadline.fresh(),
            on_failure=show,
            progress=progress.at,
        )
        moving.run(moved, show)


def _show(env: Environment, told: "QueueMoved | Done") -> None:
    """Print the result of a move, or why a message was not moved."""
    from azguard.queues.moving import QueueMoved

    if not isinstance(told, QueueMoved):
        _warn_of_failure(env, told)
        return
    env.out.show(told)
    if not (told.moved or told.duplicated or told.failed or told.unknown):
        env.out.info(f"nothing was moved: {told.address} has no message that is visible now")


def _warn_of_failure(env: Environment, done: "Done") -> None:
    from azguard.cli.words import hints

    if done.error is not None:
        env.out.warn(hints.in_words(done.error).message)


@poison_app.command(name="list", spec=common.operation(QUEUE_PEEK_MESSAGES))
def list_poison(
    env: Environment,
    queue: common.Queue,
    once_table: Annotated[
        str | None,
        option(
            "--once-table", "TABLE", "The table of queue work --once-table; it tells why.", completer=completers.tables
        ),
    ] = None,
    events: Annotated[
        Path | None, option("--events", "FILE", "The file of queue work --events; it tells why.", FILE)
    ] = None,
    poison_queue: PoisonQueue = None,
    num_results: common.Limit = None,
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

    target = env.locate(queue, Kind.QUEUE)
    env.conditions(target)
    table = None if once_table is None else env.locate(once_table, Kind.TABLE)
    found = poisoned.list_poisoned(target, locate_poison(env, target, poison_queue), table, events, env.deadline)
    if found.count > len(found.messages):
        env.out.warn(
            f"about {found.count:,} messages are in {found.queue}, and the service shows {len(found.messages):,}: some "
            "are hidden, or there are more than it shows at once"
        )
    if found.reasons_error is not None:
        env.out.warn(f"why messages are there could not be read: {found.reasons_error.message}")
    env.out.show_each(found.messages[:num_results])
