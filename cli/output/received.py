"""How messages that were received are delivered: no receipt is lost."""

import sys
from collections.abc import Sequence
from pathlib import Path

from azguard.atomic_files import write_where_named
from azguard.cli.context import Environment
from azguard.cli.input.streams import to_stream
from azguard.errors import NotFound, OutputFailed
from azguard.queues import message_format, messages
from azguard.queues.message_format import Received
from azguard.times import iso

#: What comes of a message that is not base64.
POISONED = "Azure Functions, unless it is told otherwise, would move it to its poison queue"


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
        if encoding != message_format.TEXT and not each.shown.is_base64:
            env.out.warn(f"{each.target} is not base64: {POISONED}")
    is_whole = env.out.format != "none" and env.out.query is None and to_stream(sys.stdout).is_kept
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
