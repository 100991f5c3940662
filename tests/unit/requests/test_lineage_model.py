"""What a lineage proves, held against a model of everything that can happen to a blob.

Writers of azguard write, lose answers and are late; others keep the lineage or wipe it; the blob is deleted and made
again. Whatever is then said of an attempt has to be true, and stay true.
"""

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from azguard.errors import NotFound
from azguard.requests.commits import Verdict
from azguard.requests.lineage import Lineage, new_op, verdict_from_lineage
from azguard.updates.doubt import find_status, judge_by_versions
from azguard.updates.resource import KeptVersion
from azguard.wire.failures import Refusal
from tests.support.fake_resource import FakeResource, Fault, Store


@dataclass
class Attempt:
    """One conditional write that was sent: what it replaces, and what it would stamp."""

    op: str
    parent: str | None
    lineage: Lineage
    said: set[Verdict] = field(default_factory=set)


class Blob(RuleBasedStateMachine):
    """A blob, its true history, and the attempts whose answer was lost."""

    sent = Bundle("sent")

    def __init__(self) -> None:
        super().__init__()
        self.store = Store.holding(b"")
        self.resource = FakeResource(self.store, iter(lambda: Fault.NONE, None))
        self.attempts: list[Attempt] = []
        self.deleted = False

    @property
    def lineage(self) -> Lineage:
        return Lineage.parse(self.store.current.lineage if self.store.current else None)

    def landed(self, attempt: Attempt) -> bool:
        return bool(self.store.commits_of(attempt.op))

    def deliver(self, attempt: Attempt) -> None:
        """Let an attempt arrive, once or again; the service refuses what comes too late."""
        try:
            self.store.put(attempt.parent, b"", attempt.op, str(attempt.lineage), None)
        except Refusal:
            pass

    def attempt(self) -> Attempt:
        """Read, and make an update of what was read."""
        op = new_op(len(self.attempts).to_bytes(12, "big"))
        attempt = Attempt(op, self.store.etag, self.lineage.after(op, self.store.etag))
        self.attempts.append(attempt)
        return attempt

    @rule(target=sent)
    def send(self) -> Attempt:
        """Send an update; it may or may not be applied."""
        return self.attempt()

    @rule(attempt=sent)
    def arrive(self, attempt: Attempt) -> None:
        """Something on the way delivers it, perhaps for the second time."""
        self.deliver(attempt)

    @rule(attempt=consumes(sent))
    def vanish(self, attempt: Attempt) -> None:
        """It is lost on the way, and arrives no more."""

    @rule(keeps=st.booleans())
    def write_without_azguard(self, keeps: bool) -> None:
        self.store.foreign_write(keeps_metadata=keeps)

    @rule()
    def delete(self) -> None:
        self.store.delete()
        self.deleted = True

    @rule(count=st.integers(1, 20))
    def write_much(self, count: int) -> None:
        """So many updates that old ones fall out of the lineage."""
        for _ in range(count):
            self.deliver(self.attempt())

    @invariant()
    def what_is_said_of_an_attempt_is_true(self) -> None:
        for attempt in self.attempts:
            verdict = verdict_from_lineage(self.lineage, attempt.op, attempt.parent, self.store.etag)
            attempt.said.add(verdict)
            if verdict is Verdict.COMMITTED:
                assert self.landed(attempt)
            # What was never there can be made, deleted, and made again: of a create nothing is said for good.
            if verdict is Verdict.NOT_YET and attempt.parent is not None:
                assert not self.landed(attempt)

    @invariant()
    def never_is_never(self) -> None:
        assert [a.op for a in self.attempts if Verdict.NEVER in a.said and self.landed(a)] == []

    @invariant()
    def no_version_has_two_successors(self) -> None:
        parents = [commit.parent for commit in self.store.commits if commit.op and commit.parent is not None]
        assert len(parents) == len(set(parents))

    @invariant()
    def an_op_lands_once_unless_it_creates(self) -> None:
        assert all(len(self.store.commits_of(a.op)) <= 1 for a in self.attempts if a.parent is not None)

    @invariant()
    def what_became_of_a_key_is_true(self) -> None:
        for attempt in self.attempts[-5:]:
            try:
                became = find_status(self.resource, attempt.op, self.store.clock.deadline(1.0)).outcome
            except NotFound:
                continue
            if became == "committed":
                assert self.landed(attempt)
            if became == "not_committed" and not self.deleted:
                assert not self.landed(attempt)

    @invariant()
    def kept_versions_tell_the_truth_of_any_attempt(self) -> None:
        history = [KeptVersion(kept.etag, Lineage.parse(kept.lineage)) for kept in self.store.history]
        for attempt in self.attempts[-5:]:
            verdict = judge_by_versions(history, attempt.op, attempt.parent)
            if verdict is Verdict.COMMITTED:
                assert self.landed(attempt)
            if verdict is Verdict.NEVER:
                attempt.said.add(verdict)


TestBlob = Blob.TestCase
TestBlob.settings = settings(stateful_step_count=30)
