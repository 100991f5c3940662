"""A lease held between a comparison and a write: recorded first, given back at the end, whatever happens between."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import AzguardError, Changed, Locked, OutcomeUnknown, Unavailable
from azguard.leases import actions, guard, state
from azguard.leases.process_leases import ProcessLeases
from tests.support.fake_resource import TARGET, Clock
from tests.support.no_records import NoRecords

THEIRS = "0f3c1111-2222-3333-4444-555566667777"
BUSY = Locked("leased", service_code="LeaseAlreadyPresent")
SENT_ONCE = SimpleNamespace(attempts=1)
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

    def give_up(self, _target: Any, _lease_id: str, _seconds: int | None, *, is_told: bool = True) -> None:
        self.said.append("keep")

    def note_left(self, _target: Any) -> None:
        self.said.append("left for ever")


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> Notes:
    made = Notes()

    def give_back(*_arguments: object, was_acquired: bool = True) -> bool:
        made.said.append("give back")
        return was_acquired

    def acquire(*_arguments: object) -> SimpleNamespace:
        made.said.append("acquire")
        return SENT_ONCE

    monkeypatch.setattr(actions, "acquire", acquire)
    monkeypatch.setattr(actions, "give_back", give_back)
    return made


def fail_with(*ends: BaseException | None) -> Callable[..., SimpleNamespace]:
    """Return an operation that ends like this, one time after the other."""
    left = list(ends)

    def act(*_arguments: object) -> SimpleNamespace:
        if (end := left.pop(0)) is not None:
            raise end
        return SENT_ONCE

    return act


def write(
    notes: Notes, lease_id: str | None = None, end: BaseException | None = None, target: Target = TARGET
) -> guard.GuardLease:
    with guard.hold(target, lease_id, notes, Clock().deadline()) as held:
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


def test_one_without_a_term_that_cannot_be_given_back_is_told(monkeypatch: pytest.MonkeyPatch, notes: Notes) -> None:
    monkeypatch.setattr(actions, "give_back", lambda *_: False)
    file = TARGET._replace(address=Address(Kind.FILE, ("team", "a")))
    write(notes, target=file)
    monkeypatch.setattr(actions, "acquire", fail_with(OutcomeUnknown("lost")))
    with pytest.raises(Unavailable):
        write(notes, target=file)
    told = ["record None", "confirm", "write", "left for ever", "record None", "left for ever"]
    assert [each for each in notes.said if each != "acquire"] == told


def test_the_lease_of_the_caller_is_used_as_it_is(notes: Notes) -> None:
    held = write(notes, THEIRS)
    assert (held.lease_id, held.is_running, notes.said) == (THEIRS, False, ["write"])


@pytest.mark.parametrize(
    ("end", "raised", "after"),
    [
        (WRONG, Locked, ["drop"]),
        (Unavailable("never sent"), Unavailable, ["drop"]),
        # It may come yet, so that its id is kept.
        (OutcomeUnknown("lost"), Unavailable, ["give back", "keep"]),
        (KeyboardInterrupt(), KeyboardInterrupt, ["give back", "keep"]),
    ],
)
def test_nothing_is_written_without_it(
    monkeypatch: pytest.MonkeyPatch, notes: Notes, end: BaseException, raised: type[BaseException], after: list[str]
) -> None:
    monkeypatch.setattr(actions, "acquire", fail_with(end))
    with pytest.raises(raised):
        write(notes)
    assert notes.said == ["record 15", *after]


@pytest.mark.parametrize(
    ("end", "left"), [(WRONG, 0), (Unavailable("never sent"), 0), (OutcomeUnknown("lost"), 1), (KeyboardInterrupt(), 1)]
)
def test_the_note_of_one_that_may_come_after_its_release_stays(
    monkeypatch: pytest.MonkeyPatch, notes: Notes, tmp_path: Path, end: BaseException, left: int
) -> None:
    monkeypatch.setattr(actions, "acquire", fail_with(end))
    lease = guard.hold(TARGET, None, notes, Clock().deadline(), processes=ProcessLeases(tmp_path))
    with pytest.raises((AzguardError, KeyboardInterrupt)), lease:
        pass
    assert len(list(tmp_path.iterdir())) == left


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


def test_a_lost_answer_is_noticed_while_the_lease_still_proves_whose_the_write_was(notes: Notes) -> None:
    with guard.hold(TARGET, None, notes, Clock().deadline(60)) as held:
        assert (held.patience.answer_seconds, held.patience.seconds) == (5.0, 60.0)


@pytest.mark.parametrize(("etag", "headers"), [('"1"', {"If-Match": '"1"'}), (None, {})])
def test_it_is_acquired_on_the_version_that_is_named_alone(
    monkeypatch: pytest.MonkeyPatch, notes: Notes, etag: str | None, headers: dict[str, str]
) -> None:
    sent: list[Any] = []

    def acquire(*arguments: Any) -> SimpleNamespace:
        sent.append(arguments[3])
        return SENT_ONCE

    monkeypatch.setattr(actions, "acquire", acquire)
    with guard.hold(TARGET, None, notes, Clock().deadline(), etag):
        assert [(each.headers, each.expected_etag) for each in sent] == [(headers, etag)]


@pytest.mark.parametrize(("lease_id", "renewed"), [(None, 1), (THEIRS, 0)])
def test_one_of_our_own_is_renewed_between_two_writes_once_it_is_old(
    monkeypatch: pytest.MonkeyPatch, notes: Notes, lease_id: str | None, renewed: int
) -> None:
    clock, told = Clock(), []
    monkeypatch.setattr(actions, "renew", lambda *_: told.append(clock()))
    with guard.hold(TARGET, lease_id, notes, clock.deadline(60)) as held:
        for _ in range(2):
            clock.sleep(4)
            held.renew_if_old(clock.deadline(60))
        clock.sleep(14)
        assert (len(told), held.is_running) == (renewed, renewed == 1)


def test_where_it_is_not_known_to_be_renewed_the_next_write_is_not_unknown(
    monkeypatch: pytest.MonkeyPatch, notes: Notes
) -> None:
    clock = Clock()
    monkeypatch.setattr(actions, "renew", fail_with(OutcomeUnknown("lost")))
    with guard.hold(TARGET, None, notes, clock.deadline(60)) as held:
        clock.sleep(6)
        with pytest.raises(Unavailable):
            held.renew_if_old(clock.deadline(60))


@pytest.mark.parametrize(
    ("end", "raised", "after"),
    [
        (None, None, ["confirm", "drop", "give back"]),
        (OutcomeUnknown("lost"), Unavailable, ["give back", "drop", "give back", "drop"]),
        (WRONG, Locked, ["give back", "drop", "give back", "drop"]),
    ],
)
def test_its_id_is_changed_or_nothing_more_is_written_under_it(
    monkeypatch: pytest.MonkeyPatch,
    notes: Notes,
    end: BaseException | None,
    raised: type[BaseException] | None,
    after: list[str],
) -> None:
    monkeypatch.setattr(actions, "change", fail_with(end))
    with guard.hold(TARGET, None, notes, Clock().deadline()) as held:
        before, ends = held.lease_id, held.ends
        with nullcontext() if raised is None else pytest.raises(raised):
            held.change_id(Clock().deadline())
        assert ((held.lease_id == before), held.ends) == (raised is not None, ends)
    assert notes.said[3:] == ["record 15", *after, "drop"]


@dataclass
class _State:
    duration: str
