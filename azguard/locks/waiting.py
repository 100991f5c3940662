"""Tell people who holds the lock that is waited for."""

from collections.abc import Callable

from azguard.accounts.target import Target
from azguard.errors import AzguardError, GaveUp
from azguard.leases import state as lease_state
from azguard.locks.settings import AcquireSettings, LockRequest
from azguard.requests.deadline import Deadline

# A long wait is reported again after this time.
_REMINDER_SECONDS = 60.0


class WaitReporter:
    """Tells people who holds the lock that is waited for."""

    def __init__(self, request: LockRequest, slots: list[Target], settings: AcquireSettings) -> None:
        self._request = request
        self._slots = slots
        self._settings = settings
        self._told: list[str] = []
        self._told_at: float | None = None

    def ask(self, patience: Callable[[], Deadline]) -> bool:
        """Ask who holds the lock, unless it was asked within the last minute; return whether it was asked."""
        now = self._settings.now()
        if self._told_at is not None and now - self._told_at < _REMINDER_SECONDS:
            return False
        limit = patience()
        self._told = [_describe_holder(slot, limit) for slot in self._slots]
        self._told_at = now
        return True

    def tell(self) -> None:
        """Say who holds the lock."""
        for line in self._told:
            self._settings.say(f"waiting for {self._request.target.address}: {line}")

    def build_gave_up(self, seconds: float) -> GaveUp:
        """Return the error for a lock that was still held after so many seconds."""
        waited = f" after {seconds:g} s" if seconds else ""
        return GaveUp(
            f"{self._request.target.address} is held by others{waited}; the command was not run",
            address=str(self._request.target.address),
            detail=tuple(self._told),
            reason="lock_busy",
        )


def _describe_holder(slot: Target, patience: Deadline) -> str:
    try:
        state = lease_state.look(slot, patience)
    except AzguardError as error:
        return error.message
    if state.free:
        return f"{slot} is free now"
    if state.holder is None:
        return f"{slot} is leased, and no record says to whom"
    return f"{slot} is held by {state.holder}"
