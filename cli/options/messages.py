"""The options of commands about messages, and which receipt is meant, so that none is lost."""

import os
import shlex
from pathlib import Path
from typing import Annotated

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.cli import completers
from azguard.cli.context import Environment
from azguard.cli.input import streams, values
from azguard.cli.options.types import TEXT, ValueType, choice, seconds, whole
from azguard.cli.parsing.rows import argument, option
from azguard.cli.rules.engine import checked, excludes
from azguard.errors import UsageError
from azguard.queues.messages import MOST_MESSAGES, Receipt, choose_receipt

_DAY_SECONDS = 86_400
LONGEST_SECONDS = 7 * _DAY_SECONDS
_FOR_EVER = ("-1", "forever")
# What a signed number of 32 bits holds; the service names no limit.
_LONGEST_LIFE_SECONDS = 2**31 - 1


def _read_life(text: str, name: str) -> int:
    return -1 if text in _FOR_EVER else values.seconds(text, name, 1, _LONGEST_LIFE_SECONDS)


def _read_body_file(text: str, name: str) -> Path | None:
    body = streams.output(values.not_empty(text, name))
    if body is not None and os.path.isdir(body):
        raise UsageError(f"{body} is a folder", hint="name a file")
    if body is not None and not streams.is_writable(body):
        folder = shlex.quote(str(body.parent))
        raise UsageError(f"{body} cannot be written", hint=f"make the folder first: mkdir -p {folder}")
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
    found = streams.read_json(values.not_empty(file, "--pop-receipt @FILE"))
    for each in found if isinstance(found, list) else [found]:
        if (
            isinstance(each, dict)
            and each.get("id") == target.address.name
            and isinstance(each.get("pop_receipt"), str)
        ):
            return str(each["pop_receipt"])
    raise UsageError(f"{file} holds no receipt of {target}", hint="it is what azguard message get -o json prints")
