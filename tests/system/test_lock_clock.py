"""The clock of locks: terms are counted on one that is never set, and that runs while the machine sleeps."""

import mmap
import signal
import struct
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from azguard.accounts.account import Target, emulator
from azguard.address import Address, Kind
from azguard.errors import Unavailable
from azguard.leases import actions, owners, state
from azguard.locks import held_lock
from azguard.locks.held_lock import HeldLock, Renewer
from azguard.processes.guardian import Ended, Guardian
from azguard.times import read_boot_clock
from azguard.wire.failures import Broken, BrokenAnswer, Refusal
from tests.support import locked_command
from tests.support.emulator_world import until

TERM = 60
PERIOD = 5
LOCK = Target(emulator(), Address(Kind.BLOB, ("locks", "a")))


class Clock:
    """A clock that stands still, unless it is moved; other processes see it move too."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, 8)
        self._began = float(round(read_boot_clock()))  # so that sums of it are exact

    def __call__(self) -> float:
        """Return the time."""
        return self._began + float(struct.unpack("d", self._shared[:])[0])

    def move(self, seconds: float) -> None:
        """Move on, at once."""
        self._shared[:] = struct.pack("d", self() - self._began + seconds)


class Service:
    """Answers renewals with what it was told to, and with success after that."""

    def __init__(self, *answers: Exception) -> None:
        self._answers = list(answers)
        self.asked: list[float] = []

    def renew(self, now: Any) -> None:
        """Answer one renewal."""
        self.asked.append(now())
        if self._answers:
            raise self._answers.pop(0)


class Watch:
    """A renewer at work, and what it said."""

    def __init__(
        self, service: Service, now: Clock, monkeypatch: pytest.MonkeyPatch, term: int = TERM, **more: Any
    ) -> None:
        self.ends: list[float] = []
        self.lost: list[str] = []
        monkeypatch.setattr(actions, "renew_once", lambda *words: service.renew(now))
        held = HeldLock(LOCK, "0e0e0e0e-0000-4000-8000-000000000000", term, 1, now() + term, **more)
        monkeypatch.setattr(held_lock, "_TICK_SECONDS", 0.05)  # nothing wakes it when this clock moves
        self.renewer = Renewer(
            held, on_renewal=self.ends.append, on_loss=self.lost.append, tell=lambda text: None, now=now
        )
        self.renewer.start()


@pytest.fixture
def now() -> Clock:
    """Return a clock for one test."""
    return Clock()


def refusal() -> Refusal:
    """Return what the service says of a lease that another has."""
    return Refusal(409, "LeaseIdMismatchWithLeaseOperation")


def test_after_a_sleep_beyond_the_term_the_lease_is_renewed_first(now: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    watch = Watch(service, now, monkeypatch)
    now.move(10 * TERM)
    until(lambda: watch.ends)
    watch.renewer.stop()
    # That it could be renewed proves that no other has had it meanwhile.
    assert (service.asked, watch.ends, watch.lost) == ([now()], [now() + TERM], [])


def test_after_a_sleep_in_which_somebody_else_took_it_the_lock_is_lost(
    now: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(refusal())
    watch = Watch(service, now, monkeypatch)
    now.move(10 * TERM)
    until(lambda: watch.lost)
    now.move(10 * TERM)
    watch.renewer.stop()
    (asked,) = service.asked
    assert (round(now() - asked), watch.ends, watch.lost) == (10 * TERM, [], ["that lease on locks/a is not held"])


@pytest.mark.parametrize(("fence", "lost"), [(1, []), (2, ["it was broken, and another has held it since"])])
def test_a_late_copy_of_its_request_does_not_hide_that_another_held_the_lock(
    now: Clock, monkeypatch: pytest.MonkeyPatch, fence: int, lost: list[str]
) -> None:
    looked = SimpleNamespace(metadata={owners.FENCE: str(fence)})
    monkeypatch.setattr(state, "look", lambda *words: looked)
    watch = Watch(Service(), now, monkeypatch, may_come_late=True)
    now.move(PERIOD)
    until(lambda: watch.ends or watch.lost)
    watch.renewer.stop()
    assert (len(watch.ends), watch.lost) == (0 if lost else 1, lost)


def test_a_renewal_is_due_after_five_seconds_and_a_failed_one_is_repeated_in_half_a_second(
    now: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, began = Service(BrokenAnswer(Broken.TIMED_OUT)), now()
    watch = Watch(service, now, monkeypatch)
    now.move(PERIOD)
    until(lambda: service.asked)
    # Nothing is sent before its time, however long that is on other clocks.
    threading.Event().wait(0.7)
    assert service.asked == [began + PERIOD]
    now.move(0.5)
    until(lambda: watch.ends)
    watch.renewer.stop()
    assert (service.asked[1:], watch.ends, watch.lost) == ([now()], [now() + TERM], [])


@pytest.mark.parametrize("term", [15, 20, 60])
def test_a_lease_is_looked_at_every_five_seconds_whatever_its_term(
    now: Clock, monkeypatch: pytest.MonkeyPatch, term: int
) -> None:
    service, began = Service(), now()
    watch = Watch(service, now, monkeypatch, term)
    for times in range(1, 4):
        now.move(PERIOD)
        until(lambda times=times: len(watch.ends) == times)  # type: ignore[misc]  # bound at once
    watch.renewer.stop()
    assert service.asked == [began + PERIOD * times for times in range(1, 4)]


def test_the_reason_of_a_failed_renewal_is_kept_until_one_succeeds(now: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    failure = Unavailable("no answer", detail=("the token has expired",))
    watch = Watch(Service(failure), now, monkeypatch)
    now.move(PERIOD)
    until(lambda: watch.renewer.failure)
    late = held_lock.describe_late([watch.renewer])
    now.move(0.5)
    until(lambda: watch.ends)
    watch.renewer.stop()
    assert (late, watch.renewer.failure) == (
        ("it could not be renewed in time", "the last renewal failed: no answer; the token has expired"),
        None,
    )


def test_a_renewal_counts_from_before_it_was_sent(now: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    service, began = Service(), now()
    watch = Watch(service, now, monkeypatch)
    monkeypatch.setattr(actions, "renew_once", lambda *words: now.move(2))
    now.move(PERIOD)
    until(lambda: watch.ends)
    watch.renewer.stop()
    assert watch.ends == [began + PERIOD + TERM]


@pytest.fixture
def guarded(now: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Guardian]:
    """Yield a guardian that goes by a clock of ours."""
    monkeypatch.setattr("azguard.times.read_boot_clock", now)
    guardian = Guardian.fork()
    yield guardian
    guardian.close()


def work(guardian: Guardian, folder: Path, ends: float, on_lost: str = "term") -> None:
    """Let the guardian run a command that says that it lives, and wait until it does."""
    command = [sys.executable, "-I", "-S", locked_command.__file__, str(folder)]
    guardian.start(command, {}, ends=ends, grace=5, on_lost=on_lost)
    until((folder / "beats").exists)


@pytest.mark.parametrize(
    ("seconds", "ended_by"),
    [(TERM - 5, signal.SIGTERM), (TERM - 0.9, signal.SIGKILL), (TERM, signal.SIGKILL), (100 * TERM, signal.SIGKILL)],
)
def test_the_guardian_ends_the_command_when_its_clock_says_so(
    guarded: Guardian, now: Clock, tmp_path: Path, seconds: float, ended_by: signal.Signals
) -> None:
    work(guarded, tmp_path, now() + TERM)
    now.move(seconds)
    heard: list[dict[str, Any]] = []
    # What is left of the grace when the sleep ends is none at all if the lease may be another's by then.
    assert guarded.wait(heard.append) == Ended(128 + ended_by, ended_by)
    assert heard == [{"is": "late"}]


def test_the_guardian_leaves_the_command_alone_as_long_as_the_lease_is_extended(
    guarded: Guardian, now: Clock, tmp_path: Path
) -> None:
    work(guarded, tmp_path, now() + TERM)
    for times in range(1, 4):
        guarded.extend(now() + 2 * TERM)
        guarded.pass_on(signal.SIGCONT)
        until(lambda times=times: noted(tmp_path) == times)  # type: ignore[misc]  # so that it has heard of both
        now.move(TERM)
    (tmp_path / "end").write_text("0")
    heard: list[dict[str, Any]] = []
    assert (guarded.wait(heard.append), heard) == (Ended(0), [])


def noted(folder: Path) -> int:
    """Return how many signals a command has noted."""
    file = folder / "signals"
    return len(file.read_text().splitlines()) if file.exists() else 0


def test_a_command_is_not_started_under_a_lease_that_is_about_to_end(
    guarded: Guardian, now: Clock, tmp_path: Path
) -> None:
    from azguard.errors import LockLost

    with pytest.raises(LockLost, match="could not be renewed in time"):
        guarded.start(["touch", str(tmp_path / "ran")], {}, ends=now() + 5, grace=5, on_lost="term")
    assert not (tmp_path / "ran").exists()


def test_a_command_is_not_started_under_a_lock_whose_loss_was_told_a_moment_before(
    guarded: Guardian, now: Clock, tmp_path: Path
) -> None:
    from azguard.errors import LockLost

    guarded.lost()
    with pytest.raises(LockLost, match="was lost before the command was started"):
        guarded.start(["touch", str(tmp_path / "ran")], {}, ends=now() + TERM, grace=5, on_lost="term")
    guarded.close()
    assert not (tmp_path / "ran").exists()
