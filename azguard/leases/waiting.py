"""Wait for the lease of another holder to end."""

from collections.abc import Callable

from azguard.accounts.target import Target
from azguard.errors import GaveUp
from azguard.leases.state import LeaseState, look
from azguard.requests.deadline import Deadline, poll
from azguard.times import span


def until_free(
    target: Target,
    patience: Deadline,
    tell: Callable[[LeaseState], None],
    uniform: Callable[[float, float], float],
) -> LeaseState:
    """Wait until the lease is free to be acquired, and return its state then.

    ``tell`` is called with the first state, and again whenever the holder changes. ``uniform`` draws a random number
    between two others.

    Raises:
        GaveUp: it is still held when the time is up.
        NotFound: there is no such resource.
    """
    told: LeaseState | None = None
    state: LeaseState | None = None

    def look_once(deadline: Deadline) -> LeaseState | None:
        nonlocal told, state
        state = look(target, deadline)
        if state.free:
            return state
        if told is None or told.describe_holder() != state.describe_holder():
            tell(state)
            told = state
        return None

    if (free := poll(look_once, patience, uniform)) is not None:
        return free
    assert state is not None
    holder = state.describe_holder()
    detail = () if holder is None else (f"held by {holder}",)
    raise build_gave_up(target, patience, state.state, detail)


def build_gave_up(target: Target, patience: Deadline, state: str | None, detail: tuple[str, ...]) -> GaveUp:
    """Return the error for a lease that was not free in time."""
    return GaveUp(
        f"{target} is still leased after {span(patience.seconds)}",
        address=str(target.address),
        detail=detail,
        lease_state=state,
        reason="lease_not_free_in_time",
    )
