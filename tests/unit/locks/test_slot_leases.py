"""The lease of a lock counts from before it was asked for, and is asked for anew where it is worth less."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import OutcomeUnknown, Unavailable
from azguard.leases import actions
from azguard.leases.owner_records import Moved
from azguard.leases.owners import Owner
from azguard.leases.process_leases import ProcessLeases
from azguard.locks import held_lock, lock_blobs
from azguard.locks.lock_blobs import AcquireSettings, LockRecord, LockRequest, RequestTime
from azguard.locks.slot_leases import SlotLeases
from azguard.wire.failures import Broken, BrokenAnswer, Refusal
from tests.support.fake_resource import TARGET, Clock
from tests.support.no_records import NoRecords

BLOB, FILE = TARGET, Target(TARGET.account, Address(Kind.FILE, ("share", "plan.txt")))
BUSY = Refusal(409, "LeaseAlreadyPresent")
OWNER = Owner("me", "here", 1, "azguard", None, None)
TERM = 30


class Service:
    """What the requests of an acquisition meet: each takes its time, and may fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = Clock()
        #: How long the answers to an acquire and to the write of the record take, and how the acquires end.
        self.acquire_seconds = self.write_seconds = 1.0
        self.ends: list[BaseException] = []
        #: How often each record was sent, or how that ended.
        self.attempts: list[int | Exception] = []
        #: Whether a lease can be given back.
        self.gives_back = True
        self.asked: list[str] = []
        self.given_back: list[str] = []
        monkeypatch.setattr(actions, "acquire_once", self._acquire)
        monkeypatch.setattr(actions, "give_back", self._give_back)
        monkeypatch.setattr(held_lock, "give_back", self._give_back)
        monkeypatch.setattr(lock_blobs, "write_owner_and_fence", self._write)

    def settings(self, processes: ProcessLeases | None = None) -> AcquireSettings:
        return AcquireSettings(
            owner=OWNER,
            seconds=TERM,
            create=False,
            patience=self.clock.deadline(10),
            records=NoRecords(),
            say=lambda _: None,
            tell=lambda _: None,
            uniform=lambda low, _: low,
            now=self.clock,
            processes=processes,
        )

    def leases(self, target: Target = BLOB, processes: ProcessLeases | None = None) -> SlotLeases:
        return SlotLeases(LockRequest(target), self.settings(processes), RequestTime(self.clock.deadline(60), 10))

    def _acquire(self, _target: Target, lease_id: str, *_arguments: object) -> None:
        self.asked.append(lease_id)
        self.clock.sleep(self.acquire_seconds)
        if self.ends:
            raise self.ends.pop(0)

    def _give_back(self, _target: Target, lease_id: str, *_arguments: object, was_acquired: bool = True) -> bool:
        self.given_back += [lease_id] * self.gives_back
        return self.gives_back

    def _write(self, *_arguments: Any) -> LockRecord:
        self.clock.sleep(self.write_seconds)
        attempts = self.attempts.pop(0) if self.attempts else 1
        if isinstance(attempts, Exception):
            raise attempts
        moved = Moved('"1"', '"2"', None, "", attempts)
        return LockRecord(fence=1, owner=OWNER, before=None, fence_before=None, moved=moved)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    return Service(monkeypatch)


def test_the_lease_of_a_lock_ends_a_term_after_it_was_asked_for(service: Service) -> None:
    began = service.clock()
    held = service.leases().ask_for_each()
    assert held is not None
    assert (held.ends - began, service.clock() - began, held.lease_id) == (TERM, 2.0, service.asked[0])


def test_the_patience_with_the_service_begins_anew_by_the_clock_given(service: Service) -> None:
    settings = service.settings()
    service.clock.sleep(7)
    patience = settings.patience_now()
    service.clock.sleep(4)
    assert patience.remaining == 6


def test_a_lease_of_which_a_third_is_over_is_given_up(service: Service) -> None:
    service.write_seconds = TERM / 3
    with pytest.raises(Unavailable):
        service.leases().ask_for_each()


@pytest.mark.parametrize(("ends", "given_back"), [([BUSY], 0), ([BrokenAnswer(Broken.TIMED_OUT), BUSY], 1)])
def test_a_lease_is_given_back_unless_all_failed(service: Service, ends: list[BaseException], given_back: int) -> None:
    leases, service.ends = service.leases(), ends
    for _ in ends[1:]:
        with pytest.raises(Unavailable):
            leases.ask_for_each()
    assert (leases.ask_for_each(), leases.is_perhaps_held) == (None, bool(given_back))
    leases.release()
    assert (service.given_back, len(set(service.asked))) == (service.asked[:given_back], 1)


@pytest.mark.parametrize(("target", "leases"), [(BLOB, 1), (FILE, 2)])
def test_a_record_that_was_sent_twice_and_depends_on_no_version_stands_under_another_lease(
    service: Service, target: Target, leases: int
) -> None:
    service.attempts = [2]
    held = service.leases(target).ask_for_each()
    assert held is not None
    assert (len(set(service.asked)), held.lease_id, service.given_back) == (
        leases, service.asked[-1], service.asked[:-1],
    )  # fmt: skip


@pytest.mark.parametrize("first", [OutcomeUnknown("lost"), 2])
def test_a_record_that_may_come_twice_stays_no_lock_in_any_case(service: Service, first: int | Exception) -> None:
    leases, service.attempts, service.gives_back = service.leases(FILE), [first], False
    for _ in "12":
        with pytest.raises((OutcomeUnknown, Unavailable)):
            leases.ask_for_each()
    service.gives_back = True
    held = leases.ask_for_each()
    # Asked for again by its id until it is given back: no other could be had beside it.
    assert held is not None
    assert (len(set(service.asked[:3])), held.lease_id in service.asked[:3]) == (1, False)
    assert service.given_back == service.asked[:1]


@pytest.mark.parametrize(("end", "left"), [(BUSY, 0), (BrokenAnswer(Broken.TIMED_OUT), 1), (KeyboardInterrupt(), 1)])
def test_the_note_of_a_lease_to_come_stays(service: Service, tmp_path: Path, end: BaseException, left: int) -> None:
    service.ends = [end]
    leases = service.leases(FILE, ProcessLeases(tmp_path))
    with suppress(KeyboardInterrupt, Unavailable):
        leases.ask_for_each()
    leases.release()
    assert len(list(tmp_path.iterdir())) == left
