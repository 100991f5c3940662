"""``lease acquire --reason``: the record it leaves, who reads it, and how it goes away."""

from typing import Any

import pytest

from tests.faults.rules import operation
from tests.support.cli_world import CliWorld, Ran
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Decide, Fault, Request

A, B = "aaaaaaaa-0000-4000-8000-000000000000", "bbbbbbbb-0000-4000-8000-000000000000"
WHY = "migration of the schema"


@pytest.fixture
def blob(cli: CliWorld) -> str:
    """Return a blob with metadata, which the scope ``setup`` has written."""
    address = f"{cli.container()}/a.json"
    assert cli.call("blob", "put", address, "--metadata", "team=shop", scope="setup", stdin=b"{}").code == 0
    return address


def acquire(cli: CliWorld, blob: str, *words: str, scope: str = "test") -> Ran:
    return cli.call("lease", "acquire", f"blob:{blob}", "--reason", WHY, *words, scope=scope)


def show(cli: CliWorld, blob: str) -> dict[str, Any]:
    found: dict[str, Any] = cli.call("lease", "show", f"blob:{blob}", scope="looker").json
    return found


def metadata(cli: CliWorld, blob: str) -> dict[str, str]:
    from azure.storage.blob import BlobClient

    client = BlobClient.from_connection_string(str(cli.connection_string), *blob.split("/", 1))
    found: dict[str, str] = client.get_blob_properties().metadata
    return found


def test_the_record_says_who_holds_it_and_why_until_it_is_released(cli: CliWorld, blob: str) -> None:
    acquired = acquire(cli, blob)
    held, refused = show(cli, blob), cli.call("lease", "acquire", f"blob:{blob}", scope="other")
    (listed,) = cli.call("lease", "list", blob.partition("/")[0], scope="other").json
    owner = held["owner"]
    assert (owner["reason"], owner["command"], owner["pid"], owner["clock"]) == (
        WHY, "azguard lease acquire", None, "service",
    )  # fmt: skip
    assert (held["held_by"], held["etag"]) == (f"{owner['who']}@{owner['host']}", acquired.json["etag"])
    assert (refused.code, f"azguard lease acquire ({WHY})" in refused.err, listed["reason"] == WHY) == (49, True, True)
    released = cli.call("lease", "release", f"blob:{blob}")
    after = show(cli, blob)
    assert (released.code, after["state"], after["owner"], after["last_owner"]) == (0, "free", None, None)


def test_what_this_scope_has_read_moves_along(cli: CliWorld, blob: str) -> None:
    """Its content is the same, in the file too, so it is still what guards the next write."""
    cli.call("blob", "get", blob, "-f", "copy.json")
    acquire(cli, blob)
    put = ("blob", "put", blob, "-f", "copy.json")
    inside = cli.call(*put, "--lease-id", "@held", "--etag", "@last")
    assert (inside.code, cli.call("status").code) == (0, 0)
    cli.call("lease", "release", f"blob:{blob}")
    assert (cli.call(*put).code, cli.call("status").code) == (0, 0)


def test_an_old_copy_does_not_move_along(cli: CliWorld, blob: str) -> None:
    cli.call("blob", "get", blob, "-f", "copy.json")
    assert cli.call("blob", "put", blob, scope="setup", stdin=b"theirs").code == 0
    acquire(cli, blob)
    put = ("blob", "put", blob, "-f", "copy.json")
    assert cli.call(*put, "--lease-id", "@held", "--etag", "@last").code == 42
    cli.call("lease", "release", f"blob:{blob}")
    assert (cli.call(*put).code, cli.call("blob", "get", blob).stdout) == (42, b"theirs")


def on_record(fault: Fault, times: int, after: int = 0) -> Decide:
    """Return a decision that does this to so many writes of metadata, after the first few."""
    seen: list[Request] = []

    def decide(request: Request) -> Fault:
        if operation(request) != "PUT metadata":
            return Fault.NONE
        seen.append(request)
        return fault if after < len(seen) <= after + times else Fault.NONE

    return decide


def test_without_its_record_the_lease_is_given_back(cli: CliWorld, blob: str) -> None:
    with proxy.running(cli.port, on_record(Fault.RESET, 99)) as between:
        there = cli.through(between.port)
        ran = acquire(there, blob, "--infinite", "--timeout", "3s")
        held = there.call("lease", "list", "--mine").json
    assert (ran.code, show(cli, blob)["state"], held) == (74, "free", [])
    assert "the lease was given back" in ran.err


def test_a_record_that_cannot_be_removed_keeps_no_lease(cli: CliWorld, blob: str) -> None:
    with proxy.running(cli.port, on_record(Fault.RESET, 99, after=1)) as between:
        there = cli.through(between.port)
        acquired = acquire(there, blob, "--infinite")
        released = there.call("lease", "release", f"blob:{blob}", "--timeout", "3s")
    after = show(cli, blob)
    assert (acquired.code, released.code, after["state"], after["last_owner"]["reason"]) == (0, 0, "free", WHY)
    assert "warning: the record of who held" in released.err


def test_a_change_of_the_id_keeps_the_record_until_the_release(cli: CliWorld, blob: str) -> None:
    acquire(cli, blob, "--proposed-lease-id", A)
    assert cli.call("lease", "change", f"blob:{blob}", "--proposed-lease-id", B).code == 0
    held = show(cli, blob)["owner"]["reason"]
    assert cli.call("lease", "release", f"blob:{blob}").code == 0
    assert (held, show(cli, blob)["last_owner"]) == (WHY, None)


def test_acquiring_it_again_says_the_new_reason(cli: CliWorld, blob: str) -> None:
    acquire(cli, blob, "--proposed-lease-id", A)
    again = ("lease", "acquire", f"blob:{blob}", "--proposed-lease-id", A, "--reason", "second thoughts")
    assert (cli.call(*again).code, show(cli, blob)["owner"]["reason"]) == (0, "second thoughts")


def test_a_release_under_a_condition_keeps_the_version_that_the_condition_names(cli: CliWorld, blob: str) -> None:
    etag = acquire(cli, blob).json["etag"]
    released = cli.call("lease", "release", f"blob:{blob}", "--if-match", etag)
    after = show(cli, blob)
    assert (released.code, after["etag"], after["owner"], after["last_owner"]["reason"]) == (0, etag, None, WHY)


def test_the_record_of_a_broken_lease_is_of_its_last_owner(cli: CliWorld, blob: str) -> None:
    acquire(cli, blob, "--infinite")
    broken = cli.call("lease", "break", f"blob:{blob}", "--yes", scope="operator")
    assert (broken.json["broken"]["owner"]["reason"], cli.call("lease", "release", f"blob:{blob}").code) == (WHY, 77)
    after = show(cli, blob)
    assert (after["state"], after["owner"], after["last_owner"]["reason"]) == ("free", None, WHY)


def test_a_lease_without_a_reason_writes_nothing(cli: CliWorld, blob: str) -> None:
    before = metadata(cli, blob)
    with proxy.running(cli.port, lambda _: Fault.NONE) as between:
        there = cli.through(between.port)
        there.call("lease", "acquire", f"blob:{blob}")
        there.call("lease", "release", f"blob:{blob}")
        sent = [operation(each.request) for each in between.log]
    # It looks for a record that speaks for another lease; before the release also whether the lease is held.
    looks = ["HEAD blob"] * 3
    assert (sent, metadata(cli, blob)) == (["PUT lease:acquire", *looks, "PUT lease:release"], before)
