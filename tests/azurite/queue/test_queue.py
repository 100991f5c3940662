"""``azguard queue`` against Azurite."""

import json
import uuid
from typing import Any

import pytest

from azguard.requests.lineage import KEY, Lineage
from tests.support import queue_world
from tests.support.cli_world import CliWorld
from tests.support.faultproxy.faults import Fault

WRITTEN = {"etag": None, "last_modified": None, "attempts": 1, "conflicts": 0, "outcome": "committed"}
RACE = "--allow-race"
ANYHOW = "--last-writer-wins"


@pytest.fixture
def name() -> str:
    return f"q{uuid.uuid4().hex[:20]}"


@pytest.fixture
def jobs(cli: CliWorld) -> str:
    return queue_world.queue(cli)


def set_acl(cli: CliWorld, name: str, policies: Any, *words: str, scope: str = "test") -> Any:
    return cli.call("queue", "acl", "set", name, *words, "-o", "json", stdin=json.dumps(policies).encode(), scope=scope)


def test_a_queue_is_created_shown_listed_and_deleted(cli: CliWorld, name: str) -> None:
    address = f"queue:{name}"
    answers = [
        cli.call("queue", "create", name, "--metadata", "owner=me"),
        cli.call("queue", "show", name),
        cli.call("queue", "list", "--prefix", name),
        cli.call("queue", "exists", name),
        cli.call("queue", "delete", name, ANYHOW),
    ]
    listed = {"address": address, "name": name, "metadata": {"owner": "me"}}
    assert [each.json for each in answers] == [
        {"address": address, "guard": "if-none-match", **WRITTEN},
        {**listed, "approximate_message_count": 0},
        [listed],
        {"address": address, "exists": True},
        {"address": address, "guard": "none", **WRITTEN},
    ]
    assert [cli.call("queue", verb, name).code for verb in ("exists", "show")] == [44, 44]


def test_the_entry_of_azguard_is_legal_as_metadata_of_a_queue_and_tells_who_made_it(cli: CliWorld, name: str) -> None:
    cli.call("queue", "create", name)
    found = queue_world.sdk(cli, name).get_queue_properties().metadata
    assert (list(found), len(Lineage.parse(found[KEY]).entries)) == ([KEY], 1)


def test_a_queue_that_exists_is_left_alone_even_with_the_same_metadata(cli: CliWorld, jobs: str) -> None:
    ran = cli.call("queue", "create", jobs, "-o", "json")
    skipped = cli.call("queue", "create", jobs, "--if-exists", "skip")
    assert (ran.code, ran.error["service_code"], skipped.code, skipped.json["outcome"]) == (
        45, "QueueAlreadyExists", 0, "exists",
    )  # fmt: skip


def test_a_queue_is_only_deleted_if_that_is_said(cli: CliWorld, jobs: str) -> None:
    ran = cli.call("queue", "delete", jobs)
    assert (ran.code, cli.call("queue", "exists", jobs).code) == (2, 0)


def test_a_queue_with_messages_is_only_deleted_with_its_contents(cli: CliWorld) -> None:
    name = queue_world.queue(cli, "one", "two")
    queue_world.sdk(cli, name).receive_message()
    ran = cli.call("queue", "delete", name, ANYHOW, "-o", "json")
    assert (ran.code, ran.error["contents"], cli.call("queue", "exists", name).code) == (42, 2, 0)
    assert cli.call("queue", "delete", name, ANYHOW, "--with-contents").code == 0


def test_a_queue_that_is_not_there_cannot_be_deleted(cli: CliWorld, name: str) -> None:
    ran = cli.call("queue", "delete", name, ANYHOW, "-o", "json")
    assert (ran.code, ran.error["message"], ran.error["hint"]) == (
        44, f"there is no queue {name}",
        f"check the name: azguard queue list; to create it: azguard queue create {name}",
    )  # fmt: skip


def test_metadata_are_replaced_and_the_lineage_stays(cli: CliWorld, name: str) -> None:
    cli.call("queue", "create", name, "--metadata", "owner=them")
    read = cli.call("queue", "metadata", "get", name).json
    ran = cli.call("queue", "metadata", "set", name, "--metadata", "owner=me", RACE)
    found = queue_world.sdk(cli, name).get_queue_properties().metadata
    assert (ran.json["guard"], len(Lineage.parse(found.pop(KEY)).entries), found) == ("compare", 2, {"owner": "me"})
    now = cli.call("queue", "metadata", "get", name).json
    assert (now["metadata"], now["etag"]) == ({"owner": "me"}, ran.json["etag"])
    assert (read["metadata"], read["etag"] != now["etag"]) == ({"owner": "them"}, True)


def test_a_set_of_access_policies_in_doubt_is_never_sent_again(cli: CliWorld, jobs: str) -> None:
    words = ("queue", "acl", "set", jobs, ANYHOW)
    ran, log = queue_world.spoilt(cli, "PUT", Fault.DROP, *words, stdin=b"{}")
    assert (ran.code, log, ran.error["hint"]) == (
        74, [("PUT", True)], f"look before you try again: azguard queue acl get {jobs}",
    )  # fmt: skip


def test_a_version_of_metadata_is_none_of_access_policies(cli: CliWorld, jobs: str) -> None:
    cli.call("queue", "metadata", "get", jobs)
    assert set_acl(cli, jobs, {}, RACE).code == 42
