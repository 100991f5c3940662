"""A share of the lines that ``python -m tests.pairs`` types, held to the same oracles, and the table that it writes."""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.pairs.__main__ import MARKED, PAGE, read_table, write_table
from tests.pairs.described import describe_all
from tests.pairs.play import Tally, choose, list_played, play
from tests.pairs.samples import NOT_PLAYED, NOT_TYPED
from tests.pairs.stage import Stage, join, open_stage
from tests.support import thorough

_PARTS = 12
# Of all lines: twenty seconds of processor time, and one minute if all is tried.
_SHARE, _LARGER_SHARE = 0.03, 0.1


@pytest.fixture(scope="module")
def stage(
    tmp_path_factory: pytest.TempPathFactory, connection_string: str, files_connection_string: str
) -> Iterator[Stage]:
    with open_stage(tmp_path_factory.mktemp("pairs"), join(connection_string, files_connection_string)) as opened:
        yield opened


@pytest.mark.parametrize("part", range(_PARTS))
def test_what_the_rules_refuse_ends_2_and_what_they_allow_does_not(stage: Stage, part: int) -> None:
    tally = Tally()
    for each in choose(list_played()[part::_PARTS], 1, _LARGER_SHARE if thorough.is_on() else _SHARE):
        tally.add(play(stage, each))
    assert (tally.wrong, tally.lines > 0) == ([], True)


def test_the_table_names_all_commands_that_are_played_and_none_was_wrong() -> None:
    nouns = Counter(each.name.split()[0] for each in list_played())
    found = MARKED.search(PAGE.read_text("utf-8"))
    rows = read_table(PAGE.read_text("utf-8"))
    assert found is not None
    assert found[0] == write_table(rows)
    assert {noun: (counts[0], counts[-1]) for noun, counts in rows.items()} == {
        noun: (count, 0) for noun, count in nouns.items()
    }


def test_what_is_not_played_is_a_command_and_what_is_not_typed_an_option() -> None:
    all_commands = describe_all()
    assert set(NOT_PLAYED) <= {each.name for each in all_commands}
    assert set(NOT_TYPED) <= {option["names"][0] for each in all_commands for option in each.data["options"]}
