"""Every cell of the table in ``tests.faults.matrix``, against the truth in the proxy's log.

The cells wait more than they work, so a few are played at a time, each in one of a few processes that run command
lines inside. For each service, the first row of a single write and of an update have their DROP in a process of its
own, where signals, exit and start-up are the real ones; the other rows differ from it only in what is run in the same
way inside. All cells of a row are one test, which names those that are wrong.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import pytest

from tests.faults.matrix import CONTESTS, DONE, OUTAGES, ROWS, TWINS, Column, Rival, Row, Says
from tests.faults.scene import Story, play
from tests.support import azurites, files_world, thorough
from tests.support.cli_world import CliWorld

# One worker plays them all, and each once.
pytestmark = [pytest.mark.xdist_group("fault matrix"), pytest.mark.thorough]
_AT_A_TIME = 4
# Each cell writes two or three blobs, and an Azurite stands still for a second every ten minutes after 1,000 of them,
# longer after more.
_CELLS_OF_AN_AZURITE = 600
_BY_NAME = {row.name: row for row in ROWS}
# The last is the first of its group: such as ``blob``, or ``safe-update`` of an entity.
_FIRST_OF_GROUP = {(row.command.split()[0], row.service): row.name for row in reversed(ROWS)}.values()
# The same for each request that is spoilt.
_FIRST_OF_KIND = {(row.command.split()[0], row.service, row.spoilt): row.name for row in reversed(ROWS)}.values()
_OWN_PROCESS = {(row.command.startswith("safe-update"), row.service): row.name for row in reversed(ROWS)}.values()
# Whether a message is still hidden. What else judges a time is in ``tests.faults.ages``.
_JUDGES_A_TIME = ("message update", "message delete", "queue move")
# What the commands import only when they run.
_LATE = (
    "azguard.updates.recording",
    "azure.data.tables",
    "azure.storage.blob",
    "azure.storage.queue",
    "azure.core.pipeline.transport._requests_basic",
    "requests",
    "sqlite3",
)


@dataclass(frozen=True)
class Cell:
    """A row, a column, who else writes, and what must be said."""

    row: str
    column: Column
    says: Says
    rival: Rival | None = None
    every: bool = False

    @property
    def is_alone(self) -> bool:
        """Whether nothing else writes, and one request alone is spoilt."""
        return self.rival is None and not self.every

    def __str__(self) -> str:
        words = [self.row, self.column.value]
        return " x ".join([*words, *([self.rival.value] if self.rival else []), *(["every"] if self.every else [])])


def _is_played(row: Row, column: Column) -> bool:
    """Return whether a cell is not the same as another one, as far as this row is concerned."""
    if column in (Column.STORED_AFTER, Column.STORED_BEFORE):
        return row.name in _FIRST_OF_KIND
    if column.ahead_seconds:
        return row.command.startswith(_JUDGES_A_TIME)
    expected = DONE if column is Column.SLOW else row.says(TWINS[column]) if column in TWINS else None
    return row.name in _FIRST_OF_GROUP or expected is None or row.says(column).code != expected.code


def _choose(cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells of a default run: the first row of each group, each lost answer, and a fifth of the rest."""
    always = [cell for cell in cells if cell.row in _FIRST_OF_GROUP or (cell.column is Column.DROP and cell.is_alone)]
    others = [cell for cell in cells if cell not in always]
    return [*always, *thorough.share(others, 0)]


EVERY = (
    *(Cell(row.name, column, row.says(column)) for row in ROWS for column in Column if _is_played(row, column)),
    *(Cell(each.row, each.column, each.says, each.rival) for each in CONTESTS),
    *(Cell(each.row, each.column, each.says, every=True) for each in OUTAGES),
)
CELLS = EVERY if thorough.is_on() else _choose(EVERY)


@pytest.fixture(scope="module")
def stories(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[Cell, "Future[Story]"]]:
    """Play every cell that was asked for."""
    root = tmp_path_factory.mktemp("matrix")
    asked = [item.callspec.params.get("row") for item in request.session.items if hasattr(item, "callspec")]
    cells = [cell for row in _BY_NAME if row in asked for cell in CELLS if cell.row == row]
    with ExitStack() as stack:
        files = {}
        if any(_BY_NAME[cell.row].service == "file" for cell in cells):
            files["file"] = files_world.port(CliWorld(root, request.getfixturevalue("files_connection_string")))
        servers = [stack.enter_context(azurites.fresh()) for _ in range(0, len(cells), _CELLS_OF_AN_AZURITE)]
        context = get_context("forkserver")
        context.set_forkserver_preload([__name__, *_LATE])
        pool = stack.enter_context(ProcessPoolExecutor(_AT_A_TIME, context))
        yield {
            cell: pool.submit(_play, root, {**servers[number // _CELLS_OF_AN_AZURITE].ports, **files}, cell)
            for number, cell in enumerate(cells)
        }
        pool.shutdown(cancel_futures=True)


def _play(root: Path, ports: Mapping[str, int], cell: Cell) -> Story:
    process = cell.row in _OWN_PROCESS and cell.column is Column.DROP and cell.is_alone
    return play(root, ports, _BY_NAME[cell.row], cell.column, cell.rival, cell.every, process)


@pytest.mark.parametrize("row", _BY_NAME)
def test_what_is_said_is_true(stories: Mapping[Cell, "Future[Story]"], row: str) -> None:
    told = {str(cell): _judge(stories[cell], cell) for cell in CELLS if cell.row == row}
    lies = {cell: lie for cell, lie in told.items() if lie}
    assert lies == {}, "\n\n".join(f"{cell}: {lie}" for cell, lie in lies.items())


def test_every_unknown_has_its_reason() -> None:
    assert [str(cell) for cell in EVERY if (cell.says.code == 74) != bool(cell.says.why)] == []


def _judge(story: "Future[Story]", cell: Cell) -> str | None:
    error = story.exception()
    return _find_lie(story.result(), cell) if error is None else repr(error)


def _find_lie(story: Story, cell: Cell) -> str | None:
    """Compare the exit status with the table, and both with the log; return what is wrong."""
    row, code, times = _BY_NAME[cell.row], story.ran.code, len(story.etags)
    true_times = min(times, 1) if code == 74 or cell.says.gone else 1 if code == 0 else 0
    if row.repeatable or cell.says.twice:
        times = min(times, 1)
    if (code, times) != (cell.says.code, true_times):
        found = f"exit {code} and {times} commits, not {cell.says.code} and {true_times}"
        return "\n".join((found, story.ran.err, *story.log))
    if story.broken:
        return "\n".join(story.broken)
    return _find_wrong_etag(story, cell) or (_find_wrong_end(story, cell) if cell.is_alone else None)


def _find_wrong_etag(story: Story, cell: Cell) -> str | None:
    row = _BY_NAME[cell.row]
    if story.ran.code != 0 or story.etags[-1] is None or story.content is None:
        return None
    # After a rival's write, and where a refusal was the proof, the ETag may be beyond learning; a wrong one is
    # never told.
    certain = cell.rival is None and not row.repeatable and not row.partial
    right = [story.etags[-1]] if certain else [story.etags[-1], None]
    return None if story.told_etag in right else f"it told the ETag {story.told_etag}, not {right}"


def _find_wrong_end(story: Story, cell: Cell) -> str | None:
    """Return what is wrong with what is there afterwards, where nothing else wrote."""
    row, done = _BY_NAME[cell.row], story.ran.code == 0
    if done and story.content != row.leaves:
        return f"{story.content!r} is there, not {row.leaves!r}"
    lease = "leased" if cell.says.leased else row.lease_after
    if story.lease not in (None, lease) and (done or not row.repeatable):
        return f"the lease is {story.lease}, not {lease}"
    return None
