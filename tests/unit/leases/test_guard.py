"""A lease held between a comparison and a write: recorded first, given back at the end, whatever happens between."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from azguard.errors import AzguardError, Changed, Locked, OutcomeUnknown, Unavailable
from azguard.leases import actions, guard, state
from tests.support.fake_resource import TARGET, Clock
from tests.support.no_records import NoRecords

THEIRS = "0f3c1111-2222-3333-4444-555566667777"
BUSY = Locked("leased", service_code="LeaseAlreadyPresent")
WRONG = Locked("another id", service_code="LeaseIdMismatchWithLeaseOperation")


@dataclass
class Notes(NoRecords):
    """Records that note in order what is done."""

    said: list[str] = field(default_factory=list)

    def add(self, _target: Any, _lease_id: str, seconds: int | None, *, has_reason: bool = False) -> None:
        self.said.append(f"record {seconds}")

    def confirm(self, _target: Any, _lease_id: str, _since: Any = None) -> None:
        self.said.append("confirm")

    def remove(self, _target: Any, _lease_id: str) -> None:
        self.said.append("drop")


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> Notes:
    made = Notes()

    def give_back(*_arguments: object) -> bool:
        made.said.append("give back")
        return True

    monkeypatch.setattr(actions, "acquire", lambda *_: made.said.append("acquire"))
    monkeypatch.setattr(actions, "give_back", give_back)
    return made


def fail_with(*ends: BaseException | None) -> Callable[..., None]:
    """Return an operation that ends like this, one time after the other."""
    left = list(ends)

    def act(*_arguments: object) -> None:
        if (end := left.pop(0)) is not None:
            raise end

    return act


def write(notes: Notes, lease_id: str | None = None, end: BaseException | None = None) -> guard.GuardLease:
    with guard.hold(TARGET, lease_id, notes, Clock().deadline()) as held:
        notes.said.append("write")
        if end is not None:
            raise end
    return held


def test_it_is_recorded_acquired_and_given_back(notes: Notes) -> None:
    write(notes)
    assert notes.said == ["record 15", "acquire", "confirm", "write", "give back", "drop"]


@pytest.mark.parametrize("end", [Changed("no"), OutcomeUnknown("lost"), KeyboardInterrupt()])
def test_a_write_that_fails_gives_it_back(notes: Notes, end: BaseException) -> None:
    with pytest.raises(type(end)):
        write(notes, end=end)
    assert notes.said[-3:] == ["write", "give back", "drop"]


def test_one_that_cannot_be_given_back_stays_recorded(monkeypatch: pytest.MonkeyPatch, notes: Notes) -> None:
    monkeypatch.setattr(actions, "give_back", lambda *_: False)
    write(notes)
    assert notes.said == ["record 15", "acquire", "confirm", "write"]


def test_the_lease_of_the_caller_is_used_as_it_is(notes: Notes) -> None:
    held = write(notes, THEIRS)
    assert (held.lease_id, held.is_running, notes.said) == (THEIRS, False, ["write"])


@pytest.mark.parametrize(
    ("end", "raised", "after"),
    [
        (WRONG, Locked, ["drop"]),
        (Unavailable("never sent"), Unavailable, ["drop"]),
        (OutcomeUnknown("lost"), Unavailable, ["give back", "drop"]),
        (KeyboardInterrupt(), KeyboardInterrupt, ["give back", "drop"]),
    ],
)
def test_nothing_is_written_without_it(
    monkeypatch: pytest.MonkeyPatch, notes: Notes, end: BaseException, raised: type[BaseException], after: list[str]
) -> None:
    monkeypatch.setattr(actions, "acquire", fail_with(end))
    with pytest.raises(raised):
        write(notes)
    assert notes.said == ["record 15", *after]


def test_the_short_lease_of_another_is_waited_for(monkeypatch: pytest.MonkeyPatch, notes: Notes) -> None:
    monkeypatch.setattr(actions, "acquire", fail_with(BUSY, BUSY, None))
    monkeypatch.setattr(state, "look", lambda *_: _State("fixed"))
    write(notes)
    assert notes.said == ["record 15", "confirm", "write", "give back", "drop"]


def test_a_lock_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, notes: Notes) -> None:
    monkeypatch.setattr(actions, "acquire", fail_with(BUSY, None))
    monkeypatch.setattr(state, "look", lambda *_: _State("infinite"))
    with pytest.raises(Locked):
        write(notes)


def test_a_short_lease_that_lasts_is_a_lock(monkeypatch: pytest.MonkeyPatch, notes: Notes) -> None:
    monkeypatch.setattr(actions, "acquire", fail_with(*[BUSY] * 50))
    monkeypatch.setattr(state, "look", lambda *_: _State("fixed"))
    with pytest.raises(AzguardError) as caught:
        write(notes)
    assert caught.value is BUSY


def test_it_proves_whose_a_write_was_only_during_its_term(notes: Notes) -> None:
    clock = Clock()
    with guard.hold(TARGET, None, notes, clock.deadline(60)) as held:
        running = held.is_running
        clock.sleep(15)
        assert (running, held.is_running) == (True, False)


@dataclass
class _State:
    duration: str
