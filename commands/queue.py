"""``azguard queue``: create, show, exists, list, delete."""

import typer

from azguard.address import Kind
from azguard.cli import context, lifecycle_options, options, values
from azguard.cli.groups import group
from azguard.conditions import operations
from azguard.errors import NotFound
from azguard.queues import contents, queues
from azguard.queues.existing import find_queue
from azguard.requests.lineage import fresh_op
from azguard.resources import existence
from azguard.resources.contents import require_empty

app = group("Queues: create, show, exists, list, delete, work, move, poison, metadata, acl.")


@app.command(spec=options.operation(operations.QUEUE_CREATE))
def create(
    ctx: typer.Context,
    queue: options.Queue,
    metadata: options.Metadata = None,
    if_exists: options.IfExists = None,
) -> None:
    """Create a queue; one that exists is left alone (exit 45, or 0 with --if-exists skip).

    The queue gets a metadata entry of azguard's own. After a lost answer it proves that this create was applied. If
    another program then creates the queue with no metadata, the service answers it 409 instead of 204.

    Examples:
        azguard queue create orders
        azguard queue create orders --if-exists skip
        azguard queue create mails --metadata owner=ops

    Topics: queues
    """
    env = context.of(ctx)
    target = env.locate(queue, Kind.QUEUE)
    env.conditions(target)
    stamps = values.metadata(metadata)
    op = fresh_op()
    result = existence.create(
        lambda: queues.create(target, stamps, env.deadline, op),
        lambda: find_queue(target, op, env.deadline),
        skip=lifecycle_options.skips(env, if_exists),
    )
    env.out.show(result)


@app.command(spec=options.operation(operations.QUEUE_GET_METADATA))
def show(ctx: typer.Context, queue: options.Queue) -> None:
    """Show a queue's metadata and about how many messages are in it.

    The count includes hidden messages. There may be fewer messages than it says, never more.

    Examples:
        azguard queue show jobs
        azguard queue show jobs --query approximate_message_count -o tsv

    Topics: queues
    """
    env = context.of(ctx)
    target = env.locate(queue, Kind.QUEUE)
    env.conditions(target)
    env.out.show(queues.show(target, env.deadline))


@app.command(spec=options.operation(operations.QUEUE_GET_METADATA))
def exists(ctx: typer.Context, queue: options.Queue) -> None:
    """Exit 0 if the queue exists, 44 if not.

    Examples:
        azguard queue exists jobs
        azguard queue exists jobs -o none && echo "it is there"
    """
    env = context.of(ctx)
    target = env.locate(queue, Kind.QUEUE)
    env.conditions(target)
    found = existence.ask_whether_exists(target, lambda: queues.fetch(target, env.deadline))
    env.out.answer(found, 0 if found.exists else NotFound.exit_code)


@app.command(name="list", spec=options.remote("List Queues honours no conditions"))
def list_(ctx: typer.Context, prefix: options.Prefix = None, num_results: options.Limit = None) -> None:
    """List the account's queues.

    Examples:
        azguard queue list
        azguard queue list --prefix jo
        azguard queue list --query '[].name' -o tsv
    """
    env = context.of(ctx)
    limit = values.count(num_results, "--num-results")
    env.out.show_each(queues.list_queues(env.account, env.deadline, prefix, limit))


@app.command(spec=options.operation(operations.QUEUE_DELETE))
def delete(ctx: typer.Context, queue: options.Queue, with_contents: options.WithContents = False) -> None:
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
    """
    env = context.of(ctx)
    target = env.locate(queue, Kind.QUEUE)
    conditions = env.conditions(target)
    if not with_contents:
        require_empty(contents.count, target, env.deadline.fresh(), lifecycle_options.confirm_delete(target))
    result = queues.delete(target, conditions, env.deadline.fresh())
    env.reads.forget(target)
    env.out.show(result)
