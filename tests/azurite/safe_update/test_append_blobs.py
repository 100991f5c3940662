"""``azguard safe-update`` of an append blob: text is appended, and nothing is read or rewritten."""

import pytest

from tests.support.blob_world import client as sdk
from tests.support.blob_world import content
from tests.support.cli_world import CliWorld


@pytest.fixture(params=[b"", b"one", b"one\n", b"one\r\n"])
def log(cli: CliWorld, request: pytest.FixtureRequest) -> tuple[str, bytes]:
    """Return an append blob with this content."""
    blob = f"{cli.container()}/log"
    with sdk(cli, blob) as client:
        client.create_append_blob(metadata={"a": "b"})
        if request.param:
            client.append_block(request.param)
    return blob, request.param


def test_a_line_is_appended_as_to_a_block_blob(cli: CliWorld, log: tuple[str, bytes]) -> None:
    blob, before = log
    cli.call("blob", "put", f"{blob}-block", "--allow-empty", stdin=before)
    edits = ("--append-line", "two", "--append", "three")
    ran, other = (cli.call("safe-update", f"blob:{name}", *edits) for name in (blob, f"{blob}-block"))
    expected = cli.call("blob", "get", f"{blob}-block").stdout
    assert (ran.code, other.code, content(cli, blob)) == (0, 0, expected)
    assert (ran.json["guard"], ran.json["content_length"]) == ("position", len(expected))
    assert cli.call("blob", "show", blob).json["metadata"] == {"a": "b"}


@pytest.mark.parametrize("log", [b"one\n"], indirect=True)
@pytest.mark.parametrize(
    "words", [("--op-id", "k"), ("--fence", "1"), ("--max-attempts", "3"), ("--wait",), ("--dry-run",)]
)
def test_what_an_append_cannot_keep_is_refused(cli: CliWorld, log: tuple[str, bytes], words: tuple[str, ...]) -> None:
    ran = cli.call("safe-update", f"blob:{log[0]}", "--append-line", "two", *words, "-o", "json")
    assert (ran.code, words[0] in ran.error["hint"], content(cli, log[0])) == (40, True, b"one\n")


@pytest.mark.parametrize("log", [b"one\n"], indirect=True)
def test_other_edits_are_refused_and_a_lease_guards(cli: CliWorld, log: tuple[str, bytes]) -> None:
    refused = cli.call("safe-update", f"blob:{log[0]}", "--append-line", "two", "--set", "a=1")
    done = cli.call("safe-update", f"blob:{log[0]}", "--append-line", "two", "--guard", "lease")
    assert (refused.code, done.code, done.json["guard"], content(cli, log[0])) == (40, 0, "lease", b"one\ntwo\n")
