"""How the outcome of an operation on a lease is learnt, for the loop in ``requests.settle``.

A lost answer is asked about before the request is sent again: repeating it is harmless to what it did, but a break
that is repeated could hit the next holder.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from azguard.accounts.target import Target
from azguard.conditions.resolve import Conditions
from azguard.errors import AzguardError, Changed, Locked, NotFound, OutcomeUnknown
from azguard.leases.kinds import Action
from azguard.leases.state import LeaseState, look
from azguard.requests.deadline import Deadline
from azguard.requests.settle import Finding, Settled, Verdict, WriteRequest, send_until_settled

Facts = Mapping[str, Any]
# What only explains a refusal is not worth a long wait.
_EXPLAIN_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class LeaseOperation:
    """An operation on a lease: how it is sent, and how its outcome is learnt when an answer was lost."""

    target: Target
    action: Action
    conditions: Conditions
    send: Callable[[], Facts]
    #: Looks at the resource, and says whether the operation is done.
    look: Callable[[Deadline], Finding[Facts]]
    #: Says what a refusal proves after a transmission in doubt, given what that look found.
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
            # An interrupted acquire is given back, granted or not.
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

        Only the second copy of a release is refused. Not held any more is what a release is for.
        """
        if self.action is not Action.RELEASE:
            return Finding(Verdict.NEVER)
        try:
            state = _look_briefly(self.target, patience)
        except Exception:  # noqa: BLE001  # However the read fails, the refusal must be reported.
            return Finding(Verdict.NEVER)
        return Finding(Verdict.COMMITTED, {}) if state.free else Finding(Verdict.NEVER, seen=state)

    def _build_unknown(self) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"the {self.action} of the lease on {self.target} was sent, and whether it was done cannot be known",
            address=str(self.target.address),
            reason="lease_outcome_unknown",
            values={"action": self.action.value},
        )


def explain(target: Target, error: AzguardError, deadline: Deadline) -> AzguardError:
    """Add to a refusal what is the case now, if that can be learnt quickly."""
    try:
        state = error.seen or _look_briefly(target, deadline)
    except NotFound as gone:
        return gone
    except Exception:  # noqa: BLE001  # However the read fails, the refusal must be reported.
        return error
    holder = None if state.free else state.holder
    return error.but(
        lease_state=state.state,
        current_etag=state.etag if isinstance(error, Changed) else error.current_etag,
        detail=error.detail if holder is None else (*error.detail, f"held by {holder}"),
    )


def find_held(target: Target, lease_id: str, patience: Deadline) -> Finding[Facts]:
    """Return whether this very lease is held on a resource now."""
    try:
        state = look(target, patience, lease_id)
    except (Locked, NotFound):
        return Finding(Verdict.NOT_YET)
    return Finding(Verdict.COMMITTED, {"etag": state.etag, "last_modified": state.last_modified})


def _look_briefly(target: Target, deadline: Deadline) -> LeaseState:
    return look(target, deadline.restarted(seconds=min(_EXPLAIN_SECONDS, deadline.seconds)))
