"""After a lost answer, a version is ours only where no other program can have made it, and have kept the lineage."""

import uuid
from collections.abc import Callable

import pytest

from azguard.accounts.account import Account, Auth, Target
from azguard.address import Address, Kind
from azguard.files import directories, entries
from azguard.files.guarding import Guarding
from azguard.guards.resolve import Conditions
from azguard.leases import owner_records
from azguard.leases.state import Version
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import fresh_op
from azguard.requests.results import Written
from azguard.resources import lifecycles
from azguard.wire.connections import Reply
from azguard.wire.failures import Broken, BrokenAnswer
from tests.support.answering_client import AnsweringClient, Asked, reply
from tests.support.no_records import NoRecords

_META = "x-ms-meta-"
_THEIRS = '"9"'
_LEASE = str(uuid.UUID(int=1))


class Service(AnsweringClient):
    """Applies the first write, loses its answer, and then has another version, whose writer has kept the metadata."""

    def __init__(self) -> None:
        self._told: dict[str, str] | None = None
        self._version = '"1"'

    def answer(self, asked: Asked) -> Reply:
        if asked.method == "PUT":
            assert self._version != _THEIRS, "it was sent again"
            self._told = {name: value for name, value in asked.headers.items() if name.startswith(_META)}
            self._version = _THEIRS
            raise BrokenAnswer(Broken.CLOSED)
        is_renamed = asked.url.partition("?")[0].endswith("/new")
        if self._told is None and (is_renamed or "restype=container" in asked.url):
            return reply(404, {"x-ms-error-code": "ResourceNotFound"})
        lease = {"x-ms-lease-state": "leased", "x-ms-lease-status": "locked", "x-ms-lease-duration": "infinite"}
        leased = lease if "x-ms-lease-id" in asked.headers else {}
        return reply(200, {"ETag": self._version, "x-ms-file-id": "7", **leased, **(self._told or {})})


def _target(kind: Kind, *names: str) -> Target:
    endpoints = {each: f"https://acc.{each}.core.windows.net" for each in ("blob", "file")}
    return Target(Account("acc", endpoints, Auth.SAS, "sig=x", {"client": Service()}), Address(kind, names))


def _create(kind: Kind, *names: str) -> Callable[[], Written]:
    return lambda: lifecycles.create(_target(kind, *names), {}, Deadline(1), fresh_op())


def _rename_directory() -> Written:
    old = _target(Kind.DIR, "s", "old")
    new = old._replace(address=Address(Kind.DIR, ("s", "new")))
    return directories.rename_directory(old, new, Conditions(guard="if-none-match"), Deadline(1))


def _set_metadata(kind: Kind, *names: str) -> Callable[[], Written]:
    guarding = Guarding(NoRecords(), None)
    return lambda: entries.replace_metadata(_target(kind, *names), {}, Conditions(), guarding, Deadline(1)).written


@pytest.mark.parametrize(
    "write",
    [
        _create(Kind.CONTAINER, "site"),
        _create(Kind.DIR, "s", "d"),
        _rename_directory,
        _set_metadata(Kind.DIR, "s", "d"),
        _set_metadata(Kind.FILE, "s", "f"),
    ],
    ids=["container create", "dir create", "dir rename", "dir metadata set", "file metadata set"],
)
def test_the_version_of_a_write_whose_answer_was_lost_is_not_known(write: Callable[[], Written]) -> None:
    assert write().etag is None


@pytest.mark.parametrize(("lease_id", "etag"), [(None, None), (_LEASE, _THEIRS)])
def test_the_version_of_a_record_is_known_where_a_lease_kept_all_others_out(
    lease_id: str | None, etag: str | None
) -> None:
    target, version = _target(Kind.BLOB, "site", "a"), Version('"1"', {})
    conditions = Conditions({"If-Match": version.etag}, lease_id=lease_id)
    moved = owner_records.change_metadata(target, version, {"mark": "1"}, conditions, Deadline(1))
    assert moved.after == etag
