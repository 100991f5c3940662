"""safe-update of shares, directories and files: under a lease, exactly once, and without a lease that stays."""

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from azguard.leases.owners import OWNER
from tests.support import files_world
from tests.support.cli_world import CliWorld
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Fault, Request


@pytest.fixture
def file(files_cli: CliWorld) -> str:
    return files_world.make(files_cli, b'{"n": 1}', "dir.json", metadata={"kept": "yes"})


def content(cli: CliWorld, file: str) -> object:
    return json.loads(files_world.client(cli, file).download_file().readall())


def is_clean(cli: CliWorld, file: str, notes_left: int = 0) -> bool:
    """Return whether neither a lease, nor a record of one, nor a temporary file is left, and so many notes."""
    found = files_world.client(cli, file).get_file_properties()
    notes = cli.root / ".cache" / "process-leases"
    left = [each for each in files_world.names(cli, file.partition("/")[0]) if each.startswith(".azguard")]
    return (found.lease.state, left, cli.call("lease", "list", "--mine").json, len([*notes.glob("*")])) == (
        "available", [], [], notes_left,
    )  # fmt: skip


def test_the_content_of_a_file_is_updated_and_the_rest_of_it_stays(files_cli: CliWorld, file: str) -> None:
    before = files_world.client(files_cli, file).get_file_properties()
    done = files_cli.call("safe-update", f"file:{file}", "--increment", "n").json
    shown = files_cli.call("file", "show", file).json
    assert (done["guard"], done["outcome"], done["etag"]) == ("lease", "committed", shown["etag"])
    assert (content(files_cli, file), shown["metadata"]) == ({"n": 2}, {"kept": "yes"})
    after = files_world.client(files_cli, file).get_file_properties()
    assert [(each.creation_time, each.file_attributes, each.permission_key) for each in (before, after)] == [
        (before.creation_time, before.file_attributes, before.permission_key)
    ] * 2
    assert is_clean(files_cli, file)


def test_a_file_is_created_only_where_there_is_none(files_cli: CliWorld, file: str) -> None:
    new = file.replace("dir.json", "new.json")
    missing = files_cli.call("safe-update", f"file:{new}", "--increment", "n", "-o", "json")
    made = files_cli.call("safe-update", f"file:{new}", "--create", '{"n": 4}', "--increment", "n").json
    nowhere = files_cli.call("safe-update", f"file:{file[:5]}-no/x", "--create", "--increment", "n", "-o", "json")
    assert (missing.code, made["created"], made["guard"], content(files_cli, new)) == (
        44, True, "if-none-match", {"n": 5},
    )  # fmt: skip
    assert nowhere.code == 44
    assert is_clean(files_cli, new)


@pytest.mark.parametrize("kind", ["share", "dir", "file"])
def test_metadata_are_updated(files_cli: CliWorld, file: str, kind: str) -> None:
    share = file.partition("/")[0]
    files_world.sdk(files_cli, share).create_directory("d")
    name = {"share": share, "dir": f"{share}/d", "file": file}[kind]
    words = ["--allow-race"] if kind == "dir" else []
    done = files_cli.call("safe-update", f"{kind}:{name}", "--metadata", "--set", 'owner="me"', *words).json
    shown = files_cli.call(kind, "show", name).json
    assert (done["guard"], done["etag"]) == ("compare" if kind == "dir" else "lease", shown["etag"])
    assert shown["metadata"] == ({"kept": "yes", "owner": "me"} if kind == "file" else {"owner": "me"})
    assert is_clean(files_cli, file)


@pytest.mark.parametrize("fault", files_world.FAULTS)
@pytest.mark.parametrize(
    "which", ["dir.json?comp=rename", "comp=rename", "comp=lease", "comp=metadata", "comp=range", ".azguard"]
)
def test_content_is_applied_once_after_any_loss(files_cli: CliWorld, file: str, which: str, fault: Fault) -> None:
    ran, log = files_world.spoilt(files_cli, fault, "safe-update", f"file:{file}", "--increment", "n", which=which)
    assert log, "the fault met no request"
    assert (ran.code, ran.json["outcome"], content(files_cli, file)) == (0, "committed", {"n": 2})
    # A request for the lease that was lost may come late: then the next azguard ends it.
    is_settled = which != "comp=lease" or fault in (Fault.DROP, Fault.REPLAYED)
    assert is_clean(files_cli, file, 0 if is_settled else 1)


@pytest.mark.parametrize("fault", files_world.FAULTS)
@pytest.mark.parametrize("kind", ["share", "file"])
def test_metadata_are_applied_once_after_a_loss(files_cli: CliWorld, file: str, kind: str, fault: Fault) -> None:
    address = f"{kind}:{file if kind == 'file' else file.partition('/')[0]}"
    words = ["safe-update", address, "--metadata"]
    files_cli.call(*words, "--set", 'n="1"')
    ran, log = files_world.spoilt(files_cli, fault, *words, "--", "sh", "-c", "sed s/1/11/", which="comp=metadata")
    shown = files_cli.call(kind, "show", address.partition(":")[2]).json
    assert log, "the fault met no request"
    assert (ran.code, shown["metadata"]["n"]) == (0, "11")
    assert is_clean(files_cli, file)


def test_inside_a_lease_the_new_content_keeps_the_lease_of_its_holder(files_cli: CliWorld, file: str) -> None:
    lease = files_world.client(files_cli, file).acquire_lease()
    refused = files_cli.call("safe-update", f"file:{file}", "--increment", "n", "-o", "json", "--timeout", "3s")
    done = files_cli.call("safe-update", f"file:{file}", "--increment", "n", "--lease-id", lease.id)
    held = files_cli.call("lease", "show", f"file:{file}", "--lease-id", lease.id)
    assert (refused.code in (49, 75), done.code, done.json["guard"], held.json["state"]) == (True, 0, "lease", "held")
    lease.release()
    assert content(files_cli, file) == {"n": 2}
    assert is_clean(files_cli, file)


def test_a_writer_that_was_there_between_is_not_overwritten(files_cli: CliWorld, file: str, tmp_path: Path) -> None:
    script = tmp_path / "once.py"
    script.write_text(
        "import os, sys\n"
        "from azure.storage.fileshare import ShareFileClient\n"
        "text = sys.stdin.read()\n"
        f"flag = {str(tmp_path / 'flag')!r}\n"
        "if not os.path.exists(flag):\n"
        "    open(flag, 'w').close()\n"
        f"    share, _, path = {file!r}.partition('/')\n"
        f"    client = ShareFileClient.from_connection_string({files_cli.connection_string!r}, share, path)\n"
        "    client.upload_range(b'{\"n\": 7}', 0, 8)\n"
        "print(text.replace('7', '70').replace('1', '10'), end='')\n"
    )
    done = files_cli.call("safe-update", f"file:{file}", "--", sys.executable, str(script))
    assert (done.code, done.json["conflicts"], content(files_cli, file)) == (0, 1, {"n": 70})


@pytest.mark.parametrize(
    ("which", "fault"), [("x-ms-type", Fault.FAIL_BEFORE), ("x-ms-write", Fault.FAIL_BEFORE)], ids=["create", "range"]
)
def test_a_file_beside_it_that_is_not_made_goes(files_cli: CliWorld, file: str, which: str, fault: Fault) -> None:
    def decide(request: Request) -> Fault:
        return fault if which in request.headers else Fault.NONE

    with proxy.running(files_world.port(files_cli), decide) as between:
        words = ("safe-update", f"file:{file}", "--increment", "n", "--timeout", "3s")
        ran = files_world.through(files_cli, between.port).call(*words)
    assert (ran.code, files_world.names(files_cli, file.partition("/")[0])) == (53, ["dir.json"])


def test_what_a_killed_update_left_is_taken_over_by_the_next(files_cli: CliWorld, file: str) -> None:
    words = ("safe-update", f"file:{file}", "--increment", "n")
    killed = []
    with files_world.killing(files_cli) as killer:
        for at in ("dir.json?comp=rename", "comp=metadata", "comp=range"):
            status = killer.kill(at, *words)
            held = killer.world.call("lease", "list", "--mine").json
            killed.append((status, [each["address"] for each in held]))
            assert (killer.world.call(*words).code, is_clean(killer.world, file)) == (0, True)
    assert killed == [(-signal.SIGKILL, [f"file:{file}"])] * 2 + [(-signal.SIGKILL, [])]
    assert content(files_cli, file) == {"n": 4}


@pytest.mark.parametrize("at", ["/.azguard-", "comp=metadata"])
def test_an_interrupted_update_leaves_nothing(files_cli: CliWorld, file: str, at: str) -> None:
    """Neither its temporary file, nor the record of its lease; and what was read before is the version still."""
    share = file.partition("/")[0]
    with files_world.killing(files_cli) as killer:
        assert killer.world.call("file", "get", file).code == 0
        before = files_world.names(files_cli, share)
        code = killer.interrupt(at, "safe-update", f"file:{file}", "--set", "n=2")
        left = files_world.names(files_cli, share), files_world.client(files_cli, file).get_file_properties().metadata
        again = killer.world.call("file", "put", file, stdin=b"new")
    assert (code, left[0], OWNER in left[1], again.code) == (130, before, False, 0), again.err


def test_what_a_killed_delete_left_is_taken_over_by_the_next(files_cli: CliWorld, file: str) -> None:
    with files_world.killing(files_cli) as killer:
        words = ("file", "delete", file, "--etag")
        status = killer.kill("DELETE ", *words, killer.world.call("file", "show", file).json["etag"])
        shown = killer.world.call("file", "show", file).json
        done = killer.world.call(*words, shown["etag"])
        assert (status, shown["lease_state"], done.code) == (-signal.SIGKILL, "leased", 0)
        assert killer.world.call("file", "exists", file).code == 44


def test_an_operator_elsewhere_sees_who_left_a_lease_and_breaks_it(files_cli: CliWorld, file: str) -> None:
    with files_world.killing(files_cli) as killer:
        killer.kill("dir.json?comp=rename", "safe-update", f"file:{file}", "--increment", "n")
    elsewhere = {"AZGUARD_CACHE_DIR": str(files_cli.root / "elsewhere")}
    words = ("safe-update", f"file:{file}", "--increment", "n", "-o", "json")
    refused = files_cli.call(*words, "--timeout", "3s", env=elsewhere)
    shown = files_cli.call("lease", "show", f"file:{file}", env=elsewhere).json
    broken = files_cli.call("lease", "break", f"file:{file}", "--if-owner", shown["held_by"], env=elsewhere)
    done = files_cli.call(*words, env=elsewhere)
    assert (refused.code in (49, 75), shown["owner"]["command"], broken.code, done.code) == (
        True, "azguard safe-update", 0, 0,
    )  # fmt: skip
    assert content(files_cli, file) == {"n": 2}


def test_a_key_says_after_a_kill_whether_its_update_was_done(files_cli: CliWorld, file: str) -> None:
    words = ("safe-update", f"file:{file}", "--increment", "n", "--op-id", "night")
    with files_world.killing(files_cli) as killer:
        killer.kill("dir.json?comp=rename", *words)
        again = [killer.world.call(*words) for _ in range(2)]
        status = killer.world.call("safe-update", f"file:{file}", "--op-id", "night", "--status").json
        assert ([ran.code for ran in again], status["outcome"]) == ([0, 0], "committed")
        assert is_clean(killer.world, file)
    assert content(files_cli, file) == {"n": 2}


@pytest.mark.parametrize(
    "place",
    [
        ("file:{share}/dir.json",),
        ("file:{share}/dir.json", "--metadata"),
        ("share:{share}", "--metadata"),
        ("dir:{share}/d", "--metadata", "--allow-race"),
    ],
)
def test_a_run_whose_change_was_there_turns_nothing_back_and_a_key_names_one_change(
    files_cli: CliWorld, file: str, place: tuple[str, ...]
) -> None:
    share = file.partition("/")[0]
    files_cli.call("dir", "create", f"{share}/d")

    def update(*words: str) -> Any:
        ran = files_cli.call("safe-update", *(word.format(share=share) for word in place), *words, "-o", "json")
        return ran.code, (ran.json if ran.code == 0 else ran.error)["outcome"]

    def run(key: str, value: str) -> Any:
        return update("--op-id", key, "--set-string", f"v={value}")

    update("--set-string", "v=1")
    before = files_world.client(files_cli, file).get_file_properties()
    assert [run("a", "1"), run("b", "2"), run("a", "1"), run("a", "3")] == [
        (0, "unchanged"), (0, "committed"), (0, "applied_before"), (45, "key_of_another_change"),
    ]  # fmt: skip
    assert (update("--op-id", "a", "--status"), update("--set-string", "v=2")) == ((0, "committed"), (0, "unchanged"))
    after = files_world.client(files_cli, file).get_file_properties()
    assert (after.creation_time, after.metadata["kept"]) == (before.creation_time, "yes")
    assert is_clean(files_cli, file)
