"""Metadata, properties, policies and snapshots of shares, directories and files, and renames of directories."""

import json

import pytest

from azguard.address import Address, Kind
from azguard.requests.lineage import KEY, Lineage
from tests.support import files_world
from tests.support.cli_world import CliWorld, Ran
from tests.support.emulator_world import until
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Chosen, Fault, Request

ANYHOW = "--last-writer-wins"
RACE = "--allow-race"


@pytest.fixture
def file(files_cli: CliWorld) -> str:
    return files_world.make(files_cli)


def address_of(noun: str, file: str) -> str:
    """Return the share, a directory, or the file itself."""
    share = file.partition("/")[0]
    return {"share": share, "dir": f"{share}/d", "file": file}[noun]


def set_metadata(cli: CliWorld, noun: str, address: str, *words: str) -> Ran:
    race = [RACE] if noun == "dir" and ANYHOW not in words else []
    return cli.call(noun, "metadata", "set", address, "--metadata", "owner=me", "-o", "json", *race, *words)


@pytest.mark.parametrize(("noun", "guard"), [("share", "lease"), ("dir", "compare"), ("file", "lease")])
def test_metadata_that_were_read_alone_are_replaced(files_cli: CliWorld, file: str, noun: str, guard: str) -> None:
    address = address_of(noun, file)
    files_cli.call("dir", "create", address_of("dir", file), scope="other")
    assert set_metadata(files_cli, noun, address).code == 42
    read = files_cli.call(noun, "metadata", "get", address).json
    done = set_metadata(files_cli, noun, address).json
    now = files_cli.call(noun, "metadata", "get", address).json
    assert (done["guard"], now["metadata"], now["etag"]) == (guard, {"owner": "me"}, done["etag"])
    stale = set_metadata(files_cli, noun, address, "--etag", read["etag"])
    assert (stale.code, stale.error["current_etag"]) == (42, done["etag"])
    assert files_cli.call(noun, "show", address).json["metadata"] == {"owner": "me"}
    assert set_metadata(files_cli, noun, address, ANYHOW).json["guard"] == "none"


@pytest.mark.parametrize("fault", files_world.FAULTS)
@pytest.mark.parametrize("noun", ["share", "file"])
def test_a_set_of_metadata_is_settled_by_its_lease(files_cli: CliWorld, file: str, noun: str, fault: Fault) -> None:
    address = address_of(noun, file)
    etag = files_cli.call(noun, "metadata", "get", address).json["etag"]
    words = (noun, "metadata", "set", address, "--metadata", "owner=me", "--etag", etag)
    ran, _ = files_world.spoilt(files_cli, fault, *words, which="comp=metadata")
    shown = files_cli.call(noun, "show", address).json
    assert (ran.code, shown["metadata"], shown["lease_state"]) == (0, {"owner": "me"}, "available")
    assert ran.json["etag"] in (shown["etag"], None)


@pytest.mark.parametrize(("fault", "code"), [(Fault.DROP, 0), (Fault.FAIL_BEFORE, 74)])
def test_a_set_without_a_lease_is_found_or_unknown(files_cli: CliWorld, file: str, fault: Fault, code: int) -> None:
    words = ("file", "metadata", "set", file, "--metadata", "owner=me", ANYHOW)
    ran, log = files_world.spoilt(files_cli, fault, *words, which="comp=metadata")
    assert (ran.code, len(log)) == (code, 1)


def test_the_lineage_of_a_file_tells_every_write(files_cli: CliWorld, file: str) -> None:
    files_cli.call("file", "metadata", "get", file)
    set_metadata(files_cli, "file", file)
    found = files_world.client(files_cli, file).get_file_properties().metadata
    # The record of the lease's holder, which is gone again, was a write too.
    assert (list(found), len(Lineage.parse(found[KEY]).entries)) == (["owner", KEY], 2)


def test_who_is_killed_under_the_lease_of_a_file_is_known_on_another_machine(files_cli: CliWorld, file: str) -> None:
    etag = files_cli.call("file", "show", file).json["etag"]
    met: list[Request] = []

    def decide(request: Request) -> Fault | Chosen:
        if "comp=metadata" in request.path:
            met.append(request)
        return Chosen(until=lambda: False) if len(met) == 2 else Fault.NONE

    with proxy.running(files_world.port(files_cli), decide) as between:
        words = ("file", "metadata", "set", file, "--metadata", "owner=me", "--etag", etag)
        process = files_world.through(files_cli, between.port).begin_fork(*words)
        until(lambda: len(met) == 2)
        process.kill()
        process.communicate()
    shown = files_cli.call("lease", "show", f"file:{file}", scope="another").json
    assert (shown["state"], shown["lease_duration"], shown["owner"]["pid"]) == ("held", "infinite", process.pid)
    assert (shown["owner"]["command"], shown["clock"]) == ("azguard file metadata set", "service")
    broken = files_cli.call("lease", "break", f"file:{file}", "--if-owner", shown["owner"]["host"], scope="another")
    assert (broken.code, set_metadata(files_cli, "file", file, ANYHOW).code) == (0, 0)


def test_what_of_a_file_is_not_named_stays(files_cli: CliWorld, file: str) -> None:
    files_cli.call("file", "properties", "set", file, "--content-type", "text/plain", ANYHOW)
    etag = files_cli.call("file", "show", file).json["etag"]
    words = ("--content-language", "en", "--attributes", "hidden|archive", "--created", "2026-01-31T12:00:00+02:00")
    done = files_cli.call("file", "properties", "set", file, *words, "--etag", etag).json
    shown = files_cli.call("file", "show", file).json
    assert (done["guard"], done["etag"], shown["metadata"], shown["lease_state"]) == (
        "lease", shown["etag"], {}, "available",
    )  # fmt: skip
    told = [shown[name] for name in ("content_type", "content_language", "attributes", "created", "content_length")]
    assert told == ["text/plain", "en", "Hidden | Archive", "2026-01-31T10:00:00Z", 3]


@pytest.mark.parametrize("attributes", ["ReadOnly", "None"])
def test_the_attribute_read_only_changes_under_the_guard(files_cli: CliWorld, file: str, attributes: str) -> None:
    if attributes == "None":
        files_cli.call("file", "properties", "set", file, "--attributes", "ReadOnly", ANYHOW)
    etag = files_cli.call("file", "show", file).json["etag"]
    ran = files_cli.call("file", "properties", "set", file, "--attributes", attributes, "--etag", etag, "-o", "json")
    assert (ran.code, files_cli.call("file", "show", file).json["attributes"]) == (0, attributes)


def test_a_file_that_is_read_only_is_not_written_and_the_way_out_is_told(files_cli: CliWorld, file: str) -> None:
    files_cli.call("file", "properties", "set", file, "--attributes", "ReadOnly", ANYHOW)
    ran = files_cli.call("file", "metadata", "set", file, "--metadata", "a=1", ANYHOW, "-o", "json")
    hint = f"remove the attribute: azguard file properties set {file} --attributes None"
    assert (ran.code, ran.error["hint"]) == (49, hint)


#: Writes that leave no trace of their writer, or have no lease that could prove whose they are: the words, the request
#: that is spoilt, and the exit status where its answer is lost, and where it is.
TRACELESS = {
    "set-properties": (("file", "properties", "set", "{file}", "--content-type", "a/b"), "comp=properties", 0, 0),
    "range clear": (("file", "range", "clear", "{file}", "--length", "512"), "comp=range", 0, 0),
    "quota": (("share", "quota", "{share}", "9"), "comp=properties", 0, 0),
    "acl": (("share", "acl", "set", "{share}"), "comp=acl", 0, 0),
    "dir properties": (
        ("dir", "properties", "set", "{share}/d", "--attributes", "Hidden", RACE),
        "comp=properties",
        74,
        74,
    ),
    "dir metadata": (("dir", "metadata", "set", "{share}/d", "--metadata", "a=1", RACE), "comp=metadata", 0, 74),
    "dir rename": (("dir", "rename", "{share}/d", "{share}/e"), "comp=rename", 0, 74),
    "dir delete": (("dir", "delete", "{share}/d", RACE), "DELETE ", 74, 74),
}


@pytest.mark.parametrize("fault", [Fault.DROP, Fault.RESET])
def test_a_write_without_a_trace_is_settled_by_its_lease_or_unknown(files_cli: CliWorld, fault: Fault) -> None:
    told, expected = {}, {}
    for name, (words, which, answer_lost, request_lost) in TRACELESS.items():
        file = files_world.make(files_cli, bytes(512))
        share = file.partition("/")[0]
        files_world.sdk(files_cli, share).create_directory("d")
        line = [word.format(file=file, share=share) for word in words]
        if name != "dir rename":
            line += ["--etag", files_cli.call(line[0], "show", address_of(line[0], file)).json["etag"]]
        ran, log = files_world.spoilt(files_cli, fault, *line, which=which, stdin=b"{}")
        states = [
            files_cli.call(*each).json["lease_state"] for each in (("file", "show", file), ("share", "show", share))
        ]
        told[name] = (ran.code, sum(is_done for _, is_done in log), states)
        code = answer_lost if fault is Fault.DROP else request_lost
        expected[name] = (code, 1 if code == 0 or fault is Fault.DROP else 0, ["available"] * 2)
    assert told == expected


def test_policies_of_a_share_are_read_changed_and_kept_from_others(files_cli: CliWorld, file: str) -> None:
    share = file.partition("/")[0]
    read = files_cli.call("share", "acl", "get", share).json
    readers = {"policies": {"readers": {"permission": "rl", "expiry": "2030-01-01T00:00:00Z"}}}
    done = files_cli.call("share", "acl", "set", share, stdin=json.dumps(readers).encode()).json
    now = files_cli.call("share", "acl", "get", share).json
    assert (done["guard"], now["etag"], now["policies"]["readers"]["permission"]) == ("lease", done["etag"], "rl")
    stale = files_cli.call("share", "acl", "set", share, "--etag", read["etag"], stdin=b"{}")
    assert (stale.code, files_cli.call("share", "acl", "get", share).json["etag"]) == (42, done["etag"])


@pytest.mark.parametrize(("fault", "code"), [(Fault.NONE, 0), (Fault.DROP, 0), (Fault.FAIL_BEFORE, 74)])
def test_a_snapshot_keeps_what_was_there(files_cli: CliWorld, file: str, fault: Fault, code: int) -> None:
    share = file.partition("/")[0]
    ran, _ = files_world.spoilt(files_cli, fault, "share", "snapshot", share, which="PUT ")
    listed = files_cli.call("share", "list", "--prefix", share, "--include", "snapshots").json
    kept = [each["snapshot"] for each in listed if each["snapshot"]]
    assert (ran.code, len(kept)) == (code, 0 if code else 1)
    if code:
        return
    files_cli.call("file", "delete", file, ANYHOW)
    in_snapshot = f"{file}?snapshot={ran.json['snapshot']}"
    assert files_cli.call("file", "show", in_snapshot).json["content_length"] == 3
    [there] = files_cli.call("file", "list", f"{share}?snapshot={ran.json['snapshot']}").json
    assert there["address"] == f"file:{in_snapshot}"
    assert files_cli.call("file", "delete", in_snapshot, ANYHOW).code == 2
    refused = files_cli.call("share", "delete", share, ANYHOW, "-o", "json")
    assert (refused.code, refused.error["hint"]) == (40, "--delete-snapshots include deletes them too")
    assert files_cli.call("share", "delete", share, ANYHOW, "--delete-snapshots", "include").code == 0


@pytest.mark.parametrize("fault", [Fault.NONE, Fault.DROP, Fault.REPLAYED])
def test_a_directory_is_renamed_with_what_is_in_it(files_cli: CliWorld, file: str, fault: Fault) -> None:
    share = file.partition("/")[0]
    for path in ("a", "a/in é"):
        files_world.sdk(files_cli, share).create_directory(path)
    ran, _ = files_world.spoilt(files_cli, fault, "dir", "rename", f"{share}/a", f"{share}/b", which="comp=rename")
    assert (ran.code, ran.json["address"], ran.json["guard"]) == (0, f"dir:{share}/b", "if-none-match")
    assert (files_world.names(files_cli, share), files_world.names(files_cli, share, "b")) == (
        ["b", "plan.txt"],
        ["in é"],
    )


def test_the_lease_of_a_file_in_a_renamed_directory_is_found_where_the_file_is(files_cli: CliWorld, file: str) -> None:
    share = file.partition("/")[0]
    files_world.sdk(files_cli, share).create_directory("a").create_subdirectory("in").upload_file("f", b"1")
    assert files_cli.call("lease", "acquire", f"file:{share}/a/in/f", "--infinite", scope="other").code == 0
    assert files_cli.call("dir", "rename", f"{share}/a", f"{share}/b").code == 0
    released = files_cli.call("lease", "release", f"file:{share}/b/in/f", "--lease-id", "@held", scope="other")
    assert released.code == 0, released.err


def test_a_renamed_directory_guards_what_comes_next_only_if_it_was_read(files_cli: CliWorld, file: str) -> None:
    share = file.partition("/")[0]
    files_world.sdk(files_cli, share).create_directory("unread")
    assert files_cli.call("dir", "create", f"{share}/read").code == 0
    renamed = [
        files_cli.call("dir", "rename", f"{share}/{each}", f"{share}/{each}2").code for each in ("unread", "read")
    ]
    deletes = [
        files_cli.call("dir", "delete", f"{share}/{each}2", "--etag", "@last", RACE) for each in ("unread", "read")
    ]
    assert (renamed, [ran.code for ran in deletes]) == ([0, 0], [42, 0])


def test_a_rename_replaces_a_file_only_if_that_is_said(files_cli: CliWorld, file: str) -> None:
    share = file.partition("/")[0]
    files_world.sdk(files_cli, share).create_directory("a")
    assert files_cli.call("dir", "rename", f"{share}/a", file).code == 45
    assert files_cli.call("dir", "rename", f"{share}/a", f"{share}x/a", "-o", "json").code == 2
    # A directory is never replaced, known to this scope or not, and none goes into itself.
    files_cli.call("dir", "create", f"{share}/b")
    onto = [files_cli.call("dir", "rename", f"{share}/a", f"{share}/b", *how) for how in ((), (ANYHOW,), (RACE,))]
    assert [(ran.code, "is a file" in ran.err) for ran in onto] == [(45, False)] * 3
    within = [files_cli.call("dir", "rename", f"{share}/a", f"{share}/{new}", ANYHOW).code for new in ("a", "a/b")]
    assert within == [2, 2]
    assert files_cli.call("dir", "rename", f"{share}/a", file, ANYHOW).code == 0
    assert str(Address(Kind.DIR, (share, "plan.txt"))) == files_cli.call("dir", "show", file).json["address"]
