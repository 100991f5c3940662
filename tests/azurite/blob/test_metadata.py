"""``azguard blob metadata`` against Azurite: what it replaces, what it keeps, and what guards it."""

import json

import pytest

from azguard.requests.lineage import KEY, Lineage
from tests.support.blob_world import client, make
from tests.support.cli_world import CliWorld


@pytest.fixture
def blob(cli: CliWorld) -> str:
    return make(cli, metadata={"owner": "ops"})


def set_(cli: CliWorld, blob: str, *words: str, stdin: bytes = b"", scope: str = "test") -> int:
    return cli.call("blob", "metadata", "set", blob, *words, stdin=stdin, scope=scope).code


def test_the_lineage_stays_hidden_and_whole(cli: CliWorld, blob: str) -> None:
    cli.call("blob", "put", blob, "--last-writer-wins", stdin=b"ours")
    first = Lineage.parse(client(cli, blob).get_blob_properties().metadata[KEY])
    assert (set_(cli, blob, "--metadata", "a=1"), set_(cli, blob, "--metadata", "b=1")) == (0, 0)
    found = Lineage.parse(client(cli, blob).get_blob_properties().metadata[KEY])
    assert (len(found.entries), found.entries[2:]) == (3, first.entries)


@pytest.mark.parametrize("key", ["fence", "owner", "sequence", "shared", "slots"])
def test_what_a_lock_keeps_there_stays(cli: CliWorld, key: str) -> None:
    blob = make(cli, metadata={f"azguard{key}": "7"})
    cli.call("blob", "metadata", "get", blob)
    assert set_(cli, blob, "--metadata", "a=1") == 0
    assert client(cli, blob).get_blob_properties().metadata[f"azguard{key}"] == "7"


def test_a_foreign_write_of_the_content_that_was_read_is_refused(cli: CliWorld, blob: str) -> None:
    cli.call("blob", "get", blob, "-f", "a.json")
    client(cli, blob).upload_blob(b"theirs", overwrite=True)
    assert set_(cli, blob, "--metadata", "a=1") == 42


def test_a_blob_that_is_gone_is_refused(cli: CliWorld, blob: str) -> None:
    cli.call("blob", "metadata", "get", blob)
    client(cli, blob).delete_blob()
    assert (set_(cli, blob, "--metadata", "a=1"), set_(cli, blob, "--metadata", "a=1", "--last-writer-wins")) == (
        42,
        44,
    )


def test_a_copy_on_the_disk_follows_and_can_be_put(cli: CliWorld, blob: str) -> None:
    cli.call("blob", "get", blob, "-f", "a.json")
    assert set_(cli, blob, "--metadata", "a=1") == 0
    assert cli.call("blob", "put", blob, "-f", "a.json").code == 0


def test_a_copy_of_an_older_version_does_not_follow(cli: CliWorld, blob: str) -> None:
    cli.call("blob", "get", blob, "-f", "a.json")
    client(cli, blob).upload_blob(b"theirs", overwrite=True)
    cli.call("blob", "metadata", "get", blob)
    assert set_(cli, blob, "--metadata", "a=1") == 0
    assert cli.call("blob", "put", blob, "-f", "a.json").code == 42


def test_reading_metadata_is_no_read_of_the_content(cli: CliWorld, blob: str) -> None:
    cli.call("blob", "get", blob, "-f", "a.json")
    client(cli, blob).upload_blob(b"theirs", overwrite=True)
    cli.call("blob", "metadata", "get", blob)
    assert cli.call("blob", "put", blob, stdin=b"ours").code == 42


def test_reading_the_content_later_does_not_show_metadata_that_changed_before(cli: CliWorld, blob: str) -> None:
    cli.call("blob", "metadata", "get", blob)
    client(cli, blob).set_blob_metadata({"owner": "them"})
    cli.call("blob", "get", blob, "-f", "a.json")
    assert set_(cli, blob, "--metadata", "owner=me") == 42


def test_our_own_put_is_followed(cli: CliWorld, blob: str) -> None:
    cli.call("blob", "get", blob, "-f", "a.json")
    cli.call("blob", "metadata", "get", blob)
    assert cli.call("blob", "put", blob, "-f", "a.json", "--metadata", "a=1").code == 0
    assert set_(cli, blob, "--metadata", "a=2") == 0


def test_our_own_update_of_the_content_is_followed(cli: CliWorld) -> None:
    blob = make(cli, b'{"n": 1}')
    cli.call("blob", "metadata", "get", blob)
    assert cli.call("safe-update", f"blob:{blob}", "--increment", "n").code == 0
    assert set_(cli, blob, "--metadata", "a=2") == 0


def test_an_update_does_not_hide_a_foreign_change_of_the_metadata(cli: CliWorld) -> None:
    blob = make(cli, b'{"n": 1}')
    cli.call("blob", "metadata", "get", blob)
    client(cli, blob).set_blob_metadata({"owner": "them"})
    assert cli.call("safe-update", f"blob:{blob}", "--increment", "n").code == 0
    assert set_(cli, blob, "--metadata", "a=2") == 42


def test_what_was_shown_in_part_was_not_read(cli: CliWorld, blob: str) -> None:
    cli.call("blob", "metadata", "get", blob, "--query", "metadata.owner")
    assert set_(cli, blob, "--metadata", "a=1") == 42


def test_last_writer_wins_keeps_the_lineage(cli: CliWorld, blob: str) -> None:
    cli.call("blob", "put", blob, "--last-writer-wins", stdin=b"ours", scope="other")
    ran = cli.call("blob", "metadata", "set", blob, "--metadata", "a=1", "--last-writer-wins")
    found = Lineage.parse(client(cli, blob).get_blob_properties().metadata[KEY])
    assert (ran.json["guard"], len(found.entries)) == ("none", 2)


def test_metadata_of_a_snapshot_are_read_and_not_written(cli: CliWorld, blob: str) -> None:
    snapshot = f"{blob}?snapshot={client(cli, blob).create_snapshot()['snapshot']}"
    client(cli, blob).set_blob_metadata({"owner": "them"})
    assert cli.call("blob", "metadata", "get", snapshot).json["metadata"] == {"owner": "ops"}
    assert set_(cli, snapshot, "--metadata", "a=1", "--last-writer-wins") == 2


def test_too_much_is_refused_and_nothing_is_written(cli: CliWorld, blob: str) -> None:
    found = cli.call("blob", "metadata", "get", blob).json["etag"]
    ran = cli.call("blob", "metadata", "set", blob, stdin=json.dumps({"a": "x" * 8190}).encode())
    assert (ran.code, "8,192" in ran.err, client(cli, blob).get_blob_properties().etag) == (2, True, found)


@pytest.mark.parametrize(
    ("flag", "value", "code"),
    [("--if-tags", "\"stage\" = 'live'", 0), ("--if-tags", "\"stage\" = 'dead'", 42), ("--if-match", "*", 0)],
)
def test_another_condition_goes_out_under_a_lease(cli: CliWorld, flag: str, value: str, code: int) -> None:
    blob = make(cli, tags={"stage": "live"})
    assert set_(cli, blob, "--metadata", "a=1", flag, value) == code
    left = client(cli, blob).get_blob_properties()
    assert (left.lease.state, "a" in left.metadata) == ("available", code == 0)


def test_a_lineage_that_another_tool_spelt_anew_is_still_ours(cli: CliWorld) -> None:
    """Tools in Go, such as azcopy, write each name back with a capital letter."""
    blob = make(cli, b'{"n": 1}')
    update = ("safe-update", f"blob:{blob}", "--increment", "n", "--op-id", "nightly")
    assert cli.call(*update).code == 0
    theirs = client(cli, blob)
    theirs.set_blob_metadata({"Stage": "live", KEY.capitalize(): theirs.get_blob_properties().metadata[KEY]})
    assert (cli.call(*update).code, theirs.download_blob().readall()) == (0, b'{"n": 2}')
    got = [cli.call("blob", "metadata", "get", blob), cli.call("blob", "get", blob, "-f", "a")]
    assert [each.json["metadata"] for each in got] == [{"Stage": "live"}] * 2
    ran = cli.call("safe-update", f"blob:{blob}", "--metadata", "--set-string", "Stage=test")
    assert (ran.code, list(theirs.get_blob_properties().metadata)) == (0, ["Stage", KEY])
    theirs.set_blob_metadata({KEY.capitalize(): theirs.get_blob_properties().metadata[KEY]})
    container, _, name = blob.partition("/")
    # The second request over a connection takes another way.
    assert cli.call("blob", "get", f"{container}/", "tree", "--recursive").code == 0
    assert cli.call("blob", "put", blob, "-f", f"tree/{name}").code == 0
    assert len(Lineage.parse(theirs.get_blob_properties().metadata[KEY]).entries) == 3
