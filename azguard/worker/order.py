"""What a command is told of its message."""

import hashlib
import json

from azguard.processes.command_place import CommandOrder
from azguard.times import iso
from azguard.worker.claims import MessageFacts
from azguard.worker.inbox import Taken
from azguard.worker.settings import WorkSettings

#: The variable that names the file with all of it.
FILE = "AZGUARD_MESSAGE_FILE"
_SCOPE = "AZGUARD_SCOPE"
# 128 bits: no two bodies that a sender makes have the same ones.
_DIGITS = 32


def find_facts(taken: Taken, settings: WorkSettings) -> MessageFacts:
    """Return what is known of a message."""
    shown = taken.received.shown
    return MessageFacts(
        queue=settings.queue.address.container,
        id=shown.id,
        dequeue_count=shown.dequeue_count,
        insertion_time=shown.insertion_time,
        expiration_time=shown.expiration_time,
        digest=_digest(taken, settings) if settings.key_in_body else None,
    )


def build_order(taken: Taken, settings: WorkSettings, key: str | None, ends: float) -> CommandOrder:
    """Return what is to be run for a message.

    ``key`` is what was claimed for it; ``ends`` is when the claim ends, on ``clock.now``.
    """
    facts, shown = find_facts(taken, settings), taken.received.shown
    known = {
        "queue": facts.queue,
        "id": facts.id,
        "dequeue_count": facts.dequeue_count,
        "insertion_time": iso(facts.insertion_time),
        "expiration_time": iso(facts.expiration_time),
    }
    environ = {f"AZGUARD_MESSAGE_{name.upper()}": str(value) for name, value in known.items() if name != "queue"}
    if key is not None:
        known["key"] = key
        if _fits_variable(key):
            environ["AZGUARD_MESSAGE_KEY"] = key
    environ["AZGUARD_QUEUE"] = facts.queue
    if _SCOPE not in settings.environ:
        # What one command has read shall not guard what another writes.
        environ[_SCOPE] = f"{facts.queue}/{facts.id}/{facts.dequeue_count}"
    # Without the receipt: with it the command could take the message away from the worker.
    described = {**known, "content": shown.content, "encoding": shown.encoding, "is_base64": shown.is_base64}
    return CommandOrder(
        command=settings.command,
        stdin=taken.received.body.read(settings.encoding),
        environ=environ,
        files={FILE: json.dumps(described, ensure_ascii=False)},
        ends=ends,
        grace=settings.grace,
    )


def _digest(taken: Taken, settings: WorkSettings) -> str:
    """Return by which the bodies of two messages are compared."""
    return hashlib.sha256(taken.received.body.read(settings.encoding)).hexdigest()[:_DIGITS]


def _fits_variable(text: str) -> bool:
    """Return whether an environment variable can hold a text, which a sender may have chosen freely."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text
