"""A write that settles its own doubt.

Sent once; if the answer is lost, the resource is asked whether the write landed, and it is sent again only where
that is safe: the same op on the same version, so that both transmissions exclude each other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

from azguard.account import Target
from azguard.deadline import Deadline
from azguard.errors import AzguardError, OutcomeUnknown, Unavailable
from azguard.lineage import Lineage
from azguard.service_errors import translate
from azguard.transmission import Fate, send

T = TypeVar("T")
# Asking what became of a write is worth this long even when the time for trying is over.
SETTLE_SECONDS = 5.0
_PAUSE = 0.2


class Verdict(Enum):
    """What a look at the resource says about a write in doubt."""

    COMMITTED = "committed"
    NEVER = "never"  # another write has taken its place, so it can never commit
    NOT_YET = "not yet"  # what it would replace is still there; it may still arrive
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Look(Generic[T]):
    """A verdict; with COMMITTED, the answer the lost response would have given."""

    verdict: Verdict
    answer: T | None = None


@dataclass(frozen=True)
class Settled(Generic[T]):
    """A committed write: its answer, and how many transmissions it took."""

    answer: T
    attempts: int
    doubts: int


def judge(lineage: Lineage, op: str, parent: str | None, current: str | None) -> Verdict:
    """Return what the lineage of the current version says about ``op`` on ``parent`` (None is nothing there).

    Only sound if the lineage and the current ETag come from one response (HAZARDS §5.1).
    """
    if op in lineage:
        return Verdict.COMMITTED
    if parent == current:
        return Verdict.NOT_YET
    # "Nothing there" can recur (created, deleted, created again), so its successor proves nothing.
    if parent is not None and lineage.successor(parent) is not None:
        return Verdict.NEVER
    return Verdict.UNKNOWN


def write(
    call: Callable[[], T],
    look: Callable[[Deadline], Look[T]],
    target: Target,
    deadline: Deadline,
    *,
    expected_etag: str | None = None,
    resend: bool = True,
) -> Settled[T]:
    """Send ``call`` until it is committed, refused or known to be neither.

    ``look`` asks the resource what became of it. ``resend`` says that sending again is safe while it is *not yet*.

    Raises:
        OutcomeUnknown: it was sent, and it cannot be known whether it was applied.
        Unavailable: it was never sent, or never applied.
        AzguardError: the service refused it.
    """
    attempts = doubts = 0
    while True:
        sent = send(call)
        attempts += sent.fate is not Fate.NOT_SENT
        if sent.fate is Fate.COMMITTED:
            return Settled(sent.answer, attempts, doubts)  # type: ignore[arg-type]  # committed has its answer
        error: Any = sent.error
        if sent.fate is Fate.REFUSED and not doubts:
            raise translate(error, target, expected_etag=expected_etag) from error
        if sent.fate is not Fate.NOT_SENT or doubts:
            doubts += sent.fate is Fate.IN_DOUBT
            found = _ask(look, target, deadline, error)
            if found.verdict is Verdict.COMMITTED:
                return Settled(found.answer, attempts, doubts)  # type: ignore[arg-type]
            if found.verdict is Verdict.NEVER:
                raise _taken(target, expected_etag)
            if found.verdict is Verdict.UNKNOWN or not resend:
                raise unknown(target, error)
        if deadline.remaining <= _PAUSE:
            if doubts:
                raise unknown(target, error)
            raise translate(error, target)
        deadline.pause(_PAUSE)


def unknown(target: Target, error: BaseException | None) -> OutcomeUnknown:
    """Return the error that says so: sent, and nobody can know whether it was applied."""
    cause = translate(error, target).message if error is not None else ""
    return OutcomeUnknown(
        f"the write to {target} was sent, and whether it was applied cannot be known",
        address=str(target.address),
        detail=(cause,) if cause else (),
        hint=f"look before you try again: azguard {target.kind} show {target}",
    )


def _ask(look: Callable[[Deadline], Look[T]], target: Target, deadline: Deadline, error: BaseException) -> Look[T]:
    patience = deadline.lasting(max(SETTLE_SECONDS, deadline.remaining))
    try:
        return look(patience)
    except Unavailable:
        raise unknown(target, error) from error


def _taken(target: Target, expected_etag: str | None) -> AzguardError:
    from azguard.errors import Changed

    return Changed(f"{target} changed since you read it", address=str(target.address), expected_etag=expected_etag)
