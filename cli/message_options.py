"""The options of the commands about messages, what is sent, and what is recorded of what was received."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

import typer

from azguard.accounts.target import Target
from azguard.cli import completers, deliveries, inputs, values
from azguard.cli.context import Environment
from azguard.conditions.seen import SeenVersion
from azguard.errors import UsageError
from azguard.queues import encodings
from azguard.queues.message_results import MessageWritten, Received
from azguard.queues.receipts import choose_receipt

_DAY_SECONDS = 86_400
_LONGEST_SECONDS = 7 * _DAY_SECONDS
_FOR_EVER = ("-1", "forever")
# What a signed number of 32 bits holds; the service names no limit.
_LONGEST_LIFE_SECONDS = 2**31 - 1
_MOST_MESSAGES = 32

Message = Annotated[
    str, typer.Argument(metavar="QUEUE/ID", help="The message, or its URL.", autocompletion=completers.messages)
]
Encoding = Annotated[
    str, typer.Option("--encoding", metavar="text|base64|raw", help="What a message holds; by default, text.")
]
Number = Annotated[str, typer.Option("--num-messages", metavar="N", help="At most so many: 1 to 32.")]
Content = Annotated[str | None, typer.Option("--content", metavar="TEXT", help="The content itself.")]
PopReceipt = Annotated[
    str | None,
    typer.Option("--pop-receipt", metavar="R|@last", help="The receipt; by default, the last that you got here."),
]
Json = Annotated[
    str | None,
    typer.Option("--file", "-f", metavar="FILE|-", help="The JSON of message get, whose receipt is used."),
]


@dataclass(frozen=True)
class PutOptions:
    """The options of a put, as typed."""

    content: Content = None
    file: Annotated[
        str | None, typer.Option("--file", "-f", metavar="FILE|-", help="Read this file; by default, stdin.")
    ] = None
    encoding: Encoding = encodings.TEXT
    time_to_live: Annotated[
        str | None,
        typer.Option("--time-to-live", metavar="DURATION|-1", help="Keep it so long; -1: for ever; by default, 7d."),
    ] = None
    visibility_timeout: Annotated[
        str | None, typer.Option("--visibility-timeout", metavar="DURATION", help="Hide it at first: 0 to 7d.")
    ] = None
    hidden: Annotated[bool, typer.Option("--hidden", help="Hide it until message update --visible.")] = False
    allow_empty: Annotated[bool, typer.Option("--allow-empty", help="Put it even if it is empty.")] = False

    def check(self) -> None:
        """Refuse options that contradict each other, and what the service would refuse.

        Raises:
            UsageError: names the options.
        """
        if self.content is not None and self.file is not None:
            raise UsageError("--content and --file do not go together", hint="leave one of them out")
        if self.hidden and self.visibility_timeout is not None:
            raise UsageError("--hidden and --visibility-timeout do not go together", hint="leave one of them out")
        if self.life_seconds > 0 and self.hidden_seconds >= self.life_seconds:
            raise UsageError(
                "the message would end before it can be seen: it is hidden for as long as it is kept, or longer",
                hint="a shorter --visibility-timeout, or a longer --time-to-live",
            )

    @property
    def life_seconds(self) -> int:
        """Return how long the message is kept; -1 is for ever."""
        if self.time_to_live is None:
            return _LONGEST_SECONDS
        if self.time_to_live in _FOR_EVER:
            return -1
        return values.seconds(self.time_to_live, "--time-to-live", 1, _LONGEST_LIFE_SECONDS)

    @property
    def hidden_seconds(self) -> int:
        """Return how long the message is hidden at first."""
        if self.hidden:
            # A second before its end, as the service requires.
            return _LONGEST_SECONDS if self.life_seconds < 0 else min(_LONGEST_SECONDS, self.life_seconds - 1)
        if self.visibility_timeout is None:
            return 0
        return values.seconds(self.visibility_timeout, "--visibility-timeout", 0, _LONGEST_SECONDS)

    def read_text(self) -> str:
        """Return the text of the message.

        Raises:
            UsageError: it cannot be sent, or is empty.
        """
        values.choice(self.encoding, "--encoding", encodings.ENCODINGS)
        if self.content is not None:
            content = self.content.encode("utf-8", "surrogateescape")
        else:
            with inputs.source(self.file) as stream:
                content = stream.read()
        if not content and not self.allow_empty:
            raise UsageError("there is nothing to put: the content is empty", hint="if that is meant: --allow-empty")
        return encodings.encode(content, self.encoding)


def number(text: str) -> int:
    """Return how many messages are asked for."""
    return values.whole(text, "--num-messages", 1, _MOST_MESSAGES)


def visibility(text: str, least: int) -> int:
    """Return for how many seconds a message is hidden."""
    return values.seconds(text, "--visibility-timeout", least, _LONGEST_SECONDS)


def receipt(env: Environment, target: Target, given: str | None, file: str | None) -> str:
    """Return the receipt of a message: the one given, that of the JSON of message get, or the last one of this scope.

    Raises:
        UsageError: two are given, or the file is of another message.
        Changed: there is none.
    """
    values.not_empty(given, "--pop-receipt")
    if file is None:
        return choose_receipt(target, given, lambda each: _recall(env, each))
    if given is not None:
        raise UsageError("--pop-receipt and --file do not go together", hint="leave one of them out")
    found = inputs.read_json(file)
    messages = found if isinstance(found, list) else [found]
    for each in messages:
        if (
            isinstance(each, dict)
            and each.get("id") == target.address.name
            and isinstance(each.get("pop_receipt"), str)
        ):
            return str(each["pop_receipt"])
    raise UsageError(f"{file} holds no receipt of {target}", hint="it is what azguard message get -o json prints")


def _recall(env: Environment, target: Target) -> str | None:
    found = env.reads.find_last(target)
    return None if found is None else found.etag


def record(env: Environment, received: Iterable[Received]) -> None:
    """Remember the receipts of messages that were delivered."""
    env.out.flush()
    is_whole = env.out.format != "none" and env.out.query is None and deliveries.to_stream(sys.stdout).is_kept
    if is_whole:
        for each in received:
            env.reads.record(each.target, SeenVersion(each.shown.pop_receipt))


def record_written(env: Environment, target: Target, written: MessageWritten) -> None:
    """Remember the receipt that a write of ours was answered with."""
    env.reads.record(target, SeenVersion(written.pop_receipt))
