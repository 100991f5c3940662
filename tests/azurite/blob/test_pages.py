"""``azguard blob page put``, ``clear`` and ``ranges``."""

from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError

from azguard.blobs.content import page_write
from azguard.errors import Changed
from azguard.resources import downloads
from tests.faults.rules import Rule, by_rules
from tests.support.blob_world import client as sdk
from tests.support.blob_world import content
from tests.support.cases import cases
from tests.support.cli_world import CliWorld
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Fault, Request

PAGE = b"p" * 512


@pytest.fixture
def disk(cli: CliWorld) -> str:
    """Return a page blob of four pages that this scope never read."""
    blob = f"{cli.container()}/disk"
    with sdk(cli, blob) as client:
        client.create_page_blob(2048)
    return blob


@pytest.fixture
def seen(cli: CliWorld, disk: str) -> str:
    """Return a page blob that this scope has read."""
    assert cli.call("blob", "get", disk, "-f", "disk").code == 0
    return disk


def test_pages_are_written_over_the_version_that_was_read_and_guard_the_next_write(cli: CliWorld, seen: str) -> None:
    first = cli.call("blob", "page", "put", seen, "--offset", "512", stdin=PAGE)
    again = cli.call("blob", "page", "put", seen, stdin=PAGE)
    assert [(ran.code, ran.json["guard"]) for ran in (first, again)] == [(0, "if-match")] * 2
    assert content(cli, seen) == PAGE * 2 + bytes(1024)
    with sdk(cli, seen) as client:
        client.set_blob_metadata({"a": "b"})
    refused = cli.call("blob", "page", "put", seen, "-o", "json", stdin=PAGE)
    assert (refused.code, refused.error["current_etag"] is not None) == (42, True)


def test_the_lease_is_given_back(cli: CliWorld, seen: str) -> None:
    cli.call("blob", "page", "put", seen, stdin=PAGE)
    assert cli.call("blob", "show", seen).json["lease_state"] == "available"


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ((), 42, "never read here"),
        (("--create", "2KiB"), 45, "never read it"),
        (("--offset", "2KiB", "--last-writer-wins"), 40, "nothing can be written at byte 2,559"),
        (("--if-sequence-number-lt", "0"), 42, "the condition did not hold"),
        (("--if-sequence-number-eq", "4"), 42, "the condition did not hold"),
    ],
)
def test_a_refused_write_changes_none(cli: CliWorld, disk: str, words: tuple[str, ...], code: int, told: str) -> None:
    cli.file("page", PAGE)
    ran = cli.call("blob", "page", "put", disk, *words, stdin=PAGE)
    assert (ran.code, told in ran.err, content(cli, disk)) == (code, True, bytes(2048)), ran.err


def test_a_sequence_number_is_the_only_condition_that_is_asked(cli: CliWorld, disk: str) -> None:
    with sdk(cli, disk) as client:
        client.set_sequence_number("update", "7")
    ran = cli.call("blob", "page", "put", disk, "--if-sequence-number-le", "7", stdin=PAGE)
    assert (ran.code, ran.json["guard"], ran.json["sequence_number"]) == (0, "conditions", 7)


def test_a_missing_blob_is_created_with_its_length(cli: CliWorld) -> None:
    blob = f"{cli.container()}/new"
    missing = cli.call("blob", "page", "put", blob, "--last-writer-wins", "-o", "json", stdin=PAGE)
    made = cli.call("blob", "page", "put", blob, "--create", "1KiB", "--metadata", "a=b", stdin=PAGE)
    shown = cli.call("blob", "show", blob).json
    assert (missing.code, missing.error["hint"]) == (44, f"to create it: azguard blob page put {blob} --create BYTES")
    assert (made.code, made.json["created"], made.json["guard"]) == (0, True, "if-none-match")
    assert (shown["blob_type"], shown["content_length"], shown["metadata"]) == ("PageBlob", 1024, {"a": "b"})
    assert cli.call("blob", "page", "clear", blob, "--length", "512").code == 0


def test_a_block_blob_has_no_pages(cli: CliWorld) -> None:
    blob = f"{cli.container()}/block"
    cli.call("blob", "put", blob, stdin=PAGE)
    assert [cli.call("blob", "page", *words, blob, stdin=PAGE).code for words in (("put",), ("ranges",))] == [40, 40]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pieces of one page."""
    monkeypatch.setattr(page_write, "PIECE_BYTES", 512)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("fault", ["drop", "503-after", "reset", "503-before"])
def test_each_piece_is_settled_by_itself(cli: CliWorld, seen: str, fault: str) -> None:
    rules = [Rule.parse(f"PUT page {number} {fault}") for number in (1, 3, 4)]
    with proxy.running(cli.port, by_rules(rules)) as between:
        world = cli.through(between.port)
        world.call("blob", "get", seen, "-f", "disk")
        ran = world.call("blob", "page", "put", seen, stdin=PAGE * 4)
    assert (ran.code, content(cli, seen)) == (0, PAGE * 4)


def test_pages_that_depend_on_nothing_are_not_sent_again(cli: CliWorld, disk: str) -> None:
    with proxy.running(cli.port, by_rules([Rule.parse("PUT page 1 reset")])) as between:
        ran = cli.through(between.port).call("blob", "page", "put", disk, "--last-writer-wins", stdin=PAGE)
    assert (ran.code, content(cli, disk)) == (74, bytes(2048))


@pytest.mark.usefixtures("small")
def test_a_piece_that_comes_late_proves_nothing_of_the_next_one(cli: CliWorld, disk: str) -> None:
    # A date is no condition that keeps the first piece from being written twice.
    met: list[Request] = []
    came: list[int] = []

    def decide(request: Request) -> Fault:
        if "comp=page" not in request.path:
            return Fault.NONE
        met.append(request)
        if len(met) == 3:
            with sdk(cli, disk) as client, pytest.raises(HttpResponseError) as caught:
                client.upload_page(PAGE, 0, 512, lease=met[0].headers["x-ms-lease-id"])
            came.append(caught.value.status_code or 0)
        return Fault.RESET if len(met) in (1, 3) else Fault.NONE

    words = ("blob", "page", "put", disk, "--if-unmodified-since", "2099-01-01T00:00:00Z")
    with proxy.running(cli.port, decide) as between:
        ran = cli.through(between.port).call(*words, stdin=PAGE * 2)
    assert (ran.code, came, content(cli, disk)[:1024]) == (0, [412], PAGE * 2)


@pytest.mark.usefixtures("small")
def test_a_part_that_was_written_is_told(cli: CliWorld, seen: str) -> None:
    ran = cli.call("blob", "page", "put", seen, "-o", "json", stdin=PAGE * 2 + b"x")
    assert (ran.code, ran.error["written_bytes"], ran.error["next_offset"], ran.error["cause"]) == (
        20, 512, 512, "usage",
    )  # fmt: skip


def test_a_leased_blob_takes_pages_under_its_id_alone(cli: CliWorld, seen: str) -> None:
    lease = cli.call("lease", "acquire", f"blob:{seen}", "--infinite").json["lease_id"]
    without, under = (
        cli.call("blob", "page", "put", seen, *words, stdin=PAGE) for words in ((), ("--lease-id", lease))
    )
    assert (without.code, under.code, cli.call("blob", "show", seen).json["lease_state"]) == (49, 0, "leased")


def test_ranges_are_those_that_hold_pages(cli: CliWorld, seen: str) -> None:
    cli.call("blob", "page", "put", seen, stdin=PAGE * 3)
    cli.call("blob", "page", "clear", seen, "--offset", "512", "--length", "512")
    listed = cli.call("blob", "page", "ranges", seen).json
    assert [(each["start"], each["end"], each["length"]) for each in listed] == [(0, 511, 512), (1024, 1535, 512)]
    part = cli.call("blob", "page", "ranges", seen, "--offset", "1024", "--length", "512").json
    assert [each["start"] for each in part] == [1024]


def test_ranges_since_a_snapshot_are_those_that_differ(cli: CliWorld, seen: str) -> None:
    cli.call("blob", "page", "put", seen, stdin=PAGE)
    with sdk(cli, seen) as client:
        snapshot = str(client.create_snapshot()["snapshot"])
    cli.call("blob", "page", "put", seen, "--offset", "1024", stdin=PAGE)
    # The emulator leaves out the ranges that were cleared since, and shows others that did not change.
    ran = cli.call("blob", "page", "ranges", seen, "--previous-snapshot", snapshot)
    assert {"start": 1024, "end": 1535, "length": 512, "cleared": False} in ran.json
    assert cli.call("blob", "page", "ranges", seen, "--previous-snapshot", "yesterday").code == 2


def test_ranges_are_all_of_one_version(cli: CliWorld, seen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.call("blob", "page", "put", seen, stdin=PAGE)
    left, walk = [1], downloads.walk_ranges

    def changing(*given: Any, **asked: Any) -> object:
        left[0] -= 1
        if left[0] >= 0:
            raise Changed("it changed in between")
        return walk(*given, **asked)

    monkeypatch.setattr("azguard.blobs.content.page_blob.walk_ranges", changing)
    ran = cli.call("blob", "page", "ranges", seen)
    assert (ran.code, len(ran.json)) == (0, 1)

    def changing_to_the_end(*given: Any, **asked: Any) -> object:
        deadline = given[3]
        deadline.sleep(deadline.remaining)
        raise Changed("it changed in between")

    monkeypatch.setattr("azguard.blobs.content.page_blob.walk_ranges", changing_to_the_end)
    ran = cli.call("blob", "page", "ranges", seen, "--timeout", "1s")
    assert (ran.code, "changes faster than its ranges can be listed" in ran.err) == (75, True)


def test_a_condition_on_ranges_is_kept(cli: CliWorld, seen: str) -> None:
    etag = cli.call("blob", "show", seen).json["etag"]
    words = [("--if-match", etag), ("--if-match", '"0x1"'), ("--if-none-match", etag)]
    assert [cli.call("blob", "page", "ranges", seen, *each).code for each in words] == [0, 42, 34]


@cases(
    ("words", "said"),
    (("--offset", "10"), "--offset 0 or --offset 512"),
    (("--length", "10"), "--length 512 or --length 1024"),
    (("--offset", ""), "--offset: '' is not a number of bytes"),
)
def test_a_part_of_a_page_has_no_ranges(offline: CliWorld, words: tuple[str, ...], said: str) -> None:
    ran = offline.call("blob", "page", "ranges", "disks/a", *words, "--emulator")
    assert (ran.code, said in ran.err) == (2, True), ran.err


def test_who_clears_nothing_is_told_how_to_make_it(cli: CliWorld) -> None:
    disk = f"{cli.container()}/disk"
    ran = cli.call("blob", "page", "clear", disk, "--length", "512", "--last-writer-wins", "-o", "json")
    assert (ran.code, ran.error["hint"]) == (44, f"to create it: azguard blob page put {disk} --create BYTES")


def test_a_page_blob_gets_the_length_and_the_number_that_is_said(cli: CliWorld, seen: str) -> None:
    numbers = [("--update", "5"), ("--max", "3"), ("--increment",), ("--update", "2")]
    told = [cli.call("blob", "page", "set-sequence-number", seen, *each).json["sequence_number"] for each in numbers]
    assert told == [5, 5, 6, 2]
    assert cli.call("blob", "page", "resize", seen, "512").json["content_length"] == 512
    with sdk(cli, seen) as client:
        found = client.get_blob_properties()
    assert (found.size, found.page_blob_sequence_number) == (512, 2)
