"""Who may handle a message, and whether it was handled before: what the worker asks of a table of claims.

A claim is on a key: the id of a message, or a value in its body. So it holds for all messages with that key.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from azguard.requests.deadline import Deadline


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Claimed:
    """The key is ours until the claim expires. An implementation may keep more in a subclass of its own."""

    key: str
    #: Whether nothing was known of the key, so that no command has run for it.
    is_first: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class DoneBefore:
    """The key was done: the message is to be deleted without running the command."""

    key: str
    #: The id of the message that was done, if its body is known to be another one than that of this message.
    differs_from: str | None = None


@dataclass(frozen=True)
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
