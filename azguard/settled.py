"""A write that settles its own doubt.

Sent once; if the answer is lost, the resource is asked whether the write landed, and it is sent again only where
that is safe: the same op on the same version, so that both transmissions exclude each other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Generic, TypeVar

from azguard.account import Target
from azguard.address import Kind
from azguard.deadline import Deadline
from azguard.errors import AzguardError, Changed, OutcomeUnknown
from azguard.lineage import Lineage, bare
from azguard.service_errors import translate
from azguard.transmission import Fate, Sent, send

T = TypeVar("T")
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


@dataclass(frozen=True)
class Written:
    """What a write or a delete did, as commands show it.

    ``etag`` is None after a delete, where there is none, and where a lost answer was settled without learning it.
    """

    address: str
    etag: str | None
    last_modified: datetime | None
    guard: str
    attempts: int
    conflicts: int = 0
    outcome: str = "committed"


def judge(lineage: Lineage, op: str, parent: str | None, current: str | None) -> Verdict:
    """Return what the lineage of the current version says about ``op`` on ``parent`` (None is nothing there).

    Only sound if the lineage and the current ETag come from one response: see ``lineage``.
    """
    if op in lineage:
        return Verdict.COMMITTED
    if bare(parent) == bare(current):
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
        sent = _sent(call, look, target, deadline)
        attempts += sent.fate is not Fate.NOT_SENT
        doubts += sent.fate is Fate.IN_DOUBT
        if sent.fate is Fate.COMMITTED:
            return Settled(sent.answer, attempts, doubts)  # type: ignore[arg-type]  # committed has its answer
        error: Any = sent.error
        if doubts:
            # A refusal speaks of its own transmission only: an earlier one may be why it was refused.
            found = _ask(look, target, deadline, error)
            if found.verdict is Verdict.COMMITTED:
                return Settled(found.answer, attempts, doubts)  # type: ignore[arg-type]  # as above
            if found.verdict is Verdict.NEVER:
                raise _taken(target, expected_etag)
            if found.verdict is Verdict.UNKNOWN or not resend:
                raise unknown(target, error)
        elif sent.fate is Fate.REFUSED:
            raise translate(error, target, expected_etag=expected_etag) from error
        if deadline.remaining <= _PAUSE:
            raise unknown(target, error) if doubts else translate(error, target)
        deadline.pause(_PAUSE)


def _sent(call: Callable[[], T], look: Callable[[Deadline], Look[T]], target: Target, deadline: Deadline) -> Sent[T]:
    """Send once. Ctrl-C in flight leaves the write in doubt, so it is asked after before anybody leaves."""
    try:
        return send(call)
    except KeyboardInterrupt as interruption:
        found = _ask(look, target, deadline, interruption)
        if found.verdict is Verdict.COMMITTED:
            return Sent(Fate.COMMITTED, found.answer)
        if found.verdict is Verdict.NEVER:
            raise
        raise unknown(target, interruption) from interruption


def unknown(target: Target, error: BaseException | None) -> OutcomeUnknown:
    """Return the error that says so: sent, and nobody can know whether it was applied."""
    return OutcomeUnknown(
        f"the write to {target} was sent, and whether it was applied cannot be known",
        address=str(target.address),
        detail=() if error is None else (_words(error, target),),
        hint=f"look before you try again: azguard {_to_look(target)}",
    )


def _to_look(target: Target) -> str:
    """Return the command that shows a resource."""
    if target.kind is Kind.TABLE:
        return f"table list --prefix {target}"
    return f"{target.kind} {'get' if target.kind is Kind.ENTITY else 'show'} {target}"


def _words(error: BaseException, target: Target) -> str:
    return "interrupted" if isinstance(error, KeyboardInterrupt) else translate(error, target).message


def _ask(look: Callable[[Deadline], Look[T]], target: Target, deadline: Deadline, error: BaseException) -> Look[T]:
    patience = deadline.lasting(max(deadline.settle_seconds, deadline.remaining))
    try:
        return look(patience)
    # Whyever it cannot be asked: what must be told is that a write was sent.
    except (AzguardError, KeyboardInterrupt) as failure:
        raise unknown(target, error) from failure


def _taken(target: Target, expected_etag: str | None) -> Changed:
    return Changed(f"{target} changed since you read it", address=str(target.address), expected_etag=expected_etag)
