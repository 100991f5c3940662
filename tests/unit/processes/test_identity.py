"""Processes as the kernel describes them."""

from pathlib import Path

import pytest

from azguard.processes import identity
from azguard.processes.identity import Process

_REST = "4194304 0 0 0 0 0 0 0 0 20 0 1 0 98765 0 0"


def _proc(folder: Path, pid: int, stat: str) -> Path:
    (folder / "self").mkdir()
    (folder / str(pid)).mkdir()
    (folder / str(pid) / "stat").write_text(stat)
    return folder


def test_a_name_may_hold_blanks_and_brackets(tmp_path: Path) -> None:
    proc = _proc(tmp_path, 11, f"11 (a ) b (c) S 7 8 9 34816 11 {_REST}\n")
    assert identity.find(11, proc) == Process(
        pid=11, parent=7, group=8, started=98765, is_stopped=False, has_ended=False, name="a ) b (c"
    )


@pytest.mark.parametrize(
    ("state", "is_stopped", "has_ended"),
    [("R", False, False), ("T", True, False), ("t", True, False), ("Z", False, True), ("X", False, True)],
)
def test_a_state_tells_if_a_process_has_stopped(tmp_path: Path, state: str, is_stopped: bool, has_ended: bool) -> None:
    found = identity.find(11, _proc(tmp_path, 11, f"11 (a) {state} 7 8 9 34816 11 {_REST}\n"))
    assert found is not None
    assert (found.is_stopped, found.has_ended) == (is_stopped, has_ended)


def test_a_process_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    assert identity.find(12, _proc(tmp_path, 11, "")) is None


def test_a_process_whose_description_is_empty_is_not_found(tmp_path: Path) -> None:
    assert identity.find(11, _proc(tmp_path, 11, "")) is None


def test_a_process_that_is_hidden_from_this_user_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> object:
        raise PermissionError

    monkeypatch.setattr("builtins.open", refuse)
    assert identity.find(11, tmp_path) is None
