"""``azguard blob block stage``, ``commit`` and ``list``."""

import base64

import pytest
from azure.storage.blob import BlobBlock

from azguard.blobs.content import put_blob
from tests.support.blob_world import client as sdk
from tests.support.cli_world import CliWorld

ONE, TWO = "cGFydC0wMDAx", "cGFydC0wMDAy"


@pytest.fixture
def blob(cli: CliWorld) -> str:
    """Return the address of a blob with two staged blocks."""
    address = f"{cli.container()}/a.json"
    for block, content in ((ONE, b"one"), (TWO, b"two")):
        assert cli.call("blob", "block", "stage", address, "--block-id", block, stdin=content).code == 0
    return address


def listed(cli: CliWorld, blob: str, state: str = "all") -> list[tuple[str, int, str]]:
    rows = cli.call("blob", "block", "list", blob, "--state", state).json
    return [(row["block_id"], row["size"], row["state"]) for row in rows]


def test_staged_blocks_are_seen_by_no_reader(cli: CliWorld, blob: str) -> None:
    assert (cli.call("blob", "get", blob).code, sorted(listed(cli, blob))) == (
        44, [(ONE, 3, "uncommitted"), (TWO, 3, "uncommitted")],
    )  # fmt: skip


def test_a_commit_makes_a_blob_of_blocks_in_their_order_and_guards_the_next_write(cli: CliWorld, blob: str) -> None:
    made = cli.call("blob", "block", "commit", blob, "--block-id", TWO, "--block-id", ONE)
    assert (made.code, made.json["content_length"], made.json["content_type"]) == (0, 6, "application/json")
    assert listed(cli, blob) == [(TWO, 3, "committed"), (ONE, 3, "committed")]
    assert (cli.call("blob", "get", blob).stdout, cli.call("blob", "put", blob, stdin=b"{}").code) == (b"twoone", 0)


def test_what_was_never_read_is_only_created(cli: CliWorld, blob: str) -> None:
    with sdk(cli, blob) as client:
        client.commit_block_list([BlobBlock("part-0001")])
    ran = cli.call("blob", "block", "commit", blob, "--block-id", ONE)
    assert (ran.code, cli.call("blob", "get", blob).stdout) == (45, b"one")


def test_a_commit_over_another_version_is_refused(cli: CliWorld, blob: str) -> None:
    cli.call("blob", "block", "commit", blob, "--block-id", ONE)
    with sdk(cli, blob) as client:
        client.set_blob_metadata({"a": "b"})
    assert cli.call("blob", "block", "commit", blob, "--block-id", ONE).code == 42


def test_what_was_set_on_the_blob_stays_unless_it_is_named(cli: CliWorld, blob: str) -> None:
    with sdk(cli, blob) as client:
        client.upload_blob(b"old", overwrite=True, metadata={"a": "b"}, tags={"c": "d"})
        client.stage_block("part-0003", b"new")
    cli.call("blob", "get", blob, "-f", "copy")
    kept = cli.call("blob", "block", "commit", blob, "--block-id", "cGFydC0wMDAz")
    shown = cli.call("blob", "show", blob).json
    with sdk(cli, blob) as client:
        assert (kept.code, shown["metadata"], client.get_blob_tags()) == (0, {"a": "b"}, {"c": "d"})
    cli.call(
        "blob", "block", "commit", blob, "--block-id", "cGFydC0wMDAz", "--metadata", "e=f", "--content-type", "a/b"
    )
    shown = cli.call("blob", "show", blob).json
    assert (shown["metadata"], shown["content_type"]) == ({"e": "f"}, "a/b")


def test_blocks_that_a_commit_discards_are_told(cli: CliWorld, blob: str) -> None:
    ran = cli.call("blob", "block", "commit", blob, "--block-id", ONE)
    assert (ran.json["discarded_blocks"], "1 staged blocks" in ran.err) == (1, True)
    assert listed(cli, blob, "uncommitted") == []


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--block-id", "cGFydC0wMDA5"), 40, "has no block cGFydC0wMDA5"),
        (("--block-id", "x"), 2, "is no block id"),
        (("--block-id", base64.b64encode(b"\xff\xfe").decode()), 2, "is no block id"),
        (("--block-id", ONE, "--block-id", "cGFydA=="), 2, "differ in length"),
        (("--block-id", ONE, "-f", "ids"), 2, "do not go together"),
        ((), 2, "no block is named"),
    ],
)
def test_a_commit_of_blocks_that_are_not_there_writes_nothing(
    cli: CliWorld, blob: str, words: tuple[str, ...], code: int, told: str
) -> None:
    ran = cli.call("blob", "block", "commit", blob, *words)
    assert (ran.code, told in ran.err, cli.call("blob", "exists", blob).code) == (code, True, 44), ran.err


def test_long_content_is_staged_as_blocks_that_a_commit_takes(cli: CliWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(put_blob, "BLOCK_BYTES", 4)
    address = f"{cli.container()}/big"
    staged = cli.call("blob", "block", "stage", address, "--query", "[].block_id", "-o", "tsv", stdin=b"0123456789")
    assert cli.call("blob", "block", "commit", address, "-f", "-", stdin=staged.stdout).code == 0
    assert (len(staged.out.split()), cli.call("blob", "get", address).stdout) == (3, b"0123456789")


def test_an_id_of_another_length_is_refused_with_the_reason(cli: CliWorld, blob: str) -> None:
    ran = cli.call("blob", "block", "stage", blob, "--block-id", "cGFydA==", stdin=b"x")
    assert (ran.code, "another length" in ran.err) == (40, True), ran.err


def test_empty_content_is_not_staged(cli: CliWorld, blob: str) -> None:
    assert cli.call("blob", "block", "stage", blob).code == 2


def test_ids_of_other_tools_that_are_no_text_are_listed(cli: CliWorld) -> None:
    address = f"{cli.container()}/other"
    raw = base64.b64encode(b"\xff\xfe\xfd").decode()
    with sdk(cli, address) as client:
        client._client.block_blob.stage_block(raw, 3, b"abc")
    assert listed(cli, address) == [(raw, 3, "uncommitted")]
