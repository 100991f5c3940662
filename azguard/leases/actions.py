"""Leases: acquire, renew, change, release and break, one implementation for every kind of resource that has them.

Each operation can be repeated: an acquire with the same proposed id is the same lease, and the other four lead to the
same state as before. A lost answer is therefore settled by reading the state before the request is sent again: a
repeated break could break the lease of the next holder.

Not guaranteed: a request that the network delivers late. An acquire that arrives after its lease was released leaves an
unused lease, for ever if it is infinite; its id is known, and releases it. A break that arrives late, and is not tied
to a version, breaks the lease of the next holder.

Source: https://learn.microsoft.com/rest/api/storageservices/lease-blob and /lease-container
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import datetime
from functools import partial
from http import HTTPStatus
from typing import Any

from azguard.accounts.account import Target
from azguard.errors import AzguardError, Changed, Locked, NotFound, OutcomeUnknown, UsageError
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.guards.versions import describe_write
from azguard.leases.state import Action, LeaseState, kind_of, look, operation_of
from azguard.requests import trace
from azguard.requests.calls import CallOutcome, send_once, write_timeouts
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.results import Written
from azguard.requests.service_codes import TYPE_MISMATCH, is_lease_problem, service_code, status
from azguard.requests.settle import Finding, WriteRequest, send_until_settled
from azguard.wire import client
from azguard.wire.answers import Answer
from azguard.wire.call import call
from azguard.wire.client import Limits

Facts = Mapping[str, Any]
#: The outcome of a release that was refused where nothing is leased: a copy of it may have been first.
GONE = "gone"
# A lease without end.
INFINITE = -1
# Bounded: after Ctrl-C a finite lease that is not released expires on its own.
_RELEASE_SECONDS = 3.0
_RELEASE_PAUSE = 0.2


@frozen(kw_only=True)
class LeaseDone(Written):
    """What an operation on a lease did."""

    lease_id: str | None
    action: str
    #: The term in seconds, or ``infinite``; None if it is not known here.
    duration: int | str | None = None
    #: The seconds that remain after a break, as its answer says; None if the answer was lost.
    lease_time: int | None = None


@frozen(kw_only=True)
class LeaseOperation:
    """An operation on a lease: how it is sent, and how its outcome is found after a lost answer."""

    target: Target
    action: Action
    conditions: Conditions
    #: What the request says besides.
    given: Mapping[str, Any] = field(default_factory=dict)
    #: Reads the resource, and returns whether the operation is done; None where that does not show it.
    look: Callable[[Deadline], Finding[Facts]] | None = None
    #: Returns what a refusal proves after a transmission in doubt, given what ``look`` found.
    judge_refusal: Callable[[AzguardError, Finding[Facts]], Finding[Facts]]
    #: The id that an acquire or a change gives the lease; None if its id stays.
    new_id: str | None = None
    #: The term that is asked for, in seconds; None for no term, or the term that it has.
    seconds: int | None = None

    def perform(self, deadline: Deadline, duration: int | str | None = None) -> LeaseDone:
        """Send it until it is done, refused, or known to be neither.

        Raises:
            Locked, Changed, NotFound: it was refused.
            OutcomeUnknown: it was sent, and whether it was done cannot be known.
            Unavailable: it was never sent.
        """
        conditions = self.conditions
        operation = operation_of(self.target, self.action)
        names_lease = operation.names_lease
        headers = conditions.request_headers if names_lease else conditions.headers
        request = WriteRequest[Facts](
            operation=operation,
            target=self.target,
            given={"headers": headers, **self.given},
            look=self._look,
            expected_etag=conditions.expected_etag,
            look_after_refusal=self._look_after_refusal,
            judge_refusal=self.judge_refusal,
            unknown=self._build_unknown(),
            # The caller releases the lease of an interrupted acquire, granted or not.
            is_undone_by_caller=self.action is Action.ACQUIRE,
        )
        lease_id = self.new_id or conditions.lease_id
        try:
            with trace.note_lease(self.action, self.target, lease_id, self.seconds):
                settled = send_until_settled(request, deadline)
        except (Locked, Changed) as error:
            raise _explain(self.target, error, deadline) from error.__cause__
        return LeaseDone(
            **describe_write(self.target, conditions.guard, settled),
            lease_id=lease_id if names_lease else self.new_id,
            action=self.action.value,
            duration=duration,
            lease_time=settled.answer.get("lease_time"),
            outcome=settled.answer.get("outcome", "committed"),
        )

    def _look(self, patience: Deadline) -> Finding[Facts]:
        assert self.look is not None
        try:
            return self.look(patience)
        except AzguardError:
            return Finding(Verdict.UNKNOWN)

    def _look_after_refusal(self, patience: Deadline) -> Finding[Facts]:
        """Return whether an earlier copy of the request was done.

        That matters for a release alone: its second copy is refused because the first one succeeded.
        """
        if self.action is not Action.RELEASE:
            return Finding(Verdict.NEVER)
        state = _try_to_look(self.target, patience)
        if state is None or isinstance(state, NotFound):
            return Finding(Verdict.NEVER)
        return Finding(Verdict.COMMITTED, {"outcome": GONE}) if state.free else Finding(Verdict.NEVER, seen=state)

    def _build_unknown(self) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"the {self.action} of the lease on {self.target} was sent, and whether it was done cannot be known",
            address=str(self.target.address),
            reason="lease_outcome_unknown",
            values={"action": self.action.value},
        )


def _explain(target: Target, error: AzguardError, deadline: Deadline) -> AzguardError:
    """Add the present state to a refusal, if it can be read quickly."""
    state = error.seen or _try_to_look(target, deadline)
    if isinstance(state, NotFound):
        return state
    if state is None:
        return error
    return error.but(
        lease_state=state.state,
        current_etag=state.etag if isinstance(error, Changed) else error.current_etag,
        detail=error.detail if state.free else (*error.detail, *state.held_by),
    )


def find_held(target: Target, lease_id: str, patience: Deadline, *, for_ever: bool | None = None) -> Finding[Facts]:
    """Return whether this very lease is held on a resource now; ``for_ever`` says whether without a term, or with one.

    One that is held with the other term was acquired before.
    """
    try:
        state = look(target, patience, lease_id)
    except (Locked, NotFound):
        return Finding(Verdict.NOT_YET)
    if for_ever is not None and state.duration is not None and (state.duration == "infinite") is not for_ever:
        return Finding(Verdict.NOT_YET)
    return Finding(Verdict.COMMITTED, {"etag": state.etag, "last_modified": state.last_modified})


def _try_to_look(target: Target, deadline: Deadline) -> LeaseState | NotFound | None:
    try:
        return look(target, deadline.briefly())
    except NotFound as gone:
        return gone
    except Exception:  # noqa: BLE001  # However the read fails, the refusal must be reported.
        return None


def acquire(
    target: Target, lease_id: str, seconds: int | None, conditions: Conditions, deadline: Deadline
) -> LeaseDone:
    """Acquire a lease with our own id, for ``seconds`` (15 to 60) or, with None, for ever.

    If it is interrupted, the lease may be granted all the same: the caller must ``give_back`` it.

    Raises:
        Locked: another holds it.
        Changed: a condition did not hold.
        OutcomeUnknown: it was sent, and whether it was granted cannot be known.
        UsageError: this kind of resource is leased for ever only.
    """
    if seconds is not None and not kind_of(target).finite:
        raise UsageError(f"the lease of a {target.kind} has no term", str(target.address), reason="lease_without_term")
    term = INFINITE if seconds is None else seconds

    def judge_refusal(error: AzguardError, found: Finding[Facts]) -> Finding[Facts]:
        # ETags do not recur: an acquire tied to a replaced ETag can never be granted. Nor can one where nothing is.
        never = isinstance(error, NotFound) or (isinstance(error, Changed) and error.expected_etag is not None)
        return Finding(Verdict.NEVER if never and found.verdict is Verdict.NOT_YET else Verdict.UNKNOWN)

    operation = LeaseOperation(
        target=target,
        action=Action.ACQUIRE,
        conditions=conditions,
        given=_name_terms(lease_id, term),
        look=lambda patience: find_held(target, lease_id, patience, for_ever=seconds is None),
        judge_refusal=judge_refusal,
        new_id=lease_id,
        seconds=seconds,
    )
    return operation.perform(deadline, "infinite" if seconds is None else seconds)


def renew(target: Target, conditions: Conditions, deadline: Deadline) -> LeaseDone:
    """Renew the lease that ``conditions`` names, for its own term from now.

    Raises:
        Locked: it is not held any more, or was never.
        OutcomeUnknown: it was sent, and whether it was done cannot be known.
    """
    operation = LeaseOperation(
        target=target,
        action=Action.RENEW,
        conditions=conditions,
        judge_refusal=lambda error, found: Finding(Verdict.NEVER),
    )
    return operation.perform(deadline)


def change(target: Target, proposed: str, conditions: Conditions, deadline: Deadline) -> LeaseDone:
    """Change the id of the lease that ``conditions`` names; the old id is worth nothing from then on."""
    operation = LeaseOperation(
        target=target,
        action=Action.CHANGE,
        conditions=conditions,
        given={"proposed_lease_id": proposed},
        look=lambda patience: find_held(target, proposed, patience),
        judge_refusal=lambda error, found: _never_if_not_yet(found),
        new_id=proposed,
    )
    return operation.perform(deadline)


def release(target: Target, conditions: Conditions, deadline: Deadline) -> LeaseDone:
    """Release the lease that ``conditions`` names, so that others can acquire it at once.

    Raises:
        Locked: it is not held.
        OutcomeUnknown: it was sent, and whether it was done cannot be known.
    """
    lease_id = str(conditions.lease_id)

    def look_for_it(patience: Deadline) -> Finding[Facts]:
        # A release is done when the lease is not held any more, by whichever request.
        is_held = find_held(target, lease_id, patience).verdict is Verdict.COMMITTED
        return Finding(Verdict.NOT_YET) if is_held else Finding(Verdict.COMMITTED, {})

    def judge_refusal(error: AzguardError, found: Finding[Facts]) -> Finding[Facts]:
        if isinstance(error, (Locked, NotFound)):
            return Finding(Verdict.COMMITTED, {})
        return _never_if_not_yet(found)

    operation = LeaseOperation(
        target=target,
        action=Action.RELEASE,
        conditions=conditions,
        look=look_for_it,
        judge_refusal=judge_refusal,
    )
    return operation.perform(deadline)


def break_(target: Target, period: int | None, conditions: Conditions, deadline: Deadline) -> LeaseDone:
    """Break the lease on a resource, without its id.

    ``period`` is how long it may still last, 0 to 60 seconds; by default a finite lease runs to its end and an
    infinite one ends at once. The answer's ``lease_time`` says how many seconds remain.
    """
    if period is not None and not kind_of(target).finite:
        raise UsageError(
            f"the lease of a {target.kind} ends at once when it is broken", str(target.address), reason="break_at_once"
        )

    def look_for_it(patience: Deadline) -> Finding[Facts]:
        state = look(target, patience)
        # An expired lease can still be renewed by its holder, and a broken one cannot.
        if state.state in ("leased", "expired"):
            return Finding(Verdict.NOT_YET)
        left = None if state.state == "breaking" else 0
        return Finding(
            Verdict.COMMITTED, {"etag": state.etag, "last_modified": state.last_modified, "lease_time": left}
        )

    def judge_refusal(error: AzguardError, _found: Finding[Facts]) -> Finding[Facts]:
        # Another holder changed it: the one whose lease we were to break, or the next one after our break.
        return Finding(Verdict.UNKNOWN if isinstance(error, Changed) else Verdict.NEVER)

    operation = LeaseOperation(
        target=target,
        action=Action.BREAK,
        conditions=conditions,
        given={"lease_break_period": period},
        look=look_for_it,
        judge_refusal=judge_refusal,
    )
    return operation.perform(deadline)


def give_back(
    target: Target, lease_id: str, deadline: Deadline, seconds: float = _RELEASE_SECONDS, *, was_acquired: bool = True
) -> bool:
    """Release a lease before an error is raised, and raise none; return whether it is known not to be held any more.

    It takes at most so many seconds. Without ``was_acquired`` a refusal tells nothing: the acquire may come after it.
    """
    patience = deadline.afterwards(seconds)
    headers = Conditions(lease_id=lease_id).request_headers
    trace.note("asking", target, action=Action.RELEASE.value, lease=lease_id)
    while True:
        timeouts = write_timeouts(patience, _RELEASE_PAUSE)
        sent = send_once(partial(transmit, target, Action.RELEASE, timeouts, headers))
        if sent.error is None or is_lease_problem(sent.error):
            trace.note("released", target, lease=lease_id, code=sent.error)
            return sent.error is None or was_acquired
        if status(sent.error) == HTTPStatus.NOT_FOUND or service_code(sent.error) == TYPE_MISMATCH:  # a directory
            return was_acquired
        pause = max(_RELEASE_PAUSE, client.find_pause_seconds(target.endpoint))
        if sent.outcome is CallOutcome.REFUSED or patience.remaining <= pause:
            return False
        patience.pause(pause)


def acquire_once(target: Target, lease_id: str, seconds: int, timeouts: Limits) -> datetime | None:
    """Ask for a lease in one transmission and return the service's clock then. What goes wrong passes through.

    What is leased for ever only is leased so.
    """
    term = seconds if kind_of(target).finite else INFINITE
    with trace.note_lease(Action.ACQUIRE, target, lease_id, None if term == INFINITE else term):
        answer = transmit(target, Action.ACQUIRE, timeouts, **_name_terms(lease_id, term))
    return answer.date


def renew_once(target: Target, lease_id: str, timeouts: Limits) -> None:
    """Renew a lease in one transmission; one without a term is looked at. What goes wrong passes through."""
    kind, headers = kind_of(target), Conditions(lease_id=lease_id).request_headers
    with trace.note_lease(Action.RENEW, target, lease_id):
        call(kind.actions.get(Action.RENEW, kind.read), target, timeouts, headers=headers)


def _name_terms(lease_id: str, term: int) -> Mapping[str, Any]:
    return {"proposed_lease_id": lease_id, "lease_duration": term}


def transmit(
    target: Target, action: Action, timeouts: Limits, headers: Mapping[str, str] | None = None, **given: Any
) -> Answer:
    """Send an operation on a lease once. What goes wrong passes through."""
    return call(operation_of(target, action), target, timeouts, headers=headers, **given)


def _never_if_not_yet(found: Finding[Facts]) -> Finding[Facts]:
    # A refusal that our own success cannot have caused, and the state that was read after it.
    return Finding(Verdict.NEVER if found.verdict is Verdict.NOT_YET else Verdict.UNKNOWN)
