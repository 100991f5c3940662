"""``azguard blob tags`` against Azurite: a version that is azguard's own, compared under a lease."""

from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError

from azguard.blobs import tags as blob_tags
from tests.support.blob_world import client, make
from tests.support.cli_world import CliWorld

FENCE = f"{7:019d}"


@pytest.fixture
def blob(cli: CliWorld) -> str:
    return make(cli, tags={"stage": "live"})


def set_(cli: CliWorld, blob: str, *words: str, stdin: bytes = b"", scope: str = "test") -> int:
    return cli.call("blob", "tags", "set", blob, *words, stdin=stdin, scope=scope).code


def tags_of(cli: CliWorld, blob: str) -> dict[str, str]:
    found: dict[str, str] = client(cli, blob).get_blob_tags()
    return found


def test_the_etag_of_the_blob_stays(cli: CliWorld, blob: str) -> None:
    before = client(cli, blob).get_blob_properties().etag
    found = cli.call("blob", "tags", "get", blob).json["blob_etag"]
    assert set_(cli, blob, "--tags", "a=1") == 0
    assert (found, client(cli, blob).get_blob_properties().etag) == (before, before)


def test_a_foreign_write_of_the_blob_is_refused_although_its_tags_are_the_same(cli: CliWorld, blob: str) -> None:
    cli.call("blob", "tags", "get", blob)
    client(cli, blob).upload_blob(b"theirs", overwrite=True, tags={"stage": "live"})
    ran = cli.call("blob", "tags", "set", blob, "--tags", "a=1", "-o", "json")
    assert (ran.code, ran.error["message"]) == (42, f"{blob} changed since you read it")


def test_reading_the_content_is_no_read_of_the_tags(cli: CliWorld, blob: str) -> None:
    cli.call("blob", "get", blob, "-f", "a.json")
    ran = cli.call("blob", "tags", "set", blob, "--tags", "a=1", "-o", "json")
    assert (ran.code, ran.error["hint"].partition(";")[0]) == (42, f"read it first: azguard blob tags get {blob}")


def test_reading_the_tags_is_no_read_of_the_content(cli: CliWorld, blob: str) -> None:
    cli.call("blob", "tags", "get", blob)
    assert cli.call("blob", "put", blob, stdin=b"new").code == 45


def test_the_etag_of_the_blob_alone_can_be_named(cli: CliWorld, blob: str) -> None:
    etag = client(cli, blob).get_blob_properties().etag
    client(cli, blob).set_blob_tags({"stage": "other"})
    assert (set_(cli, blob, "--tags", "a=1", "--etag", etag), set_(cli, blob, "--tags", "a=1", "--etag", "0x1")) == (
        0,
        42,
    )


def test_our_own_write_of_metadata_is_followed(cli: CliWorld, blob: str) -> None:
    cli.call("blob", "tags", "get", blob)
    cli.call("blob", "metadata", "get", blob)
    assert cli.call("blob", "metadata", "set", blob, "--metadata", "a=1").code == 0
    assert set_(cli, blob, "--tags", "a=1") == 0


def test_the_fence_of_a_lock_stays(cli: CliWorld) -> None:
    blob = make(cli, tags={"stage": "live", "fence": FENCE})
    cli.call("blob", "tags", "get", blob)
    assert (set_(cli, blob, "--tags", "a=1"), tags_of(cli, blob)) == (0, {"a": "1", "fence": FENCE})


def test_a_tag_of_others_named_fence_does_not_stay(cli: CliWorld) -> None:
    blob = make(cli, tags={"fence": "garden"})
    cli.call("blob", "tags", "get", blob)
    assert (set_(cli, blob, "--tags", "a=1"), tags_of(cli, blob)) == (0, {"a": "1"})


@pytest.mark.parametrize(("fence", "code"), [("6", 77), ("7", 0), ("8", 0)])
def test_a_fence_guards_the_write_and_is_left(cli: CliWorld, fence: str, code: int) -> None:
    blob = make(cli, tags={"fence": FENCE})
    ran = cli.call("blob", "tags", "set", blob, "--tags", "a=1", "--fence", fence)
    left = {"fence": FENCE} if code else {"a": "1", "fence": f"{int(fence):019d}"}
    assert (ran.code, tags_of(cli, blob)) == (code, left)


def test_a_first_fence_is_left_where_there_was_none(cli: CliWorld, blob: str) -> None:
    assert (set_(cli, blob, "--tags", "a=1", "--fence", "3"), tags_of(cli, blob)["fence"]) == (0, f"{3:019d}")


def test_tags_differ_in_case(cli: CliWorld, blob: str) -> None:
    cli.call("blob", "tags", "get", blob)
    assert (set_(cli, blob, "--tags", "a=1", "--tags", "A=2"), tags_of(cli, blob)) == (0, {"a": "1", "A": "2"})


def test_from_comparison_to_write_no_other_gets_in(cli: CliWorld, blob: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[str] = []
    compare: Any = blob_tags._compare

    def compete(*arguments: Any) -> None:
        compare(*arguments)
        for write in ("set_blob_tags", "set_blob_metadata"):
            with pytest.raises(HttpResponseError, match="LeaseIdMissing"):
                getattr(client(cli, blob), write)({"b": "1"})
            refused.append(write)

    monkeypatch.setattr(blob_tags, "_compare", compete)
    cli.call("blob", "tags", "get", blob)
    assert (set_(cli, blob, "--tags", "a=1"), len(refused), tags_of(cli, blob)) == (0, 2, {"a": "1"})
