"""Rule 0 for put, delete and create: a lost answer ends as done or as unknown, never as the write of another."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.support.blob_world import LARGE, client
from tests.support.cli_world import CliWorld
from tests.support.faultproxy import proxy
from tests.support.faultproxy.proxy import Fault, Request


@contextmanager
def losing(cli: CliWorld, loses: Callable[[Request], bool], times: int = 1) -> Iterator[tuple[CliWorld, proxy.Proxy]]:
    """Run a world behind a proxy that loses the answers to the first so many such requests."""
    left = [times]

    def decide(request: Request) -> Fault:
        if left[0] and loses(request):
            left[0] -= 1
            return Fault.DROP
        return Fault.NONE

    with proxy.running(cli.port, decide) as between:
        yield cli.through(between.port), between


def writes(request: Request) -> bool:
    return request.writes


def committed(between: proxy.Proxy) -> list[int]:
    return [each.status for each in between.log if each.request.writes and each.status and each.status < 300]


def known(cli: CliWorld, blob: str) -> str:
    """Return the ETag of a blob that was just written."""
    etag: str = cli.call("blob", "put", blob, "--last-writer-wins", stdin=b"old").json["etag"]
    return etag


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    "words",
    [
        ("put", "{blob}"),
        ("put", "{blob}", "-f", "large"),
        ("metadata", "set", "{blob}", "--metadata", "a=1"),
        ("copy", "{blob}", "--source", "{blob}-source"),
    ],
    ids=["small", "blocks", "metadata", "copy"],
)
def test_a_version_of_a_writer_that_left_our_lineage_does_not_guard_the_next_write(
    cli: CliWorld, site: str, words: tuple[str, ...]
) -> None:
    blob, met = f"{site}/a", list[Request]()
    known(cli, f"{blob}-source")
    cli.file("large", b"x" * LARGE)
    assert known(cli, blob)

    def decide(request: Request) -> Fault:
        if request.writes and "comp=block&" not in request.path:
            met.append(request)
            return Fault.DROP if len(met) == 1 else Fault.NONE
        if len(met) == 1:
            met.append(request)
            theirs = client(cli, blob)
            theirs.upload_blob(b"theirs", overwrite=True, metadata=theirs.get_blob_properties().metadata)
        return Fault.NONE

    with proxy.running(cli.port, decide) as between:
        world = cli.through(between.port)
        world.call("blob", "get", blob)
        ran = world.call("blob", *(word.format(blob=blob) for word in words), stdin=b"ours")
        again = world.call("blob", "put", blob, stdin=b"next")
    assert (ran.code, ran.json["etag"], again.code in (42, 45)) == (0, None, True)


def test_a_put_that_was_overwritten_before_we_looked_is_still_ours(cli: CliWorld, site: str) -> None:
    """The next azguard write carries our op on, so that it is found although the ETag has moved."""
    etag = known(cli, f"{site}/a")
    # What starts with the first fork takes longer on a busy machine than a look may.
    assert cli.fork("version").code == 0
    mine, between_look_and_write = [False], [False]

    def decide(request: Request) -> Fault:
        if request.writes and not mine[0]:
            mine[0] = True
            return Fault.DROP
        if not request.writes and mine[0] and not between_look_and_write[0]:
            between_look_and_write[0] = True
            scoped = ("--scope", "other")
            assert cli.fork("blob", "get", f"{site}/a", *scoped).code == 0
            assert cli.fork("blob", "put", f"{site}/a", *scoped, stdin=b"theirs").code == 0
        return Fault.NONE

    with proxy.running(cli.port, decide) as between:
        ran = cli.through(between.port).call("blob", "put", f"{site}/a", "--etag", etag, stdin=b"mine")
    assert (ran.code, ran.json["outcome"], ran.json["etag"] != etag) == (0, "committed", True)
    assert cli.call("blob", "get", f"{site}/a").out == "theirs"


def test_a_put_that_a_foreign_writer_overwrote_before_we_looked_is_unknown(cli: CliWorld, site: str) -> None:
    from azure.storage.blob import BlobClient

    etag = known(cli, f"{site}/a")
    theirs, wrote = BlobClient.from_connection_string(str(cli.connection_string), site, "a"), [False]

    def decide(request: Request) -> Fault:
        if request.writes:
            return Fault.DROP
        if not wrote[0]:
            wrote[0] = True
            theirs.upload_blob(b"theirs", overwrite=True)
        return Fault.NONE

    with proxy.running(cli.port, decide) as between:
        put = ("blob", "put", f"{site}/a", "--etag", etag, "--blob-type", "block", "-o", "json")
        ran = cli.through(between.port).call(*put, stdin=b"mine")
    assert (ran.code, ran.error["kind"], committed(between)) == (74, "unknown", [201])


@pytest.mark.parametrize("words", [
    ("put", "{}"), ("metadata", "set", "{}", "--metadata", "a=1"), ("tags", "set", "{}", "--tags", "a=1"),
    ("set-properties", "{}", "--content-language", "en"), ("tier", "{}", "--tier", "Cool"), ("delete", "{}"),
])  # fmt: skip
def test_a_lease_that_ends_before_the_write_is_told_so(cli: CliWorld, site: str, words: tuple[str, ...]) -> None:
    blob = f"{site}/a"
    etag = known(cli, blob)
    lease = client(cli, blob).acquire_lease(-1)

    def decide(request: Request) -> Fault:
        if request.writes and client(cli, blob).get_blob_properties().lease.state == "leased":
            lease.release()
        return Fault.NONE

    with proxy.running(cli.port, decide) as between:
        world = cli.through(between.port)
        world.call("blob", "get", blob)
        world.call("blob", "tags", "get", blob)
        ran = world.call("blob", *(word.format(blob) for word in words), "--lease-id", lease.id, stdin=b"new")
    left = client(cli, blob).get_blob_properties()
    assert (ran.code, left.etag, left.tag_count, left.blob_tier) == (49, etag, None, "Hot"), ran.err


@pytest.mark.parametrize("words", [("blob", "get"), ("blob", "show"), ("blob", "exists")])
def test_a_read_whose_answer_was_lost_is_made_again(cli: CliWorld, site: str, words: tuple[str, str]) -> None:
    known(cli, f"{site}/a")
    with losing(cli, lambda _: True, 2) as (lossy, _):
        assert lossy.call(*words, f"{site}/a").code == 0


@pytest.mark.parametrize("words", [("blob", "list"), ("container", "list")])
def test_a_listing_whose_answer_was_lost_is_made_again(cli: CliWorld, site: str, words: tuple[str, ...]) -> None:
    with losing(cli, lambda _: True, 2) as (lossy, _):
        ran = lossy.call(*words, *([site] if words[0] == "blob" else ["--prefix", site]))
    assert (ran.code, len(ran.json)) == (0, words[0] == "container")
