"""Shares that come back after they were deleted, and the permissions that a share keeps for its files."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME
from azguard.emulators.files import server
from tests.support import files_world
from tests.support.cli_world import CliWorld
from tests.support.faultproxy.faults import Fault

ANYHOW = "--last-writer-wins"


@pytest.fixture
def keeping(tmp_path: Path) -> Iterator[CliWorld]:
    """Return a folder whose account keeps deleted shares for a week; the share ``team`` was deleted."""
    running = server.serve(
        tmp_path / "files", {EMULATOR_NAME: base64.b64decode(EMULATOR_KEY)}, "127.0.0.1", 0, retention_days=7
    )
    account = f"AccountName={EMULATOR_NAME};AccountKey={EMULATOR_KEY}"
    cli = CliWorld(tmp_path, f"{account};FileEndpoint=http://127.0.0.1:{running.port}/{EMULATOR_NAME}").with_cache()
    cli.call("share", "create", "team", "--metadata", "owner=ops")
    cli.call("file", "put", "team/plan.txt", stdin=b"plan")
    cli.call("share", "delete", "team", ANYHOW, "--with-contents")
    yield cli
    running.stop()


def test_a_share_comes_back_by_its_name_with_all_that_was_in_it(keeping: CliWorld) -> None:
    [listed] = keeping.call("share", "list", "--include", "deleted").json
    assert (listed["deleted"], bool(listed["deleted_version"]), listed["remaining_retention_days"]) == (True, True, 7)
    back = keeping.call("share", "undelete", "team").json
    assert keeping.call("file", "get", "team/plan.txt").out == "plan"
    shown = keeping.call("share", "show", "team").json
    assert (back["etag"], back["guard"], shown["metadata"]) == (shown["etag"], "if-none-match", {"owner": "ops"})
    assert keeping.call("share", "undelete", "team").code == 44


def test_nothing_takes_the_place_of_a_share_and_of_several_one_is_named(keeping: CliWorld) -> None:
    keeping.call("share", "create", "team")
    assert keeping.call("share", "undelete", "team").code == 45
    keeping.call("share", "delete", "team", ANYHOW)
    ran = keeping.call("share", "undelete", "team", "-o", "json")
    assert (ran.code, "--deleted-version" in ran.error["hint"]) == (2, True)
    kept = keeping.call("share", "list", "--include", "deleted").json
    version = next(each["deleted_version"] for each in kept if each["metadata"])
    assert keeping.call("share", "undelete", "team", "--deleted-version", "other").code == 44
    assert keeping.call("share", "undelete", "team", "--deleted-version", version).code == 0
    assert keeping.call("share", "show", "team").json["metadata"] == {"owner": "ops"}


@pytest.mark.parametrize("fault", files_world.FAULTS)
def test_an_undelete_is_settled_by_what_is_still_kept(keeping: CliWorld, fault: Fault) -> None:
    ran, _ = files_world.spoilt(keeping, fault, "share", "undelete", "team", which="comp=undelete")
    assert (ran.code, keeping.call("file", "get", "team/plan.txt").out) == (0, "plan"), ran.err


def test_a_permission_is_had_by_the_file_that_is_given_its_key(files_cli: CliWorld) -> None:
    share = files_world.make(files_cli).partition("/")[0]
    file, sddl = f"{share}/plan.txt", "O:SYG:SYD:(A;;FA;;;WD)"
    key = files_cli.call("file", "permission", "create", share, stdin=f"{sddl}\n".encode()).json["permission_key"]
    assert files_cli.call("file", "permission", "show", share, key).json["permission"] == sddl
    files_cli.call("file", "properties", "set", file, "--permission-key", key, ANYHOW)
    assert files_cli.call("file", "permission", "show", file).json == {
        "address": f"file:{file}", "permission_key": key, "permission": sddl,
    }  # fmt: skip
    assert files_cli.call("file", "permission", "show", f"share:{share}").json["permission_key"] != key
    ran = files_cli.call("file", "permission", "show", share, "1*1", "-o", "json")
    assert (ran.code, ran.error["message"]) == (44, f"{share} keeps no permission 1*1")
    assert files_cli.call("file", "permission", "create", share, stdin=b" ").code == 2


@pytest.mark.parametrize("fault", files_world.FAULTS)
def test_a_permission_is_sent_again_where_the_answer_is_lost(files_cli: CliWorld, fault: Fault) -> None:
    words = ("file", "permission", "create", files_world.share(files_cli), "O:SYG:SYD:(A;;FA;;;WD)")
    ran, _ = files_world.spoilt(files_cli, fault, *words, which="PUT")
    assert (ran.code, bool(ran.json["permission_key"])) == (0, True)
