"""The questions whether a file is still open, and what their answers mean."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

from azguard.smb.file_lock_run import Watcher
from azguard.smb.session import SmbCut, SmbRefused, SmbSilent
from tests.support.cases import cases

NO_ROOM, CLOSED = 0xC0000205, 0xC0000128


@dataclass
class OpenFile:
    """Gives one answer after another; the last one for ever."""

    answers: list[Exception | None]

    def touch(self, seconds: float) -> None:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is not None:
            raise answer


@dataclass
class Heard:
    """What a watcher said."""

    held: list[float] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)


def watch(answers: Iterable[Exception | None], looks: int) -> tuple[Heard, Watcher]:
    """Have a file asked about so many times, a second of the clock apart."""
    heard = Heard()
    ticks = itertools.count(100.0)
    watcher = Watcher(
        OpenFile(list(answers)),
        on_held=heard.held.append,
        on_loss=heard.lost.append,
        tell=heard.told.append,
        now=lambda: next(ticks),
    )
    for _ in range(looks):
        if watcher.loss is None:
            watcher._look()
    return heard, watcher


def test_an_answer_says_that_the_file_was_open_when_the_question_was_sent() -> None:
    heard, _ = watch([None], 2)
    assert (heard.held, heard.lost) == ([100.0, 101.0], [])


@cases("failure", SmbSilent(), SmbRefused(NO_ROOM))
def test_a_question_that_fails_is_asked_again_and_loses_nothing(failure: Exception) -> None:
    heard, watcher = watch([failure, failure, None], 3)
    assert (heard.held, heard.lost, watcher.failure, len(heard.told)) == ([102.0], [], None, 2)


@cases("end", SmbCut("STATUS_FILE_CLOSED"), SmbRefused(CLOSED), SmbRefused(0xC0000001))
def test_a_handle_that_is_gone_is_lost_once(end: Exception) -> None:
    heard, _ = watch([None, end], 5)
    assert (heard.held, len(heard.lost)) == ([100.0], 1)


def test_what_is_heard_after_the_end_is_no_loss() -> None:
    heard = Heard()
    watcher = Watcher(
        OpenFile([SmbCut("closed")]), on_held=heard.held.append, on_loss=heard.lost.append, tell=heard.told.append
    )
    watcher.stop()
    watcher._look()
    assert heard == Heard()
