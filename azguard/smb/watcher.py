"""Find out whether the handle that is a lock is still open."""

import threading
from collections.abc import Callable
from typing import Protocol

from azguard.processes import clock
from azguard.smb.refusals import TRANSIENT, SmbCut, SmbRefused, SmbSilent, name

# An operator who closes the handle lets the next one in at once, and only a request shows it.
_LOOK_SECONDS = 1.0
# A small request: one that takes longer is better sent anew.
_ANSWER_SECONDS = 3.0
_NOT_ANSWERED = "the server did not answer in time"


class Touched(Protocol):
    """What is asked about: an open file."""

    def touch(self, seconds: float) -> None:
        """Ask about it; see ``session.ShareSession.touch``."""


class Watcher:
    """Asks about an open file in a thread of its own.

    ``on_held`` is called with the time at which a question was sent that the server answered, ``on_loss`` once with the
    reason, both from that thread. The lock counts as lost when the server says so, or the connection has ended. A
    question without an answer is asked again.
    """

    def __init__(
        self,
        file: Touched,
        *,
        on_held: Callable[[float], None],
        on_loss: Callable[[str], None],
        tell: Callable[[str], None],
        now: Callable[[], float] = clock.now,
    ) -> None:
        self._file = file
        self._on_held = on_held
        self._on_loss = on_loss
        self._tell = tell
        self._now = now
        self._wake = threading.Event()
        self._is_stopped = False
        self._answered = threading.Condition()
        #: How many questions have been answered, or have failed.
        self._answers = 0
        #: Why the lock is lost; None while it is not.
        self.loss: str | None = None
        #: Why the latest question has no answer; None if it has one.
        self.failure: str | None = None
        self._thread = threading.Thread(target=self._look_until_stopped, daemon=True)

    def start(self) -> None:
        """Begin to ask."""
        self._thread.start()

    def stop(self) -> None:
        """Stop asking. Wait until a question that is under way is answered, but no longer than its time."""
        self._is_stopped = True
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(_ANSWER_SECONDS + 1)

    def look_now(self, seconds: float) -> None:
        """Ask at once, and wait at most so many seconds for the outcome."""
        with self._answered:
            before = self._answers
            self._wake.set()
            self._answered.wait_for(lambda: self._answers > before or self.loss is not None, seconds)

    def explain_late(self) -> tuple[str, ...]:
        """Return why it is not known that the file is open, for people: a line each."""
        return (_NOT_ANSWERED,) if self.failure in (None, _NOT_ANSWERED) else (_NOT_ANSWERED, str(self.failure))

    def _look_until_stopped(self) -> None:
        while self.loss is None and not self._is_stopped:
            self._look()
            with self._answered:
                self._answers += 1
                self._answered.notify_all()
            self._wake.wait(_LOOK_SECONDS)
            self._wake.clear()

    def _look(self) -> None:
        sent_at = self._now()
        try:
            self._file.touch(_ANSWER_SECONDS)
        except SmbSilent:
            self._note_failure(_NOT_ANSWERED)
        except SmbRefused as refused:
            if refused.status in TRANSIENT:
                self._note_failure(f"the server has no room: {name(refused.status)}")
            else:
                self._note_loss(f"the server says {name(refused.status)}")
        except SmbCut as cut:
            self._note_loss(f"the handle is gone: {cut.why}")
        else:
            self.failure = None
            if not self._is_stopped:
                self._on_held(sent_at)

    def _note_failure(self, why: str) -> None:
        self.failure = why
        self._tell(f"lock: {why}; asking again")

    def _note_loss(self, why: str) -> None:
        if not self._is_stopped:
            self.loss = why
            self._on_loss(why)
