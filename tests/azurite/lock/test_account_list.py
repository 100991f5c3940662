"""``lock list --account`` and ``lease list --account``: who holds what, as each program writes it."""

import base64
import json
import uuid
from collections.abc import Mapping
from typing import Any

import jsonschema
import pytest

from azguard.cli.output import holdings, terminal
from tests.support import places
from tests.support.cli_world import CliWorld

SCHEMAS = json.loads((places.SCHEMAS / "results.json").read_text())
LOCK = {
    "ID": str(uuid.uuid4()),
    "Operation": "OperationTypeApply",
    "Who": "ci@runner-7",
    "Version": "1.9.8",
    "Created": "2026-01-01T09:00:00.123456789Z",
    "Path": "tfstate/prod",
}
LOCK_INFO = base64.b64encode(json.dumps(LOCK).encode()).decode()
DISK = {"MicrosoftAzureCompute_VMName": "web-01", "MicrosoftAzureCompute_DiskType": "OSDisk"}


def service(cli: CliWorld) -> Any:
    from azure.storage.blob import BlobServiceClient

    return BlobServiceClient.from_connection_string(str(cli.connection_string))


def put(cli: CliWorld, address: str, content: bytes = b"", metadata: Mapping[str, str] | None = None) -> Any:
    container, _, name = address.partition("/")
    client = service(cli).get_blob_client(container, name)
    client.upload_blob(content, metadata=metadata)
    return client


def put_disk(cli: CliWorld, address: str, metadata: Mapping[str, str]) -> None:
    container, _, name = address.partition("/")
    client = service(cli).get_blob_client(container, name)
    client.create_page_blob(512, metadata=metadata)
    client.acquire_lease(-1)


@pytest.fixture
def site(cli: CliWorld) -> str:
    """Return the beginning of the names of three containers in which different programs hold something."""
    site: str = cli.container()
    for ending in ("b", "c"):
        service(cli).create_container(f"{site}{ending}")
    put(cli, f"{site}/prod.tfstate", b"{}", {"terraformlockid": LOCK_INFO}).acquire_lease(-1, LOCK["ID"])
    record = json.dumps({"pid": 7, "username": "ann", "hostname": "laptop", "timestamp": "2026-01-01T09:00:00Z"})
    put(cli, f"{site}b/.pulumi/locks/organization/shop/prod/1.json", record.encode())
    put(cli, f"{site}b/ns/orders/$default/ownership/0", b"", {"ownerid": "me"})
    put(cli, f"{site}b/nas/locks/{'a' * 64}", b"?")
    put_disk(cli, f"{site}c/web.vhd", DISK)
    service(cli).get_container_client(f"{site}c").acquire_lease(-1)
    put(cli, f"{site}c/a").acquire_lease(60)
    return site


def rows(out: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(out)
    schema = {"$defs": SCHEMAS["$defs"], "$ref": "#/$defs/holdings"}
    jsonschema.Draft202012Validator(schema).validate(found)
    return found


def test_all_that_is_held_in_the_account_is_one_list(cli: CliWorld, site: str) -> None:
    ran = cli.call("lock", "list", "--account", "--prefix", site)
    found = [(each["address"].replace(site, "S"), each["kind"], each["holder"]) for each in rows(ran.out)]
    assert (ran.code, found) == (
        0,
        [
            ("blob:S/prod.tfstate", "terraform", "ci@runner-7"),
            ("blob:Sb/.pulumi/locks/organization/shop/prod/1.json", "pulumi", "ann@laptop"),
            (f"blob:Sb/nas/locks/{'a' * 64}", "restic", None),
            ("blob:Sb/ns/orders/$default/ownership/0", "event-hubs", "me"),
            ("container:Sc", "unknown", None),
            ("blob:Sc/a", "unknown", None),
            ("blob:Sc/web.vhd", "vm-disk", "web-01"),
        ],
    )


@pytest.mark.parametrize(
    "words",
    [
        ("lock", "list", "{site}"),
        ("lock", "list", "--account", "--prefix", "{site}/"),
        ("lease", "list", "{site}"),
        ("lease", "list", "--account", "--prefix", "{site}/"),
    ],
)
def test_every_list_shows_the_same_of_a_lease_in_one_array(cli: CliWorld, site: str, words: tuple[str, ...]) -> None:
    (found,) = rows(cli.call(*(word.format(site=site) for word in words)).out)
    told = dict(list(found.items())[:8])
    assert told == {
        "address": f"blob:{site}/prod.tfstate",
        "state": "held",
        "holder": "ci@runner-7",
        "since": LOCK["Created"],
        "reason": "OperationTypeApply",
        "fence": None,
        "alive": "unknown",
        "ends": "never",
    }


def test_what_this_scope_holds_is_listed_of_locks_too(cli: CliWorld) -> None:
    site = cli.container()
    for name, scope in (("a", "mine"), ("b", "other")):
        put(cli, f"{site}/{name}")
        cli.call("lease", "acquire", f"blob:{site}/{name}", "--reason", "backup", scope=scope)
    found = cli.call("lock", "list", site, "--mine", scope="mine").json
    first = cli.call("lock", "list", site, "--num-results", "1", "--query", "[].address").json
    assert ([(each["address"], each["reason"]) for each in found], first) == (
        [(f"blob:{site}/a", "backup")],
        [f"blob:{site}/a"],
    )


def test_a_watch_on_a_terminal_shows_the_list(cli: CliWorld, site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    put(cli, f"{site}/free", metadata={"azguardfence": "7"})

    def stop(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(holdings, "sleep", stop)
    monkeypatch.setattr(terminal, "is_terminal", lambda _stream: True)
    ran = cli.call("lock", "list", site, "--watch", "-o", "table")
    listed = cli.call("lock", "list", site, "-o", "table")
    assert f"blob:{site}/free" in listed.out
    assert listed.out in ran.out


def test_a_query_picks_from_the_whole_list(cli: CliWorld, site: str) -> None:
    ran = cli.call("lock", "list", "--account", "--prefix", f"{site}b", "--query", "[].kind")
    assert ran.json == ["pulumi", "restic", "event-hubs"]


def test_leases_alone_are_listed_with_those_of_containers(cli: CliWorld, site: str) -> None:
    ran = cli.call("lease", "list", "--account", "--prefix", site, "--num-results", "3")
    assert [each["address"].replace(site, "S") for each in rows(ran.out)] == [
        "blob:S/prod.tfstate",
        "container:Sc",
        "blob:Sc/a",
    ]


def test_what_has_no_certain_time_is_no_stale_lock_and_is_counted(cli: CliWorld, site: str) -> None:
    ran = cli.call("lock", "list", "--account", "--prefix", f"{site}c", "--older-than", "1h")
    assert (ran.json, ran.err) == ([], "3 more leases: since when is not known, so that they are not in the list\n")


def test_the_lease_on_the_disk_of_a_machine_is_broken_only_for_who_names_the_machine(cli: CliWorld, site: str) -> None:
    disk = f"blob:{site}c/web.vhd"
    refused = cli.call("lock", "break", disk, "--yes", "-o", "json")
    assert (refused.code, refused.error["lease_state"]) == (49, "leased")
    assert "the virtual machine web-01 (OSDisk)" in refused.error["message"]
    assert "--if-owner" not in str(refused.error["hint"])
    other = cli.call("lease", "break", disk, "--if-owner", "web-02")
    named = cli.call("lease", "break", disk, "--if-owner", "web-01")
    assert (other.code, named.code, named.json["broken"]["held_by"]) == (42, 0, "web-01")


def test_a_container_that_may_not_be_listed_is_named_and_the_status_is_20(
    cli: CliWorld, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from azguard.errors import Forbidden
    from azguard.leases import holdings, state

    list_states = state.list_states

    def refuse_one(target: Any, *rest: Any) -> Any:
        if target.address.container == f"{site}b":
            raise Forbidden("no right to list", address=str(target.address), reason="not_allowed")
        return list_states(target, *rest)

    monkeypatch.setattr(holdings, "list_states", refuse_one)
    ran = cli.call("lock", "list", "--account", "--prefix", site)
    assert (ran.code, len(rows(ran.out))) == (20, 4)
    assert f"warning: container:{site}b could not be listed: no right to list" in ran.err


def test_a_watch_off_a_terminal_prints_each_change(cli: CliWorld, site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from azure.storage.blob import BlobLeaseClient

    terraform = BlobLeaseClient(service(cli).get_blob_client(site, "prod.tfstate"), LOCK["ID"])
    steps = [lambda: put(cli, f"{site}/new").acquire_lease(60), terraform.release]

    def act(_seconds: float) -> None:
        if not steps:
            raise KeyboardInterrupt
        steps.pop(0)()

    monkeypatch.setattr(holdings, "sleep", act)
    ran = cli.call("lock", "list", site, "--watch")
    changes = [(each["change"], each["address"].replace(site, "S")) for each in map(json.loads, ran.out.splitlines())]
    assert (ran.code, changes) == (130, [("taken", "blob:S/new"), ("freed", "blob:S/prod.tfstate")])
