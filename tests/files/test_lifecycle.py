"""Shares, directories and files are created, shown, listed and deleted, each under its guard."""

import uuid

import pytest

from tests.support import files_world
from tests.support.cli_world import CliWorld, Ran

ANYHOW = "--last-writer-wins"
RACE = "--allow-race"


@pytest.fixture
def name() -> str:
    return f"s{uuid.uuid4().hex[:20]}"


@pytest.fixture
def share(files_cli: CliWorld) -> str:
    return files_world.share(files_cli)


def test_a_share_is_created_shown_listed_and_deleted(files_cli: CliWorld, name: str) -> None:
    created = files_cli.call("share", "create", name, "--metadata", "owner=me", "--quota", "7").json
    shown = files_cli.call("share", "show", name).json
    listed = files_cli.call("share", "list", "--prefix", name).json
    deleted = files_cli.call("share", "delete", name).json
    assert (created["guard"], shown["etag"], shown["quota"], shown["metadata"], listed) == (
        "if-none-match", created["etag"], 7, {"owner": "me"}, [shown],
    )  # fmt: skip
    assert (deleted["guard"], deleted["outcome"]) == ("lease", "committed")
    assert [files_cli.call("share", verb, name).code for verb in ("exists", "show")] == [44, 44]
    assert_deleted_before(files_cli.call("share", "delete", name))
    for noun in ("file", "dir"):
        ran = files_cli.call(noun, "exists", f"{name}/a")
        assert (ran.code, ran.out, f"there is no share {name}" in ran.err) == (44, "", True)


def test_a_directory_is_created_shown_listed_and_deleted(files_cli: CliWorld, share: str) -> None:
    created = files_cli.call("dir", "create", f"{share}/a b é", "--metadata", "owner=me").json
    shown = files_cli.call("dir", "show", f"{share}/a b é").json
    listed = files_cli.call("dir", "list", share).json
    assert (created["guard"], shown["etag"], shown["metadata"]) == ("if-none-match", created["etag"], {"owner": "me"})
    assert [(each["address"], each["type"], each["etag"]) for each in listed] == [
        (f"dir:{share}/a b é", "dir", created["etag"])
    ]
    assert files_cli.call("dir", "delete", f"{share}/a b é", RACE).json["guard"] == "compare"
    assert [files_cli.call("dir", verb, f"{share}/a b é").code for verb in ("exists", "show")] == [44, 44]
    for words in ([RACE], []):
        assert_deleted_before(files_cli.call("dir", "delete", f"{share}/a b é", *words))
    # What is there again is another's: no comparison lets a delete through, with a race or without.
    assert files_cli.call("dir", "create", f"{share}/a b é", scope="other").code == 0
    assert [files_cli.call("dir", "delete", f"{share}/a b é", *words).code for words in ([RACE], [])] == [42, 42]
    assert files_cli.call("dir", "exists", f"{share}/a b é").code == 0


def test_status_asks_the_file_service_what_changed(files_cli: CliWorld, name: str) -> None:
    def look() -> list[str]:
        return [each["state"] for each in files_cli.call("status", *addresses).json]

    addresses = (f"share:{name}", f"dir:{name}/logs", f"file:{name}/logs/a")
    files_cli.call("share", "create", name)
    files_cli.call("dir", "create", f"{name}/logs")
    files_cli.call("file", "put", f"{name}/logs/a", stdin=b"x")
    fresh = look()
    files_cli.call("lease", "acquire", addresses[2], "--infinite", scope="other")
    files_cli.call("dir", "metadata", "set", addresses[1], "--metadata", "a=b", ANYHOW, scope="other")
    changed = look()
    files_cli.call("share", "delete", name, "--with-contents", ANYHOW, scope="other")
    assert (fresh, changed, look()) == (
        ["properties_unchanged", "properties_unchanged", "unchanged"],
        ["properties_unchanged", "changed", "leased"],
        ["vanished", "vanished", "vanished"],
    )


def test_a_directory_is_called_one_in_messages(files_cli: CliWorld, share: str) -> None:
    refused = [
        files_cli.call(*words).err.partition("\n")[0]
        for words in (
            ("dir", "show", f"{share}/nope"),
            ("dir", "show", share),
            ("lease", "acquire", f"dir:{share}/nope"),
            ("lock", "run", f"dir:{share}/nope", "--", "true"),
            ("safe-update", f"dir:{share}/nope", "--append", "x"),
            ("safe-update", f"dir:{share}/nope", "--metadata", RACE, "--set", "a=b"),
        )
    ]
    assert [("directory" in each, "dir " in each) for each in refused] == [(True, False)] * len(refused), refused


def test_what_is_of_the_other_type_is_refused_and_left_alone(files_cli: CliWorld) -> None:
    file = files_world.make(files_cli)
    folder = f"{file.partition('/')[0]}/reports"
    files_cli.call("dir", "create", folder)
    refused = [
        files_cli.call(*words, ANYHOW, "-o", "json")
        for words in (
            ("file", "delete", folder),
            ("file", "resize", folder, "--size", "3"),
            ("dir", "delete", file),
            ("dir", "properties", "set", file, "--attributes", "Hidden"),
        )
    ]
    told = [(ran.code, ran.error["service_code"]) for ran in refused]
    # What is read first is looked for among its own kind.
    assert told == [(44, "ResourceNotFound"), (40, "ResourceTypeMismatch")] * 2
    assert [files_cli.call(*words).code for words in (("file", "show", file), ("dir", "show", folder))] == [0, 0]


def test_a_file_whose_metadata_leave_no_room_for_a_record_is_guarded_without_one(files_cli: CliWorld) -> None:
    file = files_world.make(files_cli, b"0123", metadata={"k": "v" * 8150})
    full = files_cli.call("safe-update", f"file:{file}", "--append", "x")
    content = files_world.client(files_cli, file).download_file().readall()
    assert (full.code, "--no-lineage" in full.err, content) == (40, True, b"0123")
    updated = files_cli.call("safe-update", f"file:{file}", "--no-lineage", "--append", "x")
    resized = files_cli.call("file", "resize", file, "--size", "3", "--etag", updated.json["etag"])
    refused = files_cli.call("file", "delete", file, "--etag", updated.json["etag"])
    state = files_cli.call("lease", "show", f"file:{file}").json["state"]
    deleted = files_cli.call("file", "delete", file, "--etag", resized.json["etag"])
    assert (updated.json["guard"], resized.json["guard"], refused.code, state, deleted.code) == (
        "lease", "lease", 42, "free", 0,
    )  # fmt: skip


def test_a_delete_of_the_version_of_a_copy_is_of_no_other_one(files_cli: CliWorld) -> None:
    file = files_world.make(files_cli, b"content")
    assert files_cli.call("file", "get", file, "-f", "old.txt").code == 0
    strange = files_cli.call("file", "delete", file, "--version-of", str(files_cli.file("strange.txt", "content")))
    assert files_cli.call("file", "resize", file, "3").code == 0
    stale = files_cli.call("file", "delete", file, "--version-of", "old.txt")
    assert files_cli.call("file", "get", file, "-f", "new.txt").code == 0
    deleted = files_cli.call("file", "delete", file, "--version-of", "new.txt")
    assert (strange.code, stale.code, deleted.code, deleted.json["guard"]) == (2, 42, 0, "lease")


def test_a_dry_run_of_a_delete_looks_and_deletes_nothing(files_cli: CliWorld) -> None:
    file = files_world.make(files_cli, b"content")
    share = file.partition("/")[0]
    assert files_cli.call("dir", "create", f"{share}/d").code == 0

    def told(*words: str) -> tuple[int, str | None]:
        ran = files_cli.call(*words, "--dry-run")
        return ran.code, ran.json["outcome"] if ran.code == 0 else None

    assert told("file", "delete", file, ANYHOW) == (0, "would delete")
    assert told("file", "delete", file, "--etag", '"0x1"')[0] == 42
    assert told("file", "delete", f"{file}x", ANYHOW)[0] == 44
    assert told("dir", "delete", f"{share}/d", ANYHOW) == (0, "would delete")
    assert told("share", "delete", share, ANYHOW)[0] == 42
    assert told("share", "delete", share, ANYHOW, "--with-contents") == (0, "would delete")
    assert files_cli.call("lease", "acquire", f"file:{file}", "--infinite", scope="other").code == 0
    assert told("file", "delete", file, ANYHOW) == (0, "would refuse")
    assert [files_cli.call(*words).code for words in (("file", "exists", file), ("dir", "exists", f"{share}/d"))] == [
        0,
        0,
    ]


def test_files_are_shown_listed_and_deleted(files_cli: CliWorld) -> None:
    file = files_world.make(files_cli, b"content", "plan.", metadata={"owner": "me"})
    share = file.partition("/")[0]
    files_cli.call("dir", "create", f"{share}/reports")
    shown = files_cli.call("file", "show", file).json
    listed = files_cli.call("file", "list", share).json
    assert (shown["content_length"], shown["metadata"], shown["lease_state"]) == (7, {"owner": "me"}, "available")
    assert [(each["type"], each["name"], each["content_length"]) for each in listed] == [
        ("dir", "reports", None), ("file", "plan.", 7),
    ]  # fmt: skip
    assert files_cli.call("dir", "list", share).json == listed[:1]
    deleted = files_cli.call("file", "delete", file, "--etag", shown["etag"])
    assert (deleted.json["guard"], files_cli.call("file", "exists", file).code) == ("lease", 44)
    assert_deleted_before(files_cli.call("file", "delete", file))


def assert_deleted_before(ran: Ran) -> None:
    assert (ran.code, "is gone: you deleted it at" in ran.err) == (44, True), ran.err


@pytest.mark.parametrize("noun", ["share", "dir"])
def test_what_exists_is_left_alone(files_cli: CliWorld, share: str, noun: str) -> None:
    address = share if noun == "share" else f"{share}/d"
    files_cli.call("dir", "create", f"{share}/d", scope="other")
    ran = files_cli.call(noun, "create", address, "-o", "json")
    skipped = files_cli.call(noun, "create", address, "--if-exists", "skip")
    assert (ran.code, ran.error["kind"], skipped.code, skipped.json["outcome"]) == (45, "exists", 0, "exists")


def test_another_version_is_not_deleted_and_the_lease_is_given_back(files_cli: CliWorld) -> None:
    file = files_world.make(files_cli)
    etag = files_cli.call("file", "show", file).json["etag"]
    files_world.client(files_cli, file).upload_file(b"theirs")
    ran = files_cli.call("file", "delete", file, "--etag", etag, "-o", "json")
    shown = files_cli.call("file", "show", file).json
    assert (ran.code, ran.error["expected_etag"], ran.error["current_etag"]) == (42, etag, shown["etag"])
    assert (shown["lease_state"], shown["metadata"]) == ("available", {})


def test_what_was_never_read_is_deleted_only_if_that_is_said(files_cli: CliWorld) -> None:
    file = files_world.make(files_cli)
    share = file.partition("/")[0]
    assert [
        files_cli.call(*words, "-o", "json").code
        for words in (("file", "delete", file), ("share", "delete", share, "--with-contents"))
    ] == [42, 42]
    assert files_cli.call("share", "delete", share, ANYHOW, "-o", "json").error["contents"] == 1
    assert files_cli.call("file", "delete", file, ANYHOW).json["guard"] == "none"
    assert files_cli.call("share", "delete", share, ANYHOW).code == 0


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (("dir", "create", "{share}/a/b"), 44, "create it first: azguard dir create {share}/a"),
        (("dir", "show", "nothing-here/a"), 44,
         "check the name: azguard share list; to create it: azguard share create nothing-here"),
        (("file", "list", "nothing-here"), 44,
         "check the name: azguard share list; to create it: azguard share create nothing-here"),
        (("dir", "delete", "{share}/full", ANYHOW), 40,
         "a directory is deleted when it is empty; see azguard file list {share}/full"),
        (("dir", "show", "{share}"), 2, None),
        (("file", "show", "{share}/a//b"), 2, None),
        (("file", "show", "{share}/full"), 44, None),
        (("dir", "create", "{share}/f"), 40, "choose another name; see what is there: azguard file list {share}"),
        (("file", "show", "{share}/f?snapshot=2020-01-01T00:00:00.0000000Z"), 44,
         "see what there is: azguard share list --include snapshots --prefix {share}"),
    ],
)  # fmt: skip
def test_an_error_tells_the_way_out(
    files_cli: CliWorld, share: str, words: tuple[str, ...], code: int, hint: str | None
) -> None:
    for path in ("full", "full/inner"):
        files_world.sdk(files_cli, share).create_directory(path)
    files_world.client(files_cli, f"{share}/f").create_file(0)
    ran = files_cli.call(*(word.format(share=share) for word in words), "-o", "json")
    assert (ran.code, hint is None or ran.error["hint"] == hint.format(share=share)) == (code, True)


def test_a_url_names_what_an_address_does(files_cli: CliWorld) -> None:
    file = files_world.make(files_cli, path="d.txt")
    url = files_world.client(files_cli, file).url
    assert files_cli.call("file", "show", url).json["address"] == f"file:{file}"
    share = file.partition("/")[0]
    assert files_cli.call("file", "list", url.rpartition("/")[0]).json == files_cli.call("file", "list", share).json
