"""Exchanges: what an interruption leaves of one."""

import io
from http.client import HTTPResponse
from typing import Any
from unittest.mock import Mock

import pytest

from azguard.accounts import exchanges


@pytest.mark.parametrize(
    ("place", "interrupted"), [(exchanges, "_WholeLines"), (exchanges, "_Timed"), (HTTPResponse, "__init__")]
)
def test_an_answer_that_ctrl_c_met_half_made_can_be_closed(
    monkeypatch: pytest.MonkeyPatch, place: Any, interrupted: str
) -> None:
    connection = Mock()
    connection.makefile.return_value = io.BufferedReader(io.BytesIO(b"HTTP/1.1 200 OK\r\n\r\n"))
    monkeypatch.setattr(place, interrupted, Mock(side_effect=KeyboardInterrupt))
    answer: Any = exchanges._WholeResponse.__new__(exchanges._WholeResponse)
    with pytest.raises(KeyboardInterrupt):
        answer.__init__(connection)
    answer.close()
    assert answer.isclosed()
