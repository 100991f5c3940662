"""The record of a lock's holder, and the order in which one run acquires its locks."""

from types import SimpleNamespace

import pytest

from azguard.accounts import account
from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import Changed, Locked
from azguard.leases import owner_records, state
from azguard.leases.owner_records import Moved
from azguard.leases.owners import Owner
from azguard.leases.state import Version
from azguard.locks import lock_blobs
from azguard.locks.lock_blobs import LockRequest
from azguard.locks.run import list_in_order
from azguard.updates.resource import choose_op
from tests.support.fake_resource import TARGET, Clock


def test_a_table_has_one_lock_however_the_case_of_its_name_is_typed() -> None:
    typed = [Target(TARGET.account, Address(Kind.TABLE, (name,))) for name in ("Orders", "orders")]
    locks = [str(lock_blobs.choose_lock_blob(table, "locks").address) for table in typed]
    keys = [choose_op(Target(TARGET.account, Address(Kind.ENTITY, (name, "eu", "1"))), "run-71") for name in ("T", "t")]
    assert (locks, keys[0] == keys[1]) == (["blob:locks/table/orders"] * 2, True)


def test_a_record_that_is_never_the_version_just_read_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()

    def refuse(*words: object) -> None:
        clock.sleep(1)
        raise Changed("changed")

    monkeypatch.setattr(state, "look", lambda *words: SimpleNamespace(version=Version('"0x1"', {})))
    monkeypatch.setattr(owner_records, "change_metadata", refuse)
    owner = Owner("alice", "build1", 7, "sh", "2026-11-23T10:00:00Z")
    with pytest.raises(Changed):
        lock_blobs.write_owner_and_fence(LockRequest(TARGET), TARGET, "id", owner, None, clock.deadline(5))
    assert clock() == 1005


def test_a_lock_on_which_another_wrote_after_its_record_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = Moved('"0x1"', None, None, None, attempts=2)
    monkeypatch.setattr(owner_records, "change_metadata", lambda *words: moved)
    owner, known = Owner("alice", "build1", 7, "sh", "2026-11-23T10:00:00Z"), Version('"0x1"', {})
    with pytest.raises(Locked):
        lock_blobs.write_owner_and_fence(LockRequest(TARGET), TARGET, "id", owner, known, Clock().deadline(5))


def test_locks_of_one_name_in_two_accounts_are_two() -> None:
    accounts = [account.emulator({"blob": port}) for port in (1, 2)]
    a1, a2 = (LockRequest(Target(each, Address(Kind.BLOB, ("locks", "a")))) for each in accounts)
    b1, b2 = (LockRequest(Target(each, Address(Kind.BLOB, ("locks", "b")))) for each in accounts)
    assert list_in_order([b2, a2, b1, a1, a2]) == [a1, a2, b1, b2]
