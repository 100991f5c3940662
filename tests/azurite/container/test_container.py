"""``azguard container`` against Azurite."""

import uuid
from typing import Any

import pytest

from tests.support.cli_world import CliWorld
from tests.support.faultproxy import proxy

LEASE = "0f3c1111-2222-3333-4444-555566667777"


@pytest.fixture
def name() -> str:
    return f"t{uuid.uuid4().hex[:20]}"


def sdk(cli: CliWorld, name: str) -> Any:
    from azure.storage.blob import ContainerClient

    return ContainerClient.from_connection_string(str(cli.connection_string), name)


def test_a_container_is_created_shown_listed_and_deleted(cli: CliWorld, name: str) -> None:
    made = cli.call("container", "create", name, "--metadata", "owner=me", "--public-access", "blob")
    shown = cli.call("container", "show", name)
    listed = cli.call("container", "list", "--prefix", name)
    assert {key: made.json[key] for key in ("address", "guard", "attempts", "conflicts", "outcome")} == {
        "address": f"container:{name}", "guard": "if-none-match", "attempts": 1, "conflicts": 0, "outcome": "committed",
    }  # fmt: skip
    assert shown.json == {
        "address": f"container:{name}", "name": name, "etag": made.json["etag"],
        "last_modified": made.json["last_modified"], "public_access": "blob", "lease_status": "unlocked",
        "lease_state": "available", "lease_duration": None, "has_immutability_policy": False, "has_legal_hold": False,
        "deleted": False, "deleted_version": None, "remaining_retention_days": None,
        "metadata": {"owner": "me"},
    }  # fmt: skip
    assert listed.json == [shown.json]
    assert (cli.call("container", "delete", name).code, cli.call("container", "exists", name).code) == (0, 44)
    again = cli.call("container", "delete", name)
    assert (again.code, f"{name} is gone: you deleted it at" in again.err) == (44, True)


def test_a_container_that_exists_is_left_alone(cli: CliWorld, name: str) -> None:
    cli.call("container", "create", name)
    ran = cli.call("container", "create", name, "-o", "json")
    assert (ran.code, ran.error["kind"], ran.error["message"]) == (45, "exists", f"{name} exists already")


@pytest.mark.parametrize("code", [0, 44])
def test_exists_answers_by_its_exit_status(cli: CliWorld, name: str, code: int) -> None:
    if code == 0:
        cli.call("container", "create", name)
    ran = cli.call("container", "exists", name)
    assert (ran.code, ran.json) == (code, {"address": f"container:{name}", "exists": code == 0})


def test_an_etag_on_a_delete_is_kept_by_a_lease_that_is_given_back(cli: CliWorld, name: str) -> None:
    etag = cli.call("container", "create", name).json["etag"]
    sdk(cli, name).set_container_metadata({"changed": "yes"})
    with proxy.running(cli.port, lambda _: proxy.Fault.NONE) as between:
        ran = cli.through(between.port).call("container", "delete", name, "--etag", etag, "-o", "json")
    shown = cli.call("container", "show", name).json
    assert (ran.code, ran.error["current_etag"], shown["lease_state"]) == (42, shown["etag"], "available")
    sent = [(each.request.method, each.request.headers.get("x-ms-lease-action")) for each in between.log]
    assert sent == [("GET", None), ("PUT", "acquire"), ("GET", None), ("PUT", "release")]  # the first counts its blobs
    etag = shown["etag"]
    done = cli.call("container", "delete", name, "--etag", etag)
    assert (done.json["guard"], cli.call("container", "exists", name).code) == ("lease", 44)


def test_a_container_never_read_is_not_deleted_and_nothing_is_requested(cli: CliWorld, name: str) -> None:
    with proxy.running(cli.port, lambda _: proxy.Fault.NONE) as between:
        ran = cli.through(between.port).call("container", "delete", name, "-o", "json")
    assert (ran.code, between.log, f"azguard container show {name}" in ran.error["hint"]) == (42, [], True)


def test_containers_are_listed_page_by_page_in_order(cli: CliWorld, name: str) -> None:
    for suffix in "cab":
        cli.call("container", "create", f"{name}{suffix}")
    found = cli.call("container", "list", "--prefix", name).json
    two = cli.call("container", "list", "--prefix", name, "--num-results", "2").json
    assert [each["name"][-1] for each in found] == ["a", "b", "c"]
    assert two == found[:2]


def test_an_etag_that_was_not_typed_is_not_named(cli: CliWorld) -> None:
    name = cli.container()
    cli.call("container", "metadata", "get", name)
    ran = cli.call("container", "metadata", "set", name, "--metadata", "a=b", "-o", "json")
    assert (ran.code, "--etag" in ran.error["message"], "--allow-race" in ran.error["hint"]) == (2, False, True)
