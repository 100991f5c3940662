"""``lease list --mine``: what is remembered, what the service proves to be over, and what it does not."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from azure.storage.blob import BlobClient, BlobLeaseClient

from azguard.address import Kind
from azguard.cache.etag_cache import EtagCache
from azguard.cache.records import HeldLease, Key
from azguard.leases import own
from azguard.leases.own import Standing
from azguard.requests.deadline import Deadline
from tests.support.blob_world import client as sdk
from tests.support.cases import cases
from tests.support.cli_world import CliWorld
from tests.support.lease_script import Answer, now_is, scripted

A, B = "aaaaaaaa-0000-4000-8000-000000000000", "bbbbbbbb-0000-4000-8000-000000000000"
ENDPOINT = "https://acc.blob.core.windows.net"


@pytest.fixture
def blob(cli: CliWorld) -> str:
    """Return a blob that this scope holds an infinite lease on."""
    address = f"{cli.container()}/a.json"
    assert cli.call("blob", "put", address, scope="setup", stdin=b"{}").code == 0
    assert cli.call("lease", "acquire", f"blob:{address}", "--infinite", "--proposed-lease-id", A).code == 0
    return address


def delete_blob(client: BlobClient) -> None:
    client.delete_blob(lease=A)


def delete_container(client: BlobClient) -> None:
    client._get_container_client().delete_container()


def release(client: BlobClient) -> None:
    BlobLeaseClient(client, A).release()


def take(client: BlobClient) -> None:
    release(client)
    client.acquire_lease(-1, B)


def break_now(client: BlobClient) -> None:
    BlobLeaseClient(client).break_lease(0)


def break_later(client: BlobClient) -> None:
    BlobLeaseClient(client).break_lease(60)


@pytest.mark.parametrize(
    ("under_it", "why"),
    [
        (delete_blob, "was deleted; the lease that this scope had on it is over"),
        (delete_container, "was deleted; the lease that this scope had on it is over"),
        (release, "is free: the lease that this scope had on it was released"),
        (take, "is leased by another: the lease that this scope had on it is over"),
        (break_now, "is free, or soon is: the lease that this scope had on it was broken"),
    ],
)  # fmt: skip
def test_what_is_proved_to_be_over_is_forgotten_and_said(
    cli: CliWorld, blob: str, under_it: Callable[[BlobClient], None], why: str
) -> None:
    under_it(sdk(cli, blob))
    first, second = (cli.call("lease", "list", "--mine") for _ in range(2))
    assert (first.code, first.json, first.err) == (
        0, [], f"blob:{blob} {why}\n",
    )  # fmt: skip
    assert (second.json, second.err) == ([], "")


@pytest.mark.parametrize("under_it", [lambda client: None, break_later])
def test_what_is_held_stays(cli: CliWorld, blob: str, under_it: Callable[[BlobClient], None]) -> None:
    under_it(sdk(cli, blob))
    (found,) = cli.call("lease", "list", "--mine").json
    assert (found["state"], found["lease_id"]) == ("held", A)


def test_another_scope_sees_and_forgets_it_only_when_asked_for_all(cli: CliWorld, blob: str) -> None:
    sdk(cli, blob).delete_blob(lease=A)
    assert cli.call("lease", "list", "--mine", scope="other").json == []
    assert "was deleted" in cli.call("lease", "list", "--mine", "--all-scopes", scope="other").err
    assert cli.call("lease", "list", "--mine").err == ""


def test_offline_the_list_is_of_what_is_remembered(cli: CliWorld) -> None:
    nowhere = cli.through(9)
    remember(cli, Key("http://127.0.0.1:9/devstoreaccount1", "blob:site/a"))
    (found,) = nowhere.call("lease", "list", "--mine", "--timeout", "0.1s").json
    assert (found["address"], found["state"]) == ("blob:site/a", "unknown")


def remember(cli: CliWorld, key: Key, duration: int | None = None, when: datetime | None = None) -> None:
    """Remember a lease of the scope ``test``, as it was granted some time ago."""
    cache = opened(cli.root / ".cache", lambda: when or datetime.now(UTC))
    cache.record_lease(key, A, duration=duration, action="lease acquire")
    cache.confirm(key, A)
    cache.close()


def opened(folder: Path, now: Callable[[], datetime]) -> EtagCache:
    return EtagCache.open(folder, "test", warn=print, now=now)


def lease(*, confirmed: bool) -> HeldLease:
    return HeldLease("test", ENDPOINT, "blob:site/a", A, None, "lease acquire", confirmed, "2026-11-21T12:00:00Z")


@cases(
    ("confirmed", "answers", "standing"),
    (True, [now_is("leased")], Standing.HELD),
    (False, [now_is("leased")], Standing.HELD),
    (True, [(404, "BlobNotFound", {})], Standing.GONE),
    (True, [(404, "ContainerNotFound", {})], Standing.GONE),
    (True, [(412, "LeaseLost", {}), now_is("broken")], Standing.BROKEN),
    (True, [(412, "LeaseIdMismatchWithBlobOperation", {}), now_is("leased")], Standing.TAKEN),
    # Its holder can renew it still.
    (True, [(412, "LeaseLost", {}), now_is("expired")], Standing.EXPIRED),
    # An acquire that may still arrive, or is under way in another process.
    (False, [(404, "BlobNotFound", {})], Standing.UNKNOWN),
    (False, [(412, "LeaseNotPresentWithBlobOperation", {})], Standing.UNKNOWN),
    # The service, or what stands between, says nothing of the lease.
    (True, [(404, None, {})], Standing.UNKNOWN),
    (True, [(404, "ResourceNotFound", {})], Standing.UNKNOWN),
    (True, [(403, "AuthorizationFailure", {})], Standing.UNKNOWN),
    (True, [(409, "ContainerBeingDeleted", {})], Standing.UNKNOWN),
    (True, [(412, "LeaseLost", {}), (403, "AuthorizationFailure", {})], Standing.UNKNOWN),
)
def test_a_lease_counts_as_over_only_by_proof(confirmed: bool, answers: list[Answer], standing: Standing) -> None:
    target, _ = scripted(Kind.BLOB, *answers)
    (found,) = own.ask_each([lease(confirmed=confirmed)], target.account, lambda: Deadline(0))
    assert found.standing is standing


@cases("account", "none", "another")
def test_a_lease_of_another_account_is_not_asked_for(account: str) -> None:
    target, transport = scripted(Kind.BLOB)
    elsewhere = HeldLease("test", "https://other.blob.core.windows.net", "blob:site/a", A, None, "", True, "2026")
    asked: Any = None if account == "none" else target.account
    (found,) = own.ask_each([elsewhere], asked, Deadline)
    assert (found.standing, transport.asked) == (Standing.UNKNOWN, [])


@pytest.mark.parametrize("meanwhile", ["asked again", "renewed", "never confirmed", "nothing"])
def test_a_lease_that_moved_since_it_was_read_is_not_forgotten(tmp_path: Path, meanwhile: str) -> None:
    moments = iter(datetime(2026, 11, 21, 12, minute, tzinfo=UTC) for minute in range(60))
    cache, key = opened(tmp_path, lambda: next(moments)), Key(ENDPOINT, "blob:site/a")
    cache.record_lease(key, A, duration=60, action="lease acquire")
    if meanwhile != "never confirmed":
        cache.confirm(key, A)
    (read,) = cache.list_held("test")
    if meanwhile == "asked again":
        cache.record_lease(key, A, duration=60, action="lease acquire")
    if meanwhile == "renewed":
        cache.confirm(key, A, since=datetime(2026, 11, 21, 13, tzinfo=UTC))
    cache.forget_lease_unless_renewed(read)
    assert [each.lease_id for each in cache.list_held("test")] == ([] if meanwhile == "nothing" else [A])
