"""The locks of one run, in the order in which it acquires them."""

from azguard.accounts import account
from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.locks.lock_blobs import LockRequest
from azguard.locks.run import list_in_order


def test_locks_of_one_name_in_two_accounts_are_two() -> None:
    accounts = [account.emulator({"blob": port}) for port in (1, 2)]
    a1, a2 = (LockRequest(Target(each, Address(Kind.BLOB, ("locks", "a")))) for each in accounts)
    b1, b2 = (LockRequest(Target(each, Address(Kind.BLOB, ("locks", "b")))) for each in accounts)
    assert list_in_order([b2, a2, b1, a1, a2]) == [a1, a2, b1, b2]
