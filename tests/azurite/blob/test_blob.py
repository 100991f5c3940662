"""``azguard blob show|exists|list|delete`` against Azurite."""

import base64
import hashlib
from typing import Any
from unittest.mock import patch

import pytest

from azguard.accounts.account import Target, from_connection_string
from azguard.address import parse
from azguard.blobs import listing
from azguard.blobs.listing import list_blobs
from azguard.requests.deadline import Deadline
from tests.support.cli_world import CliWorld
from tests.support.faultproxy import proxy

MD5 = base64.b64encode(hashlib.md5(b"old").digest()).decode()
LEASE = "0f3c1111-2222-3333-4444-555566667777"


def put(cli: CliWorld, blob: str, *options: str) -> str:
    ran = cli.call("blob", "put", blob, *options, "--last-writer-wins", stdin=b"old", scope="setup")
    return str(ran.json["etag"])


def sdk(cli: CliWorld, site: str, name: str = "a") -> Any:
    from azure.storage.blob import BlobClient

    return BlobClient.from_connection_string(str(cli.connection_string), site, name)


def test_show_tells_everything_but_azguards_own_metadata(cli: CliWorld, site: str) -> None:
    etag = put(cli, f"{site}/a.txt", "--metadata", "owner=me", "--tags", "env=dev")
    found = cli.call("blob", "show", f"{site}/a.txt").json
    assert {name: value for name, value in found.items() if name not in ("last_modified", "created")} == {
        "address": f"blob:{site}/a.txt", "name": "a.txt", "container": site, "etag": etag, "content_length": 3,
        "content_type": "text/plain", "content_encoding": None, "content_language": None,
        "content_disposition": None, "cache_control": None, "content_md5": MD5,
        "blob_type": "BlockBlob", "tier": "Hot", "tag_count": 1, "lease_status": "unlocked",
        "lease_state": "available", "lease_duration": None, "snapshot": None, "version_id": None, "deleted": False,
        "copy_id": None, "copy_status": None, "copy_progress": None,
        "metadata": {"owner": "me"},
    }  # fmt: skip


@pytest.mark.parametrize(("name", "code"), [("a", 0), ("nosuch", 44)])
def test_exists_answers_by_its_exit_status_and_on_stdout(cli: CliWorld, site: str, name: str, code: int) -> None:
    put(cli, f"{site}/a")
    ran = cli.call("blob", "exists", f"{site}/{name}")
    assert (ran.code, ran.json, ran.err) == (code, {"address": f"blob:{site}/{name}", "exists": code == 0}, "")


def test_a_container_that_does_not_exist_is_not_taken_for_a_blob_that_does_not(cli: CliWorld, site: str) -> None:
    ran = cli.call("blob", "exists", "nosuch/a")
    assert (ran.code, ran.out, "there is no container nosuch" in ran.err) == (44, "", True)
    cli.call("blob", "put", f"{site}/a", scope="a", stdin=b"1")
    cli.call("container", "delete", site, "--with-contents", "--last-writer-wins")
    (found,) = cli.call("status", f"blob:{site}/a", scope="a").json
    assert (found["state"], found["reason"]) == ("vanished", f"there is no container {site}")


def listed(cli: CliWorld, *words: str) -> list[str]:
    return [each["name"] for each in cli.call("blob", "list", *words).json]


def test_a_listing_is_in_order_and_can_be_narrowed(cli: CliWorld, site: str) -> None:
    for name in ("b", "a/1", "a/2", "a/x/3", "c"):
        put(cli, f"{site}/{name}")
    assert [
        listed(cli, site),
        listed(cli, site, "--prefix", "a/"),
        listed(cli, site, "--num-results", "2"),
        listed(cli, site, "--delimiter", "/"),
        listed(cli, site, "--delimiter", "/", "--prefix", "a/", "--num-results", "1"),
        listed(cli, site, "--prefix", "zzz"),
    ] == [["a/1", "a/2", "a/x/3", "b", "c"], ["a/1", "a/2", "a/x/3"], ["a/1", "a/2"], ["a/", "b", "c"], ["a/1"], []]


def test_a_list_that_is_cut_goes_on_from_its_marker(cli: CliWorld, site: str) -> None:
    for name in ("a", "b/1", "b/2", "c", "d"):
        put(cli, f"{site}/{name}")
    words = ("blob", "list", site, "--delimiter", "/", "--num-results", "2")
    names: list[list[str]] = []
    marker: tuple[str, ...] = ()
    while marker or not names:
        *found, last = cli.call(*words, "--show-next-marker", *marker).json
        marker = ("--marker", last["next_marker"]) if "next_marker" in last else ()
        names.append([each["name"] for each in (found if marker else [*found, last])])
    assert sorted(name for page in names for name in page) == ["a", "b/", "c", "d"]
    assert [len(each) for each in names] == [2, 2]
    cut = cli.call(*words)
    rest = listed(cli, site, "--marker", cut.err.rpartition("there are more: --marker ")[2].strip())
    assert (len(cut.json), rest) == (2, ["c", "d"])
    assert cli.call("blob", "list", site, "--num-results", "5", "--show-next-marker").json[-1]["name"] == "d"


def test_a_folder_in_a_listing_is_marked_as_one(cli: CliWorld, site: str) -> None:
    put(cli, f"{site}/a/1")
    assert cli.call("blob", "list", site, "--delimiter", "/").json == [
        {"address": f"blob:{site}/a/", "name": "a/", "prefix": True}
    ]


def test_what_is_listed_has_the_etag_that_show_tells(cli: CliWorld, site: str) -> None:
    put(cli, f"{site}/a", "--metadata", "owner=me", "--tags", "state=new")
    listed = cli.call("blob", "list", site, "--include", "mst").json[0]
    assert listed.pop("tags") == {"state": "new"}
    shown = cli.call("blob", "show", f"{site}/a").json
    assert {key: (each, shown[key]) for key, each in listed.items() if each != shown[key]} == {}


def test_snapshots_are_listed_read_and_deleted_by_their_address(cli: CliWorld, site: str) -> None:
    put(cli, f"{site}/a")
    sdk(cli, site).create_snapshot()
    cli.call("blob", "put", f"{site}/a", "--last-writer-wins", stdin=b"new")
    snapshot = next(each for each in cli.call("blob", "list", site, "--include", "snapshots").json if each["snapshot"])
    address = snapshot["address"].removeprefix("blob:")
    assert cli.call("blob", "get", address).out == "old"
    codes = [
        cli.call("blob", *words, stdin=b"x").code
        for words in (
            ("put", address), ("delete", f"{site}/a"), ("delete", address, "--delete-snapshots", "include"),
            ("delete", address), ("show", address), ("delete", f"{site}/a"),
        )
    ]  # fmt: skip
    # not writable · has snapshots · a snapshot has none · deleted · gone · no snapshots any more
    assert codes == [2, 40, 2, 0, 44, 0]


def test_snapshots_alone_can_be_deleted_and_the_blob_stays_guarded(cli: CliWorld, site: str) -> None:
    cli.call("blob", "put", f"{site}/a", stdin=b"1")
    sdk(cli, site).create_snapshot()
    only = cli.call("blob", "delete", f"{site}/a", "--delete-snapshots", "only")
    left = cli.call("blob", "list", site, "--include", "snapshots").json
    assert (only.code, len(left), cli.call("blob", "put", f"{site}/a", stdin=b"2").json["guard"]) == (0, 1, "if-match")


def test_a_listing_takes_pages_one_by_one_and_misses_nothing_when_one_fails(cli: CliWorld, site: str) -> None:
    for number in range(7):
        put(cli, f"{site}/{number}")
    failed: list[str] = []

    def decide(request: proxy.Request) -> proxy.Fault:
        if "marker=" in request.path and not failed:
            failed.append(request.path)
            return proxy.Fault.DROP
        return proxy.Fault.NONE

    with proxy.running(cli.port, decide) as between:
        account = from_connection_string(cli.through(between.port).connection_string or "")
        target = Target(account, parse(f"container:{site}").address)
        with patch.object(listing, "_PAGE", 3):
            names = [each.name for each in listing.walk(target, Deadline(), limit=7)]
    assert (names, len(failed)) == ([str(number) for number in range(7)], 1)


def test_a_blob_of_uncommitted_blocks_is_listed_without_an_etag(cli: CliWorld, site: str) -> None:
    sdk(cli, site).stage_block("YQ==", b"x")
    account = from_connection_string(str(cli.connection_string))
    target = Target(account, parse(f"container:{site}").address)
    found = list(list_blobs(target, Deadline(), include=["uncommittedblobs"]))
    assert [each.name for each in found] == ["a"]


def test_a_listing_of_no_container_is_not_found_and_prints_nothing(cli: CliWorld) -> None:
    ran = cli.call("blob", "list", "nosuch", "-o", "json")
    assert (ran.code, ran.out, ran.error["hint"]) == (
        44,
        "",
        "check the name: azguard container list; to create it: azguard container create nosuch",
    )


def test_a_delete_says_what_guarded_it_and_forgets_the_blob(cli: CliWorld, site: str) -> None:
    cli.call("blob", "put", f"{site}/a", stdin=b"old")
    ran = cli.call("blob", "delete", f"{site}/a")
    assert ran.json == {
        "address": f"blob:{site}/a", "etag": None, "last_modified": None, "guard": "if-match", "attempts": 1,
        "conflicts": 0, "outcome": "committed",
    }  # fmt: skip
    assert cli.call("blob", "put", f"{site}/a", stdin=b"new").json["created"] is True


@pytest.mark.parametrize("words", [(), ("--etag", "@last"), ("--lease-id", "0f3c1111-2222-3333-4444-555566667777")])
def test_a_second_delete_says_when_this_scope_deleted_it(cli: CliWorld, site: str, words: tuple[str, ...]) -> None:
    cli.call("blob", "put", f"{site}/a", stdin=b"old")
    cli.call("blob", "delete", f"{site}/a")
    ran = cli.call("blob", "delete", f"{site}/a", *words, "-o", "json")
    assert (ran.code, ran.error["message"].rpartition(" ")[0]) == (44, f"{site}/a is gone: you deleted it at")
    assert cli.call("blob", "delete", f"{site}/a", scope="other").code == 42


def test_a_second_delete_never_takes_what_another_created_since(cli: CliWorld, site: str) -> None:
    cli.call("blob", "put", f"{site}/a", stdin=b"mine")
    cli.call("blob", "delete", f"{site}/a")
    cli.call("blob", "put", f"{site}/a", stdin=b"theirs", scope="other")
    assert cli.call("blob", "delete", f"{site}/a").code == 42
    assert cli.call("blob", "put", f"{site}/a", stdin=b"mine").code == 45
    assert cli.call("blob", "get", f"{site}/a").out == "theirs"


def test_a_second_delete_whose_container_is_gone_names_the_container(cli: CliWorld, site: str) -> None:
    cli.call("blob", "put", f"{site}/a", stdin=b"mine")
    cli.call("blob", "delete", f"{site}/a")
    cli.call("container", "delete", site, "--last-writer-wins", "--with-contents")
    ran = cli.call("blob", "delete", f"{site}/a", "-o", "json")
    assert (ran.code, ran.error["service_code"], "you deleted" in ran.err) == (44, "ContainerNotFound", False)


def test_a_blob_that_a_tree_delete_took_was_deleted_from_here_too(cli: CliWorld, site: str) -> None:
    cli.call("blob", "put", f"{site}/p/a", stdin=b"mine")
    assert cli.call("blob", "delete", f"{site}/p/", "--recursive").code == 0
    ran = cli.call("blob", "delete", f"{site}/p/a")
    assert (ran.code, "you deleted it at" in ran.err) == (44, True)


def test_a_blob_never_read_is_not_deleted_and_nothing_is_requested(cli: CliWorld, site: str) -> None:
    with proxy.running(cli.port, lambda _: proxy.Fault.NONE) as between:
        ran = cli.through(between.port).call("blob", "delete", f"{site}/a", "-o", "json")
    ways = (f"azguard blob get {site}/a -f FILE", "--etag ETAG", "--last-writer-wins")
    assert (ran.code, ran.error["kind"], between.log) == (42, "changed", [])
    assert [way in ran.error["hint"] for way in ways] == [True] * 3


@pytest.mark.parametrize(
    "condition", [("--if-match", "*"), ("--if-match", "0x1"), ("--if-unmodified-since", "2101-01-01")]
)
@pytest.mark.parametrize("command", ["show", "get", "exists"])
def test_a_conditional_read_of_what_is_not_there_says_so(
    cli: CliWorld, site: str, command: str, condition: tuple[str, ...]
) -> None:
    ran = cli.call("blob", command, f"{site}/missing", *condition, "-o", "json")
    assert ran.code == 44, ran.err


def test_a_blob_that_somebody_deleted_is_said_to_be_gone(cli: CliWorld, site: str) -> None:
    cli.call("blob", "put", f"{site}/a", stdin=b"old")
    sdk(cli, site).delete_blob()
    ran = [cli.call("blob", verb, f"{site}/a", "-o", "json", stdin=b"x") for verb in ("put", "delete")]
    assert [(each.code, each.error["message"]) for each in ran] == [(42, f"{site}/a is no longer there")] * 2


def test_a_delete_is_of_the_version_that_came_with_a_copy(cli: CliWorld) -> None:
    blob = f"{cli.container()}/a"
    cli.call("blob", "put", blob, stdin=b"1")
    cli.call("blob", "get", blob, "-f", "old")
    cli.call("blob", "put", blob, stdin=b"2")
    (cli.root / "strange").write_text("1")
    for file, code in (("old", 42), ("strange", 2), ("nothing", 2)):
        assert cli.call("blob", "delete", blob, "--version-of", file).code == code
    assert cli.call("blob", "delete", blob, "--version-of", "old", "--etag", "@last").code == 2
    cli.call("blob", "get", blob, "-f", "new")
    assert cli.call("blob", "delete", blob, "--version-of", "new").code == 0


def test_a_delete_that_is_only_looked_at_deletes_nothing(cli: CliWorld) -> None:
    blob = f"{cli.container()}/a"
    cli.call("blob", "put", blob, stdin=b"1")
    look = ("blob", "delete", blob, "--dry-run")
    assert cli.call(*look).json["outcome"] == "would delete"
    assert cli.call(*look, scope="other").code == 42
    assert cli.call(*look, "--etag", "0x1").code == 42
    lease = cli.call("lease", "acquire", f"blob:{blob}", scope="other").json["lease_id"]
    assert cli.call(*look).json["outcome"] == "would refuse"
    assert cli.call(*look, "--lease-id", lease).json["outcome"] == "would delete"
    assert cli.call("blob", "exists", blob).code == 0
    assert cli.call("blob", "delete", f"{blob}-none", "--dry-run", "--last-writer-wins").code == 44
