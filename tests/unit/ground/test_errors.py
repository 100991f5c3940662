"""Errors are built, never edited: another one is made of them."""

import pytest

from azguard.errors import GaveUp, Locked


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
    assert (other.exit_code, other.but(hint="wait").exit_code, other.known()["exit_code"]) == (3, 3, 3)
    assert (GaveUp.exit_code, GaveUp("it is busy").exit_code) == (75, 75)
