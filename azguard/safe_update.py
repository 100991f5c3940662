"""Read-modify-write, retried on conflict, applied exactly once, even when responses get lost.

SAFETY §2 is the algorithm and HAZARDS §5.1 its proof. In short: every write carries the op's id and the ETag it
replaces; an attempt in doubt is sent again only on the very same ETag, and on another one only after a recorded
successor proves that the old attempt can never commit. What cannot be proved is *unknown*, never a guess.
"""

import os
import random
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from azguard.deadline import Deadline
from azguard.errors import AzguardError, Changed, GaveUp, Locked, NotFound, OutcomeUnknown, Unavailable
from azguard.lineage import Lineage, new_op
from azguard.service_errors import is_lease_problem, service_code, status, translate
from azguard.settled import SETTLE_SECONDS, Verdict, judge
from azguard.transmission import Fate, Sent, send
from azguard.versioned import Landed, State, Version, Versioned

# A conflict is retried within so many round trips, whatever the count (HAZARDS §8.1: losers must not wait longest).
_WINDOW = 8.0
# A lease costs two more round trips: only for a slow transform after four conflicts, or for whoever starves.
_ESCALATE_SLOW, _ESCALATE_ANY = 4, 8
_GUARD_LEASE_SECONDS = 15
# Another writer's escalation holds its lease for a few round trips; a lease that lasts longer is somebody's lock.
_SHORT_LEASE_SECONDS = 3.0


@dataclass(frozen=True)
class Plan:
    """What one update is: the transform, its identity, and how far to go.

    ``transform`` may run more than once and must depend on its input alone. ``create`` is the content to start from
    where nothing is. ``lease_id`` is a lease the caller holds. ``keyed`` says the op id is the caller's own.
    """

    transform: Callable[[bytes], bytes]
    op: str
    create: bytes | None = None
    guard_by_lease: bool = False
    stamps: bool = True
    lease_id: str | None = None
    wait_lease: bool = False
    max_attempts: int | None = None
    # How long the service may be unreachable while nothing is in doubt; None is as long as the deadline.
    reach_seconds: float | None = None


@dataclass(frozen=True)
class Tools:
    """The world outside, as parameters: randomness, a queue of writers, someone to tell the story to.

    ``keep`` is given the work that could not be written, and the error that will say so.
    """

    chance: random.Random = field(default_factory=random.Random)
    new_op: Callable[[], str] = lambda: new_op(os.urandom(12))
    turn: Callable[[], AbstractContextManager[Any]] = nullcontext
    tell: Callable[[str], None] = lambda text: None
    keep: Callable[[AzguardError, bytes], None] = lambda error, content: None


@dataclass(frozen=True)
class Updated:
    """How an update ended. ``content`` is what is now there by us, None if we never computed it."""

    landed: Landed
    outcome: str
    guard: str
    attempts: int
    conflicts: int
    doubts: int
    content: bytes | None
    lineage: str | None
    created: bool
    base: str | None


@dataclass
class _Progress:
    """What an update has been through so far."""

    doubt: set[str | None] = field(default_factory=set)  # parents on which an attempt is in doubt
    attempts: int = 0
    conflicts: int = 0
    doubts: int = 0
    round_trip: float = 0.0
    transform_time: float = 0.0
    lease: str | None = None  # our own guard lease: one id for the whole op
    leased: bool = False
    base: str | None = None  # the version that ``content`` was computed from
    content: bytes | None = None
    created: bool = False
    waiting_since: float | None = None


def update(resource: Versioned, plan: Plan, deadline: Deadline, tools: Tools | None = None) -> Updated:
    """Apply ``plan.transform`` to a resource exactly once.

    Raises:
        NotFound: there is nothing, and no ``create``.
        TransformFailed: the transform failed; nothing was written.
        Locked: somebody else holds a lease.
        GaveUp: contended until the deadline; provably not applied.
        Unavailable: no answer until the deadline; not applied.
        OutcomeUnknown: it cannot be known whether it was applied.
    """
    run = _Update(resource, plan, deadline, tools or Tools())
    with run.tools.turn():
        try:
            return run.loop()
        except (AzguardError, KeyboardInterrupt) as error:
            return run.leave(error)
        finally:
            run.release()


@dataclass(frozen=True)
class Preview:
    """What an update would do: the content before and after; ``before`` is None where there is nothing."""

    etag: str | None
    before: bytes | None
    after: bytes


def preview(resource: Versioned, plan: Plan, deadline: Deadline) -> Preview:
    """Return what ``plan`` would write now; nothing is written.

    Raises:
        NotFound: there is nothing, and no ``create``.
    """
    state = _existing(resource, plan, resource.read(deadline))
    if state.etag is None:
        return Preview(None, None, resource.checked(plan.transform(plan.create or b"")))
    return Preview(state.etag, state.content, resource.checked(plan.transform(state.content)))


def became_of(resource: Versioned, op: str, deadline: Deadline) -> Verdict:
    """Return what became of an op: COMMITTED, NOT_YET (no part of the whole history), or UNKNOWN."""
    state = resource.read(deadline)
    if op in state.lineage:
        return Verdict.COMMITTED
    if state.etag is None or state.lineage.reaches_creation:
        return Verdict.NOT_YET
    if state.version_id is not None and any(op in kept.lineage for kept in resource.versions(deadline)):
        return Verdict.COMMITTED
    return Verdict.UNKNOWN


def _existing(resource: Versioned, plan: Plan, state: State) -> State:
    if state.etag is None and plan.create is None:
        raise NotFound(
            f"there is no {resource.target.kind} {resource.target}",
            address=str(resource.target.address),
            http_status=404,
            hint="add --create to make it",
        )
    return state


class _Update:
    """One update under way."""

    def __init__(self, resource: Versioned, plan: Plan, deadline: Deadline, tools: Tools) -> None:
        self.resource, self.plan, self.deadline, self.tools = resource, plan, deadline, tools
        self.so_far = _Progress()

    def loop(self) -> Updated:
        """Read, change and write until it is committed or provably cannot be."""
        while True:
            state = self._read(self.deadline)
            if self.plan.op in state.lineage:
                return self._found(state)
            found = self._drop_settled(state, self.deadline)
            if found is not None:
                return found
            self._check_limits()
            content = self._transformed(state)
            if content == state.content and state.etag is not None:
                if not self.so_far.doubt:
                    return self._ended(
                        Landed(state.etag, state.last_modified, state.version_id),
                        "unchanged",
                        str(state.lineage) or None,
                    )
                landed = self._fence()
            else:
                landed = self._attempt(state, content)
            if landed is not None:
                return landed

    def leave(self, error: BaseException) -> Updated:
        """End for ``error``, but only once every doubt is settled: by finding the write, or by a fence."""
        landed = None
        if self.so_far.doubt and not isinstance(error, OutcomeUnknown):
            self.tools.tell(f"in doubt at the end ({type(error).__name__}): settling")
            try:
                landed = self._fence()
            except (AzguardError, KeyboardInterrupt) as failure:
                error = self._unknown(failure)
            else:
                self.tools.tell("the write in doubt was committed" if landed else "fenced: it can never land")
        if landed is not None:
            return landed
        work = self.so_far.content
        if isinstance(error, (GaveUp, Unavailable, OutcomeUnknown, Locked)) and work is not None:
            error.facts.update(self._facts())
            self.tools.keep(error, work)
        raise error

    def release(self) -> None:
        """Release our guard lease; if that fails it ends by itself."""
        if self.so_far.leased and self.so_far.lease is not None:
            self.so_far.leased = False
            lease_id = self.so_far.lease
            send(lambda: self.resource.release(lease_id, self.deadline.lasting(1.0)))

    # The loop's steps.

    def _read(self, deadline: Deadline) -> State:
        began = deadline.clock()
        reach = self.plan.reach_seconds
        if reach is not None and not self.so_far.doubt:
            deadline = deadline.lasting(min(reach, max(1.0, deadline.remaining)))
        state = self.resource.read(deadline)
        self.so_far.round_trip = deadline.clock() - began
        return state if self.so_far.doubt else _existing(self.resource, self.plan, state)

    def _drop_settled(self, state: State, deadline: Deadline) -> Updated | None:
        """Forget the doubts of which lineage or kept versions prove that they never land; return if one did.

        Raises:
            OutcomeUnknown: a foreign writer broke the chain.
        """
        history = None
        for parent in list(self.so_far.doubt):
            verdict = judge(state.lineage, self.plan.op, parent, state.etag)
            if verdict is Verdict.UNKNOWN and state.version_id is not None:
                history = self.resource.versions(deadline) if history is None else history
                verdict = by_versions(history, self.plan.op, parent)
            if verdict is Verdict.COMMITTED:
                self.so_far.doubt.clear()
                return self._ended(Landed(None), "committed", None)
            if verdict is Verdict.UNKNOWN:
                raise self._unknown(None)
            if verdict is Verdict.NEVER:
                self.tools.tell(f"settled: {parent} was replaced by another write, so ours on it can never land")
                self.so_far.doubt.discard(parent)
        return None

    def _check_limits(self) -> None:
        most = self.plan.max_attempts
        if self.deadline.passed or (most is not None and self.so_far.attempts >= most):
            raise self._gave_up()

    def _transformed(self, state: State) -> bytes:
        """Return the new content; the transform runs once per version of the content."""
        if self.so_far.content is not None and self.so_far.base == (state.etag or ""):
            return self.so_far.content
        started = self.deadline.clock()
        source = self.plan.create if state.etag is None and self.plan.create is not None else state.content
        content = self.resource.checked(self.plan.transform(source))
        self.so_far.transform_time = self.deadline.clock() - started
        self.so_far.base, self.so_far.content, self.so_far.created = (
            state.etag or "",
            content,
            state.etag is None,
        )
        return content

    def _attempt(self, state: State, content: bytes) -> Updated | None:
        """Send one attempt; return the end of the update, or None to go round again."""
        lineage = state.lineage.after(self.plan.op, state.etag) if self.plan.stamps else None
        try:
            commit = self.resource.prepare(state, content, lineage, self.plan.lease_id, self.deadline)
        except Changed:
            self._conflict(state, "another writer's commit discarded our blocks")
            return None
        except Locked as error:
            self._wait_for_lease(state, error)
            return None
        if self._wants_lease() and state.etag is not None and not self._acquire(state):
            return None
        sent = self._transmit(state, lambda: commit(self._lease_in_use()))
        if sent.fate is Fate.COMMITTED:
            self.tools.tell(f"attempt {self.so_far.attempts}: committed over {state.etag or 'nothing'}")
            return self._ended(sent.answer or Landed(None), "committed", str(lineage) if lineage else None)
        if sent.fate is Fate.REFUSED:
            self._refused(state, sent)
            return None
        if sent.fate is Fate.NOT_SENT:
            self.tools.tell("not sent: no connection")
            self.deadline.pause(0.1)
            return None
        self.tools.tell(
            f"attempt {self.so_far.attempts}: in doubt over {state.etag or 'nothing'}; asking what became of it"
        )
        return self._ask_under_lease(state, lineage)

    def _transmit(self, state: State, commit: Callable[[], Landed]) -> Sent[Landed]:
        """Send once. While it is in flight it counts as in doubt, so that Ctrl-C finds it there."""
        known = state.etag in self.so_far.doubt
        self.so_far.doubt.add(state.etag)
        sent = send(commit)
        self.so_far.attempts += sent.fate is not Fate.NOT_SENT
        self.so_far.doubts += sent.fate is Fate.IN_DOUBT
        if sent.fate is Fate.COMMITTED or (sent.fate is not Fate.IN_DOUBT and not known):
            self.so_far.doubt.discard(state.etag)
        return sent

    def _refused(self, state: State, sent: Sent[Landed]) -> None:
        error = sent.error
        assert error is not None
        if is_lease_problem(error):
            self._wait_for_lease(state, error)
        elif _is_conflict(error):
            self._conflict(state, service_code(error) or "condition not met")
        else:
            raise translate(error, self.resource.target, expected_etag=state.etag)

    def _conflict(self, state: State, why: str) -> None:
        self.so_far.conflicts += 1
        self.so_far.waiting_since = None
        base = self.so_far.round_trip + self.so_far.transform_time
        window = min(_WINDOW * base, 0.5 * base * 2**self.so_far.conflicts)
        self.tools.tell(f"attempt {self.so_far.attempts}: conflict over {state.etag or 'nothing'} ({why})")
        self.deadline.pause(self.tools.chance.uniform(0, window))

    # Leases: somebody else's, and our own as a guard.

    def _lease_in_use(self) -> str | None:
        return self.so_far.lease if self.so_far.leased else self.plan.lease_id

    def _wants_lease(self) -> bool:
        if self.plan.lease_id is not None or self.so_far.leased:
            return False
        slow = self.so_far.transform_time > 2 * self.so_far.round_trip
        starving = self.so_far.conflicts >= (_ESCALATE_SLOW if slow else _ESCALATE_ANY)
        return self.plan.guard_by_lease or starving

    def _acquire(self, state: State) -> bool:
        """Acquire the guard lease on the version read; False means go round again."""
        self.so_far.lease = self.so_far.lease or str(uuid.uuid4())
        lease_id = self.so_far.lease
        while True:
            sent = send(lambda: self.resource.acquire(state, lease_id, _GUARD_LEASE_SECONDS, self.deadline))
            if sent.fate is Fate.COMMITTED:
                self.so_far.leased = True
                self.tools.tell("acquired a lease for the write")
                return True
            assert sent.error is not None
            if sent.fate is Fate.REFUSED:
                if is_lease_problem(sent.error):
                    self._wait_for_lease(state, sent.error)
                elif _is_conflict(sent.error):
                    self._conflict(state, service_code(sent.error) or "condition not met")
                else:
                    raise translate(sent.error, self.resource.target)
                return False
            # In doubt or not sent: the same id again is the same lease, so this is safe.
            self.so_far.leased = sent.fate is Fate.IN_DOUBT or self.so_far.leased
            if self.deadline.passed:
                raise translate(sent.error, self.resource.target)
            self.deadline.pause(0.1)

    def _wait_for_lease(self, state: State, error: BaseException) -> None:
        """Wait for another's lease: as long as asked for, or as long as an escalated write may take."""
        self.so_far.leased = False
        found = translate(error, self.resource.target)
        if self.plan.lease_id is not None:
            raise found
        if self.so_far.waiting_since is None:
            self.so_far.waiting_since = self.deadline.clock()
        waited = self.deadline.clock() - self.so_far.waiting_since
        long = waited > _SHORT_LEASE_SECONDS or state.lease_duration == "infinite"
        if long and not self.plan.wait_lease:
            found.hint = "wait for its holder with --wait-lease, or work inside that lease with --lease-id"
            raise found
        if self.deadline.passed:
            raise self._gave_up()
        self.tools.tell("leased by somebody else: waiting")
        base = 0.5 if long else max(0.05, self.so_far.round_trip)
        self.deadline.pause(self.tools.chance.uniform(0.5, 1.5) * base)

    def _ask_under_lease(self, state: State, lineage: Lineage | None) -> Updated | None:
        """While our own lease holds, a moved ETag is our write; without one, the next read's lineage tells."""
        if not self.so_far.leased or self.so_far.lease is None:
            self.deadline.pause(min(0.05, self.so_far.round_trip))
            return None
        try:
            etag = self.resource.etag_under_lease(
                self.so_far.lease, self.deadline.lasting(max(1.0, self.deadline.remaining))
            )
        except (Locked, Unavailable, NotFound):
            self.so_far.leased = False
            return None
        if etag == state.etag:
            return None
        self.so_far.doubt.clear()
        self.tools.tell("settled under our lease: the write was ours")
        return self._ended(Landed(etag), "committed", str(lineage) if lineage else None)

    # Ends.

    def _fence(self) -> Updated | None:
        """Make every attempt in doubt impossible, or find that one of them landed.

        Raises:
            OutcomeUnknown: neither can be done.
        """
        patience = self.deadline.lasting(SETTLE_SECONDS)
        abort = self.tools.new_op()
        while True:
            state = self._read(patience)
            if self.plan.op in state.lineage:
                return self._found(state)
            found = self._drop_settled(state, patience)
            if found is not None or not self.so_far.doubt:
                return found
            # What remains is in doubt on the current version. A write that would create cannot be fenced.
            if state.etag is None or not self.plan.stamps or patience.passed:
                raise self._unknown(None)
            request = self.resource.fence(state, state.lineage.after(abort, state.etag), self._lease_in_use(), patience)
            sent = send(request)
            if sent.fate is Fate.COMMITTED:
                self.so_far.doubt.clear()
                return None
            if sent.error is not None and sent.fate is Fate.REFUSED and not _is_conflict(sent.error):
                raise self._unknown(translate(sent.error, self.resource.target))
            patience.pause(0.05)

    def _found(self, state: State) -> Updated:
        """End because our op is in the lineage: we, or an earlier run with the same key, committed it."""
        self.so_far.doubt.clear()
        self.tools.tell("found our own write in the lineage: committed")
        position = next(index for index, (op, _) in enumerate(state.lineage.entries) if op == self.plan.op)
        if position > 0:  # the write after ours recorded which ETag it replaced: ours
            return self._ended(Landed(f'"{state.lineage.entries[position - 1][1]}"'), "committed", None)
        ours = self.so_far.content is None or self.so_far.content == state.content
        return self._ended(Landed(state.etag if ours else None, state.last_modified), "committed", str(state.lineage))

    def _ended(self, landed: Landed, outcome: str, lineage: str | None) -> Updated:
        so_far = self.so_far
        leased = so_far.leased or self.plan.lease_id is not None
        return Updated(
            landed,
            outcome,
            "lease" if leased else "if-match",
            so_far.attempts,
            so_far.conflicts,
            so_far.doubts,
            so_far.content,
            lineage,
            so_far.created and outcome == "committed",
            so_far.base or None,
        )

    def _gave_up(self) -> GaveUp:
        target = self.resource.target
        why = "was leased by somebody else" if self.so_far.waiting_since is not None else "was still contended"
        return GaveUp(
            f"{target} {why} after {self.so_far.attempts} attempts; nothing was applied",
            address=str(target.address),
            hint="run it again, or give it longer: --timeout 5m",
            facts=self._facts() | {"outcome": "gave_up"},
        )

    def _unknown(self, cause: BaseException | None) -> OutcomeUnknown:
        target = self.resource.target
        detail = (str(cause),) if isinstance(cause, AzguardError) and not isinstance(cause, OutcomeUnknown) else ()
        return OutcomeUnknown(
            f"the update of {target} was sent, and whether it was applied cannot be known",
            address=str(target.address),
            detail=detail,
            facts=self._facts() | {"outcome": "unknown"},
        )

    def _facts(self) -> dict[str, object]:
        so_far = self.so_far
        return {
            "op_id": f"op:{self.plan.op}",
            "attempts": so_far.attempts,
            "conflicts": so_far.conflicts,
            "doubts": so_far.doubts,
            "base_etag": so_far.base or None,
        }


def by_versions(history: list[Version], op: str, parent: str | None) -> Verdict:
    """Return what the kept versions, oldest first, say about ``op`` on ``parent``: the service keeps them all."""
    if any(op in version.lineage for version in history):
        return Verdict.COMMITTED
    position = next((index for index, version in enumerate(history) if version.etag == parent), None)
    if position is None or position + 1 == len(history):
        return Verdict.UNKNOWN
    return Verdict.NEVER


def _is_conflict(error: BaseException) -> bool:
    """Return whether somebody else's write came first, so that reading again and retrying is the answer."""
    code = service_code(error) or ""
    found = status(error)
    if found == 412:
        return not code.startswith("Lease")
    return code in ("BlobAlreadyExists", "InvalidBlockList", "InvalidBlobOrBlock", "BlobNotFound")
