"""Errors are built, never edited: another one is made of them."""

import copy
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from azguard.errors import AzguardError, GaveUp, Locked
from tests.support.cases import cases


def caught() -> Locked:
    with pytest.raises(Locked) as found:
        fail()
    return found.value


def fail() -> None:
    raise Locked("it is leased", address="blob:a/b", facts={"line": 7}) from OSError("the line is dead")


def test_another_error_has_the_changed_fields_and_the_others_as_they_were() -> None:
    error = caught()
    other = error.but(message="it is leased by this scope", hint="release it")
    assert (type(other), other.message, other.hint, other.address, other.facts, str(other)) == (
        Locked,
        "it is leased by this scope",
        "release it",
        "blob:a/b",
        {"line": 7},
        "it is leased by this scope",
    )
    assert (error.message, error.hint) == ("it is leased", None)


def test_another_error_comes_from_where_the_first_did() -> None:
    error = caught()
    other = error.but(hint="release it")
    assert (other.__traceback__, other.__cause__) == (error.__traceback__, error.__cause__)


def test_an_exit_status_that_was_asked_for_stands_instead_of_the_kind_s() -> None:
    other = GaveUp("it is busy").but(exit_status=3)
    assert (other.exit_code, other.but(hint="wait").exit_code, other.as_json()["exit_code"]) == (3, 3, 3)
    assert (GaveUp.exit_code, GaveUp("it is busy").exit_code) == (75, 75)


@cases("name", *(each.name for each in fields(AzguardError)), "kind", "exit_code", "retriable", "of")
def test_nothing_of_an_error_can_be_set(name: str) -> None:
    error = Locked("it is leased")
    before = dict(vars(error))
    with pytest.raises(FrozenInstanceError):
        setattr(error, name, "other")
    assert vars(error) == before


def test_nothing_of_an_error_can_be_taken_away() -> None:
    error = Locked("it is leased", hint="release it")
    with pytest.raises(FrozenInstanceError):
        del error.hint
    assert error.hint == "release it"


@cases("name", "facts", "values")
def test_the_facts_of_an_error_cannot_be_changed(name: str) -> None:
    given: dict[str, Any] = {"line": 7}
    error = Locked("it is leased").but(**{name: given})
    given["line"] = 8
    with pytest.raises(TypeError):
        getattr(error, name)["line"] = 9
    assert getattr(error, name) == {"line": 7}


def test_an_error_is_raised_and_noted_like_any_other() -> None:
    @contextmanager
    def passing() -> Iterator[None]:
        yield

    with pytest.raises(Locked) as found, passing():
        fail()
    error = found.value.with_traceback(None)
    error.add_note("twice")
    error.__context__ = OSError("before")
    error.__suppress_context__ = False
    assert (error.__notes__, error.__traceback__, str(error.__cause__), str(error.__context__)) == (
        ["twice"],
        None,
        "the line is dead",
        "before",
    )


@cases("again", copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error)))
def test_an_error_can_be_copied_and_sent_to_another_process(again: Callable[[Any], Any]) -> None:
    error = Locked("it is leased", address="blob:a/b", facts={"line": 7}, values={"name": "a"}, exit_status=3)
    error.add_note("twice")
    other = again(error)
    assert (vars(other), type(other), other.args) == (vars(error), Locked, ("it is leased",))
