"""How much is tried: by default a few of many examples, with ``--thorough`` or ``-m thorough`` all of them.

A run of the whole suite plays a quarter of the cases of each long table, and half of a short one, always the same ones.
All are played with ``--thorough``, as in CI, and where a run is of some tests: of a path, of ``-k`` or of ``-m``.
"""

import zlib
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TypeVar

import pytest

Value = TypeVar("Value")

_FEW = 5
_LONG = 5
_WHOLE = "is_whole"
_is_thorough = False
_is_alone = False
_is_whole = False


def choose(config: pytest.Config) -> None:
    """Do what the options of this run say; the modules of tests are read after this."""
    global _is_thorough, _is_alone, _is_whole  # noqa: PLW0603  # decorators read it
    options = config.option
    _is_alone = options.markexpr == "thorough"
    _is_thorough = options.thorough or _is_alone
    # A worker is told, since its own line names no path.
    told = getattr(config, "workerinput", {}).get(_WHOLE)
    is_named = config.args_source is not pytest.Config.ArgsSource.TESTPATHS or options.keyword or options.markexpr
    _is_whole = not is_named if told is None else told


def tell(worker: dict[str, object]) -> None:
    """Tell a worker whether this is a run of the whole suite."""
    worker[_WHOLE] = _is_whole


def choose_cases(metafunc: pytest.Metafunc) -> None:
    """Leave out those cases of a table that other runs play, before pytest makes a test of each.

    Half of a short table is left, and a quarter of a long one, in no order of theirs, but always the same cases. A
    marked test has chosen by itself.
    """
    table = metafunc._calls
    if _is_thorough or not _is_whole or not table or metafunc.definition.get_closest_marker("thorough"):
        return
    test = metafunc.definition.nodeid
    metafunc._calls = _choose(table, [f"{test}[{case.id}]" for case in table])


def choose_rows(table: Sequence[Value]) -> list[Value]:
    """Leave out those rows of a table of ``cases`` that other runs play, as of a parametrized test."""
    return (
        list(table) if _is_thorough or not _is_whole else _choose(table, [str(number) for number in range(len(table))])
    )


def _choose(table: Sequence[Value], names: Sequence[str]) -> list[Value]:
    mixed = sorted(range(len(table)), key=lambda at: zlib.crc32(names[at].encode()))
    chosen = mixed[:: 4 if len(table) >= _LONG else 2]
    return [table[at] for at in sorted(chosen)]


def count(every: int, few: int = _FEW) -> int:
    """Return how often to do what is done ``every`` times by a thorough run."""
    return every if is_on() else min(few, every)


def some(values: Iterable[Value], few: int = _FEW) -> list[Value]:
    """Return the values to try: all, or the first ``few``."""
    return list(values if is_on() else islice(values, few))


def share(values: Iterable[Value], number: int) -> list[Value]:
    """Return the values to try in the test of this number: all, or every fifth, in the next test the next to them."""
    return list(values if is_on() else islice(values, number % _FEW, None, _FEW))


def is_alone() -> bool:
    """Return whether this run plays nothing else, and so has the time for the deepest bounds."""
    return _is_alone


def is_whole() -> bool:
    """Return whether this is a run of the whole suite."""
    return _is_whole


def is_on() -> bool:
    """Return whether this run is thorough."""
    return _is_thorough
