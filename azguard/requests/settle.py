"""A write that settles its own doubt.

Sent once; if the answer is lost, the resource is asked whether the write landed, and it is sent again only where
that is safe: the same op on the same version, so that both transmissions exclude each other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

from azguard.accounts.target import Target
from azguard.errors import AzguardError, Changed, Forbidden, OutcomeUnknown, Unauthenticated
from azguard.requests import commits
from azguard.requests.calls import CallOutcome, send_once
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import Lineage, bare
from azguard.requests.service_errors import is_perhaps_ours, translate

T = TypeVar("T")
#: What a look found where nothing is.
NOTHING_THERE = object()
# Between two transmissions, and between a transmission and the look at its outcome.
_PAUSE_SECONDS = 0.2


class Verdict(Enum):
    """What a look at the resource says about a write in doubt."""

    COMMITTED = "committed"
    NEVER = "never"  # another write has taken its place, so it can never commit
    NOT_YET = "not yet"  # what it would replace is still there; it may still arrive
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Finding(Generic[T]):
    """A verdict; with COMMITTED, the answer the lost response would have given."""

    verdict: Verdict
    answer: T | None = None
    #: What is there now, for the words of a refusal; ``NOTHING_THERE`` where nothing is, None where that was not read.
    seen: Any = None
    #: Whether what is there may be ours, because it equals what we sent, and no lineage tells.
    same: bool = False


@dataclass(frozen=True)
class Settled(Generic[T]):
    """A committed write: its answer, and how many transmissions it took."""

    answer: T
    attempts: int
    doubts: int


def verdict_from_lineage(lineage: Lineage, op: str, parent: str | None, current: str | None) -> Verdict:
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


def send_until_settled(
    call: Callable[[], T],
    look: Callable[[Deadline], Finding[T]],
    target: Target,
    deadline: Deadline,
    *,
    expected_etag: str | None = None,
    resend: bool = True,
    after_refusal: Callable[[Deadline], Finding[T]] | None = None,
) -> Settled[T]:
    """Send ``call`` until it is committed, refused or known to be neither.

    ``look`` reads the outcome from the resource. ``resend`` says that sending again is safe while it is *not yet*.
    A refusal may be of the second copy of a request that the network has sent twice; so ``after_refusal``, by default
    the same as ``look``, asks whether the first was committed.

    Raises:
        OutcomeUnknown: it was sent, and it cannot be known whether it was applied.
        Unavailable: it was never sent, or never applied.
        AzguardError: the service refused it.
    """
    under_way = _Write(call, look, after_refusal or look, target, deadline, expected_etag, resend)
    try:
        return under_way.settled()
    except KeyboardInterrupt as interruption:
        return under_way.leave(interruption)


@dataclass
class _Write(Generic[T]):
    """A write under way. ``open`` says that something was sent of which the end is not known yet."""

    call: Callable[[], T]
    look: Callable[[Deadline], Finding[T]]
    after_refusal: Callable[[Deadline], Finding[T]]
    target: Target
    deadline: Deadline
    expected_etag: str | None
    resend: bool
    attempts: int = 0
    doubts: int = 0
    refused: bool = False
    open: bool = False
    #: The end of the write, once it is known to be committed.
    done: Settled[T] | None = None

    def settled(self) -> Settled[T]:
        while True:
            self.open = True
            self.attempts += 1
            sent = send_once(self.call)
            if sent.fate is CallOutcome.COMMITTED:
                return self._committed(sent.answer)
            self.attempts -= sent.fate is CallOutcome.NOT_SENT
            self.doubts += sent.fate is CallOutcome.IN_DOUBT
            error: Any = sent.error
            if self.doubts:
                # A refusal speaks of its own transmission only: an earlier one may be why it was refused.
                found = _ask(self.look, self.target, self.deadline, error)
                if found.verdict is Verdict.COMMITTED:
                    return self._committed(found.answer)
                if found.verdict is Verdict.NEVER:
                    self.open = False
                    raise _taken(self.target, self.expected_etag)
                if found.verdict is Verdict.UNKNOWN or not self.resend:
                    raise unknown(self.target, error)
            elif sent.fate is CallOutcome.REFUSED:
                return self._refused(error)
            else:
                self.open = False
            if self.deadline.remaining <= _PAUSE_SECONDS:
                raise unknown(self.target, error) if self.doubts else translate(error, self.target)
            self.deadline.pause(_PAUSE_SECONDS)

    def leave(self, interruption: KeyboardInterrupt) -> Settled[T]:
        """End for Ctrl-C, but not before the outcome of what is under way was asked for."""
        if self.done is not None:
            commits.announce()
            return self.done
        if not self.open:
            raise interruption
        look = self.after_refusal if self.refused else self.look
        found = _ask(look, self.target, self.deadline, interruption)
        if found.verdict is Verdict.COMMITTED:
            return self._committed(found.answer)
        if found.verdict is Verdict.NEVER or (self.refused and not found.same):
            raise interruption
        raise unknown(self.target, interruption) from interruption

    def _refused(self, error: BaseException) -> Settled[T]:
        """Return the end if our write is there all the same, by an earlier copy of the request; else raise."""
        self.refused = True
        refusal = translate(error, self.target, expected_etag=self.expected_etag)
        if is_perhaps_ours(error, self.target):
            try:
                found = _ask(self.after_refusal, self.target, self.deadline, error)
            except OutcomeUnknown as failure:
                if not isinstance(failure.__cause__, (Forbidden, Unauthenticated)):
                    raise
                # A caller that may write and not read has only the answer of the service.
                found = Finding(Verdict.UNKNOWN)
            if found.verdict is Verdict.COMMITTED:
                return self._committed(found.answer)
            if found.same:
                raise unknown(self.target, error)
            refusal = refusal.but(seen=found.seen)
        self.open = False
        raise refusal from error

    def _committed(self, answer: T | None) -> Settled[T]:
        # Kept before it is announced: an interruption in between finds it in ``leave``.
        self.done = Settled(answer, self.attempts, self.doubts)  # type: ignore[arg-type]  # committed has its answer
        commits.announce()
        self.open = False
        return self.done


def unknown(target: Target, error: BaseException | None) -> OutcomeUnknown:
    """Return the error of a write that was sent, where it cannot be known whether it was applied."""
    return OutcomeUnknown(
        f"the write to {target} was sent, and whether it was applied cannot be known",
        address=str(target.address),
        detail=() if error is None else (_words(error, target),),
        reason="outcome_unknown",
    )


def _words(error: BaseException, target: Target) -> str:
    return "interrupted" if isinstance(error, KeyboardInterrupt) else translate(error, target).message


def _ask(
    look: Callable[[Deadline], Finding[T]], target: Target, deadline: Deadline, error: BaseException
) -> Finding[T]:
    patience = deadline.restarted(seconds=max(deadline.settle_seconds, deadline.remaining))
    try:
        return look(patience)
    # Whatever the reason for which it cannot be asked, the caller must learn that a write was sent.
    except (AzguardError, KeyboardInterrupt) as failure:
        raise unknown(target, error) from failure


def _taken(target: Target, expected_etag: str | None) -> Changed:
    return Changed(f"{target} changed since you read it", address=str(target.address), expected_etag=expected_etag)
