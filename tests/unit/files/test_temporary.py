"""Temporary files: how often another name is tried."""

from types import SimpleNamespace
from typing import Any

import pytest

from azguard.errors import OutcomeUnknown, Unavailable
from azguard.files import temporary, temporary_notes
from tests.support.fake_resource import TARGET, Clock


def test_a_create_that_is_answered_wrongly_at_once_is_not_repeated_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, tried = Clock(), []

    def refuse(*words: Any) -> None:
        tried.append(clock())
        raise OutcomeUnknown("a gateway answered")

    made = SimpleNamespace(target=TARGET, remove=lambda: None, build_failed=Unavailable)
    monkeypatch.setattr(temporary, "choose", lambda *words: made)
    monkeypatch.setattr(temporary, "send_until_settled", refuse)
    monkeypatch.setattr(temporary_notes, "sweep", lambda *words: None)
    with pytest.raises(Unavailable):
        temporary.create(TARGET, 1, {}, lambda: clock.deadline(1), None)
    assert [round(each - 1000, 1) for each in tried] == [0, 0.2, 0.4, 0.6, 0.8, 1.0]
