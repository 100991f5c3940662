"""What cannot have happened one after the other is found, a stale read too, and nothing else."""

import random
from math import inf

from tests.support.cases import cases
from tests.traces.linear import COUNTER, REGISTER, Call, Model, describe


def add(began: float, ended: float = inf, answer: int | None = None) -> Call:
    return Call("add", began, ended, 1, answer)


def read(began: float, ended: float, answer: object) -> Call:
    return Call("read", began, ended, answer=answer)


def write(began: float, ended: float, value: object) -> Call:
    return Call("write", began, ended, value)


def append(began: float, ended: float, value: str, answer: tuple[str, ...] | None = None) -> Call:
    return Call("append", began, ended, value, answer)


POSSIBLE: dict[str, tuple[Model, list[Call]]] = {
    "nothing": (COUNTER, []),
    "one after the other": (COUNTER, [add(0, 1, 1), add(2, 3, 2), read(4, 5, 2)]),
    "at the same time, in either order": (COUNTER, [add(0, 5, 2), add(1, 4, 1), read(2, 3, 1)]),
    "without an answer, and done": (COUNTER, [add(0), read(1, 2, 0), read(3, 4, 1)]),
    "without an answer, and never done": (COUNTER, [add(0), add(1, 2, 1), read(3, 4, 1)]),
    "told without its sum": (COUNTER, [add(0, 1), read(2, 3, 1)]),
    "a read beside a write": (REGISTER, [write(0, 1, "a"), write(2, 5, "b"), read(3, 4, "a"), read(3, 6, "b")]),
    "lines": (REGISTER, [append(0, 3, "a", ("b", "a")), append(1, 2, "b", ("b",)), read(4, 5, ("b", "a"))]),
}
IMPOSSIBLE: dict[str, tuple[Model, list[Call]]] = {
    "a stale read": (COUNTER, [add(0, 1, 1), add(2, 3, 2), read(4, 5, 1)]),
    "a stale read of a register": (REGISTER, [write(0, 1, "a"), write(2, 3, "b"), read(4, 5, "a")]),
    "an old value after a new one": (REGISTER, [write(0, 1, "a"), write(2, 9, "b"), read(3, 4, "b"), read(5, 6, "a")]),
    "a value of the future": (REGISTER, [read(0, 1, "a"), write(2, 3, "a")]),
    "a lost add": (COUNTER, [add(0, 1, 1), add(0, 1, 1), read(2, 3, 2)]),
    "an add that was done twice": (COUNTER, [add(0, 1, 1), read(2, 3, 2)]),
    "an add without an answer that was done twice": (COUNTER, [add(0), read(1, 2, 2)]),
    "lines that are lost": (REGISTER, [append(0, 1, "a"), append(2, 3, "b", ("b",))]),
}


@cases("story", *list(POSSIBLE))
def test_a_history_with_an_order_has_one(story: str) -> None:
    model, history = POSSIBLE[story]
    assert describe(history, model) is None


@cases("story", *list(IMPOSSIBLE))
def test_a_history_without_an_order_is_found(story: str) -> None:
    model, history = IMPOSSIBLE[story]
    assert describe(history, model) is not None


def test_the_call_that_fits_nowhere_is_shown_with_those_before_it() -> None:
    assert describe([add(0, 1, 1), add(2, 3, 2), read(4, 5, 1)], COUNTER) == (
        "0.000 to 1.000  add 1 -> 1",
        "2.000 to 3.000  add 1 -> 2",
        "> 4.000 to 5.000  read None -> 1",
    )


def test_a_long_history_of_many_callers_takes_a_moment() -> None:
    dice, history = random.Random(1), list[Call]()
    for moment in range(400):
        answer = moment + 1 if dice.random() < 0.7 else None
        history.append(add(moment - dice.uniform(0, 4), moment + dice.uniform(0, 4), answer))
        if dice.random() < 0.05:
            history.append(add(moment))
    assert describe(history, COUNTER) is None
    assert describe([*history[:60], read(100, 101, 40)], COUNTER) is not None
