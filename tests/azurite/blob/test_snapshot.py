"""``azguard blob snapshot`` against Azurite.

Azurite gives a snapshot the ETag of the blob even if it has metadata of its own, and judges conditions as on a read.
"""

from base64 import b64encode
from collections.abc import Callable

import pytest
from azure.storage.blob import ContainerClient

from tests.faults.rules import operation
from tests.support.blob_world import client as sdk
from tests.support.cli_world import CliWorld
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Fault, Request

FUTURE = "2101-01-01"
OTHER = "0x8DC1234567890AB"
LEASE = "0f3c1111-2222-3333-4444-555566667777"


@pytest.fixture
def blob(cli: CliWorld) -> str:
    """Return a blob that this scope has written."""
    name = f"{cli.container()}/a"
    assert cli.call("blob", "put", name, "--metadata", "owner=me", "--tags", "env=dev", stdin=b"old").code == 0
    return name


def count_kept(cli: CliWorld, blob: str) -> int:
    client = ContainerClient.from_connection_string(cli.connection_string or "", blob.partition("/")[0])
    return len([each for each in client.list_blobs(include=["snapshots"]) if each.snapshot])


def test_a_snapshot_has_content_and_metadata_and_an_address_that_other_commands_take(cli: CliWorld, blob: str) -> None:
    made = cli.call("blob", "snapshot", blob).json
    cli.call("blob", "put", blob, stdin=b"new")
    assert cli.call("blob", "get", made["snapshot_address"]).out == "old"
    assert cli.call("blob", "show", made["snapshot_address"]).json["metadata"] == {"owner": "me"}
    assert made["snapshot_address"] == f"blob:{blob}?snapshot={made['snapshot']}"


def test_a_snapshot_leaves_the_blob_and_what_was_read_of_it_as_they_are(cli: CliWorld, blob: str) -> None:
    before = cli.call("cache", "list").json
    etag = cli.call("blob", "show", blob).json["etag"]
    assert cli.call("blob", "snapshot", blob).json["base_etag"] == etag
    assert (cli.call("blob", "show", blob).json["etag"], cli.call("cache", "list").json) == (etag, before)


def test_metadata_that_is_given_is_all_that_the_snapshot_has(cli: CliWorld, blob: str) -> None:
    made = cli.call("blob", "snapshot", blob, "--metadata", "why=release").json
    assert cli.call("blob", "show", made["snapshot_address"]).json["metadata"] == {"why": "release"}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--if-match", "{etag}"), 0), (("--if-match", OTHER), 42),
        (("--if-modified-since", FUTURE, "--no-lineage"), 42),
        (("--etag", "@last"), 0), (("--etag", OTHER), 42), (("--no-lineage",), 0), (("--fence", "1"), 2),
    ],
)  # fmt: skip
def test_a_condition_decides(cli: CliWorld, blob: str, words: tuple[str, ...], code: int) -> None:
    etag = cli.call("blob", "show", blob).json["etag"]
    ran = cli.call("blob", "snapshot", blob, *(word.format(etag=etag) for word in words))
    assert (ran.code, count_kept(cli, blob)) == (code, 1 if code == 0 else 0), ran.err


def test_a_lease_id_is_not_needed_but_must_be_right(cli: CliWorld, blob: str) -> None:
    sdk(cli, blob).acquire_lease(-1, LEASE)
    codes = [cli.call("blob", "snapshot", blob, *words).code for words in ((), ("--lease-id", LEASE))]
    assert (codes, cli.call("blob", "snapshot", blob, "--lease-id", LEASE[:-1] + "0").code) == ([0, 0], 49)


def test_there_is_no_snapshot_of_nothing(cli: CliWorld, blob: str) -> None:
    assert cli.call("blob", "snapshot", f"{blob}-nosuch").code == 44


def overwriting(cli: CliWorld, blob: str) -> Callable[[Request], Fault]:
    """Return a proxy's rule that overwrites the blob just before the first snapshot of it is taken."""
    done: list[str] = []

    def decide(request: Request) -> Fault:
        if operation(request) == "PUT snapshot" and not done:
            done.append(request.path)
            sdk(cli, blob).upload_blob(b"newer", overwrite=True, metadata={"n": "1"})
        return Fault.NONE

    return decide


def test_metadata_and_content_of_a_snapshot_are_of_one_version(cli: CliWorld, blob: str) -> None:
    with proxy.running(cli.port, overwriting(cli, blob)) as running:
        made = cli.through(running.port).call("blob", "snapshot", blob).json
    assert cli.call("blob", "get", made["snapshot_address"]).out == "newer"
    assert cli.call("blob", "show", made["snapshot_address"]).json["metadata"] == {"n": "1"}
    assert (made["conflicts"], count_kept(cli, blob)) == (1, 1)


def test_a_refused_snapshot_tells_the_version_that_is_there(cli: CliWorld, blob: str) -> None:
    ran = cli.call("blob", "snapshot", blob, "--etag", OTHER, "-o", "json")
    assert (ran.error["expected_etag"].strip('"'), ran.error["current_etag"]) == (
        OTHER,
        sdk(cli, blob).get_blob_properties().etag,
    )


def test_a_snapshot_of_the_version_named_is_not_taken_of_another(cli: CliWorld, blob: str) -> None:
    with proxy.running(cli.port, overwriting(cli, blob)) as running:
        ran = cli.through(running.port).call("blob", "snapshot", blob, "--etag", "@last", "-o", "json")
    assert (ran.code, count_kept(cli, blob)) == (42, 0)


@pytest.mark.parametrize("words", [("--no-lineage",), ("--if-tags", "\"env\" = 'dev'")])
def test_a_snapshot_without_a_mark_is_unknown_after_a_loss(cli: CliWorld, blob: str, words: tuple[str, ...]) -> None:
    def decide(request: Request) -> Fault:
        return Fault.DROP if operation(request) == "PUT snapshot" else Fault.NONE

    with proxy.running(cli.port, decide) as running:
        assert cli.through(running.port).call("blob", "snapshot", blob, *words).code == 74


def test_the_emulator_cannot_undelete_and_has_no_keys_of_writers_and_says_so(cli: CliWorld, blob: str) -> None:
    undelete = cli.call("blob", "undelete", blob, "-o", "json")
    show = cli.call("blob", "show", blob, "--encryption-key", b64encode(b"k" * 32).decode(), "-o", "json")
    assert [(ran.code, ran.error["service_code"]) for ran in (undelete, show)] == [
        (40, "APINotImplemented"),
        (40, "FeatureNotSupported"),
    ]


def test_a_list_shows_the_ids_of_snapshots_in_order_and_the_blob_last(cli: CliWorld, blob: str) -> None:
    container = blob.partition("/")[0]
    cli.call("blob", "put", f"{container}/b", stdin=b"other")
    kept: list[str] = []
    for number in range(3):
        cli.call("blob", "put", blob, stdin=b"%d" % number)
        kept.append(cli.call("blob", "snapshot", blob).json["snapshot"])
    words = ("blob", "list", container, "--include", "snapshots,versions")
    listed = [(each["name"], each["snapshot"]) for each in cli.call(*words).json]
    assert listed == [*(("a", each) for each in kept), ("a", None), ("b", None)]
    assert [each["snapshot"] for each in cli.call(*words, "--num-results", "2").json] == kept[:2]
    shown = cli.call(*words, "-o", "table", env={"COLUMNS": "60"}).out
    assert [each for each in kept if each not in shown] == []
