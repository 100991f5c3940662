"""How much is tried: by default a few of many examples, with ``--thorough`` or ``-m thorough`` all of them."""

from collections.abc import Iterable
from itertools import islice
from typing import TypeVar

import pytest

Value = TypeVar("Value")

_FEW = 5
_is_thorough = False


def choose(config: pytest.Config) -> None:
    """Do what the options of this run say; the modules of tests are read after this."""
    global _is_thorough  # noqa: PLW0603  # decorators read it
    _is_thorough = config.getoption("--thorough") or config.getoption("-m") == "thorough"


def count(every: int, few: int = _FEW) -> int:
    """Return how often to do what is done ``every`` times by a thorough run."""
    return every if is_on() else min(few, every)


def some(values: Iterable[Value], few: int = _FEW) -> list[Value]:
    """Return the values to try: all, or the first ``few``."""
    return list(values if is_on() else islice(values, few))


def share(values: Iterable[Value], number: int) -> list[Value]:
    """Return the values to try in the test of this number: all, or every fifth, in the next test the next to them."""
    return list(values if is_on() else islice(values, number % _FEW, None, _FEW))


def is_on() -> bool:
    """Return whether this run is thorough."""
    return _is_thorough
