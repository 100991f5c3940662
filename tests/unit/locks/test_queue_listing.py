"""What one look shows of a lock and its queue, in whatever order the container is listed, and however much is in it."""

import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.leases import state as lease_state
from azguard.leases.owners import READER, TICKET
from azguard.leases.state import LeaseState
from azguard.locks import queue
from azguard.locks.queue import QueueLook
from azguard.requests.deadline import Deadline
from tests.support.listed_account import ListedAccount, item

LOCK = Address(Kind.BLOB, ("locks", "deploy"))
OWN = item("deploy", metadata={"azguardfence": "7"})
NAMED = (
    item("deploy!0000000002", metadata={TICKET: "two"}),
    item("deploy!0000000010", metadata={TICKET: "ten"}),
    item("deploy!reader-1", "leased", metadata={READER: "1"}),
)
# In an account with a hierarchical namespace what is in a folder comes before it; and a space comes before the mark.
OTHERS = (item("deploy/x"), item("deploy 2"), item("deploy-2", "leased"))


def look(*items: Any) -> QueueLook:
    return queue.look(Target(ListedAccount({"locks": items}).account, LOCK), Deadline(1))


def describe(seen: QueueLook) -> tuple[bool, list[int], int]:
    return seen.lock is not None, [each.number for each in seen.tickets], len(seen.readers)


def test_the_order_of_the_listing_does_not_matter() -> None:
    assert {str(describe(look(*order))) for order in itertools.permutations((OWN, *NAMED[:2], *OTHERS))} == {
        str((True, [2, 10], 0))
    }


@pytest.mark.parametrize("has_lock", [True, False])
def test_what_stands_behind_a_full_page_is_found(monkeypatch: pytest.MonkeyPatch, *, has_lock: bool) -> None:
    asked: list[str] = []

    def look_at(target: Target, _: Deadline) -> LeaseState:
        asked.append(str(target.address))
        return SimpleNamespace(answered_at=None, metadata={})  # type: ignore[return-value]  # it is not looked at

    monkeypatch.setattr(lease_state, "look", look_at)
    crowd = [item(f"deploy/{number:03}") for number in range(120)]
    before = [OWN] if has_lock else []
    assert describe(look(*before, *crowd, *NAMED)) == (True, [2, 10], 1)
    assert asked == ([] if has_lock else ["blob:locks/deploy"])
