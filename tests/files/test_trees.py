"""``azguard file put|get|delete --recursive`` against our emulator: each file under its own guard, and directories."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import files_world
from tests.support.cli_world import CliWorld, Ran
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Fault, Request

ANYHOW = "--last-writer-wins"


@pytest.fixture
def share(files_cli: CliWorld) -> str:
    return files_world.share(files_cli)


def write(folder: Path, **files: str) -> Path:
    for name, content in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


def items(ran: Ran) -> dict[str, Any]:
    """Return the result lines of a run by the path below the share; that of a directory has a slash at its end."""
    found = map(json.loads, ran.out.splitlines())
    return {
        each["address"].split("/", 1)[1] + ("/" if each["address"].startswith("dir:") else ""): each for each in found
    }


def outcomes(ran: Ran) -> dict[str, str]:
    return {name: each["outcome"] for name, each in items(ran).items()}


def content(cli: CliWorld, share: str) -> dict[str, str | None]:
    """Return what is in a share, past azguard: the content of each file, None for each directory."""
    client = files_world.sdk(cli, share)

    def below(folder: str) -> Iterator[tuple[str, str | None]]:
        for each in client.list_directories_and_files(folder):
            path = f"{folder}/{each.name}" if folder else each.name
            if each.is_directory:
                yield f"{path}/", None
                yield from below(path)
            else:
                yield path, client.get_file_client(path).download_file().readall().decode()

    return dict(below(""))


def upload(cli: CliWorld, share: str, path: str, text: str = "theirs") -> None:
    """Write a file as another tool does."""
    files_world.client(cli, f"{share}/{path}").upload_file(text.encode())


def put(cli: CliWorld, *words: str, **settings: Any) -> Ran:
    return cli.call("file", "put", *words, "--recursive", **settings)


def test_a_folder_goes_there_and_comes_back_the_same_with_its_directories(files_cli: CliWorld, share: str) -> None:
    cli = files_cli
    names = {"index.html": "<p>", "css__deep__a.css": "a", "css__zero": "", "with space ü": "u", "é#%41+;=&~!'()": "n"}
    write(cli.root / "dist", **names)
    (cli.root / "dist/nothing").mkdir()
    ran = put(cli, "dist", f"{share}/v1/")
    assert (ran.code, set(outcomes(ran).values())) == (0, {"created"}), ran.err
    # A folder without files makes no directory, as with other tools.
    assert {name for name in content(cli, share) if name.endswith("/")} == {"v1/", "v1/css/", "v1/css/deep/"}
    assert cli.call("file", "get", f"{share}/v1", "back", "--recursive").code == 0
    back = cli.root / "back"
    found = {str(each.relative_to(back)): each.read_text() for each in back.rglob("*") if each.is_file()}
    assert found == {name.replace("__", "/"): text for name, text in names.items()}
    assert cli.call("file", "show", f"{share}/v1/index.html", "--query", "content_type").json == "text/html"
    # The hashes that were recorded tell it: the service keeps none.
    ran = put(cli, "back", f"dir:{share}/v1", "--unchanged", "skip")
    assert set(outcomes(ran).values()) == {"unchanged"}


def test_each_file_is_guarded_by_its_version_and_the_rest_goes_on(files_cli: CliWorld, share: str) -> None:
    cli = files_cli
    write(cli.root / "dist", a="1", b="1", c="1", same="1", older="1")
    put(cli, "dist", share)
    for name in ("b", "new", "older"):
        upload(cli, share, name)
    write(cli.root / "dist", a="2", b="2", c="2", new="2")
    ran = put(cli, "dist", share, "--dry-run")
    would = {"a": "would replace", "b": "would refuse", "c": "would replace", "new": "would refuse"}
    mine = {"same": "unchanged", "older": "skipped"}
    assert (ran.code, outcomes(ran)) == (20, would | mine)
    ran = put(cli, "dist", share)
    told = items(ran)
    assert (ran.code, outcomes(ran)) == (20, {"a": "replaced", "b": "failed", "c": "replaced", "new": "failed"} | mine)
    for name in mine:
        files_world.client(cli, f"{share}/{name}").delete_file()
        (cli.root / "dist" / name).unlink()
    assert (told["b"]["error"]["kind"], told["new"]["error"]["kind"], told["a"]["guard"]) == (
        "changed", "exists", "lease",
    )  # fmt: skip
    assert content(cli, share) == {"a": "2", "b": "theirs", "c": "2", "new": "theirs"}
    assert outcomes(put(cli, "dist", share, "--if-exists", "skip")) == dict.fromkeys("abc", "exists") | {
        "new": "exists"
    }
    ran = put(cli, "dist", share, ANYHOW)
    assert (outcomes(ran), content(cli, share)["b"]) == (dict.fromkeys((*"abc", "new"), "written"), "2")
    assert cli.call("lease", "list", "--mine").json == []


def test_a_folder_carries_its_versions_to_another_machine(files_cli: CliWorld, share: str) -> None:
    cli = files_cli
    write(cli.root / "dist", a="1")
    put(cli, "dist", share)
    exported = cli.call("cache", "export").stdout
    there = {"AZGUARD_CACHE_DIR": str(cli.root / "other-cache")}
    write(cli.root / "dist", a="2")
    assert put(cli, "dist", share, env=there).code == 20
    assert cli.call("cache", "import", "-", stdin=exported, env=there).code == 0
    assert items(put(cli, "dist", share, env=there))["a"]["guard"] == "lease"


def test_names_that_a_share_does_not_take_are_refused_by_name_before_any_write(files_cli: CliWorld, share: str) -> None:
    cli = files_cli
    bad = {"b:c", "dot.", "space ", "q?", "back\\slash", "COM1", "t\tb", "deep./x"}
    for name in ("A.txt", "a.txt", "Dir/x", "dIR/X", "dIR/y", ".azguard-0123.tmp", *bad):
        path = cli.root / "dist" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    told = outcomes(put(cli, "dist", share, "--jobs", "1"))
    fine = {"A.txt": "created", "Dir/x": "created", "dIR/y": "created", ".azguard-0123.tmp": "skipped"}
    assert told == fine | dict.fromkeys({"a.txt", "dIR/X", *bad}, "failed")
    assert content(cli, share) == {"A.txt": "A.txt", "Dir/": None, "Dir/x": "Dir/x", "Dir/y": "dIR/y"}
    # What is there already is read and deleted, whatever its name.
    upload(cli, share, "theirs.")
    words = (share, "--recursive", "--include", "theirs.")
    assert outcomes(cli.call("file", "get", share, "back", *words[1:])) == {"theirs.": "read"}
    assert outcomes(cli.call("file", "delete", *words)) == {"theirs.": "deleted"}


def test_a_mirror_leaves_what_differs_in_the_case_of_its_letters_alone(files_cli: CliWorld, share: str) -> None:
    cli = files_cli
    write(cli.root / "dist", Readme="1", old__x="1", kept__x="1")
    put(cli, "dist", share)
    upload(cli, share, ".azguard-0123.tmp")
    (cli.root / "dist/Readme").rename(cli.root / "dist/README")
    for name in ("old/x", "kept/x"):
        (cli.root / "dist" / name).unlink()
    (cli.root / "dist/old").rmdir()
    words = ("dist", share, "--mirror", "--unchanged", "skip")
    # The file of the other name was never read here.
    assert outcomes(put(cli, *words)) == {"README": "failed"}
    cli.call("file", "get", f"{share}/README", "-f", "dist/README")
    gone = {"old/x", "kept/x", "old/"}
    assert outcomes(put(cli, *words, "--dry-run")) == {"README": "unchanged"} | dict.fromkeys(gone, "would delete")
    ran = put(cli, *words)
    # A folder that is here, too, stays there.
    assert outcomes(ran) == {"README": "unchanged"} | dict.fromkeys(gone, "deleted")
    assert content(cli, share) == {"Readme": "1", "kept/": None, ".azguard-0123.tmp": "theirs"}


def test_a_delete_takes_what_was_read_here_and_then_empty_directories(files_cli: CliWorld, share: str) -> None:
    cli = files_cli
    write(cli.root / "dist", a="1", b__c__x="1", b__y="1")
    put(cli, "dist", f"{share}/v")
    upload(cli, share, "v/b/y")
    ran = cli.call("file", "delete", f"{share}/v", "--recursive")
    assert (ran.code, outcomes(ran)) == (42, {"v/a": "deleted", "v/b/c/x": "deleted", "v/b/y": "failed"})
    cli.call("file", "get", f"{share}/v/b/y")
    words = ("file", "delete", f"{share}/v/", "--recursive")
    assert outcomes(cli.call(*words, "--keep-directories", "--exclude", "y")) == {}
    gone = ["v/b/y", "v/b/c/", "v/b/", "v/"]
    assert list(outcomes(cli.call(*words, "--dry-run")).items()) == [(name, "would delete") for name in gone]
    ran = cli.call(*words)
    assert (ran.code, list(outcomes(ran).items())) == (0, [(name, "deleted") for name in gone])
    assert (content(cli, share), outcomes(cli.call(*words))) == ({}, {})


def test_only_directories_that_are_meant_and_empty_are_deleted(files_cli: CliWorld, share: str) -> None:
    cli = files_cli
    write(cli.root / "dist", css__a="1", css__b="1", js__c="1", keep__d="1")
    put(cli, "dist", share)
    ran = cli.call("file", "delete", share, "--recursive", "--exclude", "css/b", "--exclude", "keep/")
    assert outcomes(ran) == {"css/a": "deleted", "js/c": "deleted", "css/": "kept", "js/": "deleted"}
    assert "css/b is in it" in items(ran)["css/"]["reason"]
    assert set(content(cli, share)) == {"css/", "css/b", "keep/", "keep/d"}


def test_a_directory_in_which_something_appears_stays_and_is_told(files_cli: CliWorld, share: str) -> None:
    cli = files_cli
    write(cli.root / "dist", a__b__x="1")
    put(cli, "dist", share)
    met: list[Request] = []

    def appear(request: Request) -> Fault:
        if request.method == "DELETE" and "restype=directory" in request.path and not met:
            met.append(request)
            upload(cli, share, "a/b/new")
        return Fault.NONE

    with proxy.running(files_world.port(cli), appear) as between:
        there = files_world.through(cli, between.port)
        ran = there.call("file", "delete", share, "--recursive", ANYHOW)
    assert (ran.code, outcomes(ran)) == (0, {"a/b/x": "deleted", "a/b/": "kept", "a/": "kept"})
    assert set(content(cli, share)) == {"a/", "a/b/", "a/b/new"}


def test_a_snapshot_is_read_and_never_written(files_cli: CliWorld, share: str) -> None:
    cli = files_cli
    write(cli.root / "dist", a__x="old")
    put(cli, "dist", share)
    moment = files_world.sdk(cli, share).create_snapshot()["snapshot"]
    upload(cli, share, "a/x")
    for address in (f"{share}/?snapshot={moment}", f"share:{share}?snapshot={moment}"):
        ran = cli.call("file", "get", address, "back", "--recursive")
        assert (ran.code, (cli.root / "back/a/x").read_text()) == (0, "old"), ran.err
    deep = cli.call("file", "get", f"file:{share}/a/?snapshot={moment}", "deep", "--recursive")
    assert (deep.code, (cli.root / "deep/x").read_text()) == (0, "old")
    assert put(cli, "dist", f"{share}/a?snapshot={moment}").code == 2


def test_a_get_leaves_alone_what_is_here_and_deletes_what_came_from_there(files_cli: CliWorld, share: str) -> None:
    cli = files_cli
    write(cli.root / "dist", a="1", b="1", edited="1")
    put(cli, "dist", share)
    upload(cli, share, ".azguard-0123.tmp")
    words = ("file", "get", share, "back", "--recursive")
    assert outcomes(cli.call(*words)) == dict.fromkeys(("a", "b", "edited"), "read")
    write(cli.root / "back", mine="1", edited="2")
    assert set(outcomes(cli.call(*words, "--if-exists", "skip")).values()) == {"exists"}
    less = ("--unchanged", "skip", "--exclude", "b")
    assert outcomes(cli.call(*words, *less)) == {"a": "unchanged", "edited": "failed"}
    assert outcomes(cli.call(*words, *less, "--overwrite")) == {"a": "unchanged", "edited": "read"}
    cli.call("file", "delete", f"{share}/b", ANYHOW, scope="other")
    assert outcomes(cli.call(*words, "--mirror")) == {"a": "read", "edited": "read", "b": "deleted"}
    assert sorted(each.name for each in (cli.root / "back").iterdir()) == ["a", "edited", "mine"]


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        (("put", "dist", "{}", "--keep-directories"), 2, "--keep-directories needs --recursive"),
        (("put", "{}", "-r"), 2, "--recursive needs "),
        (("put", "dist", "{}", "-r", "--content-md5", "AAAA"), 2, "--recursive and --content-md5 do not go"),
        (("put", "dist", "{}", "-r", "--lease-id", "@held"), 2, "--recursive and --lease-id do not go"),
        (("put", "dist", "blob:{}/x", "-r"), 2, "names a blob"),
        (("put", "dist", "", "-r"), 2, "empty"),
        (("put", "dist", "nosuch", "-r"), 44, "there is no share nosuch"),
        (("put", "dist", "{}/file/sub", "-r"), 20, "1 of 1 file"),
        (("get", "{}", "-r"), 2, "--recursive needs DIR"),
        (("get", "{}", "-r", "back", "--start-range", "1"), 2, "--recursive and --offset do not go"),
        (("get", "{}/nothing", "-r", "back"), 44, "there is no file below"),
        (("get", "{}/file", "-r", "back"), 40, "is a file, not a directory"),
        (("get", "nosuch", "-r", "back"), 44, "there is no share nosuch"),
        (("delete", "nosuch", "-r"), 44, "there is no share nosuch"),
        (("delete", "table:x", "-r"), 2, "table"),
        (("delete", "{}//", "-r"), 2, "empty part"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_told(
    files_cli: CliWorld, shared: str, words: tuple[str, ...], code: int, part: str
) -> None:
    write(files_cli.root / "dist", a="1")
    ran = files_cli.call("file", *(word.format(shared) for word in words), "-o", "json")
    assert (ran.code, part in str(ran.error["message"])) == (code, True), ran.err
    assert not (files_cli.root / "back").exists()


@pytest.fixture(scope="module")
def shared(files_connection_string: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a share with one file, which no test changes."""
    cli = CliWorld(tmp_path_factory.mktemp("shared"), files_connection_string)
    return files_world.make(cli, path="file").partition("/")[0]


@pytest.mark.parametrize("fault", [Fault.DROP, Fault.FAIL_BEFORE, Fault.REPLAYED])
@pytest.mark.parametrize(
    "which",
    ["PUT /d/sub?restype=directory", "comp=rename", "DELETE /d?restype=directory"],
    ids=["make", "put", "end"],
)
def test_an_answer_lost_amid_a_tree_is_settled(files_cli: CliWorld, share: str, which: str, fault: Fault) -> None:
    write(files_cli.root / "dist", d__sub__x="1", d__y="1")
    method, _, rest = which.rpartition(" ")
    spoils = f"{method} /devstoreaccount1/{share}{rest}" if method else rest
    met: list[Request] = []

    def decide(request: Request) -> Fault:
        if not f"{request.method} {request.path}".startswith(spoils) and (method or spoils not in request.path):
            return Fault.NONE
        met.append(request)
        return fault if len(met) == 1 else Fault.NONE

    with proxy.running(files_world.port(files_cli), decide) as between:
        there = files_world.through(files_cli, between.port)
        ran = put(there, "dist", share)
        assert (ran.code, outcomes(ran)) == (0, {"d/sub/x": "created", "d/y": "created"}), ran.err
        assert content(files_cli, share) == {"d/": None, "d/sub/": None, "d/sub/x": "1", "d/y": "1"}
        ran = there.call("file", "delete", share, "--recursive")
        assert (ran.code, len(outcomes(ran)), content(files_cli, share), bool(met)) == (0, 4, {}, True), ran.err


@pytest.mark.parametrize(
    ("texts", "at", "after"),
    [(("1",), "/a?comp=rename", False), (("1",), "/a?comp=rename", True), (("1", "22"), "comp=metadata", True)],
    ids=["temporary", "created", "leased"],
)
def test_a_run_that_was_killed_is_ended_by_another_which_takes_nothing_for_anothers(
    files_cli: CliWorld, share: str, texts: tuple[str, ...], at: str, *, after: bool
) -> None:
    words = ("file", "put", "dist", share, "--recursive", "--jobs", "2")
    folder = files_cli.root / "dist"
    with files_world.killing(files_cli) as killer:
        for text in texts:
            write(folder, **dict.fromkeys("abcd", text))
            if text != texts[-1]:
                assert killer.world.call(*words).code == 0
        assert killer.kill(at, *words, after=after) < 0
        ran = killer.world.call(*words)
        assert (ran.code, len(outcomes(ran))) == (0, 4), ran.out
        found = content(files_cli, share)
        assert {name: text for name, text in found.items() if not name.startswith(".")} == dict.fromkeys("abcd", text)
        # A request for a lease that was under way may come late.
        assert [each for each in killer.world.call("lease", "list", "--mine").json if each["confirmed"]] == []


def test_what_a_killed_run_has_written_is_known_unless_another_changed_it(files_cli: CliWorld, share: str) -> None:
    cli = files_cli
    write(cli.root / "dist", a="1", b="1")
    before = items(put(cli, "dist", share))
    # What it was killed before: it knows nothing of its writes.
    blank = {"AZGUARD_CACHE_DIR": str(cli.root / "blank")}
    client = files_world.client(cli, f"{share}/b")
    # A range leaves the metadata as they are, and with them the op.
    client.upload_range(b"2", 0, 1)
    ran = put(cli, "dist", share, env=blank)
    after = items(ran)
    assert (ran.code, outcomes(ran)) == (0, {"a": "created", "b": "created"})
    assert (after["a"]["etag"], after["b"]["etag"], content(cli, share)["b"]) == (before["a"]["etag"], None, "2")
    write(cli.root / "dist", a="new", b="new")
    assert outcomes(put(cli, "dist", share, env=blank)) == {"a": "replaced", "b": "failed"}


def test_a_large_share_is_walked_by_pages(files_cli: CliWorld, share: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("azguard.files.entries._PAGE", 2)
    write(files_cli.root / "dist", **{f"d{number}__{number}__x": "1" for number in range(5)}, top="1")
    put(files_cli, "dist", share)
    ran = files_cli.call("file", "delete", share, "--recursive", "--jobs", "8")
    assert (ran.code, len(outcomes(ran)), content(files_cli, share)) == (0, 16, {})


def test_a_leased_file_of_a_tree_names_its_holder(files_cli: CliWorld, share: str) -> None:
    cli = files_cli
    write(cli.root / "dist", a="1", b="1")
    put(cli, "dist", share)
    taken = ("lease", "acquire", f"file:{share}/a", "--infinite", "--reason", "big job")
    assert cli.call(*taken, scope="other").code == 0
    write(cli.root / "dist", a="2", b="2")
    for ran in (put(cli, "dist", share, ANYHOW), cli.call("file", "delete", share, "--recursive", ANYHOW)):
        error = items(ran)["a"]["error"]
        assert (ran.code, error["exit_code"], error["reason"]) == (20, 49, "big job")
        assert error["message"].endswith(
            f"; held by {error['holder']}, since {error['since']}: azguard lease acquire (big job)"
        )
