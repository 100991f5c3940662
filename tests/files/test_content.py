"""Content of files: read as one version, and written whole or not at all, under its guard."""

import base64
import gzip
import hashlib
import random

import pytest
from azure.storage.fileshare import ShareLeaseClient

from azguard.requests.lineage import KEY, Lineage
from tests.support import files_world
from tests.support.cli_world import CliWorld
from tests.support.emulator_world import until
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Chosen, Fault, Request

ANYHOW = "--last-writer-wins"
LARGE = random.Random(7).randbytes(9 * 1024**2 + 5)
SHA = f"sha256:{hashlib.sha256(LARGE).hexdigest()}"


@pytest.fixture
def file(files_cli: CliWorld) -> str:
    return files_world.make(files_cli, metadata={"stays": "no"})


def content_of(cli: CliWorld, file: str) -> bytes:
    content: bytes = files_world.client(cli, file).download_file().readall()
    return content


def leftovers(cli: CliWorld, file: str) -> list[str]:
    return [name for name in files_world.names(cli, file.partition("/")[0]) if name.startswith(".azguard-")]


def test_compressed_content_comes_as_it_is_stored(files_cli: CliWorld, file: str) -> None:
    packed = gzip.compress(bytes(50_000_000))
    files_cli.call("file", "put", file, ANYHOW, "--content-encoding", "gzip", stdin=packed)
    assert files_cli.call("file", "get", file).stdout == packed


def test_what_was_never_read_is_only_created(files_cli: CliWorld, file: str) -> None:
    created = files_cli.call("file", "put", f"{file}2", stdin=b"new").json
    assert (created["guard"], created["created"], created["content_length"]) == ("if-none-match", True, 3)
    refused = files_cli.call("file", "put", file, "-o", "json", stdin=b"new")
    assert (refused.code, content_of(files_cli, file), leftovers(files_cli, file)) == (45, b"old", [])
    skipped = files_cli.call("file", "put", file, "--if-exists", "skip", stdin=b"new")
    assert (skipped.code, skipped.json["outcome"]) == (0, "exists")
    written = files_cli.call("file", "put", file, ANYHOW, stdin=b"new").json
    assert (written["guard"], content_of(files_cli, file)) == ("none", b"new")


def test_a_version_that_was_read_guards_the_put_and_its_own_copy(files_cli: CliWorld, file: str) -> None:
    assert files_cli.call("file", "get", file, "-f", "copy").json["length"] == 3
    files_cli.file("copy", b"ours")
    done = files_cli.call("file", "put", file, "-f", "copy").json
    assert (done["guard"], done["created"], content_of(files_cli, file)) == ("lease", False, b"ours")
    files_world.client(files_cli, file).upload_file(b"theirs")
    refused = files_cli.call("file", "put", file, "-f", "copy", "-o", "json")
    assert (refused.code, refused.error["expected_etag"]) == (42, done["etag"])
    assert (content_of(files_cli, file), leftovers(files_cli, file)) == (b"theirs", [])
    assert files_cli.call("lease", "list", "--mine").json == []
    files_cli.file("copy", b"precious")
    kept = files_cli.call("file", "get", file, "-f", "copy")
    assert (kept.code, (files_cli.root / "copy").read_bytes()) == (42, b"precious")
    assert (files_cli.call("file", "get", file, "-f", "copy", "--overwrite").code, kept.out) == (0, "")


def test_a_put_replaces_metadata_and_keeps_attributes_and_the_day_of_creation(files_cli: CliWorld, file: str) -> None:
    files_cli.call("file", "properties", "set", file, "--attributes", "Hidden", "--created", "2026-01-31", ANYHOW)
    files_cli.call("file", "get", file)
    files_cli.call("file", "put", file, "--metadata", "owner=me", "--content-type", "a/b", stdin=b"new")
    shown = files_cli.call("file", "show", file).json
    assert [shown[name] for name in ("metadata", "content_type", "attributes", "created", "lease_state")] == [
        {"owner": "me"}, "a/b", "Hidden", "2026-01-31T00:00:00Z", "available",
    ]  # fmt: skip


def test_a_put_sets_what_smb_clients_see_also_of_a_file_that_is_to_be_read_only(files_cli: CliWorld, file: str) -> None:
    words = ("--attributes", "Hidden|ReadOnly", "--created", "2026-01-31", "--written", "2026-02-01T12:00:00+02:00")
    put = files_cli.call("file", "put", f"{file}2", *words, "--changed", "2026-02-02", stdin=b"new")
    shown = files_cli.call("file", "show", f"{file}2").json
    assert (put.code, [shown[name] for name in ("attributes", "created", "written", "changed")]) == (
        0, ["ReadOnly | Hidden", "2026-01-31T00:00:00Z", "2026-02-01T10:00:00Z", "2026-02-02T00:00:00Z"],
    )  # fmt: skip


def test_a_large_file_goes_up_and_down_as_it_is(files_cli: CliWorld, file: str) -> None:
    local = str(files_cli.file("large", LARGE))
    md5 = base64.b64encode(hashlib.md5(LARGE, usedforsecurity=False).digest()).decode()
    put = files_cli.call("file", "put", f"{file}2", "-f", local, "--content-md5", md5).json
    piped = files_cli.call("file", "put", f"{file}3", stdin=LARGE).json
    assert (put["content_hash"], piped["content_hash"], piped["content_length"]) == (SHA, SHA, len(LARGE))
    assert files_cli.call("file", "get", f"{file}3", "-f", "back").json["content_hash"] == SHA
    assert (files_cli.root / "back").read_bytes() == LARGE
    assert files_cli.call("file", "get", f"{file}2").stdout == LARGE
    part = files_cli.call("file", "get", f"{file}2", "--start-range", "3", "--end-range", str(5 * 1024**2))
    assert part.stdout == LARGE[3 : 5 * 1024**2 + 1]


def test_content_with_another_md5_is_not_written(files_cli: CliWorld, file: str) -> None:
    ran = files_cli.call("file", "put", file, ANYHOW, "--content-md5", "AAAAAAAAAAAAAAAAAAAAAA==", stdin=b"new")
    assert (ran.code, content_of(files_cli, file), leftovers(files_cli, file)) == (2, b"old", [])


@pytest.mark.parametrize(("words", "code"), [((), 2), (("--allow-empty",), 0)])
def test_empty_content_has_to_be_meant(files_cli: CliWorld, file: str, words: tuple[str, ...], code: int) -> None:
    assert files_cli.call("file", "put", f"{file}2", *words).code == code
    if not code:
        got = files_cli.call("file", "get", f"{file}2", "--result", "r.json")
        assert (got.code, got.stdout) == (0, b"")
        assert files_cli.call("file", "get", f"{file}2", "--start-range", "1").code == 40


@pytest.mark.parametrize("fault", files_world.FAULTS)
@pytest.mark.parametrize(
    ("which", "words"),
    [
        ("plan.txt2?comp=rename", ()),
        ("plan.txt?comp=rename", ("--etag",)),
        ("comp=range", (ANYHOW,)),
        (".tmp HTTP", (ANYHOW,)),
        (".tmp?comp=rename", (ANYHOW,)),
    ],
    ids=["create", "replace", "range", "temporary", "renamed away"],
)
def test_a_put_whose_answer_is_lost_is_settled(
    files_cli: CliWorld, file: str, which: str, words: tuple[str, ...], fault: Fault
) -> None:
    target = file if words else f"{file}2"
    guard = [*words, files_cli.call("file", "show", file).json["etag"]] if words == ("--etag",) else words
    spoils = ".tmp" if which.startswith(".tmp") else which
    ran, log = files_world.spoilt(files_cli, fault, "file", "put", target, *guard, which=spoils, stdin=b"new")
    shown = files_cli.call("file", "show", target).json
    assert (ran.code, content_of(files_cli, target), leftovers(files_cli, target)) == (0, b"new", [])
    assert (ran.json["etag"], shown["metadata"], shown["lease_state"]) == (shown["etag"], {}, "available")
    assert log


def test_the_lineage_of_what_was_replaced_goes_on(files_cli: CliWorld, file: str) -> None:
    for content in (b"1", b"2", b"3"):
        files_cli.call("file", "get", file)
        assert files_cli.call("file", "put", file, stdin=content).code == 0
    history = Lineage.parse(files_world.client(files_cli, file).get_file_properties().metadata[KEY])
    # Each put under a lease was two writes: the record of its holder, and the content.
    assert len(history.entries) == 6


def test_a_put_under_ones_own_lease_leaves_the_new_version_leased(files_cli: CliWorld, file: str) -> None:
    files_cli.call("lease", "acquire", f"file:{file}", "--infinite")
    files_cli.call("file", "get", file)
    assert files_cli.call("file", "put", file, "-o", "json", stdin=b"new").code == 49
    for words in ((), (ANYHOW,)):
        done = files_cli.call("file", "put", file, "--lease-id", "@held", *words, stdin=b"new")
        assert (done.code, files_cli.call("file", "show", file).json["lease_state"]) == (0, "leased")
    assert files_cli.call("lease", "release", f"file:{file}", "--lease-id", "@held").code == 0
    assert (content_of(files_cli, file), leftovers(files_cli, file)) == (b"new", [])


def test_a_killed_put_leaves_the_old_file_whole_and_tells_who_it_was(files_cli: CliWorld, file: str) -> None:
    etag = files_cli.call("file", "show", file).json["etag"]
    met: list[Request] = []

    def decide(request: Request) -> Fault | Chosen:
        if f"{file}?comp=rename" not in request.path:
            return Fault.NONE
        met.append(request)
        return Chosen(until=lambda: False)

    local = str(files_cli.file("new", b"new"))
    with proxy.running(files_world.port(files_cli), decide) as between:
        words = ("file", "put", file, "-f", local, "--etag", etag)
        process = files_world.through(files_cli, between.port).begin_fork(*words)
        until(lambda: met)
        process.kill()
        process.communicate()
    shown = files_cli.call("lease", "show", f"file:{file}", scope="another").json
    assert (content_of(files_cli, file), shown["state"], shown["owner"]["pid"]) == (b"old", "held", process.pid)
    broken = files_cli.call("lease", "break", f"file:{file}", "--yes", scope="another")
    assert (broken.code, files_cli.call("file", "put", file, ANYHOW, "-f", local).code) == (0, 0)
    assert (content_of(files_cli, file), len(leftovers(files_cli, file))) == (b"new", 1)


@pytest.mark.parametrize(("words", "code"), [(("-f", "back"), 0), ((), 42)])
def test_what_is_overwritten_meanwhile_is_never_delivered_as_a_mixture(
    files_cli: CliWorld, file: str, words: tuple[str, ...], code: int
) -> None:
    files_world.client(files_cli, file).upload_file(LARGE)
    met: list[Request] = []

    def decide(request: Request) -> Fault:
        if request.method == "GET" and "restype" not in request.path:
            met.append(request)
            if len(met) == 2:
                files_world.client(files_cli, file).upload_file(LARGE[::-1])
        return Fault.NONE

    with proxy.running(files_world.port(files_cli), decide) as between:
        ran = files_world.through(files_cli, between.port).call("file", "get", file, *words)
    assert (ran.code, LARGE.startswith(ran.stdout) or bool(words)) == (code, True)
    assert not words or (files_cli.root / "back").read_bytes() == LARGE[::-1]


@pytest.mark.parametrize("made", ["file", "directory"])
def test_one_of_two_creators_wins(files_cli: CliWorld, file: str, made: str) -> None:
    share, new = files_world.sdk(files_cli, file.partition("/")[0]), f"{file}-{made}"
    name = new.partition("/")[2]

    def make() -> object:
        if made == "directory":
            return share.get_directory_client(name).create_directory()
        return share.get_file_client(name).upload_file(b"theirs")

    ran = files_world.meanwhile(files_cli, f"{new}?comp=rename", make, "file", "put", new, stdin=b"ours")
    found = files_cli.call("file", "list", file.partition("/")[0], "--prefix", name).json
    assert (ran.code, [(each["type"], each["content_length"]) for each in found]) == (
        45,
        [("dir", None) if made == "directory" else ("file", 6)],
    )
    assert leftovers(files_cli, new) == []


def test_a_put_whose_temporary_file_another_deletes_says_so(files_cli: CliWorld, file: str) -> None:
    folder = f"{file.partition('/')[0]}/gone"
    files_cli.call("dir", "create", folder)

    def delete() -> None:
        for name in files_world.names(files_cli, file.partition("/")[0], "gone"):
            files_world.client(files_cli, f"{folder}/{name}").delete_file()

    ran = files_world.meanwhile(files_cli, "/a?comp=rename", delete, "file", "put", f"{folder}/a", stdin=b"new")
    assert (ran.code, ran.error["kind"], "temporary file" in ran.error["message"]) == (53, "unavailable", True)


@pytest.mark.parametrize("words", [("prune", "{share}"), ("put", "{share}/next", "--allow-empty")])
def test_a_temporary_file_without_its_lease_is_deleted(files_cli: CliWorld, file: str, words: tuple[str, ...]) -> None:
    client, share = files_world.client(files_cli, file), file.partition("/")[0]
    lease = ShareLeaseClient(client)
    lease.acquire()
    etag = client.get_file_properties().etag
    with files_world.killing(files_cli) as killer:
        killer.kill("acquire", "file", "put", file, "--etag", etag, "--lease-id", lease.id, "--allow-empty")
        left = leftovers(files_cli, file)
        ran = killer.world.call("file", *(word.format(share=share) for word in words))
    assert (len(left), ran.code, leftovers(files_cli, file)) == (1, 0, [])


def test_a_put_whose_temporary_file_is_perhaps_not_leased_has_written_nothing(files_cli: CliWorld, file: str) -> None:
    client = files_world.client(files_cli, file)
    lease = ShareLeaseClient(client)
    lease.acquire()
    words = ("file", "put", file, "--lease-id", lease.id, "--last-writer-wins", "-o", "json", "--timeout", "3s")

    def decide(request: Request) -> Fault:
        return Fault.FAIL_BEFORE if request.headers.get("x-ms-lease-action") == "acquire" else Fault.NONE

    with proxy.running(files_world.port(files_cli), decide) as between:
        ran = files_world.through(files_cli, between.port).call(*words, stdin=b"new")
    assert (ran.code, ran.error["kind"], leftovers(files_cli, file)) == (53, "unavailable", [])


@pytest.mark.parametrize("at", ["comp=range", "comp=metadata"])
def test_a_put_that_is_interrupted_on_its_way_writes_nothing(files_cli: CliWorld, file: str, at: str) -> None:
    """At a range of its temporary file, and at the record of its lease; each was done, and its answer is lost."""
    with files_world.killing(files_cli) as killer:
        before = killer.world.call("file", "get", file).stdout
        code = killer.interrupt(at, "file", "put", file, "-f", str(files_cli.file("new", b"new")))
        assert (code, content_of(files_cli, file), leftovers(files_cli, file)) == (130, before, [])
