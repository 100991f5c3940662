"""``azguard container metadata`` and ``acl`` against Azurite: compared, with a gap that has to be accepted."""

import json
import uuid
from typing import Any

import pytest

from azguard.requests.lineage import KEY, Lineage
from tests.support.cli_world import CliWorld

READERS = {"start": "2026-01-01T00:00:00.0000000Z", "expiry": "2027-01-01T00:00:00.1234567Z", "permission": "rl"}
RACE = "--allow-race"


@pytest.fixture
def site(cli: CliWorld) -> str:
    """Return a container that azguard has made, and so given a lineage."""
    name = f"t{uuid.uuid4().hex[:20]}"
    assert cli.call("container", "create", name, scope="setup").code == 0
    return name


def sdk(cli: CliWorld, name: str) -> Any:
    from azure.storage.blob import ContainerClient

    return ContainerClient.from_connection_string(str(cli.connection_string), name)


def set_metadata(cli: CliWorld, site: str, *words: str) -> int:
    return cli.call("container", "metadata", "set", site, "--metadata", "owner=me", *words).code


def set_acl(cli: CliWorld, site: str, *words: str, stdin: Any = None) -> Any:
    given = b"" if stdin is None else json.dumps(stdin).encode()
    return cli.call("container", "acl", "set", site, *words, "-o", "json", stdin=given)


def test_metadata_are_replaced_and_the_lineage_stays(cli: CliWorld, site: str) -> None:
    cli.call("container", "metadata", "get", site)
    ran = cli.call("container", "metadata", "set", site, "--metadata", "owner=me", RACE)
    found = sdk(cli, site).get_container_properties()
    assert (ran.json["guard"], ran.json["etag"], len(Lineage.parse(found.metadata.pop(KEY)).entries)) == (
        "compare", found.etag, 2,
    )  # fmt: skip
    assert (found.metadata, cli.call("container", "metadata", "get", site).json["metadata"]) == (
        {"owner": "me"}, {"owner": "me"},
    )  # fmt: skip


@pytest.mark.parametrize(
    "words", [(), ("--etag", "0x1"), ("--if-match", "0x1"), ("--if-unmodified-since", "2026-01-01"), ("--fence", "1")]
)
def test_without_the_race_being_accepted_nothing_is_written(cli: CliWorld, site: str, words: tuple[str, ...]) -> None:
    cli.call("container", "metadata", "get", site)
    assert (set_metadata(cli, site, *words), "owner" in sdk(cli, site).get_container_properties().metadata) == (
        2,
        False,
    )


def test_a_container_that_was_created_here_can_be_deleted_afterwards(cli: CliWorld, site: str) -> None:
    name = f"{site}x"
    cli.call("container", "create", name)
    assert (set_metadata(cli, name, RACE), cli.call("container", "delete", name).code) == (0, 0)


def test_a_change_of_the_policies_is_noticed_by_a_writer_of_metadata(cli: CliWorld, site: str) -> None:
    cli.call("container", "metadata", "get", site)
    cli.call("container", "acl", "get", site, scope="other")
    assert set_acl(cli, site, "--public-access", "blob", "--last-writer-wins").code == 0
    assert set_metadata(cli, site, RACE) == 42


def test_public_access_stays_unless_it_is_given(cli: CliWorld, site: str) -> None:
    sdk(cli, site).set_container_access_policy({}, public_access="blob")
    found = cli.call("container", "acl", "get", site).json
    assert (found["public_access"], set_acl(cli, site, RACE, stdin={"readers": READERS}).code) == ("blob", 0)
    assert sdk(cli, site).get_container_properties().public_access == "blob"
    assert set_acl(cli, site, "--public-access", "off", RACE).code == 0
    left = cli.call("container", "acl", "get", site).json
    assert (left["public_access"], list(left["policies"])) == ("off", ["readers"])
