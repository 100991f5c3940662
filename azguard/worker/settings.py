"""What a worker is to do; the outcome of a message by the exit status of its command; the protocol of claims."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import Protocol

from azguard.accounts.account import Target
from azguard.errors import ConfigError, Forbidden, NotFound, Unauthenticated
from azguard.frozen import frozen
from azguard.queues.message_format import TEXT
from azguard.requests.deadline import Deadline
from azguard.worker.outcomes import Outcome

#: What the service refuses for good: no further try mends it.
FINAL = (Unauthenticated, Forbidden, NotFound, ConfigError)
# The exit statuses of a message that is done, of one that is to run again, and of one that is bad, as in sysexits.h.
DONE_STATUS, AGAIN_STATUS, POISON_STATUS = 0, 75, 65
#: A worker stops after so many messages in a row that were poisoned at once.
MAX_POISON = 3
#: After so many receives a message that fails is moved to the poison queue.
MAX_DEQUEUE = 5
#: For how many seconds a message is hidden before that is extended.
VISIBILITY_SECONDS = 60
RETRY_SECONDS = 30
# The time before a message is tried again grows up to this.
_LONGEST_RETRY_SECONDS = 3600


@frozen
class MessageFacts:
    """What is known of a message that was received."""

    queue: str
    id: str
    #: How often it was received, this time included.
    dequeue_count: int
    insertion_time: datetime
    expiration_time: datetime
    #: A digest of the body, where the key is a part of it; None where two messages of one key are the same message.
    digest: str | None = None


@frozen
class Claimed:
    """The key is ours until the claim expires. An implementation may keep more in a subclass of its own."""

    key: str
    #: Whether nothing was known of the key, so that no command has run for it.
    is_first: bool = field(default=False, kw_only=True)


@frozen
class DoneBefore:
    """The key was done: the message is to be deleted without running the command."""

    key: str
    #: The id of the message that was done, if its body is known to be another one than that of this message.
    differs_from: str | None = None


@frozen
class HeldByAnother:
    """Another worker has the key, and its claim has not expired."""

    key: str
    #: When that claim expires, unless it is extended.
    until: datetime
    #: Who has it, for people.
    by: str


class Claims(Protocol):
    """Claims on keys. All writes are conditional, and settle their own doubt.

    Any of them may raise ``Unavailable`` or ``OutcomeUnknown`` as every write does. ``extend``, ``finish``, ``give_up``
    and ``poison`` raise ``Changed`` with the reason ``claim_taken_over`` if another worker has taken the claim over
    after it expired.
    """

    def claim(
        self, key: str, message: MessageFacts, seconds: float, deadline: Deadline
    ) -> Claimed | DoneBefore | HeldByAnother:
        """Claim a key for so many seconds from now, by the clock of the service; one that has expired is taken over."""
        ...

    def extend(self, claimed: Claimed, seconds: float, deadline: Deadline) -> Claimed:
        """Let a claim last so many seconds from now, and return the claim that is ours from then on."""
        ...

    def finish(self, claimed: Claimed, deadline: Deadline) -> None:
        """Note that the key is done. It is never run again."""
        ...

    def give_up(self, claimed: Claimed, reason: str, status: int | None, deadline: Deadline) -> None:
        """Let the key be claimed again, and note why: a reason, and the exit status of the command if it had one."""
        ...

    def poison(
        self, claimed: Claimed, reason: str, status: int | None, deadline: Deadline, copy_id: str | None = None
    ) -> None:
        """Note that the message was moved to the poison queue, and why. A message moved back may claim the key.

        ``copy_id`` is the id of the message that was put there, by which the reason is found again.
        """
        ...


@frozen(kw_only=True)
class WorkSettings:
    """What a worker is to do."""

    queue: Target
    #: Where messages go that cannot be handled.
    poison: Target
    command: Sequence[str]
    environ: Mapping[str, str] = field(default_factory=dict)
    encoding: str = TEXT
    #: For how many seconds a message is hidden; extended at half of it.
    visibility: int = VISIBILITY_SECONDS
    #: After how many seconds a message that failed once is tried again; twice as long after each further receive.
    retry_visibility: int = RETRY_SECONDS
    max_dequeue: int = MAX_DEQUEUE
    jobs: int = 1
    #: Whether to end when the queue is empty.
    drain: bool = False
    #: End after so many messages; None is no end.
    max_messages: int | None = None
    #: Whether an exit status outside the protocol stops the worker.
    strict: bool = False
    #: After how many commands in a row that did not end with 0 the worker stops; None is never.
    stop_after: int | None = None
    #: The exit status with which a command says that its message is bad.
    poison_status: int = POISON_STATUS
    #: After how many messages in a row that were poisoned at once the worker stops; None is never.
    max_poison: int | None = MAX_POISON
    #: After how many seconds a command is ended; None is never.
    max_time: float | None = None
    #: How many seconds a command has between TERM and KILL.
    grace: float = 5.0
    #: How many seconds an empty queue is left alone at most.
    poll_interval: float = 5.0
    #: For how many seconds a service is tried that does not answer; None is what a worker does by itself.
    patience: float | None = None
    events: Path | None = None
    metrics: Path | None = None
    #: Who handles a message is claimed there first; None is nowhere.
    claims: Claims | None = None
    #: The key to claim, of the bytes of a body and the id of its message.
    choose_key: Callable[[bytes, str], str] = lambda body, message_id: message_id
    #: Whether that key is a part of the body, so that two bodies can have the same one.
    key_in_body: bool = False
    #: Whether a message goes to the poison queue whose key was done with another body.
    strict_key: bool = False
    #: Is given the id of each message of the poison queue that no claim tells of, and what is known of it.
    keep_reason: Callable[[str, Mapping[str, object]], None] = lambda copy_id, facts: None
    #: Is called before the first message is received, once the places for commands are there.
    prepare: Callable[[], None] = lambda: None
    #: Is told how the worker goes on.
    say: Callable[[str], None] = lambda text: None
    #: Is told what people should know.
    warn: Callable[[str], None] = lambda text: None

    def is_too_often(self, dequeue_count: int) -> bool:
        """Return whether a message that was received so often is not to run any more.

        A broken deployment is started again and again, each time with a failure of the same messages: strict is for it.
        """
        return not self.strict and dequeue_count > self.max_dequeue

    def find_retry_seconds(self, dequeue_count: int) -> int:
        """Return after how many seconds a message is tried again that was received so often."""
        longest = max(self.retry_visibility, _LONGEST_RETRY_SECONDS)
        # A larger exponent says nothing more.
        return min(longest, self.retry_visibility << min(20, max(0, dequeue_count - 1)))


@frozen
class MessageVerdict:
    """The outcome that a message is to have, and why."""

    outcome: Outcome
    reason: str
    #: Whether the worker stops.
    stops: bool = False


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
