"""One message: claim it, run the command, keep it hidden meanwhile, and tell the service the outcome.

What is not known after a lost answer is never guessed. If the answer to an update is lost, the receipt may have ended
with it, and the new one is not known: the old one is used again, and if the service refuses it, the message is lost.
It is received again when its time is over.
"""

import threading
from collections.abc import Callable
from dataclasses import replace

from azguard import times
from azguard.errors import AzguardError, Changed, LockLost, UsageError
from azguard.processes.command_place import GUARDIAN_KILLED, PLACE_KILLED, CommandEnd
from azguard.requests import trace
from azguard.requests.deadline import Deadline
from azguard.times import iso
from azguard.worker.order import Inbox, Taken, Workplace, build_order, find_facts
from azguard.worker.outcomes import HandledMessage, Outcome
from azguard.worker.settings import (
    FINAL,
    Claimed,
    Claims,
    DoneBefore,
    HeldByAnother,
    MessageFacts,
    MessageVerdict,
    WorkSettings,
    judge,
    judge_failure,
)

# How soon an update is tried again that failed.
_AGAIN_SECONDS = 1.0
# How often to look whether the worker was told to stop.
_LOOK_SECONDS = 0.25
# So long the message has to stay hidden while it is moved to the poison queue.
_MOVE_SECONDS = 30
# Of a key, which its sender may have made long.
_SHOWN_CHARACTERS = 100
_STALE = "receipt_stale"
_TAKEN_OVER = "claim_taken_over"
# A claim ends the command when it ends, so it is not as short as a message may be hidden.
_SHORTEST_SECONDS = 30.0
_PATIENCE_SECONDS = 20.0
_ANSWER_SECONDS = 10.0


class MessageHandling:
    """The handling of one message."""

    def __init__(
        self,
        taken: Taken,
        *,
        settings: WorkSettings,
        inbox: Inbox,
        place: Workplace,
        stop: threading.Event,
        on_command: Callable[[float], None] = lambda seconds: None,
        now: Callable[[], float] = times.read_boot_clock,
    ) -> None:
        self._taken, self._settings, self._inbox, self._place = taken, settings, inbox, place
        self._stop, self._on_command, self._now = stop, on_command, now
        self._receipt = taken.receipt
        self._hold = ClaimHold(settings.claims, settings.visibility, now)
        #: Why the message counts as lost; None while it does not.
        self._lost: str | None = None
        self._is_stale = self._has_warned = False
        # From before the request: the service may have counted from then.
        self._due = taken.at + settings.visibility / 2
        self._hidden_until = taken.at + settings.visibility

    def handle(self) -> HandledMessage:
        settled, key = self._handle(), self._hold.key
        return settled if key is None else replace(settled, facts={**settled.facts, "key": key})

    def _handle(self) -> HandledMessage:
        if self._stop.is_set():
            return self._release("worker_stopped")
        if (before := self._claim()) is not None:
            return before
        # A message that never ran, because claims could not be made for long, is none that kills its worker.
        if not self._hold.is_first and self._settings.is_too_often(self._taken.dequeue_count):
            return self._settle(MessageVerdict(Outcome.POISONED, "received_too_often"), None)
        try:
            ended, why = self._run()
        except LockLost:
            return self._settle(MessageVerdict(Outcome.LOST, "claim_ended"), None)
        except AzguardError as error:
            if error.reason in (PLACE_KILLED, GUARDIAN_KILLED):
                return self._release(error.reason)
            return replace(self._release("command_not_started"), stops=True, error=error)
        return self._judge(ended, why)

    def _claim(self) -> HandledMessage | None:
        """Claim the key of the message; return the outcome if it is not to be run."""
        settings, taken = self._settings, self._taken
        body = taken.received.body.read(settings.encoding)
        try:
            found = self._hold.take(lambda: settings.choose_key(body, taken.id), find_facts(taken, settings))
        except UsageError as error:
            # The body has no key: no further try will find one, unless it is the rule that is wrong.
            stops = settings.strict
            verdict = MessageVerdict(Outcome.FAILED if stops else Outcome.POISONED, "no_key", stops)
            settled = self._settle(verdict, None)
            return replace(settled, facts={**settled.facts, "why": error.message})
        except AzguardError as error:
            self._hide(self._retry_seconds)
            return _leave_unsettled("not_claimed", None, error)
        match found:
            case DoneBefore():
                return self._settle_duplicate(found)
            case HeldByAnother(key=key, until=until, by=by):
                self._hide(taken.find_held_seconds(until, settings.visibility, self._retry_seconds, self._now()))
                return HandledMessage(
                    Outcome.HELD, "claimed_by_another", facts={"by": by, "until": iso(until), "key": key}
                )
        self._due = min(self._due, self._halve(self._now()))
        return None

    def _settle_duplicate(self, found: DoneBefore) -> HandledMessage:
        """Delete a message whose key was done; one with another body goes to the poison queue, if keys are strict."""
        facts: dict[str, object] = {"key": found.key}
        if found.differs_from is None:
            return replace(self._delete(Outcome.DUPLICATE, "done_before", None), facts=facts)
        key = repr(found.key[:_SHOWN_CHARACTERS])
        facts["why"] = f"its key {key} was done with another body, by message {found.differs_from}"
        if self._settings.strict_key:
            settled = self._settle(MessageVerdict(Outcome.POISONED, "duplicate_differs"), None)
            return replace(settled, facts={**facts, **settled.facts})
        facts["why"] = f"{facts['why']}; it is deleted, and was not run"
        return replace(self._delete(Outcome.DUPLICATE_DIFFERS, "done_before", None), facts=facts)

    @property
    def _retry_seconds(self) -> int:
        return self._settings.find_retry_seconds(self._taken.dequeue_count)

    def _halve(self, since: float) -> float:
        """Return when to hide the message for longer, which was hidden at some moment, and to extend the claim."""
        return since + min(self._settings.visibility, self._hold.ends - since) / 2

    def _run(self) -> tuple[CommandEnd, str | None]:
        """Run the command; return how it ended, and why it was ended if it did not end by itself."""
        began = self._now()
        self._place.start(build_order(self._taken, self._settings, self._hold.key, self._hold.ends))
        max_at = float("inf") if self._settings.max_time is None else began + self._settings.max_time
        ended_for: str | None = None
        while True:
            until = min(self._due, max_at if ended_for is None else float("inf"))
            ended = self._place.wait(max(0.0, min(_LOOK_SECONDS, until - self._now())))
            if ended is not None:
                self._on_command(self._now() - began)
                return ended, ended_for
            if self._now() >= self._due:
                self._keep()
            why = self._find_reason_to_end(max_at)
            if why is not None and ended_for is None:
                ended_for = why
                self._place.end()

    def _find_reason_to_end(self, max_at: float) -> str | None:
        if self._lost is not None:
            return self._lost
        if self._stop.is_set():
            return "stopped"
        return "max_time" if self._now() >= max_at else None

    def _keep(self) -> None:
        """Extend the claim, and hide the message for longer."""
        at = self._now()
        try:
            self._hold.extend()
            self._place.extend(self._hold.ends)
            self._hide_longer()
        except Changed as error:
            self._lost = _TAKEN_OVER if error.reason == _TAKEN_OVER else _STALE
            self._due = float("inf")
        except AzguardError as error:
            # In doubt or unreachable: only the service can say that the message is lost.
            self._due = self._now() + _AGAIN_SECONDS
            if not self._has_warned:
                self._has_warned = True
                self._settings.warn(f"message {self._taken.id} is not hidden for longer: {error.message}; trying again")
        else:
            self._due = self._halve(at)

    def _hide_longer(self) -> None:
        if self._is_stale:
            return
        try:
            self._send_hide(self._settings.visibility)
        except Changed:
            # Others that receive the message find its key claimed. So the command goes on, and its key can be done.
            self._is_stale = True
            if self._hold.key is None:
                raise

    def _judge(self, ended: CommandEnd, why: str | None) -> HandledMessage:
        status, count, settings = ended.status, self._taken.dequeue_count, self._settings
        if self._lost is not None:
            return self._settle(MessageVerdict(Outcome.LOST, self._lost), status)
        if ended.was_late:
            return self._settle(MessageVerdict(Outcome.LOST, "claim_ended"), None)
        if why == "stopped":
            return self._release("worker_stopped")
        if why == "max_time":
            return self._settle(judge_failure("max_time", count, settings), None)
        if status is None:
            return self._settle(MessageVerdict(Outcome.FAILED, PLACE_KILLED), None)
        if ended.was_unguarded:
            return self._settle(judge_failure(GUARDIAN_KILLED, count, settings), None)
        settled = self._settle(judge(status, count, settings), status)
        return replace(settled, facts={**settled.facts, "left_running": list(ended.left)}) if ended.left else settled

    def _settle(self, verdict: MessageVerdict, status: int | None) -> HandledMessage:
        """Tell the service the outcome."""
        reason = verdict.reason
        match verdict.outcome:
            case Outcome.DONE:
                return self._finish(reason, status)
            case Outcome.POISONED:
                return self._poison(reason, status)
            case Outcome.LOST:
                if reason != _TAKEN_OVER:
                    self._hold.give_up(reason, status)
                return HandledMessage(Outcome.LOST, reason, status)
        seconds = self._retry_seconds
        self._hold.give_up(reason, status)
        if not self._hide(seconds):
            return HandledMessage(Outcome.LOST, _STALE, status, verdict.stops)
        return HandledMessage(verdict.outcome, reason, status, verdict.stops, facts={"retry_seconds": seconds})

    def _finish(self, reason: str, status: int | None) -> HandledMessage:
        """Note that it is done, then delete the message: in between, another receive of it is a duplicate."""
        try:
            self._hold.finish()
        except Changed:
            return HandledMessage(Outcome.LOST, _TAKEN_OVER, status)
        except AzguardError as error:
            return _leave_unsettled("not_noted_as_done", status, error)
        return self._delete(Outcome.DONE, reason, status)

    def _delete(self, outcome: Outcome, reason: str, status: int | None) -> HandledMessage:
        try:
            self._inbox.delete(self._taken, self._receipt)
        except Changed:
            return HandledMessage(Outcome.LOST, _STALE, status)
        except AzguardError as error:
            return _leave_unsettled("not_deleted", status, error)
        trace.note("deleted", self._settings.queue, message=self._taken.id, key=self._hold.key)
        return HandledMessage(outcome, reason, status)

    def _poison(self, reason: str, status: int | None) -> HandledMessage:
        """Send it to the poison queue, then delete it: a crash in between leaves two copies, and never none."""
        try:
            self._require_own()
            copy = self._inbox.send_to_poison(self._taken)
            trace.note("copied", self._settings.poison, message=self._taken.id)
        except Changed:
            return self._settle(MessageVerdict(Outcome.LOST, _STALE), status)
        except AzguardError as error:
            self._hold.give_up(reason, status)
            self._hide(self._retry_seconds)
            return _leave_unsettled("not_moved_to_poison", status, error)
        facts: dict[str, object] = {"poison_queue": self._settings.poison.address.container, "poison_id": copy}
        try:
            self._hold.poison(reason, status, copy)
        except AzguardError as error:
            facts["why"] = error.message
        # If it cannot be deleted, it comes again, and there is one copy more.
        is_deleted = self._delete(Outcome.POISONED, reason, status).outcome is Outcome.POISONED
        if self._hold.key is None:
            self._keep_reason(copy, reason, status)
        return HandledMessage(Outcome.POISONED, reason, status, facts={**facts, "deleted": is_deleted})

    def _keep_reason(self, copy: str, reason: str, status: int | None) -> None:
        known = {"message": self._taken.id, "dequeue_count": self._taken.dequeue_count, "reason": reason}
        queue = self._settings.queue.address.container
        self._settings.keep_reason(copy, {**known, "queue": queue, **({} if status is None else {"status": status})})

    def _require_own(self) -> None:
        """Raise if another may have the message: it comes again, so that a copy would be one too many."""
        if self._is_stale:
            raise Changed("the receipt is stale", reason=_STALE)
        visibility = self._settings.visibility
        if self._now() + min(_MOVE_SECONDS, visibility / 2) > self._hidden_until:
            self._send_hide(max(_MOVE_SECONDS, visibility))

    def _release(self, reason: str) -> HandledMessage:
        """Give the message back: it can be received at once."""
        self._hold.give_up(reason, None)
        self._hide(0)
        return HandledMessage(Outcome.RELEASED, reason)

    def _hide(self, seconds: int) -> bool:
        """Hide the message for so long, and return whether it is still ours; if that fails, its time runs as it is."""
        try:
            self._send_hide(seconds)
        except Changed:
            return False
        except AzguardError:
            return True
        return True

    def _send_hide(self, seconds: int) -> None:
        receipt, at = self._receipt, self._now()
        # Until the answer is there, another receipt may have been given out.
        self._receipt = replace(receipt, hidden_until=None)
        self._receipt = self._inbox.hide(self._taken, receipt, seconds)
        self._hidden_until = at + seconds


def _leave_unsettled(reason: str, status: int | None, error: AzguardError) -> HandledMessage:
    """Return that the service could not be told; what no further try mends stops the worker."""
    final = error if isinstance(error, FINAL) else None
    return HandledMessage(Outcome.UNSETTLED, reason, status, facts={"why": error.message}, error=final)


class ClaimHold:
    """The claim on the key of one message.

    All but ``give_up`` raise what ``Claims`` says; ``Changed`` if another has taken it over.
    """

    def __init__(
        self, claims: Claims | None, visibility: int, now: Callable[[], float] = times.read_boot_clock
    ) -> None:
        self._claims, self._now = claims, now
        self._seconds = max(float(visibility), _SHORTEST_SECONDS)
        self._claimed: Claimed | None = None
        #: When it ends, on ``times.read_boot_clock``; never if there is none.
        self.ends = float("inf")

    @property
    def key(self) -> str | None:
        return None if self._claimed is None else self._claimed.key

    @property
    def is_first(self) -> bool:
        return self._claimed is not None and self._claimed.is_first

    def take(self, choose_key: Callable[[], str], facts: MessageFacts) -> DoneBefore | HeldByAnother | None:
        """Claim the key of a message; return why it is not ours, None if it is.

        Raises:
            AzguardError: it cannot be claimed, or the message has no key.
        """
        if self._claims is None:
            return None
        at = self._now()
        found = self._claims.claim(choose_key(), facts, self._seconds, _patience())
        if not isinstance(found, Claimed):
            return found
        self._claimed, self.ends = found, at + self._seconds
        return None

    def extend(self) -> None:
        if self._claims is not None and self._claimed is not None:
            at = self._now()
            self._claimed = self._claims.extend(self._claimed, self._seconds, _patience())
            self.ends = at + self._seconds

    def finish(self) -> None:
        if self._claims is not None and self._claimed is not None:
            self._claims.finish(self._claimed, _patience())

    def poison(self, reason: str, status: int | None, copy_id: str) -> None:
        if self._claims is not None and self._claimed is not None:
            self._claims.poison(self._claimed, reason, status, _patience(), copy_id)

    def give_up(self, reason: str, status: int | None) -> None:
        """Let another claim the key. If that fails, the claim expires.

        The command of a place that was killed is still being ended: there the claim keeps others out until it expires.
        """
        if self._claims is None or self._claimed is None or reason == PLACE_KILLED:
            return
        try:
            self._claims.give_up(self._claimed, reason, status, _patience())
        except AzguardError:
            return


def _patience() -> Deadline:
    return Deadline(_PATIENCE_SECONDS, answer_seconds=_ANSWER_SECONDS)
