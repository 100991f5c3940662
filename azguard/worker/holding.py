"""The claim on the key of one message; without claims there is nothing to hold."""

from collections.abc import Callable

from azguard.errors import AzguardError
from azguard.processes import clock
from azguard.processes.command_place import PLACE_KILLED
from azguard.requests.deadline import Deadline
from azguard.worker.claims import Claimed, Claims, DoneBefore, HeldByAnother, MessageFacts

# A claim ends the command when it ends, so it is not as short as a message may be hidden.
_SHORTEST_SECONDS = 30.0
_PATIENCE_SECONDS = 20.0
_ANSWER_SECONDS = 10.0


class ClaimHold:
    """The claim on the key of one message."""

    def __init__(self, claims: Claims | None, visibility: int, now: Callable[[], float] = clock.now) -> None:
        self._claims, self._now = claims, now
        self._seconds = max(float(visibility), _SHORTEST_SECONDS)
        self._claimed: Claimed | None = None
        #: When it ends, on ``clock.now``; never if there is none.
        self.ends = float("inf")

    @property
    def key(self) -> str | None:
        """Return the key that is claimed."""
        return None if self._claimed is None else self._claimed.key

    @property
    def is_first(self) -> bool:
        """Return whether the claim tells that no command has run for the key."""
        return self._claimed is not None and self._claimed.is_first

    def take(self, choose_key: Callable[[], str], facts: MessageFacts) -> DoneBefore | HeldByAnother | None:
        """Claim the key of a message; return why it is not ours, None if it is.

        Raises:
            AzguardError: it cannot be claimed, or the message has no key.
        """
        if self._claims is None:
            return None
        at = self._now()
        found = self._claims.claim(choose_key(), facts, self._seconds, _patience())
        if not isinstance(found, Claimed):
            return found
        self._claimed, self.ends = found, at + self._seconds
        return None

    def extend(self) -> None:
        """Let it last longer.

        Raises:
            Changed: another has taken it over.
            AzguardError: it could not be extended.
        """
        if self._claims is not None and self._claimed is not None:
            at = self._now()
            self._claimed = self._claims.extend(self._claimed, self._seconds, _patience())
            self.ends = at + self._seconds

    def finish(self) -> None:
        """Note that the key is done.

        Raises:
            Changed: another has taken it over.
            AzguardError: it could not be noted.
        """
        if self._claims is not None and self._claimed is not None:
            self._claims.finish(self._claimed, _patience())

    def poison(self, reason: str, status: int | None, copy_id: str) -> None:
        """Note that the message was moved to the poison queue.

        Raises:
            AzguardError: it could not be noted.
        """
        if self._claims is not None and self._claimed is not None:
            self._claims.poison(self._claimed, reason, status, _patience(), copy_id)

    def give_up(self, reason: str, status: int | None) -> None:
        """Let another claim the key. If that fails, the claim expires.

        The command of a place that was killed is still being ended: there the claim keeps others out until it expires.
        """
        if self._claims is None or self._claimed is None or reason == PLACE_KILLED:
            return
        try:
            self._claims.give_up(self._claimed, reason, status, _patience())
        except AzguardError:
            return


def _patience() -> Deadline:
    return Deadline(_PATIENCE_SECONDS, answer_seconds=_ANSWER_SECONDS)
