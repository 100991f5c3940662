"""The exit protocol: the outcome of a message, by the exit status of the command."""

from dataclasses import dataclass, field
from enum import Enum

from azguard.errors import AzguardError, ConfigError, Forbidden, NotFound, Unauthenticated
from azguard.worker.settings import WorkSettings

#: What the service refuses for good: no further try mends it.
FINAL = (Unauthenticated, Forbidden, NotFound, ConfigError)

# As in sysexits.h.
DONE_STATUS, AGAIN_STATUS = 0, 75


class Outcome(Enum):
    """How the handling of a message ended."""

    #: The command succeeded, and the message is deleted.
    DONE = "done"
    #: The command asked to be run again later.
    RETRIED = "retried"
    #: The command failed; the message is tried again.
    FAILED = "failed"
    #: It was moved to the poison queue.
    POISONED = "poisoned"
    #: Its receipt, or its claim, was lost: it is received again.
    LOST = "lost"
    #: Another worker has claimed its key.
    HELD = "held"
    #: Its key was done before: it is deleted, and nothing was run.
    DUPLICATE = "duplicate"
    #: Its key was done before with another body: it is deleted, and nothing was run.
    DUPLICATE_DIFFERS = "duplicate_differs"
    #: It was given back, because the worker was told to stop.
    RELEASED = "released"
    #: Its outcome is not known, or could not be told to the service: it may be received again.
    UNSETTLED = "unsettled"


@dataclass(frozen=True)
class MessageVerdict:
    """The outcome that a message is to have, and why."""

    outcome: Outcome
    reason: str
    #: Whether the worker stops.
    stops: bool = False


@dataclass(frozen=True)
class HandledMessage:
    """The outcome that a message had."""

    outcome: Outcome
    reason: str
    #: The exit status of the command, if it has run and ended by itself.
    status: int | None = None
    #: Whether the worker stops.
    stops: bool = False
    #: What else is to be recorded.
    facts: dict[str, object] = field(default_factory=dict)
    #: Why the worker cannot go on: the command could not be started, or the service refuses; None if it can.
    error: AzguardError | None = None


def judge(status: int, dequeue_count: int, settings: WorkSettings) -> MessageVerdict:
    """Return the outcome for a message whose command ended with this status."""
    if status == DONE_STATUS:
        return MessageVerdict(Outcome.DONE, "exit_status")
    if status == AGAIN_STATUS:
        return MessageVerdict(Outcome.RETRIED, "asked_for_retry")
    if status == settings.poison_status:
        return MessageVerdict(Outcome.POISONED, "data_error")
    if settings.strict:
        # Never to the poison queue: the deployment is broken, and not the message.
        return MessageVerdict(Outcome.FAILED, "status_outside_protocol", stops=True)
    return judge_failure("exit_status", dequeue_count, settings)


def judge_failure(reason: str, dequeue_count: int, settings: WorkSettings) -> MessageVerdict:
    """Return the outcome for a message whose command failed."""
    if dequeue_count >= settings.max_dequeue and not settings.strict:
        return MessageVerdict(Outcome.POISONED, reason)
    return MessageVerdict(Outcome.FAILED, reason)
