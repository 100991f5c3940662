"""A table of cases as one test: to collect an item and set it up takes longer than most cases of pure values.

``cases`` takes the names that ``pytest.mark.parametrize`` takes, and then each row. Each case that fails is reported by
itself, with its name, and all are tried. Fixtures are shared by all cases: a test that changes them is parametrized
instead.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest

_LONGEST_NAME = 80


def cases(
    names: str | tuple[str, ...], *table: Any, ids: Callable[[Any], object] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call the test with each row of the table; ``ids`` names the value of a case."""
    wanted = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    rows = [_read_row(row, len(wanted)) for row in table]
    assert rows, "a table without a case proves nothing"

    def wrap(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def try_all(subtests: pytest.Subtests, **fixtures: Any) -> None:
            own = {"subtests": subtests} if "subtests" in parameters else {}
            for values in rows:
                try:
                    test(**dict(zip(wanted, values, strict=True)), **fixtures, **own)
                except (Exception, pytest.fail.Exception):  # reported, and the next case is tried
                    with subtests.test(_name(values, ids)):
                        raise

        signature = inspect.signature(test)
        parameters = signature.parameters
        kept = [each for name, each in parameters.items() if name not in {*wanted, "subtests"}]
        added = inspect.Parameter("subtests", inspect.Parameter.KEYWORD_ONLY)
        try_all.__signature__ = signature.replace(parameters=[*kept, added])  # type: ignore[attr-defined]  # pytest reads it, and typeshed knows no such field
        return try_all

    return wrap


def _read_row(row: Any, count: int) -> tuple[Any, ...]:
    if count == 1:
        return (row,)
    values = tuple(row)
    assert len(values) == count, row
    return values


def _name(values: tuple[Any, ...], ids: Callable[[Any], object] | None) -> str:
    shown = ", ".join(repr(each) if ids is None else str(ids(each)) for each in values)
    return shown if len(shown) <= _LONGEST_NAME else f"{shown[:_LONGEST_NAME]}…"
