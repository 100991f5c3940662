"""Exchanges: what an interruption leaves of one."""

import io
from typing import Any
from unittest.mock import Mock

import pytest

from azguard.accounts import exchanges


@pytest.mark.parametrize("interrupted", ["_Timed", "_WholeLines"])
def test_an_answer_that_ctrl_c_met_half_made_can_be_closed(monkeypatch: pytest.MonkeyPatch, interrupted: str) -> None:
    connection = Mock()
    connection.makefile.return_value = io.BufferedReader(io.BytesIO(b"HTTP/1.1 200 OK\r\n\r\n"))
    monkeypatch.setattr(exchanges, interrupted, Mock(side_effect=KeyboardInterrupt))
    answer: Any = exchanges._WholeResponse.__new__(exchanges._WholeResponse)
    with pytest.raises(KeyboardInterrupt):
        answer.__init__(connection)
    answer.close()
    assert answer.isclosed()
