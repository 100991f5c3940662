"""``azguard message``: put, get, peek, update, delete, clear."""

from typing import Annotated

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.cli.context import Environment
from azguard.cli.input import streams
from azguard.cli.options import common, resources
from azguard.cli.options.messages import (
    HIDING_OF_RECEIVED,
    BodyFile,
    ChangeOptions,
    Encoding,
    Message,
    MessagePutOptions,
    Number,
    PopReceipt,
    check_body_file,
    deliver_received,
    find_receipt,
    note_changing,
    record_written,
    warn_of_readers,
)
from azguard.cli.parsing.rows import option
from azguard.cli.parsing.tree import Group
from azguard.queues import message_results, messages, queues
from azguard.resources.existence import require_empty
from azguard.wire.operations.queues import (
    QUEUE_CLEAR_MESSAGES,
    QUEUE_DELETE_MESSAGE,
    QUEUE_GET_MESSAGES,
    QUEUE_PEEK_MESSAGES,
    QUEUE_PUT_MESSAGE,
    QUEUE_UPDATE_MESSAGE,
)

app = Group("Messages of queues: put, get, peek, update, delete, clear.")


@app.command(spec=common.operation(QUEUE_PUT_MESSAGE))
def put(env: Environment, queue: common.Queue, given: MessagePutOptions) -> None:
    """Put a message at the end of a queue: the text behind it, or the content of a file or of stdin.

    By default the content is text, and is sent as it is. --encoding base64 sends any bytes; Azure Functions expects
    base64 unless it is told otherwise. raw is base64 that another program made: it is sent as it is; a warning tells
    if it is not base64.

    If the answer gets lost, it cannot be known whether the message was put (exit 74). For an outbox, put it with
    --hidden, keep its id and receipt with your data, then message update --visible.

    Examples:
        azguard message put jobs 'resize 17'
        azguard message put jobs -f config.json --encoding base64
        azguard message put jobs later --visibility-timeout 10m

    Topics: queues
    """
    target = env.locate(queue, Kind.QUEUE)
    env.conditions(target)
    given.check_times()
    text = given.read_text()
    warn_of_readers(env, text, given.encoding)
    done = messages.put(target, text, given.hidden_seconds, given.time_to_live, env.deadline)
    message = Target(target.account, Address(Kind.MESSAGE, (target.address.container, done.id)))
    record_written(env, message, done)
    env.out.show(done)


@app.command(spec=common.operation(QUEUE_GET_MESSAGES))
def get(
    env: Environment,
    queue: common.Queue,
    num_messages: Number = 1,
    visibility_timeout: Annotated[
        int, option("--visibility-timeout", "DURATION", "Hide them this long: 1s to 7d.", HIDING_OF_RECEIVED)
    ] = 30,
    encoding: Encoding = message_results.TEXT,
    file: BodyFile = None,
) -> None:
    """Receive messages: they are hidden for a time, and their receipts are remembered.

    With the receipt you update or delete the message. It ends when the message is received again. If the answer
    gets lost, messages may be hidden until that time is over (exit 74).

    If there is no message to receive, the list is empty, a file of -f stays as it is, and the exit status is 44.

    With --encoding base64 the content is decoded, and with raw it is not; both say what is not base64. -f writes the
    body alone. If the output cannot be written (exit 73), the error tells the receipts, which are remembered too.

    Examples:
        azguard message get jobs
        azguard message get jobs --num-messages 32 --visibility-timeout 5m
        azguard message get jobs --encoding base64 > message.json

    Topics: queues
    """
    target = env.locate(queue, Kind.QUEUE)
    env.conditions(target)
    body = streams.output(file)
    if body is not None:
        check_body_file(body, num_messages)
    received = messages.receive(target, num_messages, visibility_timeout, encoding, env.deadline)
    deliver_received(env, received, encoding, body)


@app.command(spec=common.operation(QUEUE_PEEK_MESSAGES))
def peek(env: Environment, queue: common.Queue, num_messages: Number = 1) -> None:
    """Show the next messages without receiving them, as text and decoded from base64.

    Examples:
        azguard message peek jobs
        azguard message peek jobs --num-messages 32

    Topics: queues
    """
    target = env.locate(queue, Kind.QUEUE)
    env.conditions(target)
    env.out.show_each(messages.peek(target, num_messages, env.deadline))


@app.command(spec=common.operation(QUEUE_UPDATE_MESSAGE))
def update(env: Environment, message: Message, given: ChangeOptions) -> None:
    """Change a message that you received: how long it stays hidden, and its content.

    The content stays unless --content or -f gives another; -f - reads stdin.

    Each update ends the receipt and gives a new one, which is remembered. A stale receipt is exit 42: the message was
    received again, changed or deleted since. If the answer gets lost, the new receipt may be lost too (exit 74): then
    the message can be received again when its time is over.

    Examples:
        azguard message update jobs/$ID --visibility-timeout 5m
        azguard message update jobs/$ID --visible

    Topics: queues
    """
    target = env.locate(message, Kind.MESSAGE)
    env.conditions(target)
    text = given.read_text()
    warn_of_readers(env, text, given.encoding)
    receipt = find_receipt(env, target, given.pop_receipt)
    note_changing(env, target)
    with receipt.explain_deleted(target):
        done = messages.update(target, receipt.text, text, given.visibility_timeout or 0, env.deadline)
    record_written(env, target, done)
    env.out.show(done)


@app.command(spec=common.operation(QUEUE_DELETE_MESSAGE))
def delete(
    env: Environment, message: Message, pop_receipt: PopReceipt = None, dry_run: resources.DryRun = False
) -> None:
    """Delete a message that you received, if no one received it since.

    The receipt guards the delete: the one that you give, that of the JSON of message get (@FILE), or the last one of
    this scope. A receipt stays valid after the message is visible again, until another reader receives the message;
    then the exit status is 42.
    A second delete of what this scope deleted ends with 44, and says when that was.

    If the answer gets lost, azguard asks again. With the last receipt of this scope, and while the message is still
    hidden, it then knows that the message is deleted. Else another reader may have received it (exit 74).

    --dry-run sends nothing, because the service tells of a receipt only by a change: it says if there is a receipt.

    Examples:
        azguard message delete jobs/$ID

    Topics: queues
    """
    target = env.locate(message, Kind.MESSAGE)
    env.conditions(target)
    receipt = find_receipt(env, target, pop_receipt)
    if dry_run:
        env.out.show(messages.preview_delete(target))
        return
    with receipt.explain_deleted(target):
        done = messages.delete(target, receipt.text, env.deadline, hidden_until=receipt.hidden_until)
    env.reads.record_deleted(target, receipt.text)
    env.out.show(done)


@app.command(spec=common.operation(QUEUE_CLEAR_MESSAGES))
def clear(
    env: Environment,
    queue: common.Queue,
    with_contents: common.WithContents = False,
    dry_run: resources.DryRun = False,
) -> None:
    """Delete all messages of a queue. Nothing can guard that, so it has to be said: --last-writer-wins.

    If the queue has messages, hidden ones included, give --with-contents too (else exit 42). On a terminal azguard
    asks.

    Examples:
        azguard message clear jobs --last-writer-wins --with-contents

    Topics: queues
    """
    target = env.locate(queue, Kind.QUEUE)
    conditions = env.conditions(target)
    if dry_run:
        count = None if with_contents else queues.count_messages
        resources.show_doomed(env, target, conditions, lambda: queues.show(target, env.deadline), count)
        return
    if not with_contents:
        confirm = resources.confirm_clear(target)
        require_empty(queues.count_messages, target, env.deadline.fresh(), confirm, stays=True)
    env.out.show(messages.clear(target, conditions.guard, env.deadline.fresh()))
