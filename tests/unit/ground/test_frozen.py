from dataclasses import field, replace
from typing import Any

import pytest

from azguard.frozen import frozen


@frozen
class _Plain:
    name: str
    count: int = 1
    tags: list[str] = field(default_factory=list)


@frozen
class _Compiled:
    name: str
    count: int = 1
    tags: list[str] = field(default_factory=list)


_AT_FIRST = _Compiled.__init__
for _ in range(200):
    _Compiled("a")


def test_a_class_of_many_values_is_compiled() -> None:
    assert (_Plain.__init__.__qualname__, _Compiled.__init__ is _AT_FIRST) == (_AT_FIRST.__qualname__, False)


@pytest.mark.parametrize("made", [_Plain, _Compiled])
def test_a_value_has_what_was_given_and_else_the_default(made: Any) -> None:
    cases = [
        (made("a"), ("a", 1, [])),
        (made("a", 2, ["x"]), ("a", 2, ["x"])),
        (made(count=3, name="a"), ("a", 3, [])),
        (made("a", tags=["y"]), ("a", 1, ["y"])),
        (replace(made("a"), count=2), ("a", 2, [])),
    ]
    assert [(each.name, each.count, each.tags) for each, _ in cases] == [values for _, values in cases]
    assert made("a").tags is not made("a").tags
    assert repr(made("a")) == f"{made.__name__}(name='a', count=1, tags=[])"


@pytest.mark.parametrize("made", [_Plain, _Compiled])
@pytest.mark.parametrize(
    ("values", "named"),
    [((), {}), (("a",), {"other": 1}), ((), {"count": 1, "other": 1}), (("a", 1, [], 4), {})],
)
def test_arguments_that_the_fields_do_not_take_are_refused(made: Any, values: Any, named: Any) -> None:
    with pytest.raises(TypeError):
        made(*values, **named)
