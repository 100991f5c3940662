"""Leases: acquire, renew, change, release and break, one implementation for every kind of resource that has them.

Repeating one of these is harmless: acquiring with the same proposed id is the same lease, and the other four lead to
the state they led to before. So a lost answer is settled by sending again, with the truth about the lease read where a
refusal could be the echo of our own success.

Not guaranteed: a request that the network delivers late. An acquire that arrives after its lease was released leaves a
lease that nobody holds, for ever if it is infinite; a break that arrives late hits whoever holds the lease then.

Source: https://learn.microsoft.com/rest/api/storageservices/lease-blob and /lease-container
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from azguard.account import Target
from azguard.conditions import Conditions
from azguard.deadline import Deadline
from azguard.errors import AzguardError, Locked, NotFound, OutcomeUnknown, UsageError
from azguard.lease_state import Action, client, look
from azguard.service_errors import is_lease_problem, status, translate
from azguard.settled import SETTLE_SECONDS
from azguard.transmission import Fate, send, write_timeouts

# What the service takes for a lease that ends by itself, in seconds.
SHORTEST, LONGEST = 15, 60
# A holder that dies holds up others no longer than this.
DEFAULT_SECONDS = 60
LONGEST_BREAK = 60
INFINITE = -1
_PAUSE = 0.2
# Nobody waits long for a release after Ctrl-C: a finite lease ends by itself.
_RELEASE_SECONDS = 3.0


@dataclass(frozen=True)
class LeaseDone:
    """What an operation on a lease did.

    ``duration`` is the term in seconds, None if infinite or not known here; ``lease_time`` is what a break said
    remains, in seconds.
    """

    address: str
    lease_id: str | None
    etag: str | None
    last_modified: datetime | None
    action: str
    duration: int | None
    lease_time: int | None
    guard: str
    attempts: int
    conflicts: int
    outcome: str


def acquire(
    target: Target, lease_id: str, seconds: int | None, conditions: Conditions, deadline: Deadline
) -> LeaseDone:
    """Acquire a lease with our own id, for ``seconds`` (15 to 60) or, with None, for ever.

    Ctrl-C while it is on its way releases it.

    Raises:
        Locked: somebody else holds it.
        Changed: a condition did not hold.
        OutcomeUnknown: it was sent, and whether it was granted cannot be known.
    """

    def once() -> Mapping[str, Any]:
        lease = client(target, lease_id)
        term = INFINITE if seconds is None else seconds
        lease.acquire(term, headers=dict(conditions.headers), **write_timeouts(deadline))
        return _facts(lease)

    def settle(refusal: BaseException) -> Mapping[str, Any]:
        if (found := _held(target, lease_id, deadline)) is not None:
            return found
        raise _unknown(target, Action.ACQUIRE, refusal)

    try:
        sent = _repeated(target, Action.ACQUIRE, once, settle, deadline)
    except KeyboardInterrupt:
        give_back(target, lease_id, deadline)
        raise
    return _done(target, Action.ACQUIRE, conditions, sent, lease_id, seconds)


def renew(target: Target, conditions: Conditions, deadline: Deadline) -> LeaseDone:
    """Renew the lease that ``conditions`` names, for its own term from now.

    Raises:
        Locked: it is not held any more, or was never.
    """
    lease_id = _named(conditions)

    def once() -> Mapping[str, Any]:
        lease = client(target, lease_id)
        lease.renew(headers=dict(conditions.headers), **write_timeouts(deadline))
        return _facts(lease)

    def settle(refusal: BaseException) -> Mapping[str, Any]:
        raise translate(refusal, target) from refusal

    sent = _repeated(target, Action.RENEW, once, settle, deadline)
    return _done(target, Action.RENEW, conditions, sent, lease_id)


def change(target: Target, proposed: str, conditions: Conditions, deadline: Deadline) -> LeaseDone:
    """Change the id of the lease that ``conditions`` names; the old id is worth nothing from then on.

    Raises:
        Locked: the lease is not held.
    """
    lease_id = _named(conditions)

    def settle(refusal: BaseException) -> Mapping[str, Any]:
        if (found := _held(target, proposed, deadline)) is not None:
            return found
        raise translate(refusal, target) from refusal

    def once() -> Mapping[str, Any]:
        lease = client(target, lease_id)
        lease.change(proposed, headers=dict(conditions.headers), **write_timeouts(deadline))
        return _facts(lease)

    sent = _repeated(target, Action.CHANGE, once, settle, deadline)
    return _done(target, Action.CHANGE, conditions, sent, proposed)


def release(target: Target, conditions: Conditions, deadline: Deadline) -> LeaseDone:
    """Release the lease that ``conditions`` names, so that others can acquire it at once.

    Raises:
        Locked: it is not held.
    """
    lease_id = _named(conditions)

    def settle(refusal: BaseException) -> Mapping[str, Any]:
        if is_lease_problem(refusal) or status(refusal) == 404:
            return {}  # released by the request whose answer was lost
        raise translate(refusal, target) from refusal

    def once() -> Mapping[str, Any]:
        lease = client(target, lease_id)
        lease.release(headers=dict(conditions.headers), **write_timeouts(deadline))
        return _facts(lease)

    sent = _repeated(target, Action.RELEASE, once, settle, deadline)
    return _done(target, Action.RELEASE, conditions, sent, lease_id)


def break_(target: Target, period: int | None, conditions: Conditions, deadline: Deadline) -> LeaseDone:
    """Break whatever lease is on a resource; its holder needs not be asked.

    ``period`` is how long it may still last, 0 to 60 seconds; by default a finite lease runs to its end and an
    infinite one ends at once. The answer's ``lease_time`` says how many seconds remain.

    Raises:
        Locked: there is no lease to break.
        Changed: a condition did not hold.
    """

    def settle(refusal: BaseException) -> Mapping[str, Any]:
        if is_lease_problem(refusal):
            return {"lease_time": 0}  # nothing is leased any more
        raise translate(refusal, target) from refusal

    def once() -> Mapping[str, Any]:
        lease = client(target, None)
        left = lease.break_lease(period, headers=dict(conditions.headers), **write_timeouts(deadline))
        return {"lease_time": left}

    return _done(target, Action.BREAK, conditions, _repeated(target, Action.BREAK, once, settle, deadline), None)


def give_back(target: Target, lease_id: str, deadline: Deadline) -> bool:
    """Release a lease on the way out, without an error; return whether it is known not to be held any more."""
    patience = deadline.lasting(_RELEASE_SECONDS)
    try:
        release(target, Conditions(lease_id=lease_id), patience)
    except (Locked, NotFound):
        return True
    except AzguardError:
        return False
    return True


def acquire_once(target: Target, lease_id: str, seconds: int, timeouts: Mapping[str, Any]) -> None:
    """Ask for a lease in one transmission. The SDK's errors pass through."""
    client(target, lease_id).acquire(seconds, **timeouts)


def renew_once(target: Target, lease_id: str, timeouts: Mapping[str, Any]) -> None:
    """Renew a lease in one transmission. The SDK's errors pass through."""
    client(target, lease_id).renew(**timeouts)


@dataclass(frozen=True)
class _Sent:
    answer: Mapping[str, Any]
    attempts: int


def _repeated(
    target: Target,
    action: Action,
    once: Callable[[], Mapping[str, Any]],
    settle: Callable[[BaseException], Mapping[str, Any]],
    deadline: Deadline,
) -> _Sent:
    """Send until it is answered; ``settle`` says what a refusal means after an answer was lost."""
    attempts, in_doubt = 0, False
    while True:
        sent = send(once)
        attempts += sent.fate is not Fate.NOT_SENT
        if sent.fate is Fate.COMMITTED:
            return _Sent(sent.answer or {}, attempts)
        error: Any = sent.error
        if sent.fate is Fate.REFUSED:
            if in_doubt:
                return _Sent(settle(error), attempts)
            raise translate(error, target) from error
        in_doubt = in_doubt or sent.fate is Fate.IN_DOUBT
        if deadline.remaining <= _PAUSE:
            raise _unknown(target, action, error) if in_doubt else translate(error, target)
        deadline.pause(_PAUSE)


def _unknown(target: Target, action: Action, error: BaseException) -> OutcomeUnknown:
    ways = {
        Action.ACQUIRE: f"release it in case it was granted: azguard lease release {target.address}",
        Action.RELEASE: "release it again; a finite lease ends by itself",
    }
    return OutcomeUnknown(
        f"the {action} of the lease on {target} was sent, and whether it was done cannot be known",
        address=str(target.address),
        detail=(translate(error, target).message,),
        hint=ways.get(action, f"look before you try again: azguard lease show {target.address}"),
    )


def _held(target: Target, lease_id: str, deadline: Deadline) -> Mapping[str, Any] | None:
    """Return the facts of a resource if this very lease is held on it now."""
    try:
        state = look(target, deadline.lasting(max(SETTLE_SECONDS, deadline.remaining)), lease_id)
    except AzguardError:
        return None
    return {"etag": state.etag, "last_modified": state.last_modified}


def _named(conditions: Conditions) -> str:
    if conditions.lease_id is None:
        raise UsageError("which lease is missing", hint="--lease-id ID, or @held")
    return conditions.lease_id


def _facts(lease: Any) -> Mapping[str, Any]:
    return {"etag": lease.etag, "last_modified": lease.last_modified}


def _done(
    target: Target,
    action: Action,
    conditions: Conditions,
    sent: _Sent,
    lease_id: str | None,
    duration: int | None = None,
) -> LeaseDone:
    return LeaseDone(
        address=str(target.address),
        lease_id=lease_id,
        etag=sent.answer.get("etag"),
        last_modified=sent.answer.get("last_modified"),
        action=action.value,
        duration=duration,
        lease_time=sent.answer.get("lease_time"),
        guard=conditions.guard,
        attempts=sent.attempts,
        conflicts=0,
        outcome="committed",
    )
