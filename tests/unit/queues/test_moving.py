"""A move whose requests only seem to be made."""

import _thread
import threading
from dataclasses import replace
from typing import Any

import pytest

from azguard.errors import Partial, Unavailable
from azguard.queues import messages, moving
from azguard.queues.message_format import Received
from azguard.queues.moving import Move, QueueMoved
from azguard.requests import commits
from azguard.requests.deadline import Deadline
from tests.support.worker_world import taken, target

WANTED = Move(
    source=target("jobs-poison"),
    destination=target(),
    count=1,
    time_to_live=None,
    patience=Deadline(),
    on_failure=print,
)


def test_messages_that_arrive_after_ctrl_c_are_visible_again(monkeypatch: pytest.MonkeyPatch) -> None:
    message, is_ending, shown = taken().received, threading.Event(), []

    def receive(*_: Any) -> list[Received]:
        # As a signal in the moment before the main thread begins to wait: it does not end the wait.
        _thread.interrupt_main()
        assert is_ending.wait(60)
        return [message]

    monkeypatch.setattr(messages, "receive", receive)
    monkeypatch.setattr(messages, "update", lambda target, *_: shown.append(target))
    monkeypatch.setattr(commits, "announce", is_ending.set)
    # A busy machine is no fault.
    monkeypatch.setattr(moving, "_LAST_ANSWER_SECONDS", 60)
    with pytest.raises(KeyboardInterrupt):
        moving.run(WANTED, print)
    assert shown == [message.target]


def test_messages_that_others_may_have_after_a_suspension_are_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, moments = [[taken().received], []], iter([0.0])
    put, ends = list[tuple[Any, ...]](), list[QueueMoved]()
    monkeypatch.setattr("azguard.times.read_boot_clock", lambda: next(moments, 3600.0))
    monkeypatch.setattr(messages, "receive", lambda *_: found.pop(0))
    monkeypatch.setattr(messages, "put", lambda *words: put.append(words))
    monkeypatch.setattr(messages, "update", lambda *_: None)
    moving.run(replace(WANTED, count=2), ends.append)
    assert (put, [each.moved for each in ends]) == ([], [0])


def test_a_queue_that_is_silent_does_not_say_that_nothing_was_moved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, ends = [[taken().received]], list[QueueMoved]()

    def receive(*_: Any) -> list[Received]:
        if not found:
            raise Unavailable("no answer")
        return found.pop()

    monkeypatch.setattr(messages, "receive", receive)
    monkeypatch.setattr(messages, "put", lambda *_: None)
    monkeypatch.setattr(messages, "delete", lambda *_, **__: None)
    with pytest.raises(Partial, match="no answer"):
        moving.run(replace(WANTED, count=2), ends.append)
    assert [each.moved for each in ends] == [1]
