"""Every cell of the table in ``tests.faults.matrix``, against the truth in the proxy's log."""

from pathlib import Path

import pytest

from azguard.emulator.state import Azurite
from tests.cli_world import Ran
from tests.faults.matrix import CONTESTS, ROWS, Column, Contest, Row, Says
from tests.faults.scene import Scene, scene, told

_BY_NAME = {row.name: row for row in ROWS}


@pytest.mark.parametrize("column", Column, ids=lambda column: column.value)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_is_said_is_true(tmp_path: Path, storage: Azurite, row: Row, column: Column) -> None:
    with scene(tmp_path, storage.ports["blob"], row, column) as played:
        # One column in processes of their own, where signals, exit and start-up are the real ones.
        ran = played.play(process=column is Column.DROP)
        _check(played, ran, row.says(column))
        if ran.code == 0:
            assert played.content() == row.leaves
        assert not played.is_leased()


@pytest.mark.parametrize("contest", CONTESTS, ids=lambda each: f"{each.row}-{each.column.value}-{each.rival.value}")
def test_what_is_said_is_true_when_somebody_else_writes_meanwhile(
    tmp_path: Path, storage: Azurite, contest: Contest
) -> None:
    row = _BY_NAME[contest.row]
    with scene(tmp_path, storage.ports["blob"], row, contest.column, contest.rival) as played:
        _check(played, played.play(process=False), contest.says)


def test_every_unknown_has_its_reason() -> None:
    says = [each for row in ROWS for each in row.cells.values()] + [each.says for each in CONTESTS]
    assert [each for each in says if (each.code == 74) != bool(each.why)] == []


def _check(played: Scene, ran: Ran, says: Says) -> None:
    """Compare an exit status with the table, and both with the log."""
    etags = [each.etag for each in played.commits]
    story = [(each.fault.value, each.request.method, each.request.path, each.status) for each in played.log]
    assert (ran.code, len(etags)) == (says.code, _times(says.code, len(etags))), f"{ran.err}\n{story}"
    if ran.code == 0 and etags[0] is not None and played.row.leaves is not None:
        # After a rival's write the ETag of ours may be beyond learning; a wrong one is never told.
        assert told(ran)["etag"] in ([etags[0]] if played.rival is None else [etags[0], None])


def _times(code: int, found: int) -> int:
    """Return how often the write must have been committed for an exit status to be true."""
    return min(found, 1) if code == 74 else 1 if code == 0 else 0
