"""``azguard message``: put, get, peek, update, delete, clear."""

from typing import Annotated

import typer

from azguard.accounts.target import Target
from azguard.address import Address, Kind
from azguard.atomic_files import write_atomically
from azguard.cli import context, inputs, lifecycle_options, message_options, options, values
from azguard.cli.groups import group
from azguard.cli.message_options import Content, Encoding, Json, Message, Number, PopReceipt, PutOptions
from azguard.conditions import operations
from azguard.errors import UsageError
from azguard.queues import contents, encodings, messages
from azguard.requests.contents import require_empty

app = group("Messages of queues: put, get, peek, update, delete, clear.")


@app.command(spec=options.operation(operations.QUEUE_PUT_MESSAGE))
def put(ctx: typer.Context, queue: options.Queue, given: PutOptions) -> None:
    """Put a message at the end of a queue: the content of --content, of a file or of stdin.

    By default the content is text, and is sent as it is. --encoding base64 sends any bytes; Azure Functions expects
    base64 unless it is told otherwise. raw is text that another program has encoded already.

    If the answer gets lost, it cannot be known whether the message was put (exit 74): nothing in the service tells.
    For an outbox, put it with --hidden, keep its id and receipt with your data, then message update --visible.

    Examples:
        azguard message put jobs --content 'resize 17'
        azguard message put jobs -f config.json --encoding base64
        azguard message put jobs --content later --visibility-timeout 10m

    Topics: queues
    """
    env = context.of(ctx)
    target = env.locate(queue, Kind.QUEUE)
    env.conditions(target)
    given.check()
    life = None if given.time_to_live is None else given.life_seconds
    done = messages.put(target, given.read_text(), given.hidden_seconds, life, env.deadline)
    message = Target(target.account, Address(Kind.MESSAGE, (target.address.container, done.id)))
    message_options.record_written(env, message, done)
    env.out.show(done)


@app.command(spec=options.operation(operations.QUEUE_GET_MESSAGES))
def get(
    ctx: typer.Context,
    queue: options.Queue,
    num_messages: Number = "1",
    visibility_timeout: Annotated[
        str, typer.Option("--visibility-timeout", metavar="DURATION", help="Hide them so long: 1s to 7d.")
    ] = "30s",
    encoding: Encoding = encodings.TEXT,
    file: Annotated[
        str | None, typer.Option("--file", "-f", metavar="FILE", help="Write the body of the message to this file.")
    ] = None,
) -> None:
    """Receive messages: they are hidden for a time, and their receipts are remembered.

    With the receipt you update or delete the message. It ends when the message is received again. If the answer
    gets lost, messages may be hidden until that time is over (exit 74).

    An empty queue gives an empty list and exit 0.

    Examples:
        azguard message get jobs
        azguard message get jobs --num-messages 32 --visibility-timeout 5m
        azguard message get jobs --encoding base64 > message.json

    Topics: queues
    """
    env = context.of(ctx)
    target = env.locate(queue, Kind.QUEUE)
    env.conditions(target)
    values.choice(encoding, "--encoding", encodings.ENCODINGS)
    number, seconds = message_options.number(num_messages), message_options.visibility(visibility_timeout, 1)
    body = inputs.output(file)
    if body is not None and number > 1:
        raise UsageError("-f takes the body of one message", hint="leave --num-messages out")
    received = messages.receive(target, number, seconds, encoding, env.deadline)
    for each in received:
        if encoding == encodings.BASE64 and not each.shown.is_base64:
            env.out.warn(f"{each.target} is not base64: Azure Functions would move it to its poison queue")
        if body is not None:
            write_atomically(body, each.body.read(encoding))
    env.out.show_each(each.shown for each in received)
    message_options.record(env, received)


@app.command(spec=options.operation(operations.QUEUE_PEEK_MESSAGES))
def peek(ctx: typer.Context, queue: options.Queue, num_messages: Number = "1") -> None:
    """Look at the next messages, as text and as what that is as base64; they stay as they are.

    Examples:
        azguard message peek jobs
        azguard message peek jobs --num-messages 32

    Topics: queues
    """
    env = context.of(ctx)
    target = env.locate(queue, Kind.QUEUE)
    env.conditions(target)
    number = message_options.number(num_messages)
    env.out.show_each(messages.peek(target, number, env.deadline))


@app.command(spec=options.operation(operations.QUEUE_UPDATE_MESSAGE))
def update(
    ctx: typer.Context,
    message: Message,
    content: Content = None,
    encoding: Encoding = encodings.TEXT,
    visibility_timeout: Annotated[
        str | None, typer.Option("--visibility-timeout", metavar="DURATION", help="Hide it so long from now: 0 to 7d.")
    ] = None,
    visible: Annotated[bool, typer.Option("--visible", help="Let it be received at once.")] = False,
    pop_receipt: PopReceipt = None,
    file: Json = None,
) -> None:
    """Change a message that you received: how long it stays hidden, and its content.

    Each update ends the receipt and gives a new one, which is remembered. A stale receipt is exit 42: the message was
    received again, changed or deleted since. If the answer gets lost, so may be the new receipt (exit 74): then the
    message can be received again when its time is over.

    Examples:
        azguard message update jobs/$ID --visibility-timeout 5m
        azguard message update jobs/$ID --visible

    Topics: queues
    """
    env = context.of(ctx)
    target = env.locate(message, Kind.MESSAGE)
    env.conditions(target)
    seconds = _seconds(visibility_timeout, visible=visible)
    values.choice(encoding, "--encoding", encodings.ENCODINGS)
    values.not_empty(content, "--content")
    text = None if content is None else encodings.encode(content.encode("utf-8", "surrogateescape"), encoding)
    receipt = message_options.receipt(env, target, pop_receipt, file)
    done = messages.update(target, receipt, text, seconds, env.deadline)
    message_options.record_written(env, target, done)
    env.out.show(done)


@app.command(spec=options.operation(operations.QUEUE_DELETE_MESSAGE))
def delete(ctx: typer.Context, message: Message, pop_receipt: PopReceipt = None, file: Json = None) -> None:
    """Delete a message that you received, if no one received it since.

    The receipt guards the delete: the one that you give, that of the JSON of message get (-f), or the last one of this
    scope. A stale one is exit 42. It stays good after the message is visible again, until another receives it.

    Examples:
        azguard message delete jobs/$ID

    Topics: queues
    """
    env = context.of(ctx)
    target = env.locate(message, Kind.MESSAGE)
    env.conditions(target)
    receipt = message_options.receipt(env, target, pop_receipt, file)
    done = messages.delete(target, receipt, env.deadline)
    env.reads.forget(target)
    env.out.show(done)


@app.command(spec=options.operation(operations.QUEUE_CLEAR_MESSAGES))
def clear(ctx: typer.Context, queue: options.Queue, with_contents: options.WithContents = False) -> None:
    """Delete all messages of a queue. Nothing can guard that, so it has to be said: --last-writer-wins.

    If the queue has messages, hidden ones included, give --with-contents too (else exit 42). On a terminal azguard
    asks.

    Examples:
        azguard message clear jobs --last-writer-wins --with-contents

    Topics: queues
    """
    env = context.of(ctx)
    target = env.locate(queue, Kind.QUEUE)
    conditions = env.conditions(target)
    if not with_contents:
        require_empty(contents.count, target, env.deadline.fresh(), lifecycle_options.confirm_delete(target))
    env.out.show(messages.clear(target, conditions.guard, env.deadline.fresh()))


def _seconds(text: str | None, *, visible: bool) -> int:
    if visible and text is not None:
        raise UsageError("--visible and --visibility-timeout do not go together", hint="leave one of them out")
    if visible:
        return 0
    if text is None:
        raise UsageError(
            "--visibility-timeout is missing: each update sets it", hint="--visible, or --visibility-timeout 30s"
        )
    return message_options.visibility(text, 0)
