"""A record of a holder speaks for the lease under which it was written, and for no other."""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from azguard.leases.owners import OWNER, SERVICE_CLOCK, Owner
from tests.support.cli_world import CliWorld

A, B = "aaaaaaaa-0000-4000-8000-000000000000", "bbbbbbbb-0000-4000-8000-000000000000"
Before = Callable[[CliWorld, str], None]
After = Callable[[CliWorld, str], Any]


def sdk(cli: CliWorld, address: str) -> Any:
    from azure.storage.blob import BlobClient

    return BlobClient.from_connection_string(str(cli.connection_string), *address.split("/", 1))


def left_by_others(term: int | None, pid: int | None = 7) -> Before:
    """Leave the record of a lease of ten minutes ago, and end that lease as no azguard does."""

    def leave(cli: CliWorld, blob: str) -> None:
        client = sdk(cli, blob)
        since = (datetime.now(UTC) - timedelta(minutes=10)).isoformat().replace("+00:00", "Z")
        record = Owner("alice", "build1", pid, "sh", since, reason="backup", clock=SERVICE_CLOCK)
        lease = client.acquire_lease(term or -1, A)
        client.set_blob_metadata({OWNER: record.tie_to_lease(A, term).as_metadata()}, lease=lease)
        lease.break_lease(0)

    return leave


def run_under_lock(cli: CliWorld, blob: str) -> None:
    assert cli.fork("lock", "run", f"blob:{blob}", "--reason", "backup", "--", "true", scope="first").code == 0


def release_by_id(cli: CliWorld, blob: str) -> None:
    words = ("lease", "acquire", f"blob:{blob}", "--reason", "backup", "--proposed-lease-id", A)
    assert cli.call(*words, scope="first").code == 0
    assert cli.call("lease", "release", f"blob:{blob}", "--lease-id", A, scope="another").code == 0


def hold(cli: CliWorld, blob: str, *how: str) -> None:
    run_under_lock(cli, blob)
    assert cli.fork("lock", "hold", f"blob:{blob}", "--reason", "backup", *how, scope="first").code == 0
    assert cli.fork("lock", "release", f"blob:{blob}", scope="first").code == 0


def by_others(term: int) -> After:
    return lambda cli, blob: sdk(cli, blob).acquire_lease(term, B)


def without_reason(cli: CliWorld, blob: str) -> None:
    words = ("lease", "acquire", f"blob:{blob}", "--proposed-lease-id", B)
    assert cli.call(*words, scope="second").code == 0


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(run_under_lock, by_others(-1), id="a run ended, then an infinite lease"),
        pytest.param(run_under_lock, by_others(60), id="a run ended, then a lease of the same term"),
        pytest.param(release_by_id, by_others(60), id="released by its id, then a lease of the same term"),
        pytest.param(hold, by_others(60), id="a hold was released"),
        pytest.param(
            lambda cli, blob: hold(cli, blob, "--sticky"), by_others(-1), id="a hold without process was released"
        ),
        pytest.param(left_by_others(60), by_others(-1), id="a run was killed, then an infinite lease"),
        pytest.param(left_by_others(None), by_others(60), id="an infinite lease, then one with a term"),
        pytest.param(left_by_others(15, None), by_others(60), id="it ended by itself, then another"),
        pytest.param(left_by_others(60), without_reason, id="a run was killed, then no reason"),
    ],
)
def test_a_record_of_an_earlier_holder_names_none_of_the_lease(cli: CliWorld, before: Before, after: After) -> None:
    container = cli.container()
    blob = f"{container}/{uuid.uuid4().hex}"
    sdk(cli, blob).upload_blob(b"{}")
    before(cli, blob)
    after(cli, blob)
    shown = cli.call("lease", "show", f"blob:{blob}").json
    listed = cli.call("lease", "list", container).json[0]
    of_lock = cli.call("lock", "show", f"blob:{blob}").json
    told = [(each["held"], each["held_by"], each["owner"], each["age"]) for each in (shown, of_lock)]
    assert (told, shown["last_owner"]["reason"]) == ([(True, None, None, None)] * 2, "backup")
    assert (listed["holder"], listed["age"], listed["reason"].partition(";")[0]) == (None, None, "unknown")
    assert cli.call("lease", "list", container, "--older-than", "1s", "-o", "json").json == []
    name = shown["last_owner"]["who"]
    broken = [
        cli.call("lease", "break", f"blob:{blob}", *how) for how in (("--if-owner", name), ("--if-older-than", "1s"))
    ]
    assert ([each.code for each in broken], shown["lease_state"]) == ([42, 42], "leased")
    assert all("held by an unknown holder; before: " in each.err for each in broken)
    refused = cli.call("blob", "put", blob, "--last-writer-wins", stdin=b"x")
    assert (refused.code, sdk(cli, blob).download_blob(lease=B).readall()) == (49, b"{}")


def test_a_lease_without_a_reason_clears_the_record_of_an_earlier_holder(cli: CliWorld) -> None:
    blob = f"{cli.container()}/a"
    cli.call("blob", "put", blob, stdin=b"{}")
    left_by_others(60)(cli, blob)
    got = cli.call("blob", "get", blob, "-f", str(cli.root / "copy")).json
    acquired = cli.call("lease", "acquire", f"blob:{blob}").json
    kept = Owner("alice", "build1", 7, "sh", None).who
    left = cli.call("lease", "show", f"blob:{blob}").json
    assert (acquired["etag"] != got["etag"], left["last_owner"]["who"], left["etag"]) == (True, kept, acquired["etag"])
    # The content is the same, so that what this scope has read guards its write.
    assert cli.call("blob", "put", blob, "--lease-id", "@held", stdin=b"{1}").code == 0


def test_a_record_of_another_lease_is_known_by_whom_the_lease_is(cli: CliWorld) -> None:
    blob = f"{cli.container()}/a"
    sdk(cli, blob).upload_blob(b"{}")
    left_by_others(60)(cli, blob)
    sdk(cli, blob).acquire_lease(60, B)
    # The service tells others the same of both leases.
    shown = [cli.call("lease", "show", f"blob:{blob}", *how).json["held_by"] for how in ((), ("--lease-id", B))]
    assert shown == ["alice@build1", None]
