"""One operation on a lease, sent until it is known what became of it.

Whether it was done is asked before it is sent again: repeating it is harmless to what it did, but a break that is
repeated could hit the next holder.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from azguard.accounts.target import Target
from azguard.conditions.resolve import Conditions
from azguard.errors import AzguardError, Changed, Locked, NotFound, OutcomeUnknown
from azguard.leases.kinds import Action
from azguard.leases.state import look
from azguard.requests import commits
from azguard.requests.calls import CallOutcome, send_once
from azguard.requests.deadline import Deadline
from azguard.requests.service_errors import translate
from azguard.requests.settle import Finding, Verdict

Facts = Mapping[str, Any]
_PAUSE = 0.2
_FREE = ("available", "expired", "broken")
# What only explains a refusal is not worth a long wait.
_EXPLAIN_SECONDS = 2.0


@dataclass(frozen=True)
class Request:
    """An operation on a lease: how it is sent, and how it is told what became of it when an answer was lost.

    ``seen`` looks at the resource. ``refused`` says what a refusal proves after a doubt, given what that look said:
    committed, never, or unknown.
    """

    target: Target
    action: Action
    conditions: Conditions
    send: Callable[[], Facts]
    seen: Callable[[Deadline], Finding[Facts]]
    refused: Callable[[AzguardError, Verdict], Finding[Facts]]


@dataclass(frozen=True)
class Done:
    """The facts of the answer, and how many transmissions it took."""

    facts: Facts
    attempts: int


def settle(request: Request, deadline: Deadline) -> Done:
    """Send until it is done, refused, or known to be neither.

    Raises:
        Locked, Changed, NotFound: it was refused.
        OutcomeUnknown: it was sent, and whether it was done cannot be known.
        Unavailable: it was never sent.
    """
    attempts = doubts = 0
    while True:
        sent = send_once(request.send)
        attempts += sent.fate is not CallOutcome.NOT_SENT
        doubts += sent.fate is CallOutcome.IN_DOUBT
        if sent.error is None:
            commits.announce()
            return Done(sent.answer or {}, attempts)
        error = translate(sent.error, request.target, expected_etag=request.conditions.expected_etag)
        found = _ask(request.seen, deadline) if doubts else Finding[Facts](Verdict.NOT_YET)
        if sent.fate is CallOutcome.REFUSED and found.verdict is not Verdict.COMMITTED:
            found = request.refused(error, found.verdict) if doubts else Finding(Verdict.NEVER)
        if found.verdict is Verdict.COMMITTED:
            commits.announce()
            return Done(found.answer or {}, attempts)
        if sent.fate is CallOutcome.REFUSED:
            if found.verdict is Verdict.UNKNOWN:
                raise unknown(request, error)
            refusal = explained(request.target, error, deadline)
            if request.action is Action.RELEASE and refusal.lease_state in _FREE:
                return Done({}, attempts)  # Not held any more is what a release is for: by an earlier copy of it.
            raise refusal
        if deadline.remaining <= _PAUSE:
            raise unknown(request, error) if doubts else error
        deadline.pause(_PAUSE)


def explained(target: Target, error: AzguardError, deadline: Deadline) -> AzguardError:
    """Add to a refusal what is the case now, if that can be learnt quickly."""
    if not isinstance(error, (Locked, Changed)):
        return error
    try:
        state = look(target, deadline.restarted(seconds=min(_EXPLAIN_SECONDS, deadline.seconds)))
    except NotFound as gone:
        return gone
    # Whatever goes wrong with explaining, the refusal itself is what must be told.
    except Exception:  # noqa: BLE001
        return error
    holder = None if state.free else state.holder
    return error.but(
        lease_state=state.state,
        current_etag=state.etag if isinstance(error, Changed) else error.current_etag,
        detail=error.detail if holder is None else (*error.detail, f"held by {holder}"),
    )


def unknown(request: Request, error: AzguardError) -> OutcomeUnknown:
    """Return the error that says so: sent, and it cannot be known whether it was done."""
    address = request.target.address
    ways = {
        Action.ACQUIRE: f"release it in case it was granted: azguard lease release {address}",
        Action.RELEASE: "release it again; a finite lease ends by itself",
    }
    return OutcomeUnknown(
        f"the {request.action} of the lease on {request.target} was sent, and whether it was done cannot be known",
        address=str(address),
        detail=(error.message,),
        hint=ways.get(request.action, f"look before you try again: azguard lease show {address}"),
    )


def held(target: Target, lease_id: str, patience: Deadline) -> Finding[Facts]:
    """Return whether this very lease is held on a resource now."""
    try:
        state = look(target, patience, lease_id)
    except (Locked, NotFound):
        return Finding(Verdict.NOT_YET)
    return Finding(Verdict.COMMITTED, {"etag": state.etag, "last_modified": state.last_modified})


def _ask(seen: Callable[[Deadline], Finding[Facts]], deadline: Deadline) -> Finding[Facts]:
    patience = max(min(deadline.settle_seconds, deadline.seconds), deadline.remaining)
    try:
        return seen(deadline.restarted(seconds=patience))
    except AzguardError:
        return Finding(Verdict.UNKNOWN)
