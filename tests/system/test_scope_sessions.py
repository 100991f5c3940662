"""The scope of real sessions: which commands of a script share what they have read."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from azguard.cache.scope import find_scope
from tests.support.places import REPOSITORY

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
_PRINT = "import os; from azguard.cache.scope import find_scope; print(find_scope(None, {}))"


@pytest.mark.skipif(shutil.which("ps") is None, reason="needs ps")
def test_without_proc_the_start_is_asked_of_ps_and_needs_no_zone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = find_scope(None, {}, session=os.getpid, proc=tmp_path)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    second = find_scope(None, {}, session=os.getpid, proc=tmp_path)
    assert (first, second) == (first, first)
    assert first.startswith(f"session-{os.getpid()}-")
    assert "leaderless" not in first


def _scopes(script: str, tmp_path: Path) -> list[str]:
    environ = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    # The outer shell collects the session's leader when it exits; a zombie would still be in /proc.
    done = subprocess.run(
        ["sh", "-c", 'setsid sh -c "$1"; true', "sh", script],
        cwd=tmp_path, env=environ, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return done.stdout.split()


@linux
def test_all_commands_of_one_script_share_a_scope_and_another_script_does_not(tmp_path: Path) -> None:
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(_PRINT)}"
    script = f"{command}; sh -c '{command.replace(chr(39), chr(34))}; true'; ({command}) | cat"
    one, two = _scopes(script, tmp_path), _scopes(script, tmp_path)
    assert [len(one), len(set(one)), len(two), len(set(two)), one[0] == two[0]] == [3, 1, 3, 1, False]


@linux
def test_the_commands_of_a_session_left_behind_share_a_scope(tmp_path: Path) -> None:
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(_PRINT)}"
    # The leader is the outer shell; the inner one goes on when it is gone.
    script = f"( while [ -e /proc/$$/stat ]; do sleep 0.01; done; {command}; {command} ) & echo $$"
    leader, *scopes = _scopes(script, tmp_path)
    assert len(scopes) == 2
    assert len(set(scopes)) == 1
    assert scopes[0].startswith(f"session-{leader}-leaderless")
