"""``azguard blob set-properties`` and ``azguard blob tier`` against Azurite."""

from typing import Any

import pytest
from azure.storage.blob import ContentSettings

from tests.support.blob_world import client, inside_lock_run, make
from tests.support.cli_world import CliWorld

SETTINGS = ContentSettings(
    content_type="text/html", content_encoding="identity", content_language="de", cache_control="no-store",
    content_disposition="inline", content_md5=bytearray(range(16)),
)  # fmt: skip


@pytest.fixture
def blob(cli: CliWorld) -> str:
    made = make(cli, metadata={"owner": "ops"})
    client(cli, made).set_http_headers(SETTINGS)
    return made


def headers_of(cli: CliWorld, blob: str) -> dict[str, Any]:
    found = client(cli, blob).get_blob_properties().content_settings
    return {key: value for key, value in vars(found).items() if isinstance(value, (str, bytearray))}


def change(cli: CliWorld, blob: str, *words: str, scope: str = "test") -> int:
    return cli.call("blob", "set-properties", blob, *words, scope=scope).code


def read(cli: CliWorld, blob: str) -> None:
    assert cli.call("blob", "get", blob, "-f", "a.json").code == 0


def test_only_the_given_headers_change(cli: CliWorld, blob: str) -> None:
    read(cli, blob)
    before = headers_of(cli, blob)
    assert change(cli, blob, "--content-type", "text/plain", "--content-cache", "max-age=60") == 0
    assert headers_of(cli, blob) == {**before, "content_type": "text/plain", "cache_control": "max-age=60"}


def test_the_others_can_be_cleared(cli: CliWorld, blob: str) -> None:
    read(cli, blob)
    assert change(cli, blob, "--content-type", "text/plain", "--clear-content-settings") == 0
    found = headers_of(cli, blob)
    assert (found.pop("content_type"), {value for value in found.values() if value}) == ("text/plain", set())


def test_metadata_and_content_stay(cli: CliWorld, blob: str) -> None:
    read(cli, blob)
    change(cli, blob, "--content-type", "text/plain")
    found = client(cli, blob).download_blob()
    assert (found.readall(), found.properties.metadata) == (b"old", {"owner": "ops"})


def test_a_copy_on_the_disk_follows_and_can_be_put(cli: CliWorld, blob: str) -> None:
    read(cli, blob)
    assert change(cli, blob, "--content-type", "text/plain") == 0
    assert cli.call("blob", "put", blob, "-f", "a.json").code == 0


def test_a_foreign_write_since_the_read_is_refused(cli: CliWorld, blob: str) -> None:
    read(cli, blob)
    client(cli, blob).set_http_headers(ContentSettings(content_type="text/theirs"))
    assert (change(cli, blob, "--content-language", "en"), headers_of(cli, blob)["content_type"]) == (42, "text/theirs")


def test_last_writer_wins_still_keeps_the_other_headers(cli: CliWorld, blob: str) -> None:
    before = headers_of(cli, blob)
    assert change(cli, blob, "--content-language", "en", "--last-writer-wins") == 0
    assert headers_of(cli, blob) == {**before, "content_language": "en"}


def tier(cli: CliWorld, blob: str, *words: str) -> Any:
    return cli.call("blob", "tier", blob, "--tier", "cool", *words)


def test_a_tier_is_changed_under_a_lease_that_is_given_back(cli: CliWorld, blob: str) -> None:
    read(cli, blob)
    before = client(cli, blob).get_blob_properties().etag
    ran = tier(cli, blob)
    found = client(cli, blob).get_blob_properties()
    assert (ran.json["tier"], ran.json["guard"], ran.json["rehydrating"], ran.json["etag"]) == (
        "Cool", "lease", False, before,
    )  # fmt: skip
    assert (found.blob_tier, found.etag, found.lease.state) == ("Cool", before, "available")


def test_the_tier_of_a_blob_that_changed_since_the_read_stays(cli: CliWorld, blob: str) -> None:
    read(cli, blob)
    client(cli, blob).upload_blob(b"theirs", overwrite=True)
    ran = tier(cli, blob, "-o", "json")
    found = client(cli, blob).get_blob_properties()
    assert (ran.code, ran.error["current_etag"], found.blob_tier, found.lease.state) == (
        42, found.etag, "Hot", "available",
    )  # fmt: skip


def test_the_tier_of_what_was_never_read_stays(cli: CliWorld, blob: str) -> None:
    assert (tier(cli, blob).code, tier(cli, blob, "--last-writer-wins").code) == (42, 0)


def test_the_address_of_a_snapshot_is_guard_enough(cli: CliWorld, blob: str) -> None:
    snapshot = f"{blob}?snapshot={client(cli, blob).create_snapshot()['snapshot']}"
    ran = tier(cli, snapshot)
    assert (ran.code, ran.json["guard"], ran.json["address"]) == (0, "none", f"blob:{snapshot}")


def test_inside_a_lock_run_its_lease_is_used(cli: CliWorld, blob: str) -> None:
    read(cli, blob)
    lease = client(cli, blob).acquire_lease(-1).id
    env = inside_lock_run(cli, blob, lease)
    assert cli.call("blob", "tier", blob, "--tier", "Cool", env=env).code == 0
