"""Edits of metadata: a flat map of strings, within what Azure takes."""

from collections.abc import Callable

import pytest

from azguard.cli.words import hints
from azguard.commands.safe_update import typed_edits
from azguard.documents import edits
from azguard.documents.edits import AppendText, Edit
from azguard.errors import AzguardError, TransformFailed, UsageError
from azguard.requests.lineage import KEY
from tests.support.cases import cases


def edit(option: str, text: str, patch: bytes = b"") -> Edit:
    return typed_edits.parse_edit(option, text, {"patch.json": patch}.__getitem__, metadata=True)


def failure(kind: type[AzguardError], act: Callable[[], object]) -> str:
    with pytest.raises(kind) as caught:
        act()
    return hints.in_words(caught.value).message


def metadata_after(before: dict[str, str], *options: str, patch: bytes = b"") -> dict[str, str]:
    pairs = zip(options[::2], options[1::2], strict=True)
    return edits.apply_to_metadata([edit(*pair, patch) for pair in pairs], before, KEY)


@cases(
    ("options", "result"),
    (["--set", "owner=ann"], {"owner": "ann", "count": "5"}),
    (["--set", 'owner="ann"'], {"owner": "ann", "count": "5"}),
    (["--set", "owner=[1"], {"owner": "[1", "count": "5"}),
    (["--set", "owner=a=b c"], {"owner": "a=b c", "count": "5"}),
    (["--set", 'owner=""'], {"owner": "", "count": "5"}),
    (["--set", "count=1.10"], {"owner": "bob", "count": "1.10"}),
    (["--set", "flag=true"], {"owner": "bob", "count": "5", "flag": "true"}),
    (["--set", "owner=null"], {"count": "5"}),
    (["--unset", "owner", "--unset", "nothing"], {"count": "5"}),
    (["--increment", "count"], {"owner": "bob", "count": "6"}),
    (["--increment", "count=-0.5"], {"owner": "bob", "count": "4.5"}),
    (["--increment", "new=3"], {"owner": "bob", "count": "5", "new": "3"}),
    (["--set", "/owner=ann"], {"owner": "ann", "count": "5"}),
)
def test_metadata_is_edited_as_a_flat_map_of_text(options: list[str], result: dict[str, str]) -> None:
    assert metadata_after({"owner": "bob", "count": "5"}, *options) == result


def test_patches_apply_to_metadata_too() -> None:
    before = {"owner": "bob", "count": "5"}
    assert [
        metadata_after(before, "--merge-patch", "patch.json", patch=b'{"owner": null, "n": 1.0}'),
        metadata_after(
            before,
            "--json-patch",
            "patch.json",
            patch=b'[{"op":"test","path":"/count","value":"5"},{"op":"move","from":"/owner","path":"/by"}]',
        ),
        before,
    ] == [{"count": "5", "n": "1.0"}, {"count": "5", "by": "bob"}, {"owner": "bob", "count": "5"}]


def test_a_text_in_metadata_is_taken_as_it_is() -> None:
    assert metadata_after({"a": "1"}, "--set-string", "a=null", "--set-string", 'b={"x"}') == {
        "a": "null",
        "b": '{"x"}',
    }


@cases(
    ("option", "text", "message"),
    ("--append", "x", "--append does not apply to metadata"),
    ("--append-line", "x", "--append-line does not apply to metadata"),
    ("--set-string", "a.b=1", "--set-string: 'a.b' is not one name, and metadata is flat"),
    ("--set", "a.b=1", "--set: 'a.b' is not one name, and metadata is flat"),
    ("--set", "[0]=1", "--set: '[0]' is not one name, and metadata is flat"),
    ("--set", 'a={"b":1}', "--set: a cannot hold an object"),
    ("--set", "a=", "--set: no value for a"),
    ("--set", "a-b=1", "--set: 'a-b' is not a metadata name"),
    ("--set", "1a=1", "--set: '1a' is not a metadata name"),
    ("--unset", "\u00e9", "--unset: '\u00e9' is not a metadata name"),
)
def test_an_option_that_cannot_mean_metadata_is_refused(option: str, text: str, message: str) -> None:
    assert failure(UsageError, lambda: edit(option, text)) == message


@cases(
    ("options", "message"),
    (["--increment", "owner"], "--increment: owner is 'bob', not a number"),
    (["--set", "owner=caf\u00e9"], "the metadata value of owner does not fit into an HTTP header: 'caf\u00e9'"),
    (["--set", "owner= x"], "the metadata value of owner does not fit into an HTTP header: ' x'"),
    (["--set", 'owner="a\\r\\nb: c"'], "the metadata value of owner does not fit into an HTTP header: 'a\\r\\nb: c'"),
    (["--set", "Owner=x"], "the metadata names owner and Owner differ only in case, which Azure ignores"),
    (["--set", "azguardlineage=x"], "azguardlineage is how azguard knows its own writes; it cannot be edited"),
    (["--merge-patch", '{"a-b": "x"}'], "'a-b' is not a metadata name"),
    (["--merge-patch", '{"a": ["x"]}'], "the metadata value of a would be an array, it can only be text"),
    (["--merge-patch", "[]"], "metadata must stay an object of strings, it would be an array"),
)
def test_metadata_azure_would_not_take_is_refused(options: list[str], message: str) -> None:
    option, text = options
    patch = text.encode() if option == "--merge-patch" else b""
    target = "patch.json" if option == "--merge-patch" else text
    assert failure(TransformFailed, lambda: metadata_after({"owner": "bob"}, option, target, patch=patch)) == message


def test_metadata_nobody_edits_is_left_alone_whatever_it_holds() -> None:
    foreign = {"odd-name": "caf\u00e9", "azguardlineage": "x"}
    assert metadata_after(foreign, "--set", "owner=ann") == {**foreign, "owner": "ann"}


def test_the_lineage_cannot_be_edited_in_any_spelling() -> None:
    said = "azguardlineage is how azguard knows its own writes; it cannot be edited"
    assert [
        failure(TransformFailed, lambda: metadata_after({}, "--set", "AzguardLineage=x")),
        failure(TransformFailed, lambda: metadata_after({"azguardlineage": "x"}, "--unset", "azguardlineage")),
    ] == [said, said]


def test_an_append_that_reaches_metadata_is_refused() -> None:
    assert failure(TransformFailed, lambda: edits.apply_to_metadata([AppendText("x")], {}, KEY)) == (
        "--append does not apply to metadata"
    )
