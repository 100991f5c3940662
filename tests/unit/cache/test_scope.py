"""The scope: whose reads guard whose writes."""

from pathlib import Path

import pytest

from azguard.cache.scope import find_scope
from azguard.errors import UsageError
from tests.support.cases import cases


def _proc(folder: Path, leader: int, stat: str) -> Path:
    (folder / "self").mkdir(parents=True)
    (folder / "sys/kernel/random").mkdir(parents=True)
    (folder / "sys/kernel/random/boot_id").write_text("1f3a9c02-aaaa-bbbb-cccc-000000000000\n")
    (folder / str(leader)).mkdir()
    (folder / str(leader) / "stat").write_text(stat)
    return folder


def test_the_option_wins_over_the_variable() -> None:
    assert find_scope("mine", {"AZGUARD_SCOPE": "other"}) == "mine"


def test_the_variable_wins_over_the_session() -> None:
    assert find_scope(None, {"AZGUARD_SCOPE": "run 4711"}) == "run 4711"


@cases(("option", "environ"), [("", {}), ("  ", {}), (None, {"AZGUARD_SCOPE": ""}), ("", {"AZGUARD_SCOPE": "x"})])
def test_an_empty_scope_is_refused(option: str | None, environ: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="is empty"):
        find_scope(option, environ)


@cases("text", ["a\nb", "a\0b", "\udcff"])
def test_a_scope_that_cannot_be_shown_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="cannot be shown"):
        find_scope(text, {})


def test_a_session_is_named_by_its_leader_start_and_boot(tmp_path: Path) -> None:
    fields = "S 1 4711 4711 34816 4711 4194304 0 0 0 0 0 0 0 0 20 0 1 0 98765 0 0"
    proc = _proc(tmp_path, 4711, f"4711 (a ) strange (name) {fields}\n")
    assert find_scope(None, {}, session=lambda: 4711, proc=proc) == "session-4711-98765-1f3a9c02"


def test_a_session_whose_leader_has_exited_has_a_name_of_its_own(tmp_path: Path) -> None:
    proc = _proc(tmp_path, 1, "")
    assert find_scope(None, {}, session=lambda: 4711, proc=proc) == "session-4711-leaderless-1f3a9c02"


@cases("number", [None, 0])
def test_without_a_session_to_tell_the_scope_is_default(number: int | None) -> None:
    assert find_scope(None, {}, session=lambda: number) == "default"
