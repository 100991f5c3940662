"""What is in a resource goes with it: deleting that has to be meant."""

import pytest

from azguard.accounts.account import Target, emulator
from azguard.address import parse
from azguard.errors import Changed, Interrupted
from azguard.requests.deadline import Deadline
from azguard.resources.lifecycles import Contents, require_empty
from tests.support.cases import cases

TARGET = Target(emulator(), parse("container:site").address)
FULL = Contents(3, "blobs", more=True)


def refuse(found: Contents) -> None:
    raise Interrupted(f"not {found}")


@cases("confirm", None, refuse)
def test_an_empty_resource_is_deleted_without_a_question(confirm: object) -> None:
    require_empty(lambda *_: Contents(0, "blobs"), TARGET, Deadline(), confirm)  # type: ignore[arg-type]  # either


def test_contents_are_not_deleted_where_no_person_can_be_asked() -> None:
    with pytest.raises(Changed) as caught:
        require_empty(lambda *_: FULL, TARGET, Deadline(), None)
    assert (caught.value.message, caught.value.address, caught.value.facts) == (
        "site is not empty: at least 3 blobs would be deleted with it",
        "container:site",
        {"contents": 3, "contents_counted": False},
    )


def test_what_stays_is_not_said_to_be_deleted() -> None:
    with pytest.raises(Changed, match=r"at least 3 blobs would be deleted$"):
        require_empty(lambda *_: FULL, TARGET, Deadline(), None, stays=True)


def test_contents_are_not_deleted_if_the_answer_is_no() -> None:
    with pytest.raises(Interrupted, match="not at least 3 blobs"):
        require_empty(lambda *_: FULL, TARGET, Deadline(), refuse)


def test_contents_are_deleted_if_the_answer_is_yes() -> None:
    asked: list[Contents] = []
    require_empty(lambda *_: FULL, TARGET, Deadline(), asked.append)
    assert asked == [FULL]
