"""The options of commands about messages, and their receipts: which is meant, and that none is lost."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.atomic_files import write_where_named
from azguard.cli import completers
from azguard.cli.context import Environment
from azguard.cli.input import streams
from azguard.cli.options.types import TEXT, ValueType, choice, read_seconds, require_text, seconds, whole
from azguard.cli.parsing.rows import argument, option
from azguard.cli.rules import checked, excludes
from azguard.errors import NotFound, OutputFailed, UsageError
from azguard.queues import message_format, messages
from azguard.queues.message_format import Received
from azguard.queues.messages import MOST_MESSAGES, Receipt, choose_receipt
from azguard.times import iso

#: What comes of a message that is not base64.
POISONED = "Azure Functions, unless it is told otherwise, would move it to its poison queue"
_DAY_SECONDS = 86_400
LONGEST_SECONDS = 7 * _DAY_SECONDS
_FOR_EVER = ("-1", "forever")
# What a signed number of 32 bits holds; the service names no limit.
_LONGEST_LIFE_SECONDS = 2**31 - 1


def _read_life(text: str, name: str) -> int:
    return -1 if text in _FOR_EVER else read_seconds(text, name, 1, _LONGEST_LIFE_SECONDS)


def _read_body_file(text: str, name: str) -> Path | None:
    body = streams.output(require_text(text, name))
    if body is not None and os.path.isdir(body):
        raise UsageError(f"{body} is a folder", hint="name a file")
    if body is not None:
        streams.require_writable(body, str(body))
    return body


#: How long a message is kept, in seconds; -1 is for ever.
LIFE = ValueType("duration", _read_life, seconds(1, _LONGEST_LIFE_SECONDS).write, bounds=(-1, _LONGEST_LIFE_SECONDS))
#: How long a message is hidden.
HIDING = seconds(0, LONGEST_SECONDS)
HIDING_OF_RECEIVED = seconds(1, LONGEST_SECONDS)

Message = Annotated[str, argument("QUEUE/ID", "The message, or its URL.", completer=completers.messages)]
Encoding = Annotated[str, option("--encoding", "text|base64|raw", "How the content is encoded.", choice)]
Number = Annotated[
    int, option("--num-messages, --num-results", "N", "At most this many: 1 to 32.", whole(1, MOST_MESSAGES))
]
PopReceipt = Annotated[
    str | None,
    option(
        "--pop-receipt",
        "R|@last|@FILE",
        "The receipt, or the JSON of message get.",
        TEXT,
        completer=completers.etags,
        rules=(checked("--pop-receipt", "a @FILE with the receipt of this message", "messages._find_in_file"),),
        otherwise="the last that you got here",
    ),
]
BodyFile = Annotated[
    Path | None,
    option(
        "--file, -f",
        "FILE",
        "Write the body of the message to this file.",
        ValueType("file", _read_body_file),
        rules=(
            excludes("--file", "--num-messages", "a file takes the body of one message", unless="--num-messages=1"),
        ),
    ),
]
PoisonQueue = Annotated[
    str | None, option("--poison-queue", "QUEUE", "The poison queue.", TEXT, otherwise="QUEUE-poison")
]


def locate_poison(env: Environment, queue: Target, named: str | None) -> Target | None:
    """Return the poison queue that --poison-queue names: in the account of its queue, unless it is a URL."""
    if named is None:
        return None
    location = env.location(named, Kind.QUEUE)
    return Target(queue.account, location.address) if location.endpoint is None else env.locate(named, Kind.QUEUE)


def find_receipt(env: Environment, target: Target, given: str | None) -> Receipt:
    """Return the receipt of a message: the one given, that of the JSON of message get, or the last one of this scope.

    Raises:
        UsageError: the file that is named is not of this message.
        Changed: there is none.
    """
    if given is not None and given.startswith("@") and given != "@last":
        given = _find_in_file(target, given[1:])
    return choose_receipt(target, given, env.reads.recall)


def _find_in_file(target: Target, file: str) -> str:
    found = streams.read_json(require_text(file, "--pop-receipt @FILE"))
    for each in found if isinstance(found, list) else [found]:
        if (
            isinstance(each, dict)
            and each.get("id") == target.address.name
            and isinstance(each.get("pop_receipt"), str)
        ):
            return str(each["pop_receipt"])
    raise UsageError(f"{file} holds no receipt of {target}", hint="it is what azguard message get -o json prints")


def deliver(env: Environment, received: Sequence[Received], encoding: str, body: Path | None) -> None:
    """Remember the receipts of messages and print these; the body of the only one goes to a file, if that is given.

    The receipts are remembered first: the messages are hidden, also if the output fails.

    Raises:
        NotFound: there is no message; the empty list is printed.
        OutputFailed: the output cannot be written; it tells the receipts.
    """
    if not received:
        env.out.show_each(())
        env.out.flush()
        raise _build_not_found(body)
    for each in received:
        if encoding != message_format.TEXT and not each.shown.is_base64:
            env.out.warn(f"{each.target} is not base64: {POISONED}")
    is_whole = env.out.format != "none" and env.out.query is None and streams.to_stream(sys.stdout).is_kept
    if is_whole or body is not None:
        _record(env, received)
    try:
        if body is not None:
            for each in received:
                write_where_named(body, each.body.read(encoding))
        env.out.show_each(each.shown for each in received)
        env.out.flush()
    except BrokenPipeError:
        raise
    except (OSError, OutputFailed) as error:
        # The error delivers them.
        _record(env, received)
        raise _tell_receipts(error, received, body) from error


def _build_not_found(body: Path | None) -> NotFound:
    """Return the error for a queue that gave no message: with 0, a script would go on with the message before."""
    stays = "" if body is None else f", and {body} is as it was"
    return NotFound(
        f"there is no message to receive{stays}",
        hint="some may be hidden, and come later: azguard queue show QUEUE tells about how many there are",
    )


def _tell_receipts(error: OSError | OutputFailed, received: Sequence[Received], body: Path | None) -> OutputFailed:
    why = f"{body}: {error.strerror}" if isinstance(error, OSError) else error.message
    told = [
        f"{each.target} is hidden until {iso(each.shown.time_next_visible)}; its receipt is {each.shown.pop_receipt}"
        for each in received
    ]
    return OutputFailed(
        f"received, but it cannot be written: {why}",
        detail=tuple(told),
        facts={"receipts": {str(each.target.address): each.shown.pop_receipt for each in received}},
        hint="it is remembered here; to let others receive it at once: azguard message update QUEUE/ID --visible",
    )


def _record(env: Environment, received: Sequence[Received]) -> None:
    for each in received:
        env.reads.record(each.target, messages.version_of(each.shown))
