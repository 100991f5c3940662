"""Wait for the lease of another holder to end."""

from collections.abc import Callable

from azguard.accounts.target import Target
from azguard.errors import GaveUp
from azguard.leases.state import LeaseState, look
from azguard.requests.deadline import Deadline
from azguard.times import span

# Often enough to notice soon, seldom enough for many who wait; jittered, so that they do not come all at once.
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.25, 1.0


def until_free(
    target: Target,
    patience: Deadline,
    tell: Callable[[LeaseState], None],
    uniform: Callable[[float, float], float],
) -> LeaseState:
    """Wait until the lease is free to be acquired, and return its state then.

    ``tell`` is called with the state at first, and whenever another holder shows. ``uniform`` draws a random number
    between two others.

    Raises:
        GaveUp: it is still held when the time is up.
        NotFound: there is no such resource.
    """
    told: LeaseState | None = None
    while True:
        state = look(target, patience.restarted(seconds=max(patience.settle_seconds, patience.remaining)))
        if state.free:
            return state
        if told is None or told.holder != state.holder:
            tell(state)
            told = state
        if patience.passed:
            detail = () if state.holder is None else (f"held by {state.holder}",)
            raise build_gave_up(target, patience, state.state, detail)
        patience.pause(uniform(_SHORTEST_PAUSE, _LONGEST_PAUSE))


def build_gave_up(target: Target, patience: Deadline, state: str | None, detail: tuple[str, ...]) -> GaveUp:
    """Return the error that says that the wait was too short."""
    return GaveUp(
        f"{target} is still leased after {span(patience.seconds)}",
        address=str(target.address),
        detail=detail,
        lease_state=state,
        reason="lease_not_free_in_time",
    )
