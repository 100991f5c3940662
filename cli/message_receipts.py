"""The receipts of messages on the command line: which one is meant, and that none is lost."""

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from azguard.accounts.target import Target
from azguard.atomic_files import write_where_named
from azguard.cli import deliveries, inputs, values
from azguard.cli.context import Environment
from azguard.conditions.seen import SeenVersion
from azguard.errors import NotFound, OutputFailed, UsageError
from azguard.queues import message_results
from azguard.queues.message_results import MessageReceived, MessageWritten, Received
from azguard.queues.messages import Receipt, choose_receipt
from azguard.times import iso

# What comes of a message that is not base64.
_POISONED = "Azure Functions, unless it is told otherwise, would move it to its poison queue"


def warn_of_readers(env: Environment, text: str | None, encoding: str) -> None:
    """Warn of a message that is sent as encoded already, and is not what readers of base64 decode."""
    if text is not None and encoding == message_results.RAW and message_results.Body.of(text).decoded is None:
        env.out.warn(f"the content is not base64: {_POISONED}")


def body_file(file: str | None, number: int) -> Path | None:
    """Return where the body of the one message that is asked for goes; None is nowhere.

    Raises:
        UsageError: several messages are asked for, or it cannot be written there.
    """
    body = inputs.output(file)
    if body is not None and number > 1:
        raise UsageError("-f takes the body of one message", hint="leave --num-messages out")
    if body is not None and os.path.isdir(body):
        raise UsageError(f"{body} is a folder", hint="name a file")
    if body is not None and not inputs.is_writable(body):
        folder = shlex.quote(str(body.parent))
        raise UsageError(f"{body} cannot be written", hint=f"make the folder first: mkdir -p {folder}")
    return body


def choose(env: Environment, target: Target, given: str | None) -> Receipt:
    """Return the receipt of a message: the one given, that of the JSON of message get, or the last one of this scope.

    Raises:
        UsageError: the file that is named is not of this message.
        Changed: there is none.
    """
    values.not_empty(given, "--pop-receipt")
    if given is not None and given.startswith("@") and given != "@last":
        given = _find_in_file(target, given[1:])
    return choose_receipt(target, given, env.reads.recall)


def note_changing(env: Environment, target: Target) -> None:
    """Note that a receipt is about to be ended: if the answer is lost, others may receive the message at once."""
    found = env.reads.find_last(target)
    if found is not None and found.hidden_until is not None:
        env.reads.record(target, SeenVersion(found.etag))


def _find_in_file(target: Target, file: str) -> str:
    found = inputs.read_json(values.not_empty(file, "--pop-receipt @FILE"))
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

    The receipts are remembered first: whatever happens to the output, the messages are hidden.

    Raises:
        NotFound: there is no message; the empty list is printed.
        OutputFailed: the output cannot be written; it tells the receipts.
    """
    if not received:
        env.out.show_each(())
        env.out.flush()
        raise _build_not_found(body)
    for each in received:
        if encoding != message_results.TEXT and not each.shown.is_base64:
            env.out.warn(f"{each.target} is not base64: {_POISONED}")
    is_whole = env.out.format != "none" and env.out.query is None and deliveries.to_stream(sys.stdout).is_kept
    if is_whole or body is not None:
        _record_all(env, received)
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
        _record_all(env, received)
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


def record_written(env: Environment, target: Target, written: MessageWritten) -> None:
    """Remember the receipt that a write of ours was answered with."""
    _record(env, target, written)


def _record_all(env: Environment, received: Sequence[Received]) -> None:
    for each in received:
        _record(env, each.target, each.shown)


def _record(env: Environment, target: Target, found: MessageWritten | MessageReceived) -> None:
    env.reads.record(target, SeenVersion(found.pop_receipt, hidden_until=found.time_next_visible))
