"""Operations on a lease whose answer is lost, or that are interrupted while they are in flight."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from azguard.accounts.account import Target
from azguard.errors import AzguardError, Locked, Unavailable
from azguard.guards.resolve import Conditions
from azguard.leases import actions
from azguard.leases.actions import LeaseDone
from azguard.requests import settle
from azguard.requests.deadline import Deadline
from azguard.wire.failures import Broken, BrokenAnswer, Refusal
from azguard.wire.operations.blobs import BLOB_LEASE_RENEW
from azguard.wire.rows import Operation
from tests.support.fake_resource import TARGET, Clock

A, B = (f"{letter * 8}-0000-4000-8000-000000000000" for letter in "ab")
NAMED = Conditions(lease_id=A)
LOST = BrokenAnswer(Broken.TIMED_OUT)
WRONG = Refusal(409, "LeaseIdMismatchWithLeaseOperation")


@dataclass
class FakeLease:
    """The lease of one resource: who holds it, and what happens to the requests about it, in order.

    A request is carried out and answered, or carried out before its end is raised, or not at all (``refused``,
    ``never``).
    """

    holder: str | None = A
    ends: list[tuple[bool, BaseException | None]] = field(default_factory=list)
    can_be_asked: bool = True
    sent: int = 0
    etag, last_modified = '"1"', None

    def call(
        self, operation: Operation, *_settings: object, proposed_lease_id: str | None = None, **_more: object
    ) -> dict[str, object]:
        self._carry_out(self.holder if operation is BLOB_LEASE_RENEW else proposed_lease_id)
        return {"etag": self.etag, "last_modified": self.last_modified}

    def _carry_out(self, holder: str | None) -> None:
        self.sent += 1
        is_done, end = self.ends.pop(0) if self.ends else (True, None)
        if is_done:
            self.holder = holder
        if end is not None:
            raise end

    def look(self, target: Target, _deadline: Deadline, lease_id: str | None = None) -> Any:
        """Answer as ``leases.state.look`` does."""
        if not self.can_be_asked:
            raise Unavailable("no answer")
        if lease_id is not None and lease_id != self.holder:
            raise Locked(f"{target} is leased under another id")
        state = "available" if self.holder is None else "leased"
        return SimpleNamespace(
            state=state,
            free=self.holder is None,
            held_by=(),
            etag=self.etag,
            last_modified=self.last_modified,
        )


@pytest.fixture
def lease(monkeypatch: pytest.MonkeyPatch) -> FakeLease:
    """Return the lease that all operations are about; A holds it."""
    fake = FakeLease()
    for sender in (settle, actions):
        monkeypatch.setattr(sender, "call", fake.call)
    monkeypatch.setattr(actions, "look", fake.look)
    return fake


OPERATIONS: dict[str, Callable[[Deadline], LeaseDone]] = {
    "acquire": lambda deadline: actions.acquire(TARGET, B, 60, Conditions(), deadline),
    "renew": lambda deadline: actions.renew(TARGET, NAMED, deadline),
    "change": lambda deadline: actions.change(TARGET, B, NAMED, deadline),
    "release": lambda deadline: actions.release(TARGET, NAMED, deadline),
    "break": lambda deadline: actions.break_(TARGET, 0, Conditions(), deadline),
}


def end_of(action: str) -> object:
    """Return how an operation ends: how many transmissions it took, or the kind of error."""
    try:
        return OPERATIONS[action](Clock().deadline(10)).attempts
    except AzguardError as error:
        return error.kind
    except KeyboardInterrupt:
        return "interrupted"


@pytest.mark.parametrize(
    ("action", "end"), [("renew", "unknown"), ("change", 1), ("release", 1), ("break", 1), ("acquire", "interrupted")]
)
def test_an_interrupted_operation_ends_as_done_where_it_shows(lease: FakeLease, action: str, end: object) -> None:
    lease.holder = None if action == "acquire" else A
    lease.ends = [(True, KeyboardInterrupt())]
    assert end_of(action) == end


@pytest.mark.parametrize("action", ["renew", "change", "release", "break"])
@pytest.mark.parametrize("can_be_asked", [True, False])
def test_an_interrupted_operation_that_may_come_is_unknown(lease: FakeLease, action: str, can_be_asked: bool) -> None:
    lease.ends, lease.can_be_asked = [(False, KeyboardInterrupt())], can_be_asked
    assert (end_of(action), lease.sent) == ("unknown", 1)


def test_an_unknown_outcome_says_which_operation_was_interrupted(lease: FakeLease) -> None:
    lease.ends = [(False, KeyboardInterrupt())]
    with pytest.raises(AzguardError) as caught:
        OPERATIONS["release"](Clock().deadline())
    error = caught.value
    assert (error.message, error.detail, error.reason, error.values) == (
        "the release of the lease on site/config.json was sent, and whether it was done cannot be known",
        ("interrupted",),
        "lease_outcome_unknown",
        {"action": "release"},
    )


@pytest.mark.parametrize("action", ["renew", "change"])
def test_an_interruption_after_a_refusal_is_just_that(
    lease: FakeLease, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    def look(*_arguments: object) -> object:
        raise KeyboardInterrupt

    lease.holder, lease.ends = B, [(False, WRONG)]
    monkeypatch.setattr(actions, "look", look)
    assert end_of(action) == "interrupted"


@pytest.mark.parametrize("action", ["renew", "change", "release", "break"])
def test_a_lost_answer_is_asked_about_and_sent_again_where_it_was_not_done(lease: FakeLease, action: str) -> None:
    lease.ends = [(False, LOST), (True, None)]
    assert (end_of(action), lease.sent) == (2, 2)


@pytest.mark.parametrize("action", ["acquire", "renew", "change", "release", "break"])
def test_what_cannot_be_asked_about_is_sent_again(lease: FakeLease, action: str) -> None:
    lease.ends, lease.can_be_asked = [(True, LOST), (True, None)], False
    assert (end_of(action), lease.sent) == (2, 2)


@pytest.mark.parametrize(("holder", "end"), [(None, 1), (B, "locked")])
def test_a_refused_release_is_done_if_the_lease_is_free(lease: FakeLease, holder: str | None, end: object) -> None:
    lease.holder, lease.ends = holder, [(False, WRONG)]
    assert end_of("release") == end


def test_a_refused_release_is_told_as_refused_where_the_lease_cannot_be_asked_about(lease: FakeLease) -> None:
    lease.ends, lease.can_be_asked = [(False, WRONG)], False
    assert end_of("release") == "locked"


@pytest.mark.parametrize(
    ("on", "kind"),
    [
        (Conditions({"If-Match": '"0"'}, "if-match", '"0"'), "changed"),
        (Conditions({"x-ms-if-tags": "a='b'"}), "unknown"),
    ],
)
def test_a_refused_acquire_excludes_an_earlier_copy_only_where_its_version_was_replaced(
    lease: FakeLease, on: Conditions, kind: str
) -> None:
    # A condition on tags may hold again when the first copy comes.
    lease.holder, lease.ends = None, [(False, LOST), (False, Refusal(412, "ConditionNotMet"))]
    with pytest.raises(AzguardError) as caught:
        actions.acquire(TARGET, B, 60, on, Clock().deadline(10))
    assert (caught.value.kind, lease.sent) == (kind, 2)


@pytest.mark.parametrize(
    ("refusal", "is_free"),
    [(WRONG, True), (Refusal(404, "BlobNotFound"), True), (Refusal(403, "AuthorizationFailure"), False)],
)
@pytest.mark.parametrize("was_acquired", [True, False])
def test_a_lease_that_is_given_back_is_asked_about_no_more_once_it_is_refused(
    lease: FakeLease, refusal: Refusal, is_free: bool, was_acquired: bool
) -> None:
    lease.ends = [(False, refusal)] * 2
    released = actions.give_back(TARGET, A, Clock().deadline(10), was_acquired=was_acquired)
    assert (released, lease.sent) == (is_free and was_acquired, 1)
