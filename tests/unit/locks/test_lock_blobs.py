"""The record of a lock's holder, written under its lease."""

import pytest

from azguard.errors import Changed
from azguard.leases import owner_records
from azguard.leases.owner_records import Version
from azguard.leases.owners import Owner
from azguard.locks import lock_blobs
from azguard.locks.settings import LockRequest
from tests.support.fake_resource import TARGET, Clock


def test_a_record_that_is_never_the_version_just_read_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()

    def refuse(*words: object) -> None:
        clock.sleep(1)
        raise Changed("changed")

    monkeypatch.setattr(owner_records, "read_version", lambda *words: Version('"0x1"', {}))
    monkeypatch.setattr(owner_records, "change_metadata", refuse)
    owner = Owner("alice", "build1", 7, "sh", "2026-11-23T10:00:00Z")
    with pytest.raises(Changed):
        lock_blobs.write_owner_and_fence(LockRequest(TARGET), TARGET, "id", owner, None, clock.deadline(5))
    assert clock() == 1005
