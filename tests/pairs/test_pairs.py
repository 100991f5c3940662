"""A share of the lines that ``python -m tests.pairs`` types, held to the same oracles."""

from pathlib import Path

import pytest

from tests.pairs.play import Tally, choose, play
from tests.pairs.stage import open_stage

_PARTS = 4
# One line in twenty: half a minute of processor time.
_SHARE = 0.05


@pytest.mark.parametrize("part", range(_PARTS))
def test_what_the_rules_refuse_ends_2_and_what_they_allow_does_not(
    tmp_path: Path, connection_string: str, files_connection_string: str, part: int
) -> None:
    account = ";FileEndpoint=".join((connection_string, files_connection_string.rpartition("FileEndpoint=")[2]))
    tally = Tally()
    with open_stage(tmp_path, account) as stage:
        for number, (_, lines) in enumerate(choose([], 1, _SHARE)):
            if number % _PARTS == part:
                play(stage, lines, tally)
    assert (tally.wrong, tally.lines > 0) == ([], True)
