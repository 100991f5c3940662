"""A write that settles its own doubt.

Sent once; if the answer is lost, the resource is asked whether the write was committed, and it is sent again only
where that is safe: the same op on the same version, so that both transmissions exclude each other, or a request that
does nothing more when it is repeated. The row of the operation says what tells: see ``rows.Settlement``.
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Generic, TypeVar

from azguard.accounts.account import Target
from azguard.errors import AzguardError, Changed, Forbidden, OutcomeUnknown, Unauthenticated
from azguard.frozen import frozen
from azguard.requests import commits, service_errors, trace
from azguard.requests.calls import CallOutcome, CallResult, hold_back, send_once, write_timeouts
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.service_codes import is_of_encryption, is_perhaps_ours
from azguard.requests.service_errors import translate
from azguard.wire import client
from azguard.wire.call import call
from azguard.wire.rows import Operation, Settlement

T = TypeVar("T")
#: What a look found where nothing is.
NOTHING_THERE = object()
# What a refused delete finds, which a copy of it may have done.
_GONE = "it was there before, and is gone now: deleted by this command, or by another writer"
# Between two transmissions, and between a transmission and the look at its outcome.
_PAUSE_SECONDS = 0.2


@frozen
class Finding(Generic[T]):
    """A verdict; with COMMITTED, the answer the lost response would have given."""

    verdict: Verdict
    answer: T | None = None
    #: What is there now, for the words of a refusal; ``NOTHING_THERE`` where nothing is, None where that was not read.
    seen: Any = None
    #: Whether what is there may be ours, because it equals what we sent, and no lineage tells.
    may_be_ours: bool = False


@frozen
class Settled(Generic[T]):
    """A committed write: its answer, and how many transmissions it took."""

    answer: T
    attempts: int
    doubts: int


@frozen
class WriteRequest(Generic[T]):
    """A request that changes something: how it is sent, and how its outcome is learnt when its answer is lost."""

    operation: Operation
    target: Target
    #: Reads the outcome from the resource; not used where the row of the operation says that a look cannot tell.
    look: Callable[[Deadline], Finding[T]] | None = None
    #: What it sends; see ``call``.
    given: Mapping[str, Any] = field(default_factory=dict)
    #: Sends it, where that is more than one ``call``, or its answer is another.
    send: Callable[[], T] | None = None
    expected_etag: str | None = None
    #: The op that it carries, if it carries one.
    op: str | None = None
    #: Whether sending it again is safe while the look says *not yet*.
    resend: bool = True
    #: Reads whether an earlier copy was committed when the only transmission was refused, because the network may have
    #: sent the request twice; by default the same as ``look``.
    look_after_refusal: Callable[[Deadline], Finding[T]] | None = None
    #: Returns what a refusal proves after an earlier transmission in doubt about which the look found this; by default
    #: nothing more than the look.
    judge_refusal: Callable[[AzguardError, Finding[T]], Finding[T]] | None = None
    #: What to raise where the outcome cannot be known; by default the words for a write.
    unknown: OutcomeUnknown | None = None
    #: Whether an interruption passes through at once: the caller then undoes what may have been done.
    is_undone_by_caller: bool = False


def send_until_settled(request: WriteRequest[T], deadline: Deadline) -> Settled[T]:
    """Send a request until it is committed, refused or known to be neither.

    Interrupted while it is in flight, it is asked about before the interruption goes on: a committed write is returned.

    Raises:
        OutcomeUnknown: it was sent, and it cannot be known whether it was applied.
        Unavailable: it was never sent, or never applied.
        AzguardError: the service refused it.
    """
    under_way = _Write(request, deadline)
    try:
        return under_way.settle()
    except KeyboardInterrupt as interruption:
        return under_way.leave(interruption)
    finally:
        under_way.note("settled", outcome=under_way.outcome)


class _Write(Generic[T]):
    """A write under way."""

    def __init__(self, request: WriteRequest[T], deadline: Deadline) -> None:
        self.request = request
        self.deadline = deadline
        self.attempts = 0
        self.doubts = 0
        #: Whether its only transmission was refused, by which an earlier copy of it is not excluded.
        self.refused = False
        #: Whether something was sent of which the end is not known yet.
        self.open = False
        #: The end of the write, once it is known to be committed.
        self.done: Settled[T] | None = None
        self.number = trace.new_write()

    def settle(self) -> Settled[T]:
        target = self.request.target
        hold_back(target, self.deadline)
        while True:
            self.open = True
            self.attempts += 1
            self.note("sending")
            sent = send_once(self._send)
            self.note("sent", outcome=sent.outcome.value, code=sent.error)
            if sent.outcome is CallOutcome.COMMITTED:
                return self._finish(sent.answer)
            error: Any = sent.error
            self._count(sent.outcome)
            if self.doubts:
                hold_back(target, self.deadline)
                found = self._settle_doubt(sent, error)
                if found.verdict is Verdict.COMMITTED:
                    return self._finish(found.answer)
            elif sent.outcome is CallOutcome.REFUSED:
                return self._settle_refusal(error)
            else:
                self.open = False
            pause = max(_PAUSE_SECONDS, client.find_pause_seconds(target.endpoint))
            if self.deadline.remaining <= pause:
                raise self._build_unknown(error) if self.doubts else translate(error, target)
            self.deadline.pause(pause)

    def leave(self, interruption: KeyboardInterrupt) -> Settled[T]:
        """End for Ctrl-C, but not before the outcome of what is under way was asked for."""
        if self.request.is_undone_by_caller:
            raise interruption
        if self.done is not None:
            commits.announce()
            commits.put_off(interruption)
            return self.done
        if not self.open:
            raise interruption
        found = self._ask(self._look_after_refusal if self.refused else self._look, interruption)
        if found.verdict is Verdict.COMMITTED:
            commits.put_off(interruption)
            return self._finish(found.answer)
        if found.verdict is Verdict.NEVER or (self.refused and not found.may_be_ours):
            raise interruption
        raise self._build_unknown(interruption) from interruption

    @property
    def outcome(self) -> str:
        """Return how it ended, as the trace names it."""
        if self.done is not None:
            return Verdict.COMMITTED.value
        return Verdict.UNKNOWN.value if self.open else "not applied"

    def note(self, step: str, **facts: Any) -> None:
        """Note a step in the trace."""
        if not self.number:
            return
        known = {"op": self.request.op, "over": self.request.expected_etag}
        told = {name: value for name, value in known.items() if value is not None}
        trace.note(step, self.request.target, write=self.number, **told, **facts)

    def _count(self, outcome: CallOutcome) -> None:
        if outcome is CallOutcome.NOT_SENT:
            self.attempts -= 1
        elif outcome is CallOutcome.IN_DOUBT:
            self.doubts += 1

    def _settle_doubt(self, sent: CallResult[T], error: BaseException) -> Finding[T]:
        """Return the finding while a transmission is in doubt: that it is committed, or may be sent again.

        A refusal speaks of its own transmission only: an earlier transmission may be its cause.
        """
        found = self._ask(self._look, error)
        if found.verdict is Verdict.NEVER:
            self.open = False
            raise _build_changed(self.request)
        if sent.outcome is CallOutcome.REFUSED and found.verdict is not Verdict.COMMITTED:
            found = self._judge_refusal(found, error)
        if found.verdict is Verdict.COMMITTED or self._may_send_again(found.verdict, sent.outcome):
            return found
        raise self._build_unknown(error)

    def _judge_refusal(self, found: Finding[T], error: BaseException) -> Finding[T]:
        if self.request.judge_refusal is None:
            return found
        refusal = translate(error, self.request.target, expected_etag=self.request.expected_etag)
        found = self.request.judge_refusal(refusal, found)
        if found.verdict is Verdict.NEVER:
            self.open = False
            raise refusal from error
        return found

    def _may_send_again(self, verdict: Verdict, outcome: CallOutcome) -> bool:
        if verdict is Verdict.UNKNOWN:
            return self.request.operation.repeats and outcome is not CallOutcome.REFUSED
        return self.request.resend

    def _settle_refusal(self, error: BaseException) -> Settled[T]:
        """Return the end if our write is there all the same, by an earlier copy of the request; else raise."""
        self.refused = True
        refusal = translate(error, self.request.target, expected_etag=self.request.expected_etag)
        if is_perhaps_ours(error, self.request.target):
            try:
                found = self._ask(self._look_after_refusal, error)
            except OutcomeUnknown as failure:
                cause = failure.__cause__
                if not (is_of_encryption(cause) or isinstance(cause, (Forbidden, Unauthenticated))):
                    raise
                # A caller that may write and not read has only the answer of the service. Nor is a blob ours that is
                # encrypted with another key than ours.
                found = Finding(Verdict.UNKNOWN)
            if found.verdict is Verdict.COMMITTED:
                return self._finish(found.answer)
            if found.may_be_ours:
                unknown = self._build_unknown(error).but(seen=found.seen)
                raise unknown.but(detail=(_GONE,)) if found.seen is NOTHING_THERE else unknown
            current = getattr(found.seen, "etag", None)
            refusal = service_errors.judge_unclear(refusal.but(seen=found.seen), self.request.target, current)
        self.open = False
        raise refusal from error

    def _send(self) -> T:
        request = self.request
        if request.send is not None:
            return request.send()
        answer: Any = call(request.operation, request.target, write_timeouts(self.deadline), **request.given)
        return answer  # type: ignore[no-any-return]  # T is Answer where no other way to send it is given

    def _look(self, patience: Deadline) -> Finding[T]:
        settle = self.request.operation.settle
        if settle.is_found_by_look:
            assert self.request.look is not None
            return self.request.look(patience)
        return Finding(Verdict.NOT_YET if settle is Settlement.RECEIPT else Verdict.UNKNOWN)

    def _look_after_refusal(self, patience: Deadline) -> Finding[T]:
        return (self.request.look_after_refusal or self.request.look or self._look)(patience)

    def _finish(self, answer: T | None) -> Settled[T]:
        # Kept before it is announced: an interruption in between finds it in ``leave``.
        self.done = Settled(answer, self.attempts, self.doubts)  # type: ignore[arg-type]  # committed has its answer
        commits.announce()
        self.open = False
        return self.done

    def _ask(self, look: Callable[[Deadline], Finding[T]], error: BaseException) -> Finding[T]:
        patience = self.deadline.restart(seconds=max(self.deadline.settle_seconds, self.deadline.remaining))
        try:
            found = look(patience)
        except KeyboardInterrupt as interruption:
            if self.request.is_undone_by_caller:
                raise
            raise self._build_unknown(error) from interruption
        # Whatever the reason for which it cannot be asked, the caller must learn that a write was sent.
        except AzguardError as failure:
            raise self._build_unknown(error) from failure
        self.note("looked", found=found.verdict.value)
        return found

    def _build_unknown(self, error: BaseException) -> OutcomeUnknown:
        """Return the error that it was sent, and that it cannot be known whether it was applied."""
        target = self.request.target
        unknown = self.request.unknown or OutcomeUnknown(
            f"the write to {target} was sent, and whether it was applied cannot be known",
            address=str(target.address),
            reason="outcome_unknown",
        )
        words = "interrupted" if isinstance(error, KeyboardInterrupt) else translate(error, target).message
        return unknown.but(detail=(words,))


def _build_changed(request: WriteRequest[Any]) -> Changed:
    return Changed(
        f"{request.target} changed since you read it",
        address=str(request.target.address),
        expected_etag=request.expected_etag,
    )
