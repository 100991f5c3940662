"""Temporary files: how often another name is tried, and how long a delete may take."""

import io
from types import SimpleNamespace
from typing import Any

import pytest

from azguard.errors import OutcomeUnknown, Unavailable
from azguard.files import temporary
from azguard.files.temporary import TemporaryFile
from azguard.requests.deadline import Deadline
from tests.support.fake_resource import TARGET, Clock


def test_a_create_that_is_answered_wrongly_at_once_is_not_repeated_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, tried = Clock(), []

    def refuse(*words: Any) -> None:
        tried.append(clock())
        raise OutcomeUnknown("a gateway answered")

    made = SimpleNamespace(target=TARGET, remove=lambda: None, build_failed=Unavailable)
    monkeypatch.setattr(temporary, "choose", lambda *words: made)
    monkeypatch.setattr(temporary, "send_until_settled", refuse)
    monkeypatch.setattr(temporary, "sweep", lambda *words: None)
    with pytest.raises(Unavailable):
        temporary.create(TARGET, 1, {}, lambda: clock.deadline(1), None)
    assert [round(each - 1000, 1) for each in tried] == [0, 0.2, 0.4, 0.6, 0.8, 1.0]


def test_it_is_deleted_within_the_time_of_the_request_before(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, sent, deleted = Clock(), [], []

    def refuse(request: Any, deadline: Deadline) -> None:
        sent.append(deadline)
        clock.sleep(4)
        raise OutcomeUnknown("no answer")

    monkeypatch.setattr(temporary, "send_until_settled", refuse)
    monkeypatch.setattr(temporary, "delete_temporary", lambda target, lease_id, deadline: deleted.append(deadline))
    made = TemporaryFile(TARGET, {}, clock.deadline, size=1)
    with pytest.raises(Unavailable):
        made.fill(b"x", io.BytesIO(), lambda done: None)
    made.remove()
    assert (len(sent), deleted) == (1, sent)
