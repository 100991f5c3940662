"""``azguard blob put`` against Azurite: what is written, and when it is refused."""

import base64
import hashlib
import os
import shlex
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.blob_world import LARGE
from tests.support.cli_world import CliWorld
from tests.support.faultproxy import proxy

MIB = 1024 * 1024
LEASE = "0f3c1111-2222-3333-4444-555566667777"


def content(cli: CliWorld, blob: str) -> bytes:
    return cli.call("blob", "get", blob, scope="reader").stdout


def test_a_new_blob_is_created_and_its_result_says_so(cli: CliWorld, site: str) -> None:
    ran = cli.call("blob", "put", f"{site}/config.json", stdin=b'{"replicas": 1}')
    shown = cli.call("blob", "show", f"{site}/config.json").json
    assert ran.json == {
        "address": f"blob:{site}/config.json",
        "etag": shown["etag"],
        "last_modified": shown["last_modified"],
        "version_id": None,
        "content_length": 15,
        "content_type": "application/json",
        "content_hash": "sha256:" + hashlib.sha256(b'{"replicas": 1}').hexdigest(),
        "guard": "if-none-match",
        "attempts": 1,
        "conflicts": 0,
        "outcome": "committed",
        "created": True,
    }


def test_content_is_typed_wherever_it_is_written(cli: CliWorld, site: str) -> None:
    cli.call("blob", "append", f"{site}/log", "--create", "--content", "a\nb")
    cli.call("blob", "put", f"{site}/az", "--data", "x y")
    cli.call("blob", "page", "put", f"{site}/page", "--create", "512", "--content", "p" * 512)
    block = cli.call("blob", "block", "stage", f"{site}/block", "--content", "é").json[0]["block_id"]
    cli.call("blob", "block", "commit", f"{site}/block", "--block-id", block)
    found = [content(cli, f"{site}/{name}") for name in ("log", "az", "page", "block")]
    assert found == [b"a\nb", b"x y", b"p" * 512, "é".encode()]
    for words in (("--content", ""), ("--content", "a", "-f", "a.json"), ("--content", "a", "--recursive")):
        assert cli.call("blob", "put", f"{site}/none", *words).code == 2


def test_a_blob_never_read_by_this_scope_is_not_overwritten(cli: CliWorld, site: str) -> None:
    cli.call("blob", "put", f"{site}/a", stdin=b"mine")
    ran = cli.call("blob", "put", f"{site}/a", "-o", "json", stdin=b"theirs", scope="other")
    assert (ran.code, ran.out, ran.error["kind"], ran.error["http_status"]) == (45, "", "exists", 409)
    assert content(cli, f"{site}/a") == b"mine"


def test_our_own_write_guards_the_next(cli: CliWorld, site: str) -> None:
    runs = [cli.call("blob", "put", f"{site}/a", stdin=text).json for text in (b"1", b"2", b"3")]
    assert [(each["guard"], each["created"]) for each in runs] == [
        ("if-none-match", True), ("if-match", False), ("if-match", False),
    ]  # fmt: skip


def conflict(cli: CliWorld, site: str) -> None:
    cli.call("blob", "put", f"{site}/a.json", stdin=b"old")
    cli.call("blob", "get", f"{site}/a.json", "-f", "a.json")
    cli.call("blob", "get", f"{site}/a.json", scope="other")
    assert cli.call("blob", "put", f"{site}/a.json", stdin=b"theirs", scope="other").code == 0


def test_a_blob_that_changed_is_refused_with_both_etags_and_nothing_is_lost(cli: CliWorld, site: str) -> None:
    conflict(cli, site)
    ran = cli.call("blob", "put", f"{site}/a.json", "-f", "a.json", "-o", "json")
    theirs = cli.call("blob", "show", f"{site}/a.json").json["etag"]
    told = ran.error
    assert (ran.code, told["kind"], told["http_status"], told["service_code"], told["retriable"]) == (
        42, "changed", 412, "ConditionNotMet", False,
    )  # fmt: skip
    assert (told["current_etag"], told["expected_etag"] != theirs, told["lease_state"]) == (theirs, True, "available")
    assert content(cli, f"{site}/a.json") == b"theirs"


def test_the_hint_after_a_conflict_is_true_when_it_is_copied(cli: CliWorld, site: str) -> None:
    conflict(cli, site)
    ran = cli.call("blob", "put", f"{site}/a.json", "-f", "a.json", "--content-type", "text/x-mine")
    lines = [line.strip().split(": ", 1) for line in ran.err.splitlines() if ": azguard" in line]
    fetch, put = (each for line in lines for each in line[-1:] if "safe-update" not in each)
    fetch, put = fetch.split(": ")[-1], put.split(": ")[-1]
    assert put == f"azguard blob put {site}/a.json -f a.json --content-type text/x-mine --etag @last"
    fetched = cli.call(*fetch.split()[1:])
    assert (fetched.code, (cli.root / "THEIRS").read_bytes()) == (0, b"theirs")
    cli.file("a.json", "merged")
    assert cli.call("blob", "put", f"{site}/a.json", "-f", "a.json").code == 42  # the file's own version still guards
    assert (cli.call(*put.split()[1:]).code, content(cli, f"{site}/a.json")) == (0, b"merged")


def test_the_hint_repeats_the_account_but_no_secret(cli: CliWorld, site: str) -> None:
    conflict(cli, site)
    assert cli.connection_string is not None
    ran = cli.call(
        "blob", "put", f"{site}/a.json", "--connection-string", cli.connection_string, "--etag", "0x1", stdin=b"x"
    )
    hint = [line for line in ran.err.splitlines() if "put" in line]
    assert (ran.code, hint[0].split(": ")[-1]) == (
        42, f"azguard blob put {site}/a.json --connection-string @FILE -f MERGED --etag @last",
    )  # fmt: skip


def test_the_hint_puts_the_merged_file_in_the_place_of_the_content(cli: CliWorld, site: str) -> None:
    conflict(cli, site)
    ran = cli.call("blob", "put", f"{site}/a.json", "--content", "mine", "--etag", "0x1")
    assert f"then: azguard blob put {site}/a.json -f MERGED --etag @last\n" in ran.err


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("size", [5, LARGE])
def test_a_refused_put_tells_the_same_whatever_its_size(cli: CliWorld, site: str, size: int) -> None:
    cli.call("blob", "put", f"{site}/a", stdin=b"x" * size)
    mine = cli.call("blob", "get", f"{site}/a", "-f", "a").json["etag"]
    theirs = cli.call("blob", "put", f"{site}/a", "--last-writer-wins", stdin=b"theirs", scope="other").json["etag"]
    ran = cli.call("blob", "put", f"{site}/a", "-f", "a", "-o", "json")
    told = ran.error
    assert (ran.code, told["message"], told["expected_etag"], told["current_etag"]) == (
        42, f"{site}/a changed since you read it", mine, theirs,
    )  # fmt: skip
    assert told["hint"].startswith(f"fetch theirs beside yours: azguard blob get {site}/a -f THEIRS\n")


def test_a_put_for_a_version_that_is_gone_is_not_sent(cli: CliWorld, site: str) -> None:
    etag = cli.call("blob", "put", f"{site}/a", stdin=b"x").json["etag"]
    cli.call("blob", "delete", f"{site}/a")
    with proxy.running(cli.port, lambda _: proxy.Fault.NONE) as between:
        ran = cli.through(between.port).call("blob", "put", f"{site}/a", "--etag", etag, stdin=b"y")
    # Sent, and its answer lost, it would be in doubt for no reason.
    assert (ran.code, {each.request.method for each in between.log}) == (42, {"HEAD"})


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("size", [5, LARGE])
def test_after_a_deletion_the_hint_creates_the_blob_anew(cli: CliWorld, site: str, size: int) -> None:
    cli.call("blob", "put", f"{site}/a", stdin=b"x" * size)
    cli.call("blob", "get", f"{site}/a", "-f", "a")
    cli.call("blob", "delete", f"{site}/a", "--last-writer-wins", scope="other")
    ran = cli.call("blob", "put", f"{site}/a", "-f", "a", "--etag", "@last", "-o", "json")
    told = ran.error
    assert (ran.code, told["kind"], told["message"], told["current_etag"]) == (
        42, "changed", f"{site}/a is no longer there", None,
    )  # fmt: skip
    command, *others = [line.split(": ")[-1].strip() for line in told["hint"].splitlines()]
    assert (command, others) == (
        f"azguard blob put {site}/a -f a -o json --if-none-match '*'", ["to leave it deleted, do nothing"],
    )  # fmt: skip
    assert cli.call(*shlex.split(command)[1:]).code == 0


def test_what_is_deleted_already_needs_no_second_delete(cli: CliWorld, site: str) -> None:
    cli.call("blob", "put", f"{site}/a", stdin=b"x")
    cli.call("blob", "delete", f"{site}/a", "--last-writer-wins", scope="other")
    ran = cli.call("blob", "delete", f"{site}/a", "-o", "json")
    assert (ran.code, ran.error["hint"]) == (42, "there is nothing left to delete")


def test_a_file_is_guarded_by_its_own_version_even_if_a_newer_one_was_read(cli: CliWorld, site: str) -> None:
    conflict(cli, site)
    assert cli.call("blob", "get", f"{site}/a.json").out == "theirs"
    assert cli.call("blob", "put", f"{site}/a.json", "-f", "a.json").code == 42
    assert cli.call("blob", "put", f"{site}/a.json", stdin=b"from stdin").code == 0  # guarded by what was read last


@pytest.mark.usefixtures("small_blocks")
def test_an_upload_over_another_version_is_refused_before_its_first_block(cli: CliWorld, site: str) -> None:
    with proxy.running(cli.port, lambda _: proxy.Fault.NONE) as between:
        ran = cli.through(between.port).call("blob", "put", f"{site}/new", "--if-match", "0x1", stdin=b"x" * LARGE)
    assert (ran.code, [each for each in between.log if each.request.method == "PUT"]) == (42, [])


@pytest.mark.parametrize("size", [1, 65_537, 8 * MIB, 8 * MIB + 1])
def test_a_slow_pipe_of_unknown_length_is_written_whole(cli: CliWorld, site: str, size: int) -> None:
    whole = os.urandom(size)
    with cli.begin_fork("blob", "put", f"{site}/a") as running:
        assert running.stdin is not None
        for start in range(0, size, 1_000_003):
            running.stdin.write(whole[start : start + 1_000_003])
            running.stdin.flush()
        running.communicate()
    assert (running.returncode, content(cli, f"{site}/a") == whole) == (0, True)


def test_a_file_of_many_blocks_is_written_whole(cli: CliWorld, site: str) -> None:
    whole = os.urandom(23 * MIB + 5)
    file = cli.file("big.bin", whole)
    ran = cli.call("blob", "put", f"{site}/big.bin", "-f", "big.bin")
    shown = cli.call("blob", "show", f"{site}/big.bin").json
    md5 = base64.b64encode(hashlib.md5(whole).digest()).decode()
    assert (ran.json["content_length"], ran.json["content_hash"]) == (
        len(whole), "sha256:" + hashlib.sha256(whole).hexdigest(),
    )  # fmt: skip
    assert (shown["content_md5"], content(cli, f"{site}/big.bin") == file.read_bytes()) == (md5, True)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("size", [100, LARGE])
def test_content_with_another_md5_is_refused_and_nothing_is_written(cli: CliWorld, site: str, size: int) -> None:
    wrong = base64.b64encode(hashlib.md5(b"other").digest()).decode()
    ran = cli.call("blob", "put", f"{site}/a", "--content-md5", wrong, stdin=b"x" * size)
    assert (ran.code, cli.call("blob", "exists", f"{site}/a").code) == (2, 44)


def test_content_with_the_right_md5_is_written(cli: CliWorld, site: str) -> None:
    right = base64.b64encode(hashlib.md5(b"this").digest()).decode()
    assert cli.call("blob", "put", f"{site}/a", "--content-md5", right, stdin=b"this").code == 0
    assert cli.call("blob", "show", f"{site}/a").json["content_md5"] == right


def test_headers_metadata_tags_and_tier_are_set(cli: CliWorld, site: str) -> None:
    ran = cli.call(
        "blob", "put", f"{site}/a.txt", "--content-type", "text/x-own", "--content-encoding", "gzip",
        "--content-language", "de", "--content-disposition", "attachment", "--content-cache", "no-store",
        "--metadata", "owner=me", "--metadata", "Team=a=b", "--tags", "env=dev", "--tier", "cool", stdin=b"x",
    )  # fmt: skip
    shown: dict[str, Any] = cli.call("blob", "show", f"{site}/a.txt").json
    names = ("content_type", "content_encoding", "content_language", "content_disposition", "cache_control",
             "metadata", "tag_count", "tier")  # fmt: skip
    assert (ran.code, [shown[name] for name in names]) == (
        0, ["text/x-own", "gzip", "de", "attachment", "no-store", {"owner": "me", "Team": "a=b"}, 1, "Cool"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "file", "guessed"),
    [("a.html", None, "text/html"), ("a", "b.json", "application/json"), ("a", None, "application/octet-stream")],
)
def test_the_content_type_is_guessed(cli: CliWorld, site: str, name: str, file: str | None, guessed: str) -> None:
    options = ("-f", str(cli.file(file, "x"))) if file else ()
    assert cli.call("blob", "put", f"{site}/{name}", *options, stdin=b"x").json["content_type"] == guessed


def leased(cli: CliWorld, blob: str) -> Any:
    from azure.storage.blob import BlobClient, BlobLeaseClient

    container, _, name = blob.partition("/")
    assert cli.connection_string is not None
    lease = BlobLeaseClient(BlobClient.from_connection_string(cli.connection_string, container, name), LEASE)
    lease.acquire(15)
    return lease


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("size", [5, LARGE])
def test_a_leased_blob_is_locked_without_its_lease_id(cli: CliWorld, site: str, size: int) -> None:
    cli.call("blob", "put", f"{site}/a", stdin=b"old")
    leased(cli, f"{site}/a")
    codes = [
        cli.call("blob", "put", f"{site}/a", *lease, stdin=b"x" * size).code
        for lease in ((), ("--lease-id", str(uuid.uuid4())), ("--lease-id", LEASE))
    ]
    assert codes == [49, 49, 0]


def test_a_released_lease_id_is_refused_as_locked(cli: CliWorld, site: str) -> None:
    cli.call("blob", "put", f"{site}/a", stdin=b"old")
    leased(cli, f"{site}/a").release()
    assert cli.call("blob", "put", f"{site}/a", "--lease-id", LEASE, stdin=b"new").code == 49


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("condition", [("--if-match", "0x1"), ("--if-none-match", "*"), ("--etag", "0x1")])
def test_a_doomed_upload_fails_before_its_first_block(cli: CliWorld, site: str, condition: tuple[str, ...]) -> None:
    cli.call("blob", "put", f"{site}/a", stdin=b"old")
    with proxy.running(cli.port, lambda _: proxy.Fault.NONE) as between:
        ran = cli.through(between.port).call("blob", "put", f"{site}/a", *condition, stdin=b"x" * LARGE)
    assert ran.code in (42, 45)
    assert [each.request.method for each in between.log if each.request.writes] == []


@pytest.fixture
def meddling(cli: CliWorld, site: str) -> Iterator[CliWorld]:
    """Give a world in which another writes between the early check of an upload and its commit."""
    from azure.storage.blob import BlobClient

    assert cli.connection_string is not None
    theirs = BlobClient.from_connection_string(cli.connection_string, site, "a")

    def decide(request: proxy.Request) -> proxy.Fault:
        if "comp=blocklist" in request.path:
            theirs.upload_blob(b"theirs", overwrite=True)
        return proxy.Fault.NONE

    with proxy.running(cli.port, decide) as between:
        yield cli.through(between.port)


@pytest.mark.usefixtures("small_blocks")
def test_the_condition_is_enforced_on_the_commit_too(cli: CliWorld, meddling: CliWorld, site: str) -> None:
    cli.call("blob", "put", f"{site}/a", stdin=b"old")
    put = ("blob", "put", f"{site}/a", "--if-match", "@last")
    world = CliWorld(cli.root, cli.connection_string)
    etag = world.call("blob", "show", f"{site}/a").json["etag"]
    ran = meddling.call(*put[:3], "--etag", etag, stdin=b"x" * LARGE)
    assert (ran.code, content(cli, f"{site}/a")) == (42, b"theirs")


@pytest.mark.usefixtures("small_blocks")
def test_to_create_a_large_blob_beside_another_writer_is_refused(cli: CliWorld, meddling: CliWorld, site: str) -> None:
    ran = meddling.call("blob", "put", f"{site}/a", stdin=b"x" * LARGE)
    assert (ran.code, content(cli, f"{site}/a")) == (45, b"theirs")


@pytest.mark.parametrize(
    "name", ["a b", "käse/☃.txt", "100%", "a?b=c", "a#b", "a+b", "a%20b", "a&b", "x/y/z", "tail/", "a'b\"c", "~a_-.b"]
)
def test_any_name_is_written_read_listed_and_deleted_as_itself(cli: CliWorld, site: str, name: str) -> None:
    blob = f"{site}/{name}"
    put = cli.call("blob", "put", blob, stdin=name.encode())
    got, listed = cli.call("blob", "get", blob), cli.call("blob", "list", site)
    deleted = cli.call("blob", "delete", blob)
    assert (put.code, got.out, [each["name"] for each in listed.json], deleted.code) == (0, name, [name], 0)


def test_the_root_container_is_named_root(cli: CliWorld) -> None:
    cli.call("container", "create", "$root")
    name = uuid.uuid4().hex
    cli.call("blob", "put", f"$root/{name}", stdin=b"root")
    assert cli.call("blob", "get", f"$root/{name}").out == "root"


def test_a_container_that_is_not_there_is_not_found_with_the_command_that_makes_it(cli: CliWorld) -> None:
    ran = cli.call("blob", "put", "nosuch/a", "-o", "json", stdin=b"x")
    assert (ran.code, ran.error["message"], ran.error["hint"]) == (
        44, "there is no container nosuch",
        "check the name: azguard container list; to create it: azguard container create nosuch",
    )  # fmt: skip


def test_without_lineage_no_metadata_is_written(cli: CliWorld, site: str) -> None:
    from azure.storage.blob import BlobClient

    for name, options in (("with", ()), ("without", ("--no-lineage",))):
        cli.call("blob", "put", f"{site}/{name}", *options, stdin=b"x")
    found = [
        list(BlobClient.from_connection_string(str(cli.connection_string), site, name).get_blob_properties().metadata)
        for name in ("with", "without")
    ]
    assert found == [["azguardlineage"], []]
