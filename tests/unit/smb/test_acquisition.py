"""How a file is asked for: what is asked again, and what is never held by accident."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import pytest

from azguard.errors import AzguardError, GaveUp, Unavailable
from azguard.smb.file_lock import FileLock, FileLockSettings
from azguard.smb.file_lock_run import FileLocks
from azguard.smb.session import SmbCut, SmbSilent, translate
from tests.support.cases import cases
from tests.support.smb_locks import file_lock

if TYPE_CHECKING:
    from azguard.locks.guarded_run import GuardedRun
    from azguard.smb.session import ShareSession


@dataclass
class ScriptedSession:
    """A session that answers as it is told; ``log`` is what it was asked."""

    answers: list[bool | Exception]
    log: list[str] = field(default_factory=list)
    descriptor: int = 0

    def connect(self, lock: FileLock) -> None:
        self.log.append("connect")

    def open(self, lock: FileLock, *, create: bool, patience: float) -> bool:
        self.log.append("open")
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def touch(self, seconds: float) -> None:
        pass

    def close(self) -> None:
        self.log.append("close")

    def disconnect(self) -> None:
        self.log.append("disconnect")


@dataclass
class Watch:
    """Takes note of what a run is told."""

    held: list[float] = field(default_factory=list)

    def note_held(self, name: str, ends: float) -> None:
        self.held.append(ends)

    def check_held(self) -> None:
        pass

    def note_loss(self, why: str) -> None:
        raise AssertionError(why)

    def keep_open(self, descriptor: int) -> None:
        pass


def acquire(answers: list[bool | Exception], wait: float = 0.0, now: Callable[[], float] = lambda: 7.0) -> list[str]:
    """Ask for a file, let it go, and return what the session was asked."""
    session = ScriptedSession(answers)
    settings = FileLockSettings(
        wait=wait, patience=4.0, lost_after=15.0, create=True, say=print, tell=print, uniform=lambda low, high: 0.0
    )
    locks = FileLocks(file_lock(), settings, {}, cast("ShareSession", session), now=now)
    watch = Watch()
    try:
        locks.acquire(cast("GuardedRun", watch))
        assert watch.held[0] == now() + 15.0
    finally:
        locks.release()
    return session.log


def test_a_file_that_is_open_is_closed_before_the_connection_ends() -> None:
    assert acquire([True]) == ["connect", "open", "close", "disconnect"]


def test_a_file_in_use_is_asked_for_again_on_the_same_connection() -> None:
    assert acquire([False, False, True], wait=60.0) == ["connect", "open", "open", "open", "close", "disconnect"]


def test_a_file_in_use_is_given_up_when_there_is_no_time_to_wait() -> None:
    with pytest.raises(GaveUp):
        acquire([False])


def test_a_connection_that_ends_is_made_anew_once() -> None:
    assert acquire([SmbCut("reset"), True]) == [
        "connect", "open", "disconnect", "connect", "open", "close", "disconnect",
    ]  # fmt: skip
    with pytest.raises(Unavailable):
        acquire([SmbCut("reset"), SmbCut("reset")])


def test_what_may_be_granted_late_ends_with_its_connection() -> None:
    log = acquire([SmbSilent(is_pending=True), True], wait=60.0)
    assert log == ["connect", "open", "disconnect", "connect", "open", "close", "disconnect"]


def test_a_server_that_falls_silent_is_unavailable() -> None:
    with pytest.raises(Unavailable):
        acquire([SmbSilent()], wait=60.0)


@cases(
    ("status", "expected"),
    (0xC0000022, (43, "smb_access_denied")),
    (0xC000006D, (41, "smb_logon_failed")),
    (0xC0000034, (44, "smb_file_missing")),
    (0xC00000CC, (44, "smb_share_missing")),
    (0xC0000205, (53, "smb_no_room")),
    (0xC0000001, (1, "smb_refused")),
)
def test_a_refusal_has_the_exit_status_of_its_meaning(status: int, expected: tuple[int, str]) -> None:
    error: AzguardError = translate(status, file_lock())
    assert (error.exit_code, error.reason) == expected
