"""Nothing is lost, and nothing is doubled, by random lines whose answers are dropped, doubled, late or cut."""

from pathlib import Path

import pytest

from azguard.emulators.azurite_process import Azurite
from tests.faults import histories
from tests.support import thorough


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [1])
def test_each_line_left_what_its_status_says(
    tmp_path: Path, azurite: Azurite, files_connection_string: str, seed: int
) -> None:
    with histories.begin(tmp_path, azurite, files_connection_string, seed, share=0.3) as history:
        for _ in range(thorough.count(100, 30)):
            assert history.step() is None
        assert history.judge_all() == []
        assert history.statuses[0] > 0
