"""Deleting what has something in it: counted, refused or asked about, unless it is said that it is meant."""

import uuid

import pytest

from tests.support import table_world, terminal_world
from tests.support.cli_world import CliWorld
from tests.support.faultproxy import proxy


@pytest.fixture
def site(cli: CliWorld) -> str:
    """Return a container that this scope made, and in which another has written three blobs."""
    name = f"t{uuid.uuid4().hex[:20]}"
    assert cli.call("container", "create", name).code == 0
    for blob in "abc":
        assert cli.call("blob", "put", f"{name}/{blob}", stdin=b"theirs", scope="other").code == 0
    return name


@pytest.fixture
def empty(cli: CliWorld) -> str:
    name = f"t{uuid.uuid4().hex[:20]}"
    assert cli.call("container", "create", name).code == 0
    return name


def exists(cli: CliWorld, container: str) -> bool:
    return cli.call("container", "exists", container).code == 0


@pytest.mark.parametrize("words", [(), ("--last-writer-wins",), ("--etag", "@last")])
def test_a_container_with_blobs_is_refused_with_their_count(cli: CliWorld, site: str, words: tuple[str, ...]) -> None:
    ran = cli.call("container", "delete", site, *words, "-o", "json")
    told = ran.error
    assert (ran.code, told["kind"], told["message"], told["contents"], told["contents_counted"], exists(cli, site)) == (
        42, "changed", f"{site} is not empty: 3 blobs would be deleted with it", 3, True, True,
    )  # fmt: skip
    again = told["hint"].splitlines()[-1].split(": ")[-1]
    assert again == " ".join(["azguard container delete", site, *words, "-o json --with-contents"])
    assert (cli.call(*again.split()[1:]).code, exists(cli, site)) == (0, False)


def test_an_empty_container_is_deleted_after_its_blobs_were_counted(cli: CliWorld, empty: str) -> None:
    with proxy.running(cli.port, lambda _: proxy.Fault.NONE) as between:
        ran = cli.through(between.port).call("container", "delete", empty, "--last-writer-wins")
        sent = [each.request.method for each in between.log]
    assert (ran.code, sent) == (0, ["GET", "GET", "DELETE"])


def test_with_contents_counts_nothing(cli: CliWorld, site: str) -> None:
    with proxy.running(cli.port, lambda _: proxy.Fault.NONE) as between:
        ran = cli.through(between.port).call("container", "delete", site, "--last-writer-wins", "--with-contents")
        sent = [each.request.method for each in between.log]
    assert (ran.code, sent) == (0, ["GET", "DELETE"])


def test_an_upload_under_way_is_something(cli: CliWorld, empty: str) -> None:
    from azure.storage.blob import BlobClient

    assert cli.connection_string is not None
    with BlobClient.from_connection_string(cli.connection_string, empty, "a") as client:
        client.stage_block("AAAA", b"x")
    ran = cli.call("container", "delete", empty)
    assert (ran.code, "1 blob would" in ran.err, exists(cli, empty)) == (42, True, True)


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("yes", 0), ("n", 130), ("", 130)])
def test_on_a_terminal_it_asks(cli: CliWorld, site: str, answer: str, code: int) -> None:
    status, said = terminal_world.answer(cli, answer, "container", "delete", site)
    assert (status, f"delete {site} and the 3 blobs in it?" in said, exists(cli, site)) == (code, True, bool(code))


def test_a_table_with_entities_is_refused_with_their_count(cli: CliWorld) -> None:
    table = table_world.table(cli)
    for row in "ab":
        cli.call("entity", "insert", f"{table}/eu/{row}", "n=1", scope="other")
    delete = ("table", "delete", table, "--last-writer-wins")
    refused = cli.call(*delete, "-o", "json")
    assert (refused.code, refused.error["message"], cli.call("entity", "get", f"{table}/eu/a").code) == (
        42, f"{table} is not empty: 2 entities would be deleted with it", 0,
    )  # fmt: skip
    assert cli.call(*delete, "--with-contents").code == 0


def test_status_does_not_say_that_contents_are_unchanged(cli: CliWorld, site: str) -> None:
    ran = cli.call("status", f"container:{site}")
    assert (ran.code, [(each["state"], each["reason"]) for each in ran.json]) == (
        0, [("properties_unchanged", "a container's ETag says nothing of the blobs in it")],
    )  # fmt: skip


def test_a_dry_run_deletes_nothing(cli: CliWorld, site: str) -> None:
    table = table_world.table(cli)
    assert cli.call("container", "delete", site, "--dry-run").code == 42
    asked = [
        ("container", "delete", site, "--with-contents"),
        ("container", "delete", site, "--with-contents", "--etag", '"0x1"'),
        ("container", "delete", f"{site}x", "--last-writer-wins"),
        ("table", "delete", table, "--last-writer-wins"),
    ]
    assert [cli.call(*words, "--dry-run").code for words in asked] == [0, 42, 44, 0]
    assert cli.call(*asked[0], "--dry-run").json["outcome"] == "would delete"
    assert [cli.call(*words).code for words in (("container", "exists", site), ("table", "acl", "get", table))] == [
        0,
        0,
    ]
