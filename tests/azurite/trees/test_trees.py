"""``azguard blob put|get|delete --recursive`` against Azurite: each file under its own guard."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from azguard.blobs.content import put_blob as blob_uploads
from azguard.resources import sources
from azguard.trees import local_files, uploads
from azguard.trees.local_files import LocalFile, PassedOver
from tests.support.cli_world import CliWorld, Ran
from tests.support.faultproxy import proxy


def write(folder: Path, **files: str) -> Path:
    for name, content in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


def items(ran: Ran) -> dict[str, Any]:
    """Return the result lines of a run by the name of the blob below the container."""
    found = map(json.loads, ran.out.splitlines())
    return {each["address"].split("/", 1)[1]: each for each in found}


def outcomes(ran: Ran) -> dict[str, str]:
    return {name: each["outcome"] for name, each in items(ran).items()}


def content(cli: CliWorld, site: str) -> dict[str, bytes]:
    names = cli.call("blob", "list", site, "--query", "[].name").json
    return {name: cli.call("blob", "get", f"{site}/{name}", scope="reader").stdout for name in names}


def put(cli: CliWorld, *words: str, scope: str = "test") -> Ran:
    return cli.call("blob", "put", *words, "--recursive", scope=scope)


def test_a_folder_goes_there_and_comes_back_the_same(cli: CliWorld, site: str) -> None:
    write(cli.root / "dist", **{"index.html": "<p>", "css__a.css": "a", "empty": "", "with space ü": "u"})
    ran = put(cli, "dist", f"{site}/v1/")
    assert (ran.code, set(outcomes(ran).values())) == (0, {"created"})
    assert cli.call("blob", "get", f"{site}/v1/", "back", "--recursive").code == 0
    back = cli.root / "back"
    found = {str(each.relative_to(back)): each.read_text() for each in back.rglob("*") if each.is_file()}
    assert found == {"index.html": "<p>", "css/a.css": "a", "empty": "", "with space ü": "u"}


@pytest.mark.parametrize("address", ["{}", "{}/", "blob:{}/", "container:{}"])
def test_a_whole_container_is_a_tree_too(cli: CliWorld, site: str, address: str) -> None:
    write(cli.root / "dist", a="1")
    assert (put(cli, "dist", address.format(site)).code, content(cli, site)) == (0, {"a": b"1"})


def test_each_file_has_its_type_by_its_name(cli: CliWorld, site: str) -> None:
    write(cli.root / "dist", **{"a.css": "a", "b.json": "{}"})
    put(cli, "dist", site)
    types = cli.call("blob", "list", site, "--query", "[].content_type").json
    assert types == ["text/css", "application/json"]


def make_by_another_tool(cli: CliWorld, blob: str) -> None:
    from azure.storage.blob import BlobServiceClient

    assert cli.connection_string is not None
    with BlobServiceClient.from_connection_string(cli.connection_string) as service:
        service.get_blob_client(*blob.split("/", 1)).upload_blob(b"1")


def test_what_another_writer_changed_since_is_not_overwritten_and_the_rest_goes_on(cli: CliWorld, site: str) -> None:
    write(cli.root / "dist", a="1", b="1", c="1")
    put(cli, "dist", site)
    cli.call("blob", "put", f"{site}/b", "--last-writer-wins", scope="other", stdin=b"theirs")
    write(cli.root / "dist", a="2", b="2", c="2")
    ran = put(cli, "dist", site)
    assert (ran.code, outcomes(ran)) == (42, {"a": "replaced", "b": "failed", "c": "replaced"})
    assert items(ran)["b"]["error"]["kind"] == "changed"
    assert content(cli, site) == {"a": b"2", "b": b"theirs", "c": b"2"}


@pytest.mark.parametrize("more", [(), ("--unchanged", "skip"), ("--dry-run",), ("--mirror",)])
def test_a_file_that_was_not_changed_here_needs_no_put(cli: CliWorld, site: str, more: tuple[str, ...]) -> None:
    write(cli.root / "dist", mine="1", theirs="1", both="1", none="1")
    put(cli, "dist", site, scope="other")
    cli.call("blob", "get", site, "work", "--recursive")
    for name in ("theirs", "both"):
        cli.call("blob", "put", f"{site}/{name}", scope="other", stdin=b"2")
    write(cli.root / "work", mine="3", both="3")
    ran = put(cli, "work", site, *more)
    would = "--dry-run" in more
    assert (ran.code, outcomes(ran), items(ran)["theirs"]["reason"]) == (
        20 if would else 42,
        {
            "mine": "would replace" if would else "replaced",
            "theirs": "skipped",
            "both": "would refuse" if would else "failed",
            "none": "unchanged",
        },
        "theirs is newer",
    )
    assert would or "1 failed, 1 replaced, 1 skipped (theirs is newer), 1 unchanged" in ran.err
    (cli.root / "work/both").unlink()
    assert put(cli, "work", site, *more).code == 42 * ("--mirror" in more)


@pytest.mark.parametrize(
    ("more", "code", "outcome"),
    [
        (("--last-writer-wins",), 0, "written"),
        (("--metadata", "release=2"), 42, "failed"),
        (("--fence", "7"), 0, "written"),
        (("--if-exists", "skip"), 0, "exists"),
    ],
)
def test_a_put_that_says_more_than_content_writes_also_what_was_not_changed_here(
    cli: CliWorld, site: str, more: tuple[str, ...], code: int, outcome: str
) -> None:
    put(cli, str(write(cli.root / "dist", a="1")), site)
    cli.call("blob", "put", f"{site}/a", "--last-writer-wins", scope="other", stdin=b"2")
    ran = put(cli, "dist", site, *more)
    assert (ran.code, outcomes(ran)) == (code, {"a": outcome})


def test_a_file_that_was_deleted_there_is_not_taken_for_one_that_needs_no_put(cli: CliWorld, site: str) -> None:
    put(cli, str(write(cli.root / "dist", a="1")), site)
    cli.call("blob", "delete", f"{site}/a", "--last-writer-wins", scope="other")
    assert put(cli, "dist", site).code == 42


@pytest.mark.parametrize("shown", [("-o", "none"), ("-q",), ("-o", "table"), ("-o", "json")])
def test_what_failed_is_named_at_the_end_with_its_status(cli: CliWorld, site: str, shown: tuple[str, ...]) -> None:
    write(cli.root / "dist", **{f"{number:03}": "1" for number in range(40)})
    put(cli, "dist", site)
    cli.call("blob", "put", f"{site}/007", "--last-writer-wins", scope="other", stdin=b"2")
    cli.call("blob", "put", f"{site}/new", scope="other", stdin=b"2")
    write(cli.root / "dist", **{"007": "mine", "new": "mine", "020": "2"})
    ran = put(cli, "dist", site, *shown)
    at = ran.err.index("error")
    told = [line for line in ran.err[:at].splitlines() if line.startswith("failed")]
    assert (ran.code, sorted(line.rpartition(" ")[2] for line in told)) == (20, ["(42)", "(45)"])
    assert all(f"{site}/{name}: " in "".join(told) for name in ("007", "new"))
    (cli.root / "dist/new").unlink()
    ran = put(cli, "dist", site, *shown)
    assert (ran.code, "another run fails, too" in ran.err) == (42, "-q" not in shown)


def test_what_exists_and_was_never_read_here_is_not_overwritten(cli: CliWorld, site: str) -> None:
    cli.call("blob", "put", f"{site}/a", scope="other", stdin=b"theirs")
    write(cli.root / "dist", a="mine", b="mine")
    ran = put(cli, "dist", site)
    assert (ran.code, outcomes(ran), content(cli, site)) == (
        20, {"a": "failed", "b": "created"}, {"a": b"theirs", "b": b"mine"},
    )  # fmt: skip


def test_a_copy_that_was_read_guards_its_own_write_whatever_was_read_since(cli: CliWorld, site: str) -> None:
    write(cli.root / "dist", a="1")
    put(cli, "dist", site)
    cli.call("blob", "get", site, "copy", "--recursive")
    cli.call("blob", "put", f"{site}/a", "--last-writer-wins", scope="other", stdin=b"theirs")
    # This scope reads the newer version into another place: the copy is still of the old one.
    cli.call("blob", "get", f"{site}/a", "-f", "elsewhere")
    write(cli.root / "copy", a="mine")
    ran = put(cli, "copy", site)
    assert (ran.code, items(ran)["a"]["error"]["kind"], content(cli, site)) == (42, "changed", {"a": b"theirs"})


def test_a_folder_carries_its_versions_to_another_machine(cli: CliWorld, site: str) -> None:
    write(cli.root / "dist", a="1")
    put(cli, "dist", site)
    exported = cli.call("cache", "export").stdout
    there = {"AZGUARD_CACHE_DIR": str(cli.root / "other-cache")}
    assert cli.call("cache", "import", "-", stdin=exported, env=there).code == 0
    write(cli.root / "dist", a="2")
    ran = cli.call("blob", "put", "dist", site, "--recursive", env=there)
    assert (ran.code, items(ran)["a"]["guard"]) == (0, "if-match")


def test_a_run_without_records_takes_other_settings_for_another_write(cli: CliWorld, site: str) -> None:
    write(cli.root / "dist", a="1")
    words = ("blob", "put", "dist", site, "--recursive", "--metadata")
    assert cli.call(*words, "release=1").code == 0
    lost = {"AZGUARD_CACHE_DIR": str(cli.root / "other-cache")}
    assert outcomes(cli.call(*words, "release=1", env=lost)) == {"a": "created"}
    lost = {"AZGUARD_CACHE_DIR": str(cli.root / "third-cache")}
    assert outcomes(cli.call(*words, "release=2", env=lost)) == {"a": "failed"}


def test_what_exists_is_left_alone_where_that_is_said(cli: CliWorld, site: str) -> None:
    cli.call("blob", "put", f"{site}/a", scope="other", stdin=b"theirs")
    write(cli.root / "dist", a="mine", b="mine")
    ran = put(cli, "dist", site, "--if-exists", "skip")
    assert (ran.code, outcomes(ran)) == (0, {"a": "exists", "b": "created"})


def test_content_that_is_there_already_is_left_alone(cli: CliWorld, site: str) -> None:
    write(cli.root / "dist", a="1", b="1")
    before = {name: each["etag"] for name, each in items(put(cli, "dist", site)).items()}
    write(cli.root / "dist", b="2")
    found = items(put(cli, "dist", site, "--unchanged", "skip"))
    assert {name: each["outcome"] for name, each in found.items()} == {"a": "unchanged", "b": "replaced"}
    assert found["a"]["etag"] == before["a"]


def test_a_file_gone_before_its_comparison_is_named(cli: CliWorld, site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    put(cli, str(write(cli.root / "dist", a="1", b="1")), site)
    walk = local_files.walk

    def walk_and_lose(folder: Path, *, follows_links: bool) -> Iterator[LocalFile | PassedOver]:
        found = list(walk(folder, follows_links=follows_links))
        (folder / "a").unlink(missing_ok=True)
        yield from found

    monkeypatch.setattr(uploads, "walk", walk_and_lose)
    ran = put(cli, "dist", site, "--unchanged", "skip")
    assert (ran.code, outcomes(ran)) == (20, {"a": "failed", "b": "unchanged"})


def test_equal_size_and_time_are_not_taken_for_equal_content(cli: CliWorld, site: str) -> None:
    write(cli.root / "dist", a="one")
    put(cli, "dist", site)
    found = (cli.root / "dist/a").stat()
    write(cli.root / "dist", a="two")
    os.utime(cli.root / "dist/a", ns=(found.st_atime_ns, found.st_mtime_ns))
    assert outcomes(put(cli, "dist", site, "--unchanged", "skip")) == {"a": "replaced"}


def test_content_written_by_another_tool_is_compared_by_its_md5(cli: CliWorld, site: str) -> None:
    cli.call("blob", "put", f"{site}/a", scope="other", stdin=b"same")
    write(cli.root / "dist", a="same")
    assert outcomes(put(cli, "dist", site, "--unchanged", "skip")) == {"a": "unchanged"}
    # The file is proved to hold that version, which guards what is written next.
    write(cli.root / "dist", a="new")
    assert outcomes(put(cli, "dist", site, "--unchanged", "skip")) == {"a": "replaced"}


def test_a_put_that_was_interrupted_and_run_again_can_be_deleted(cli: CliWorld, site: str) -> None:
    # What it wrote before it was killed, it did not record: another scope stands for it.
    write(cli.root / "dist", a="1", b="1")
    put(cli, "dist", site, scope="killed")
    assert outcomes(put(cli, "dist", site, "--unchanged", "skip")) == {"a": "unchanged", "b": "unchanged"}
    ran = cli.call("blob", "delete", site, "--recursive")
    assert (ran.code, outcomes(ran)) == (0, {"a": "deleted", "b": "deleted"})


def test_an_append_blob_that_a_put_found_unchanged_is_still_known_as_one(cli: CliWorld, site: str) -> None:
    cli.call("blob", "append", f"{site}/log", "--create", stdin=b"1", scope="other")
    cli.call("blob", "set-properties", f"{site}/log", "--content-md5", "xMpCOKC5I4INzFCab3WEmw==", scope="other")
    write(cli.root / "dist", log="1")
    assert outcomes(put(cli, "dist", site, "--unchanged", "skip")) == {"log": "unchanged"}
    write(cli.root / "dist", log="2")
    assert items(put(cli, "dist", site))["log"]["error"]["exit_code"] == 40


def test_a_mirror_deletes_at_last_what_this_scope_has_seen_and_the_folder_has_no_more(cli: CliWorld, site: str) -> None:
    write(cli.root / "dist", a="1", b="1", keep__x="1")
    put(cli, "dist", f"{site}/v1")
    (cli.root / "dist/b").unlink()
    ran = put(cli, "dist", f"{site}/v1", "--mirror", "--exclude", "keep/")
    assert (ran.code, outcomes(ran)) == (0, {"v1/a": "unchanged", "v1/b": "deleted"})
    assert set(content(cli, site)) == {"v1/a", "v1/keep/x"}


def test_a_mirror_does_not_delete_what_was_never_read_here(cli: CliWorld, site: str) -> None:
    cli.call("blob", "put", f"{site}/theirs", scope="other", stdin=b"1")
    write(cli.root / "dist", a="1")
    ran = put(cli, "dist", site, "--mirror")
    assert (ran.code, outcomes(ran)) == (42, {"a": "created", "theirs": "failed"})
    ran = put(cli, "dist", site, "--mirror", "--last-writer-wins")
    assert (ran.code, outcomes(ran), set(content(cli, site))) == (0, {"a": "written", "theirs": "deleted"}, {"a"})


def test_a_mirror_deletes_nothing_after_a_failure(cli: CliWorld, site: str) -> None:
    write(cli.root / "dist", a="1", b="1")
    put(cli, "dist", site)
    cli.call("blob", "put", f"{site}/a", "--last-writer-wins", scope="other", stdin=b"theirs")
    (cli.root / "dist/b").unlink()
    write(cli.root / "dist", a="mine")
    ran = put(cli, "dist", site, "--mirror")
    assert (ran.code, outcomes(ran), set(content(cli, site))) == (42, {"a": "failed"}, {"a", "b"})


def test_a_mirror_keeps_what_is_behind_a_link_that_was_passed_over(cli: CliWorld, site: str) -> None:
    write(cli.root / "dist", a="1", sub__x="1")
    put(cli, "dist", site)
    (cli.root / "dist/sub").rename(cli.root / "elsewhere")
    (cli.root / "dist/sub").symlink_to(cli.root / "elsewhere")
    ran = put(cli, "dist", site, "--mirror")
    assert (outcomes(ran), set(content(cli, site))) == ({"a": "unchanged", "sub": "skipped"}, {"a", "sub/x"})
    write(cli.root / "dist", sub__x="2")
    assert outcomes(put(cli, "dist", site, "--follow-symlinks")) == {"a": "unchanged", "sub/x": "replaced"}


def test_the_last_file_is_written_after_all_else_and_not_after_a_failure(cli: CliWorld, site: str) -> None:
    write(cli.root / "dist", **{"a.css": "1", "index.html": "1", "z.css": "1"})
    ran = put(cli, "dist", site, "--last", "index.html")
    assert (ran.code, list(outcomes(ran))[-1]) == (0, "index.html")
    cli.call("blob", "put", f"{site}/z.css", "--last-writer-wins", scope="other", stdin=b"theirs")
    write(cli.root / "dist", **{"a.css": "2", "index.html": "2", "z.css": "2"})
    ran = put(cli, "dist", site, "--last", "index.html")
    assert (ran.code, outcomes(ran)) == (42, {"a.css": "replaced", "z.css": "failed"})


@pytest.mark.parametrize("name", ["./index.html", "css/../index.html", "css//a.css", "{}", "link", "out", "nothing"])
def test_a_last_file_that_is_none_of_the_files_that_are_meant_is_refused(cli: CliWorld, site: str, name: str) -> None:
    write(cli.root / "dist", **{"index.html": "1", "css__a.css": "1", "out": "1"})
    (cli.root / "dist/link").symlink_to("index.html")
    ran = put(cli, "dist", site, "--exclude", "out", "--last", name.format(cli.root / "dist/index.html"))
    assert (ran.code, content(cli, site)) == (2, {})


def test_a_last_file_that_is_named_twice_is_written_once(cli: CliWorld, site: str) -> None:
    write(cli.root / "dist", a="1", b="1")
    ran = put(cli, "dist", site, *("--last", "a") * 2)
    assert (ran.code, [json.loads(each)["outcome"] for each in ran.out.splitlines()]) == (0, ["created", "created"])


def test_a_dry_run_says_what_would_be_done_and_does_nothing(cli: CliWorld, site: str) -> None:
    write(cli.root / "dist", a="1", b="1", gone="1")
    put(cli, "dist", site)
    cli.call("blob", "put", f"{site}/b", "--last-writer-wins", scope="other", stdin=b"theirs")
    (cli.root / "dist/gone").unlink()
    write(cli.root / "dist", a="2", b="2", new="2")
    before = content(cli, site)
    ran = put(cli, "dist", site, "--dry-run", "--mirror")
    assert (ran.code, outcomes(ran)) == (
        20, {"a": "would replace", "b": "would refuse", "new": "would create", "gone": "would delete"},
    )  # fmt: skip
    assert content(cli, site) == before


def test_a_dry_run_of_a_mirror_says_what_would_be_read_into_a_folder_that_is_missing(cli: CliWorld, site: str) -> None:
    write(cli.root / "dist", a="1")
    put(cli, "dist", site)
    ran = cli.call("blob", "get", site, "back", "--recursive", "--mirror", "--dry-run")
    assert (ran.code, outcomes(ran), (cli.root / "back").exists()) == (0, {"a": "would read"}, False)


def test_only_what_is_included_and_not_excluded_is_meant(cli: CliWorld, site: str) -> None:
    write(cli.root / "dist", **{"a.css": "1", "b.css": "1", "c.html": "1"})
    ran = put(cli, "dist", site, "--include", "*.css", "--exclude", "b*")
    assert outcomes(ran) == {"a.css": "created"}
    put(cli, "dist", site)
    ran = cli.call("blob", "get", site, "back", "--recursive", "--include", "*.html")
    assert outcomes(ran) == {"c.html": "read"}
    ran = cli.call("blob", "delete", site, "--recursive", "--exclude", "*.css")
    assert (outcomes(ran), set(content(cli, site))) == ({"c.html": "deleted"}, {"a.css", "b.css"})


#: Every character of ASCII that a name may have, in one name, and what is easily taken for another one.
NAMES = (
    "every !\"#$%&'()*+,-.:;<=>?@[]^_`{|}~",
    "%41", "A", "a%20b", "a b", "a+b", "a?b=c&d", "#x", "x=1;y", "~", "-rf", "--help", "..x", "@x", "blob:x",
    "\u00e9", "e\u0301", "\u00df", "ss", "\U0001f600", "\u4e2d/\u6587", "\u200bz", "Readme", "README",
)  # fmt: skip


def test_every_name_goes_there_and_comes_back_as_it_was(cli: CliWorld, site: str) -> None:
    for name in NAMES:
        file = cli.root / "dist" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(ascii(name))
    ran = put(cli, "dist", f"{site}/p/")
    assert (ran.code, set(outcomes(ran))) == (0, {f"p/{name}" for name in NAMES})
    assert cli.call("blob", "get", f"{site}/p/", "back", "--recursive").code == 0
    assert {name: (cli.root / "back" / name).read_text() for name in NAMES} == {name: ascii(name) for name in NAMES}
    assert outcomes(put(cli, "back", f"{site}/p/", "--unchanged", "skip")) == dict.fromkeys(outcomes(ran), "unchanged")


def test_a_large_file_that_changes_while_it_is_read_is_begun_again_and_never_a_mixture(
    cli: CliWorld, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blob_uploads, "SINGLE_BYTES", 1000)
    monkeypatch.setattr(blob_uploads, "BLOCK_BYTES", 1000)
    file = write(cli.root / "dist", a="old" * 2000, b="1") / "a"
    pieces: list[bytes] = []
    read = sources.UnchangedFile.read

    def change_once(self: sources.UnchangedFile, size: int = -1) -> bytes:
        piece = read(self, size)
        pieces.append(piece)
        if len(pieces) == 3:
            file.write_text("new" * 2000)
        return piece

    monkeypatch.setattr(sources.UnchangedFile, "read", change_once)
    ran = put(cli, "dist", site, "--jobs", "1")
    assert (ran.code, content(cli, site)) == (0, {"a": b"new" * 2000, "b": b"1"}), ran.err


def test_a_fence_guards_each_file(cli: CliWorld, site: str) -> None:
    write(cli.root / "dist", a="1", b="1")
    put(cli, "dist", site, "--fence", "5")
    cli.call("blob", "put", f"{site}/b", "--last-writer-wins", scope="other", stdin=b"without a fence")
    write(cli.root / "dist", a="late", b="late")
    ran = put(cli, "dist", site, "--fence", "3")
    found = items(ran)
    assert (ran.code, found["a"]["error"]["exit_code"], found["b"]["outcome"]) == (20, 77, "written")


def test_a_mirror_under_a_fence_deletes_only_what_this_scope_saw_and_none_changed(cli: CliWorld, site: str) -> None:
    write(cli.root / "dist", a="1", b="1", c="1")
    put(cli, "dist", site, "--fence", "5")
    for name in ("b", "theirs"):
        cli.call("blob", "put", f"{site}/{name}", "--fence", "5", scope="other", stdin=b"theirs")
    for name in ("b", "c"):
        (cli.root / "dist" / name).unlink()
    for more, code, written in (("--dry-run", 20, "would replace"), ("-q", 42, "written")):
        ran = put(cli, "dist", site, "--fence", "6", "--mirror", more)
        found = outcomes(ran)
        assert (ran.code, found.pop("a")) == (code, written)
        gone = "would delete" if more == "--dry-run" else "deleted"
        assert found == {"b": "failed", "c": gone, "theirs": "failed"}
        assert items(ran)["b"]["error"]["kind"] == items(ran)["theirs"]["error"]["kind"] == "changed"


def test_a_name_the_service_does_not_take_fails_by_name_and_the_rest_goes_on(cli: CliWorld, site: str) -> None:
    write(cli.root / "dist", a="1", **{"b\\c": "1", "d.": "1"})
    ran = put(cli, "dist", site)
    assert (ran.code, outcomes(ran)) == (20, {"a": "created", "b\\c": "failed", "d.": "failed"})


def test_a_name_that_leaves_the_folder_is_refused_and_the_rest_goes_on(cli: CliWorld, site: str) -> None:
    for name in ("a", "b//c", "link/x"):
        cli.call("blob", "put", f"{site}/v/{name}", scope="other", stdin=b"1")
    (cli.root / "outside").mkdir()
    (cli.root / "back").mkdir()
    (cli.root / "back/link").symlink_to(cli.root / "outside")
    ran = cli.call("blob", "get", f"{site}/v/", "back", "--recursive")
    assert (ran.code, outcomes(ran)) == (20, {"v/a": "read", "v/b//c": "failed", "v/link/x": "failed"})
    assert list((cli.root / "outside").iterdir()) == []


@pytest.mark.parametrize("jobs", ["1", "16"])
def test_a_delete_refuses_a_name_that_names_another_blob_on_the_way_and_the_rest_goes_on(
    cli: CliWorld, site: str, jobs: str
) -> None:
    for name in ("a", "b.", "c"):
        make_by_another_tool(cli, f"{site}/{name}")
    words = ("blob", "delete", site, "--recursive", "--last-writer-wins", "--jobs", jobs)
    ran = cli.call(*words, "--dry-run")
    assert (ran.code, outcomes(ran)) == (20, {"a": "would delete", "b.": "failed", "c": "would delete"})
    ran = cli.call(*words)
    assert (ran.code, outcomes(ran)) == (20, {"a": "deleted", "b.": "failed", "c": "deleted"})


def test_a_get_skips_by_name_what_marks_a_folder(cli: CliWorld, site: str) -> None:
    for name, content in (("v/", b""), ("v/sub/", b""), ("v/full/", b"1"), ("v/sub/x", b"1")):
        cli.call("blob", "put", f"{site}/{name}", "--allow-empty", stdin=content)
    for more, outcome in ((("--dry-run",), "would read"), ((), "read")):
        ran = cli.call("blob", "get", f"{site}/v/", "back", "--recursive", *more)
        assert (ran.code, outcomes(ran)) == (
            20, {"v/": "skipped", "v/sub/": "skipped", "v/full/": "failed", "v/sub/x": outcome},
        )  # fmt: skip


def test_a_get_leaves_alone_what_is_here_or_holds_the_content(cli: CliWorld, site: str) -> None:
    write(cli.root / "dist", a="1", b="1")
    put(cli, "dist", site)
    cli.call("blob", "get", site, "back", "--recursive")
    write(cli.root / "back", b="mine")
    ran = cli.call("blob", "get", site, "back", "--recursive", "--if-exists", "skip")
    assert outcomes(ran) == {"a": "exists", "b": "exists"}
    ran = cli.call("blob", "get", site, "back", "--recursive", "--unchanged", "skip", "--overwrite")
    assert outcomes(ran) == {"a": "unchanged", "b": "read"}


def read_again(cli: CliWorld, site: str, *more: str, theirs: bytes = b"theirs") -> Ran:
    """Get a tree, change one of its files here and another there, and get it again."""
    write(cli.root / "dist", mine="1", theirs="1")
    put(cli, "dist", site)
    get = ("blob", "get", site, "back", "--recursive")
    cli.call(*get)
    write(cli.root / "back", mine="precious")
    for name in ("mine", "theirs"):
        cli.call("blob", "put", f"{site}/{name}", "--last-writer-wins", scope="other", stdin=theirs)
    return cli.call(*get, *more)


@pytest.mark.parametrize(
    ("more", "code", "outcome", "kept"),
    [
        ((), 42, "failed", "precious"),
        (("--dry-run",), 20, "would refuse", "precious"),
        (("--unchanged", "skip"), 42, "failed", "precious"),
        (("--if-exists", "skip"), 0, "exists", "precious"),
        (("--overwrite",), 0, "read", "theirs"),
    ],
)
def test_a_file_that_was_changed_here_is_not_lost_to_a_get(
    cli: CliWorld, site: str, more: tuple[str, ...], code: int, outcome: str, kept: str
) -> None:
    ran = read_again(cli, site, *more)
    found = items(ran)["mine"]
    assert (ran.code, found["outcome"], (cli.root / "back/mine").read_text()) == (code, outcome, kept)
    assert "error" not in found or found["error"]["exit_code"] == 42


def test_a_file_that_was_changed_here_to_what_is_there_is_read_again(cli: CliWorld, site: str) -> None:
    # As after a run that was killed before it could record what it had read.
    assert set(outcomes(read_again(cli, site, theirs=b"precious")).values()) == {"read"}


def test_a_file_proved_to_hold_a_version_guards_by_it(cli: CliWorld, site: str) -> None:
    write(cli.root / "dist", a="1")
    put(cli, "dist", site)
    ran = cli.call("blob", "get", site, "dist", "--recursive", "--unchanged", "skip", scope="other")
    assert outcomes(ran) == {"a": "unchanged"}
    write(cli.root / "dist", a="2")
    assert outcomes(put(cli, "dist", site, scope="other")) == {"a": "replaced"}


def test_an_append_blob_that_is_proved_to_be_there_is_still_known_as_one(cli: CliWorld, site: str) -> None:
    cli.call("blob", "append", f"{site}/log", "--create", stdin=b"1", scope="other")
    for _ in range(2):
        ran = cli.call("blob", "get", site, "back", "--recursive", "--unchanged", "skip")
    assert outcomes(ran) == {"log": "unchanged"}
    write(cli.root / "back", log="2")
    assert items(put(cli, "back", site))["log"]["error"]["exit_code"] == 40


def test_a_mirror_of_a_get_deletes_what_came_from_there_and_nothing_else(cli: CliWorld, site: str) -> None:
    write(cli.root / "dist", a="1", b="1", edited="1")
    put(cli, "dist", site)
    words = ("blob", "get", site, "back", "--recursive")
    cli.call(*words)
    # What is proved to be there already counts as read.
    assert outcomes(cli.call(*words, "--unchanged", "skip"))["b"] == "unchanged"
    write(cli.root / "back", mine="1", written="1", edited="2")
    assert cli.call("blob", "put", f"{site}/written", "-f", "back/written").code == 0
    for name in ("b", "edited", "written"):
        cli.call("blob", "delete", f"{site}/{name}", "--last-writer-wins", scope="other")
    ran = cli.call(*words, "--mirror")
    assert outcomes(ran) == {"a": "read", "b": "deleted"}
    assert sorted(os.listdir(cli.root / "back")) == ["a", "edited", "mine", "written"]


def test_a_delete_takes_what_was_read_here_in_that_version_only(cli: CliWorld, site: str) -> None:
    write(cli.root / "dist", a="1", b="1")
    put(cli, "dist", site)
    cli.call("blob", "put", f"{site}/b", "--last-writer-wins", scope="other", stdin=b"theirs")
    cli.call("blob", "put", f"{site}/c", scope="other", stdin=b"theirs")
    ran = cli.call("blob", "delete", site, "--recursive")
    assert (ran.code, outcomes(ran)) == (42, {"a": "deleted", "b": "failed", "c": "failed"})
    assert set(content(cli, site)) == {"b", "c"}
    assert cli.call("blob", "delete", site, "--recursive", "--last-writer-wins").code == 0
    assert content(cli, site) == {}


def test_a_folder_without_recursive_says_what_to_add(cli: CliWorld, site: str) -> None:
    write(cli.root / "dist", a="1")
    ran = cli.call("blob", "put", f"{site}/x", "-f", "dist", "-o", "json")
    assert (ran.code, "--recursive" in str(ran.error["hint"])) == (2, True)


def test_a_container_that_does_not_exist_is_one_error_and_leaves_nothing_here(cli: CliWorld) -> None:
    write(cli.root / "dist", a="1", b="1")
    get = ("get", "nosuch", "back", "-r")
    others = (("put", "dist", "nosuch", "-r"), ("put", "dist", "nosuch", "-r", "--dry-run"), ("delete", "nosuch", "-r"))
    for words in (get, (*get, "--allow-empty"), (*get, "--mirror", "--allow-empty"), *others):
        ran = cli.call("blob", *words)
        assert (ran.code, ran.out, ran.err.count("there is no container nosuch")) == (44, "", 1)
    assert not (cli.root / "back").exists()


@pytest.mark.parametrize("more", [(), ("--dry-run",), ("--include", "*.css")])
def test_a_mirror_of_an_empty_folder_has_to_be_meant(cli: CliWorld, site: str, more: tuple[str, ...]) -> None:
    write(cli.root / "dist", **{"a.css": "1"})
    put(cli, "dist", site)
    (cli.root / "empty").mkdir()
    ran = put(cli, "empty", site, "--mirror", *more, "-o", "json")
    assert (ran.code, "--allow-empty" in str(ran.error["hint"]), set(content(cli, site))) == (2, True, {"a.css"})


def test_a_mirror_of_an_empty_folder_deletes_all_where_that_is_said(cli: CliWorld, site: str) -> None:
    write(cli.root / "dist", a="1")
    put(cli, "dist", site)
    (cli.root / "dist/a").unlink()
    assert outcomes(put(cli, "dist", site, "--mirror", "--allow-empty")) == {"a": "deleted"}


def test_a_folder_that_is_emptied_during_the_run_is_not_mirrored(cli: CliWorld, site: str) -> None:
    write(cli.root / "dist", a="1", b="1")
    put(cli, "dist", site)
    walked = local_files.walk

    def walk(folder: Path, *, follows_links: bool) -> Iterator[LocalFile | PassedOver]:
        found = list(walked(folder, follows_links=follows_links))
        for each in folder.iterdir():
            each.unlink()
        return iter(found)

    # The first look finds the files; the build that empties the folder begins right after it.
    with patch.object(uploads, "walk", walk):
        ran = put(cli, "dist", site, "--mirror", "-o", "json")
    assert (ran.code, ran.error["kind"], set(content(cli, site))) == (2, "usage", {"a", "b"})


def test_a_mirror_of_nothing_there_is_refused_unless_that_is_meant(cli: CliWorld, site: str) -> None:
    write(cli.root / "dist", a="1")
    put(cli, "dist", site)
    words = ("blob", "get", site, "back", "--recursive")
    cli.call(*words)
    cli.call("blob", "delete", f"{site}/a", "--last-writer-wins", scope="other")
    ran = cli.call(*words, "--mirror", "-o", "json")
    assert (ran.code, "--allow-empty" in str(ran.error["hint"])) == (2, True)
    assert (cli.root / "back/a").exists()
    assert outcomes(cli.call(*words, "--mirror", "--allow-empty")) == {"a": "deleted"}
    assert not (cli.root / "back/a").exists()


def test_a_run_whose_lines_cannot_be_printed_goes_on_and_tells_what_failed(cli: CliWorld, site: str) -> None:
    cli.call("blob", "put", f"{site}/z", scope="other", stdin=b"theirs")
    write(cli.root / "dist", a="1", b="1", c="1")
    with open("/dev/full", "wb") as full:
        done = cli.begin_fork("blob", "put", "dist", site, "--recursive", stdout=full)
        assert (done.communicate()[1].count(b"warning"), done.returncode) == (0, 73)
    write(cli.root / "dist", a="2", b="2", c="2", z="mine")
    reader, writer = os.pipe()
    os.close(reader)
    done = cli.begin_fork("blob", "put", "dist", site, "--recursive", stdout=writer)
    os.close(writer)
    err = done.communicate()[1].decode()
    assert (done.returncode, f"failed    {site}/z" in err, "3 replaced" in err) == (20, True, True), err


def test_a_table_has_a_head_and_says_in_short_why_a_file_failed(cli: CliWorld, site: str) -> None:
    cli.call("blob", "put", f"{site}/a", scope="other", stdin=b"theirs")
    write(cli.root / "dist", a="mine", b="mine")
    shown = put(cli, "dist", site, "-o", "table").out.splitlines()
    words = [line.split() for line in shown]
    # An address that is too long for the table stands in a line of its own.
    rows = [[word for word in each if not word.startswith("blob:")] for each in words]
    outcomes = sorted(row[:2] for row in rows if row and row[0] in ("created", "failed"))
    assert (words[0] or words[1], outcomes) == (
        ["address", "outcome", "bytes", "etag", "reason"],
        [["created", "4"], ["failed", "exists"]],
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full disk")
def test_a_table_that_cannot_be_printed_leaves_what_failed_on_stderr(cli: CliWorld, site: str) -> None:
    cli.call("blob", "put", f"{site}/a", scope="other", stdin=b"theirs")
    write(cli.root / "dist", a="mine", b="mine")
    with open("/dev/full", "w") as full:
        running = cli.begin_fork("blob", "put", "dist", site, "--recursive", "-o", "table", stdout=full)
        _, told = running.communicate()
    assert (running.returncode, told.startswith(b"blob:"), content(cli, site)["b"]) == (20, True, b"mine")


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("outcome", ["created", "failed"]),
        ("[].outcome", ["created", "failed"]),
        ("[?outcome=='failed'].error.kind", ["exists"]),
        ("[?outcome=='deleted'].address", []),
    ],
)
def test_a_query_picks_from_each_line_or_picks_lines(cli: CliWorld, site: str, query: str, shown: list[str]) -> None:
    cli.call("blob", "put", f"{site}/a", scope="other", stdin=b"theirs")
    write(cli.root / "dist", a="mine", b="mine")
    ran = put(cli, "dist", site, "--query", query)
    assert (ran.code, sorted(map(json.loads, ran.out.splitlines()))) == (20, shown)


def test_a_query_that_fails_on_a_line_ends_no_run(cli: CliWorld, site: str) -> None:
    write(cli.root / "dist", **{f"{number:02}": "mine" for number in range(40)})
    ran = put(cli, "dist", site, "--jobs", "1", "--query", "[?content_length > '1']")
    assert (ran.code, "--query failed" in ran.err, len(content(cli, site))) == (73, True, 40)


def test_a_leased_blob_of_a_tree_names_its_holder(cli: CliWorld, site: str) -> None:
    write(cli.root / "dist", a="1")
    put(cli, "dist", site)
    assert cli.call("lease", "acquire", f"blob:{site}/a", "--reason", "big job", scope="other").code == 0
    assert cli.call("blob", "get", f"{site}/a", "-f", str(cli.root / "dist/a")).code == 0
    write(cli.root / "dist", a="2")
    for ran in (put(cli, "dist", site), cli.call("blob", "delete", site, "--recursive")):
        error = items(ran)["a"]["error"]
        who = f"held by {error['holder']}, since {error['since']}: azguard lease acquire (big job)"
        assert (ran.code, error["exit_code"], error["reason"]) == (20, 49, "big job")
        assert [line.split(": ")[1] for line in error["hint"].splitlines()] == [
            f"azguard lease {verb} blob:{site}/a" for verb in ("wait", "break")
        ]
        assert error["message"] == f"{site}/a is leased, and no lease id was given; {who}"
        assert f"failed    {site}/a: {error['message']} (49)" in ran.err.splitlines()


def test_no_more_than_ten_holders_of_a_tree_are_looked_for(cli: CliWorld, site: str) -> None:
    names = [f"{number:02}" for number in range(12)]
    write(cli.root / "dist", **dict.fromkeys(names, "1"))
    put(cli, "dist", site)
    for name in names:
        assert cli.call("lease", "acquire", f"blob:{site}/{name}", scope="other").code == 0
    with proxy.running(cli.port, lambda _: proxy.Fault.NONE) as between:
        ran = cli.through(between.port).call("blob", "delete", site, "--recursive", "--last-writer-wins")
        # The delete itself looks once at each blob that is refused.
        looks = [each for each in between.log if each.request.method == "HEAD"][len(names) :]
    named = [each for each in items(ran).values() if "no record says who holds it" in each["error"]["message"]]
    assert (ran.code, len(items(ran)), len(named), len(looks)) == (20, 12, 10, 10)


def test_two_runs_at_a_time_write_each_file_and_tell_nothing_that_is_not_so(cli: CliWorld, site: str) -> None:
    for number in range(20):
        write(cli.root / "dist", **{f"{number:02}": "1"})
    runs = [cli.begin_fork("blob", "put", "dist", site, "--recursive") for _ in range(2)]
    ended = [Ran(each.wait(), out, err.decode()) for each in runs for out, err in [each.communicate()]]
    assert [each.code for each in ended] == [0, 0], ended
    assert set(content(cli, site).values()) == {b"1"}
    assert set(outcomes(ended[0]).values()) | set(outcomes(ended[1]).values()) <= {"created", "replaced", "unchanged"}


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_get_of_nothing_is_not_found_unless_nothing_is_meant(cli: CliWorld, site: str, more: tuple[str, ...]) -> None:
    words = ("blob", "get", f"{site}/nothing/", "out", "--recursive", *more)
    ran = cli.call(*words)
    is_folder_made = (cli.root / "out").exists()
    meant = cli.call(*words, "--allow-empty")

    assert (ran.code, ran.out, is_folder_made, meant.code) == (44, "", False, 0)
    assert "there is no file below" in ran.err
