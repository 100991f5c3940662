"""``azguard message``: put, get, peek, update, delete, clear."""

from typing import Annotated, ClassVar

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.cli.context import Environment
from azguard.cli.input import streams
from azguard.cli.options import common
from azguard.cli.options.messages import (
    HIDING,
    HIDING_OF_RECEIVED,
    LIFE,
    LONGEST_SECONDS,
    POISONED,
    BodyFile,
    Encoding,
    Message,
    Number,
    PopReceipt,
    deliver,
    find_receipt,
)
from azguard.cli.options.types import TEXT
from azguard.cli.parsing.rows import argument, flag, option
from azguard.cli.parsing.tree import Group
from azguard.cli.rules import at_most_one, checked, needs, one_of
from azguard.errors import UsageError
from azguard.frozen import frozen
from azguard.queues import message_format, messages
from azguard.wire.operations.queues import (
    QUEUE_CLEAR_MESSAGES,
    QUEUE_DELETE_MESSAGE,
    QUEUE_GET_MESSAGES,
    QUEUE_PEEK_MESSAGES,
    QUEUE_PUT_MESSAGE,
    QUEUE_UPDATE_MESSAGE,
)

app = Group()
Content = Annotated[str | None, option("--content", "TEXT", "The content itself.")]
ContentFile = Annotated[
    str | None, option("--file, -f", "FILE|-", "Read the content from this file; - is stdin.", TEXT)
]
AllowEmpty = Annotated[bool, flag("--allow-empty", "Let the content be empty.")]
_CONTENT_RULES = (checked("--content --file", "some content, and no more than a message holds", "message._read_text"),)


@frozen
class MessagePutOptions:
    """The options of a put, as typed."""

    text: Annotated[str | None, argument("[TEXT]", "The content itself.")] = None
    content: Content = None
    file: common.InputFile = None
    encoding: Encoding = message_format.TEXT
    time_to_live: Annotated[int, option("--time-to-live", "DURATION|-1", "Keep it this long; -1: for ever.", LIFE)] = (
        LONGEST_SECONDS
    )
    visibility_timeout: Annotated[
        int, option("--visibility-timeout", "DURATION", "Hide it at first: 0 to 7d.", HIDING)
    ] = 0
    hidden: Annotated[bool, flag("--hidden", "Hide it until message update --visible.")] = False
    allow_empty: AllowEmpty = False

    RULES: ClassVar = (
        at_most_one("TEXT --content --file"),
        at_most_one("--hidden --visibility-timeout"),
        checked("--visibility-timeout", "shorter than --time-to-live", "message.check_times"),
        *_CONTENT_RULES,
    )

    def check_times(self) -> None:
        """Refuse a message that is hidden for as long as it is kept, as the service does.

        Raises:
            UsageError: names the options.
        """
        if 0 < self.time_to_live <= self.hidden_seconds:
            raise UsageError(
                "the message would end before it can be seen: it is hidden for as long as it is kept, or longer",
                hint="a shorter --visibility-timeout, or a longer --time-to-live",
            )

    @property
    def hidden_seconds(self) -> int:
        if not self.hidden:
            return self.visibility_timeout
        # A second before its end, as the service requires.
        return LONGEST_SECONDS if self.time_to_live < 0 else min(LONGEST_SECONDS, self.time_to_live - 1)

    def read_text(self) -> str:
        """Return the text of the message.

        Raises:
            UsageError: it cannot be sent, or is empty.
        """
        return _read_text(
            self.text if self.content is None else self.content, self.file, self.encoding, allow_empty=self.allow_empty
        )


@frozen
class ChangeOptions:
    """The options of an update of a message, as typed."""

    content: Content = None
    file: ContentFile = None
    encoding: Encoding = message_format.TEXT
    visibility_timeout: Annotated[
        int | None, option("--visibility-timeout", "DURATION", "Hide it this long from now: 0 to 7d.", HIDING)
    ] = None
    visible: Annotated[bool, flag("--visible", "Let it be received at once.")] = False
    pop_receipt: PopReceipt = None
    allow_empty: AllowEmpty = False

    RULES: ClassVar = (
        at_most_one("--content --file"),
        one_of(
            "--visible --visibility-timeout",
            "each update sets when the message can be received",
            "--visible, or --visibility-timeout 30s",
        ),
        needs("--allow-empty", "--content --file", "it is about new content", "leave it out"),
        *_CONTENT_RULES,
    )

    def read_text(self) -> str | None:
        """Return the new text of the message; None leaves it as it is.

        Raises:
            UsageError: it cannot be sent, or is empty.
        """
        if self.content is None and self.file is None:
            return None
        return _read_text(self.content, self.file, self.encoding, allow_empty=self.allow_empty)


def _read_text(content: str | None, file: str | None, encoding: str, *, allow_empty: bool) -> str:
    if content is not None:
        read = content.encode("utf-8", "surrogateescape")
    else:
        with streams.source(file, typed="--content TEXT") as stream:
            read = stream.read(message_format.MOST_BYTES + 1)
        if len(read) > message_format.MOST_BYTES:
            raise UsageError(
                f"the content has more than {message_format.MOST_BYTES:,} bytes, which is all that a message holds",
                reason="message_too_large",
            )
    if not read and not allow_empty:
        raise UsageError("there is nothing to put: the content is empty", hint="if that is meant: --allow-empty")
    return message_format.encode(read, encoding)


def _warn_of_readers(env: Environment, text: str | None, encoding: str) -> None:
    if text is not None and encoding == message_format.RAW and message_format.Body.of(text).decoded is None:
        env.out.warn(f"the content is not base64: {POISONED}")


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
    _warn_of_readers(env, text, given.encoding)
    done = messages.put(target, text, given.hidden_seconds, given.time_to_live, env.deadline)
    message = Target(target.account, Address(Kind.MESSAGE, (target.address.container, done.id)))
    env.reads.record(message, messages.version_of(done))
    env.out.show(done)


@app.command(spec=common.operation(QUEUE_GET_MESSAGES))
def get(
    env: Environment,
    queue: common.Queue,
    num_messages: Number = 1,
    visibility_timeout: Annotated[
        int, option("--visibility-timeout", "DURATION", "Hide them this long: 1s to 7d.", HIDING_OF_RECEIVED)
    ] = 30,
    encoding: Encoding = message_format.TEXT,
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
    found = messages.receive(target, num_messages, visibility_timeout, encoding, env.deadline)
    deliver(env, found, encoding, file)


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
    _warn_of_readers(env, text, given.encoding)
    receipt = find_receipt(env, target, given.pop_receipt)
    messages.note_changing(env.reads, target)
    with receipt.explain_deleted(target):
        done = messages.update(target, receipt.text, text, given.visibility_timeout or 0, env.deadline)
    env.reads.record(target, messages.version_of(done))
    env.out.show(done)


@app.command(spec=common.operation(QUEUE_DELETE_MESSAGE))
def delete(env: Environment, message: Message, pop_receipt: PopReceipt = None, dry_run: common.DryRun = False) -> None:
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
    resource: common.Queue,
    with_contents: common.WithContents = False,
    dry_run: common.DryRun = False,
) -> None:
    """Delete all messages of a queue. Nothing can guard that, so it has to be said: --last-writer-wins.

    If the queue has messages, hidden ones included, give --with-contents too (else exit 42). On a terminal azguard
    asks.

    Examples:
        azguard message clear jobs --last-writer-wins --with-contents

    Topics: queues
    """
    from azguard.cli import nouns
    from azguard.queues import queues
    from azguard.resources.lifecycles import require_empty

    target = env.locate(resource, Kind.QUEUE)
    conditions = env.conditions(target)
    if dry_run:
        count = None if with_contents else queues.count_messages
        nouns.show_doomed(env, target, conditions, lambda: queues.show(target, conditions, env.deadline), count)
        return
    if not with_contents:
        confirm = nouns.confirm_contents(target, stays=True)
        require_empty(queues.count_messages, target, env.deadline.fresh(), confirm, stays=True)
    env.out.show(messages.clear(target, conditions.guard, env.deadline.fresh()))
