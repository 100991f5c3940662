"""Find the outcome of an operation on a lease, for the loop in ``requests.settle``.

After a lost answer the state is read before the request is sent again: a repeated break could break the lease of the
next holder.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from azguard.accounts.target import Target
from azguard.conditions.resolve import Conditions
from azguard.errors import AzguardError, Changed, Locked, NotFound, OutcomeUnknown
from azguard.leases.kinds import Action
from azguard.leases.state import LeaseState, look
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.settle import Finding, Settled, WriteRequest, send_until_settled

Facts = Mapping[str, Any]
#: The outcome of a release that was refused where nothing is leased: a copy of it may have been first.
GONE = "gone"
# Bounded: this read only explains a refusal that is known already.
_EXPLAIN_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class LeaseOperation:
    """An operation on a lease: how it is sent, and how its outcome is found after a lost answer."""

    target: Target
    action: Action
    conditions: Conditions
    send: Callable[[], Facts]
    #: Reads the resource, and returns whether the operation is done.
    look: Callable[[Deadline], Finding[Facts]]
    #: Returns what a refusal proves after a transmission in doubt, given what ``look`` found.
    judge_refusal: Callable[[AzguardError, Finding[Facts]], Finding[Facts]]

    def perform(self, deadline: Deadline) -> Settled[Facts]:
        """Send it until it is done, refused, or known to be neither.

        Raises:
            Locked, Changed, NotFound: it was refused.
            OutcomeUnknown: it was sent, and whether it was done cannot be known.
            Unavailable: it was never sent.
        """
        request = WriteRequest(
            target=self.target,
            send=self.send,
            look=self._look,
            expected_etag=self.conditions.expected_etag,
            is_idempotent=True,
            look_after_refusal=self._look_after_refusal,
            judge_refusal=self.judge_refusal,
            unknown=self._build_unknown(),
            # The caller releases the lease of an interrupted acquire, granted or not.
            is_undone_by_caller=self.action is Action.ACQUIRE,
        )
        try:
            return send_until_settled(request, deadline)
        except (Locked, Changed) as error:
            raise explain(self.target, error, deadline) from error.__cause__

    def _look(self, patience: Deadline) -> Finding[Facts]:
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


def explain(target: Target, error: AzguardError, deadline: Deadline) -> AzguardError:
    """Add the present state to a refusal, if it can be read quickly."""
    state = error.seen or _try_to_look(target, deadline)
    if isinstance(state, NotFound):
        return state
    if state is None:
        return error
    holder = None if state.free else state.describe_holder()
    return error.but(
        lease_state=state.state,
        current_etag=state.etag if isinstance(error, Changed) else error.current_etag,
        detail=error.detail if holder is None else (*error.detail, f"held by {holder}"),
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
    """Return the present state, or that nothing is there; None if it cannot be read quickly."""
    try:
        return look(target, deadline.restart(seconds=min(_EXPLAIN_SECONDS, deadline.seconds)))
    except NotFound as gone:
        return gone
    except Exception:  # noqa: BLE001  # However the read fails, the refusal must be reported.
        return None
