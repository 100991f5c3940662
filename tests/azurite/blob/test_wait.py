"""``azguard blob wait`` and ``blob get --wait-changed`` against Azurite, while another writes in between."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from azure.storage.blob import BlobClient

from tests.support.cli_world import CliWorld, Ran
from tests.support.faultproxy import proxy


@pytest.fixture
def theirs(cli: CliWorld, site: str) -> Iterator[BlobClient]:
    """Return the blob as another client has it."""
    with BlobClient.from_connection_string(str(cli.connection_string), site, "a") as client:
        yield client


@contextmanager
def doing(cli: CliWorld, *steps: Callable[[], Any] | None) -> Iterator[tuple[CliWorld, list[str]]]:
    """Do something before each look of ours, None is nothing; yield a world in which it is done, and the methods.

    The first read of the blob is that of ``read_first``, which is no look.
    """
    left = list(steps)
    methods: list[str] = []

    def decide(request: proxy.Request) -> proxy.Fault:
        if not methods and request.method == "GET":
            return proxy.Fault.NONE
        methods.append(request.method)
        if left and (step := left.pop(0)) is not None:
            step()
        return proxy.Fault.NONE

    with proxy.running(cli.port, decide) as between:
        yield cli.through(between.port), methods


def read_first(world: CliWorld, site: str) -> str:
    """Read the blob to the file, and return its version."""
    return str(world.call("blob", "get", f"{site}/a", "-f", "a").json["etag"])


def test_a_blob_that_comes_is_waited_for(cli: CliWorld, site: str, theirs: BlobClient) -> None:
    with doing(cli, None, lambda: theirs.upload_blob(b"1")) as (world, methods):
        ran = world.call("blob", "wait", f"{site}/a", "--until", "exists")
    assert (ran.code, ran.json["exists"], ran.err, methods) == (
        0, True, f"waiting up to 1m: blob:{site}/a does not exist yet\n", ["HEAD", "HEAD"],
    )  # fmt: skip


@pytest.mark.parametrize("named", [True, False])
def test_a_change_of_a_known_version_is_waited_for(cli: CliWorld, site: str, theirs: BlobClient, named: bool) -> None:
    old = theirs.upload_blob(b"1")["etag"]
    with doing(cli, None, lambda: theirs.upload_blob(b"2", overwrite=True)) as (world, methods):
        if not named:
            read_first(world, site)
        ran = world.call(
            "blob", "wait", f"{site}/a", "--until", "changed", *(("--if-none-match", old) if named else ())
        )
    assert (ran.code, ran.json["etag"], methods) == (0, theirs.get_blob_properties().etag, ["HEAD", "HEAD"])


def test_waiting_is_not_reading(cli: CliWorld, site: str, theirs: BlobClient) -> None:
    theirs.upload_blob(b"1")
    cli.call("blob", "wait", f"{site}/a", "--until", "exists")
    assert cli.call("cache", "list").json == []


def get_changed(world: CliWorld, site: str, *options: str) -> Ran:
    return world.call("blob", "get", f"{site}/a", "-f", "a", "--wait-changed", *options)


def test_a_get_that_waits_delivers_and_keeps_the_new_version(cli: CliWorld, site: str, theirs: BlobClient) -> None:
    theirs.upload_blob(b"1")
    with doing(cli, None, lambda: theirs.upload_blob(b"2", overwrite=True)) as (world, methods):
        read_first(world, site)
        ran = get_changed(world, site)
        cached = [each["etag"] for each in world.call("cache", "list").json]
    etag = theirs.get_blob_properties().etag
    assert (ran.code, (cli.root / "a").read_bytes(), ran.json["etag"], cached, methods) == (
        0, b"2", etag, [etag], ["HEAD", "HEAD", "GET"],
    )  # fmt: skip


def test_a_get_that_waits_delivers_a_write_after_the_wait(cli: CliWorld, site: str, theirs: BlobClient) -> None:
    theirs.upload_blob(b"1")

    def write(content: bytes) -> Callable[[], Any]:
        return lambda: theirs.upload_blob(content, overwrite=True)

    with doing(cli, write(b"2"), write(b"3")) as (world, methods):
        read_first(world, site)
        ran = get_changed(world, site)
    assert (ran.code, (cli.root / "a").read_bytes(), ran.json["etag"], methods) == (
        0, b"3", theirs.get_blob_properties().etag, ["HEAD", "GET"],
    )  # fmt: skip


def test_a_get_that_waits_asks_for_content_conditionally_too(cli: CliWorld, site: str, theirs: BlobClient) -> None:
    theirs.upload_blob(b"1")
    asked: list[str | None] = []

    def decide(request: proxy.Request) -> proxy.Fault:
        asked.append(request.headers.get("if-none-match"))
        return proxy.Fault.NONE

    with proxy.running(cli.port, decide) as between:
        world = cli.through(between.port)
        old = read_first(world, site)
        theirs.upload_blob(b"2", overwrite=True)
        get_changed(world, site)
    assert asked == [None, old, old]


@pytest.mark.parametrize("steps", [1, 2])
def test_a_get_that_waits_for_a_blob_that_is_deleted_is_told_and_the_file_stays(
    cli: CliWorld, site: str, theirs: BlobClient, steps: int
) -> None:
    theirs.upload_blob(b"1")
    with doing(cli, *[None] * (steps - 1), theirs.delete_blob) as (world, _):
        read_first(world, site)
        ran = get_changed(world, site, "-o", "json")
    assert (ran.code, ran.error["kind"], (cli.root / "a").read_bytes()) == (44, "not_found", b"1")


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (("wait", "{blob}", "--until", "changed"), 42, "was never read here, so there is no version to compare with"),
        (("wait", "{blob}", "--until", "changed", "--if-none-match", "@last"), 42, "no version to compare with"),
        (("wait", "{blob}", "--until", "absent", "--wait", "0.1s"), 75, "still exists after"),
        (("wait", "nosuch/{etag}", "--until", "absent"), 44, "there is no container nosuch"),
        (("get", "{blob}", "--wait-changed"), 42, "azguard blob get"),
        (("get", "{blob}", "--wait-changed", "--if-none-match", "{etag}", "--wait", "0.1s"), 75, "is unchanged after"),
    ],
)  # fmt: skip
def test_what_cannot_be_waited_for_and_the_end_of_the_time_are_told(
    cli: CliWorld, site: str, theirs: BlobClient, options: tuple[str, ...], code: int, told: str
) -> None:
    etag = theirs.upload_blob(b"1")["etag"]
    ran = cli.call("blob", *(word.format(blob=f"{site}/a", etag=etag) for word in options))
    assert (ran.code, told in ran.err, ran.out) == (code, True, ""), ran.err


def test_an_own_lease_is_not_named_for_what_it_does_not_keep_away(cli: CliWorld) -> None:
    blob = f"{cli.container()}/a"
    cli.call("blob", "put", blob, stdin=b"a")
    cli.call("lease", "acquire", f"blob:{blob}", "--infinite")
    ran = cli.call("blob", "wait", blob, "--until", "absent", "--wait", "0.1s", "-o", "json")
    assert (ran.code, "by this scope itself" in ran.error["message"]) == (75, False), ran.err
