"""Break a lease as an operator does: only the lease that was shown, and only if the safeguards hold for it."""

from collections.abc import Callable

from azguard.accounts.account import Target
from azguard.errors import Changed, Locked, NotFound, UsageError
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.leases import actions
from azguard.leases.actions import LeaseDone
from azguard.leases.ci_runs import RunCheck
from azguard.leases.owners import Owner
from azguard.leases.shown import BrokenLease, ask_time, describe, measure, summarize_broken
from azguard.leases.state import Action, LeaseState, look, operation_of
from azguard.requests.deadline import Deadline
from azguard.times import http_date, span
from azguard.wire.rows import Condition

# The holder may write between our read and our break: each time we read again, but only so often.
_TRIES = 5


@frozen(kw_only=True)
class BreakDone(LeaseDone):
    """What a break did, and which lease it hit."""

    broken: BrokenLease


@frozen
class Safeguards:
    """What must be true of the holder of a lease."""

    #: The holder's name; None is any.
    owner: str | None = None
    #: How many seconds ago the lease must have been taken; None is any time.
    older_than: float | None = None
    #: Asks whether the CI run in the record is over; None is not to ask.
    run_check: RunCheck | None = None

    def check(self, state: LeaseState, target: Target) -> None:
        """Check the record that the holder left, by the service's time in the state.

        Raises:
            Changed: the record contradicts the safeguards, does not prove them, or is missing.
            Unavailable: the CI service does not say whether the run is over.
        """
        holder = state.holder
        if self == Safeguards():
            return
        if holder is None:
            words = f"there is no record on {target} by which to judge"
            if state.earlier_holder is not None:
                words = f"the record on {target} is not of the lease that is held"
            raise _build_refusal(state, target, words)
        if self.owner is not None and not holder.is_named(self.owner):
            raise _build_refusal(state, target, f"the lease on {target} is not held by {self.owner}")
        if self.older_than is not None:
            self._check_age(state, target, self.older_than)
        if self.run_check is not None:
            self.run_check.check(holder if isinstance(holder, Owner) else None, str(target.address))

    def _check_age(self, state: LeaseState, target: Target, least: float) -> None:
        age = measure(state)
        if age.at_least is not None and age.at_least >= least:
            return
        if age.doubt is None and age.seconds is not None:
            words = f"the lease on {target} was taken {span(age.seconds)} ago, which is not long enough"
            raise _build_refusal(state, target, words)
        known = () if age.at_least is None else (f"all that is certain: it was written {span(age.at_least)} ago",)
        words = f"it is not certain that the lease on {target} was taken more than {span(least)} ago: {age.doubt}"
        raise _build_refusal(state, target, words, known)


@frozen
class BreakRequest:
    """A lease to break."""

    target: Target
    #: How many seconds it may still last; None leaves it to the service.
    period: int | None
    conditions: Conditions
    safeguards: Safeguards
    #: Whether the caller says outright that the break is meant.
    assume_yes: bool = False

    @property
    def has_consent(self) -> bool:
        """Return whether the caller's options say that the break is meant, so that no person need be asked."""
        asked = self.conditions
        names_version = asked.expected_etag is not None or Condition.IF_UNMODIFIED_SINCE.header in asked.headers
        return self.assume_yes or self.safeguards != Safeguards() or names_version

    def check(self) -> None:
        """Refuse safeguards together with a condition that does not name the version they are about.

        Raises:
            UsageError: there are both.
        """
        if self.safeguards != Safeguards() and self.conditions.headers and self.conditions.expected_etag is None:
            raise UsageError(
                "the owner and the age are of one version, and another condition does not name it",
                reason="break_condition_without_version",
            )


def break_after_showing(
    request: BreakRequest, deadline: Deadline, show: Callable[[str], None], confirm: Callable[[], None] | None
) -> BreakDone:
    """Show who holds a lease, make sure that breaking it is meant, and break that very lease.

    ``show`` is called with the lease in words. ``confirm`` asks a person, and raises if the answer is no; None where no
    person can be asked.

    Raises:
        UsageError: nothing says that the break is meant, and no person can be asked.
        Changed: another has taken the lease meanwhile.
        AzguardError: see ``look_before_breaking``.
    """
    request.check()
    if not request.has_consent and confirm is None:
        raise UsageError(
            "breaking a lease takes it from its holder, so it needs your confirmation", reason="break_not_confirmed"
        )
    state = look_before_breaking(request, deadline, show)
    if not request.has_consent and confirm is not None:
        confirm()
    return _break_shown(request, state, deadline)


def look_before_breaking(request: BreakRequest, deadline: Deadline, show: Callable[[str], None]) -> LeaseState:
    """Show who holds a lease, and return it if the safeguards allow to break it.

    Raises:
        Changed: the safeguards do not hold.
        Unavailable: the CI service does not say whether the run in the record is over.
        NotFound: there is no lease, it is broken already, or there is no such resource.
        Locked: a virtual machine holds it on its disk, and ``safeguards`` does not name it.
    """
    state = _look_at_breakable(request.target, deadline)
    if request.safeguards.older_than is not None and state.holder is not None:
        state = ask_time(state, request.target, deadline)
    show(f"{request.target} is {describe(state)}")
    _check_disk(request, state)
    request.safeguards.check(state, request.target)
    return state


def _check_disk(request: BreakRequest, state: LeaseState) -> None:
    """Refuse to break the lease on the disk of a virtual machine, unless the caller names the machine."""
    if state.is_vm_disk and request.safeguards.owner is None:
        raise Locked(
            f"{request.target} is a disk that {state.holder} uses: without its lease another can write or delete it",
            address=str(request.target.address),
            lease_state=state.state,
            current_etag=state.etag,
            reason="lease_of_vm_disk",
        )


def _look_at_breakable(target: Target, deadline: Deadline) -> LeaseState:
    """Return the state of a lease that can be broken."""
    state = look(target, deadline)
    if state.state == "broken":
        raise NotFound(
            f"the lease on {target} is broken already",
            str(target.address),
            lease_state=state.state,
            reason="lease_broken_already",
        )
    if state.state == "available":
        raise _build_no_lease(target, state.state)
    return state


def _build_no_lease(target: Target, state: str) -> NotFound:
    return NotFound(
        f"there is no lease on {target}", str(target.address), lease_state=state, reason="no_lease_to_break"
    )


def _break_shown(request: BreakRequest, shown: LeaseState, deadline: Deadline) -> BreakDone:
    """Break the very lease that was shown.

    Without conditions of the caller's the break is tied to the version that was shown, so that it never breaks the
    lease of the next holder, who leaves a record there. The holder itself may write meanwhile: its record shows that
    it is still the same.

    Not guaranteed: a next holder without a record and without a write looks like the holder before.
    """
    target, conditions, state = request.target, request.conditions, shown
    for _ in range(_TRIES):
        tied = conditions if conditions.headers else _tie_to_version(target, state)
        try:
            done = actions.break_(target, request.period, tied, deadline.fresh())
        except Changed:
            if conditions.headers:
                raise
        except Locked as error:
            if error.reason != "no_lease":
                raise
            raise _build_no_lease(target, "available") from error
        else:
            return BreakDone(**vars(done), broken=summarize_broken(state))
        state = _look_at_breakable(target, deadline.fresh())
        if shown.holder is None and state.holder is None:
            raise _build_refusal(
                state, target, f"{target} was written meanwhile, and no record says whether its holder is the same"
            )
        # The service does not say whether a lease that is being broken is finite.
        other_kind = state.state == shown.state and state.duration != shown.duration
        if state.holder != shown.holder or other_kind:
            raise _build_refusal(state, target, f"another holds the lease on {target} now")
    raise _build_refusal(state, target, f"{target} is written so often that its lease cannot be broken safely")


def _tie_to_version(target: Target, state: LeaseState) -> Conditions:
    """Return the condition that ties a break to the version that was shown, if the service honours one."""
    honours = operation_of(target, Action.BREAK).honours
    if Condition.IF_MATCH in honours:
        return Conditions({Condition.IF_MATCH.header: state.etag}, "if-match", state.etag)
    if Condition.IF_UNMODIFIED_SINCE in honours:
        return Conditions({Condition.IF_UNMODIFIED_SINCE.header: http_date(state.last_modified)}, "conditions")
    return Conditions()


def _build_refusal(state: LeaseState, target: Target, words: str, known: tuple[str, ...] = ()) -> Changed:
    return Changed(
        words,
        address=str(target.address),
        detail=(*known, *state.held_by),
        current_etag=state.etag,
        lease_state=state.state,
        reason="lease_not_broken",
    )
