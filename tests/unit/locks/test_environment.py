"""The locks that are held around us, as variables tell of them."""

from azguard.accounts import account
from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.locks import environment
from azguard.locks.environment import LockLine, OuterLock
from tests.support.cases import cases

LOCK = Target(account.emulator({"blob": 1}), Address(Kind.BLOB, ("locks", "a")))
LINE = LockLine("blob:locks/a", LOCK.endpoint, "id", "7")


def test_what_is_exported_is_found_again() -> None:
    lines = [LockLine("blob:locks/b", LOCK.endpoint, "other", "1", "15"), LINE]
    found = environment.export_lines(lines)
    assert (environment.read_lines(found), environment.find_outer_lock(LOCK, found)) == (lines, OuterLock("id", 7))


def test_a_lock_that_no_process_around_us_guards_has_its_term() -> None:
    found = environment.export_lines([LINE._replace(duration="60")])
    assert environment.find_outer_lock(LOCK, found) == OuterLock("id", 7, 60)


def test_a_command_under_lock_run_is_told_of_no_term() -> None:
    around = environment.export_lines([LINE._replace(duration="60")])
    inside = {**around, **environment.export_locks([(LOCK, "id", 7)])}
    assert environment.find_outer_lock(LOCK, inside) == OuterLock("id", 7)


@cases(
    "changes",
    {"AZGUARD_LOCK": ""},
    {"AZGUARD_LEASE_ID": ""},
    {"AZGUARD_LEASE_ID": "id\nother"},
    {"AZGUARD_FENCE": "x"},
    {"AZGUARD_LOCK_ENDPOINT": "https://another"},
)
def test_variables_that_do_not_fit_tell_of_no_lock(changes: dict[str, str]) -> None:
    assert environment.find_outer_lock(LOCK, {**environment.export_lines([LINE]), **changes}) is None
