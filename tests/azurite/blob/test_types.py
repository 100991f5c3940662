"""``azguard blob put`` does not make a block blob of an append or page blob, unless that is said."""

import pytest

from tests.support.blob_world import LARGE
from tests.support.blob_world import client as sdk
from tests.support.cli_world import CliWorld
from tests.support.faultproxy import proxy


@pytest.fixture(params=["AppendBlob", "PageBlob"])
def other(cli: CliWorld, request: pytest.FixtureRequest) -> str:
    """Return a blob of another type."""
    blob = f"{cli.container()}/other"
    with sdk(cli, blob) as client:
        client.create_append_blob() if request.param == "AppendBlob" else client.create_page_blob(512)
    return blob


def kind(cli: CliWorld, blob: str) -> str:
    return str(cli.call("blob", "show", blob).json["blob_type"])


@pytest.mark.parametrize("guard", [(), ("--last-writer-wins",), ("--if-match", "{etag}"), ("--if-match", "*"),
                                   ("--if-unmodified-since", "2101-01-01"), ("--etag", "@last")])  # fmt: skip
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("size", [5, LARGE])
def test_a_blob_of_another_type_is_left_alone(cli: CliWorld, other: str, guard: tuple[str, ...], size: int) -> None:
    before = kind(cli, other)
    etag = cli.call("blob", "get", other, "-f", "copy").json["etag"]
    put = ("blob", "put", other, *(word.format(etag=etag) for word in guard))
    ran = cli.call(*put, "-o", "json", stdin=b"x" * size)
    assert (ran.code, ran.error["hint"], kind(cli, other)) == (40, "if that is meant: --blob-type block", before)
    assert (cli.call(*put, "--blob-type", "block", stdin=b"new").code, kind(cli, other)) == (0, "BlockBlob")


@pytest.mark.parametrize("guard", [("--last-writer-wins",), ("--if-match", "{etag}"), ("--fence", "7")])
def test_a_blob_never_read_here_is_left_alone(cli: CliWorld, other: str, guard: tuple[str, ...]) -> None:
    before, etag = kind(cli, other), cli.call("blob", "show", other).json["etag"]
    ran = cli.call("blob", "put", other, *(word.format(etag=etag) for word in guard), stdin=b"x")
    assert (ran.code, kind(cli, other)) == (40, before)


def test_a_fence_stands_on_a_blob_of_any_type(cli: CliWorld, other: str) -> None:
    before = kind(cli, other)
    codes = [
        cli.call("blob", "tags", *words).code
        for words in (("get", other), ("set", other, "--fence", "5", "--tags", "a=1"))
    ]
    ran = cli.call("blob", "put", other, "--fence", "6", stdin=b"x")
    assert (codes, ran.code, kind(cli, other)) == ([0, 0], 40, before)


def test_what_was_read_tells_the_type_without_a_request(cli: CliWorld, other: str) -> None:
    with proxy.running(cli.port, lambda _: proxy.Fault.NONE) as between:
        world = cli.through(between.port)
        world.call("blob", "get", other, "-f", "copy")
        between.log.clear()
        ran = world.call("blob", "put", other, stdin=b"x")
    assert (ran.code, between.log) == (40, [])


def test_a_version_of_our_own_making_keeps_the_type(cli: CliWorld, other: str) -> None:
    cli.call("blob", "get", other, "-f", "copy")
    assert cli.call("safe-update", f"blob:{other}", "--metadata", "--set", "owner=me").code == 0
    assert cli.call("blob", "put", other, stdin=b"x").code == 40


def test_the_type_goes_along_with_an_exported_cache(cli: CliWorld, other: str) -> None:
    cli.call("blob", "get", other, "-f", "copy")
    cli.file("export", cli.call("cache", "export").stdout)
    cli.call("cache", "clear", "--yes")
    assert cli.call("cache", "import", "export").code == 0
    assert cli.call("blob", "put", other, stdin=b"x").code == 40


@pytest.mark.parametrize(
    ("words", "methods"),
    [((), ["PUT"]), (("--etag", "@last"), ["PUT"]), (("--if-none-match", "*"), ["PUT"]),
     (("--fence", "1"), ["HEAD", "PUT"]), (("--last-writer-wins",), ["HEAD", "PUT"]),
     (("--last-writer-wins", "--blob-type", "block"), ["PUT"])],
)  # fmt: skip
def test_only_a_write_for_no_version_looks_first(cli: CliWorld, words: tuple[str, ...], methods: list[str]) -> None:
    blob = f"{cli.container()}/a"
    with proxy.running(cli.port, lambda _: proxy.Fault.NONE) as between:
        world = cli.through(between.port)
        if "*" not in words:
            world.call("blob", "put", blob, *(("--fence", "1") if "--fence" in words else ()), stdin=b"old")
        between.log.clear()
        ran = world.call("blob", "put", blob, *words, stdin=b"new")
        sent = [each.request.method for each in between.log]
    assert (ran.code, sent) == (0, methods)
