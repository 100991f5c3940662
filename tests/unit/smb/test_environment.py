"""The files that are locked around us, as variables tell of them."""

import json

import pytest

from azguard.errors import LockLost, UsageError
from azguard.smb.file_lock import ByteRange, FileLock, Share, export_lock, find_outer_lock
from tests.support.cases import cases
from tests.support.smb_locks import file_lock

FIRST = file_lock(byte_range=ByteRange(0, 10))


def test_a_lock_is_found_again_beside_the_one_around_it() -> None:
    outer = export_lock(file_lock("b.lock"), {})
    inside = export_lock(file_lock(), outer)
    found = [find_outer_lock(each, inside) for each in (file_lock(), file_lock("b.lock"), file_lock("c.lock"))]
    assert [each and each.name for each in found] == ["file:team/a.lock", "file:team/b.lock", None]
    assert inside["AZGUARD_FILE_LOCK"] == "file:team/b.lock\nfile:team/a.lock"


def test_smb_does_not_tell_capitals_from_small_letters() -> None:
    assert find_outer_lock(file_lock("A.Lock"), export_lock(file_lock(), {})) is not None


@cases(
    ("outer", "inner"),
    (file_lock(), file_lock(share=Share.READ)),
    (file_lock(), FIRST),
    (FIRST, file_lock()),
    (FIRST, file_lock(byte_range=ByteRange(9, 1))),
    (file_lock(is_shared=True), file_lock()),
    (file_lock(), file_lock(is_shared=True)),
)
def test_a_lock_that_would_wait_for_its_own_end_is_refused(outer: FileLock, inner: FileLock) -> None:
    with pytest.raises(UsageError):
        find_outer_lock(inner, export_lock(outer, {}))


def test_readers_keep_no_other_readers_out() -> None:
    outer = export_lock(file_lock(is_shared=True), {})
    beside = file_lock(byte_range=ByteRange(0, 1), is_shared=True)
    assert (find_outer_lock(file_lock(is_shared=True), outer) is None, find_outer_lock(beside, outer)) == (False, None)


def test_bytes_that_do_not_overlap_are_another_lock() -> None:
    assert find_outer_lock(file_lock(byte_range=ByteRange(10, 1)), export_lock(FIRST, {})) is None


def test_a_lock_whose_process_has_ended_is_lost() -> None:
    variables = export_lock(file_lock(), {})
    (told,) = json.loads(variables["AZGUARD_FILE_LOCKS"])
    with pytest.raises(LockLost):
        find_outer_lock(file_lock(), {"AZGUARD_FILE_LOCKS": json.dumps([{**told, "birth": "another"}])})


@cases("text", "", "x", "{}", "[1]", '[{"name": "x"}]', "3")
def test_variables_that_cannot_be_read_tell_of_no_lock(text: str) -> None:
    assert find_outer_lock(file_lock(), {"AZGUARD_FILE_LOCKS": text}) is None
