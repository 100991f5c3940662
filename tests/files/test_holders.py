"""A refusal because of programs that use SMB says who has the file open, and what to type."""

from pathlib import Path

import pytest

from tests.support import scripted_service
from tests.support.cli_world import CliWorld
from tests.support.scripted_service import Answer
from tests.support.smb_emulator import SmbEmulator, open_file

_DELETE = ("file", "delete", "mytestshare/testdir/testfile.txt", "--last-writer-wins", "-o", "json")
_THERE = Answer(200, headers={"ETag": '"0x1"', "Last-Modified": "Fri, 03 May 2019 06:19:05 GMT"})
_LISTED = Answer.recorded("test_handle.test_list_handles_access_rights", 0)
_FORCE = "azguard file handle close mytestshare/testdir/testfile.txt --handle-id 458773"


# The documents disagree about some of them: both spellings, and each status that is documented.
@pytest.mark.parametrize(
    ("status", "code"),
    [
        (409, "SharingViolation"),
        (409, "DeletePending"),
        (409, "SMBDeletePending"),
        (409, "FileLockConflict"),
        (409, "FileOpenBySmbClient"),
        (409, "CannotDeleteFileOrDirectory"),
        (408, "ClientCacheFlushDelay"),
        (409, "ClientCacheFlushDelay"),
        (500, "ClientCacheFlushDelay"),
    ],
)
def test_who_has_the_file_open_is_told(tmp_path: Path, status: int, code: str) -> None:
    looked = [_THERE] if status == 409 else []
    with scripted_service.running(_THERE, Answer(status, code), *looked, _LISTED) as service:
        ran = CliWorld(tmp_path, service.connection_string).call(*_DELETE)
    told = ran.error
    assert (ran.code, told["kind"], told["service_code"], _FORCE in told["hint"]) == (49, "locked", code, True)
    assert told["handles"] == [
        {
            "handle_id": "458773",
            "client": "0.0.0.0:0",
            "client_name": "JALAUZON-DEV",
            "access": ["Write"],
            "opened": "2023-11-08T23:35:03Z",
        }
    ]
    assert [method for method, _ in service.asked] == ["HEAD", "DELETE", *["HEAD"] * len(looked), "GET"]


def test_a_file_in_delete_pending_that_cannot_be_looked_at_is_locked_all_the_same(tmp_path: Path) -> None:
    pending = Answer(409, "DeletePending")
    for before, asked in ([], ["HEAD"]), ([_THERE, pending], ["HEAD", "DELETE", "HEAD"]):
        with scripted_service.running(*before, pending, _LISTED) as service:
            ran = CliWorld(tmp_path, service.connection_string).call(*_DELETE)
        assert (ran.code, ran.error["service_code"], _FORCE in ran.error["hint"]) == (49, "DeletePending", True)
        assert [method for method, _ in service.asked] == [*asked, "GET"]


def test_prune_goes_on_past_a_temporary_file_in_delete_pending(tmp_path: Path) -> None:
    names = [f".azguard-{number:016x}.tmp" for number in range(2)]
    entries = "".join(f"<File><Name>{name}</Name><Properties /></File>" for name in names)
    listed = f"<EnumerationResults><Entries>{entries}</Entries><NextMarker /></EnumerationResults>".encode()
    answers = [Answer(200, headers={"Content-Type": "application/xml"}, body=listed), Answer(409, "DeletePending")]
    with scripted_service.running(*answers, Answer(404, "ResourceNotFound")) as service:
        ran = CliWorld(tmp_path, service.connection_string).call("file", "prune", "team", "-o", "json")
    assert (ran.code, ran.json, len(service.asked)) == (0, [], 3)


@pytest.mark.parametrize("status", [409, 412])
def test_a_file_that_is_read_only_has_no_holders(tmp_path: Path, status: int) -> None:
    with scripted_service.running(_THERE, Answer(status, "ReadOnlyAttribute"), _THERE) as service:
        ran = CliWorld(tmp_path, service.connection_string).call(*_DELETE)
    assert (ran.code, "handles" in ran.error, [method for method, _ in service.asked]) == (
        49,
        False,
        ["HEAD", "DELETE", "HEAD"],
    )
    assert "azguard file properties set mytestshare/testdir/testfile.txt --attributes None" in ran.error["hint"]


@pytest.mark.parametrize("answer", [Answer(403, "AuthorizationPermissionMismatch"), Answer(404, "ResourceNotFound")])
def test_the_refusal_stays_if_the_handles_cannot_be_listed(tmp_path: Path, answer: Answer) -> None:
    with scripted_service.running(_THERE, Answer(409, "SharingViolation"), _THERE, answer) as service:
        ran = CliWorld(tmp_path, service.connection_string).call(*_DELETE)
    assert (ran.code, ran.error["service_code"], "handles" in ran.error) == (49, "SharingViolation", False)
    assert ran.error["hint"] == "see who has it open: azguard file handle list mytestshare/testdir/testfile.txt"


def test_a_handle_over_smb_is_told_and_closed(tmp_path: Path, smb_emulator: SmbEmulator) -> None:
    cli = CliWorld(tmp_path, smb_emulator.connection_string)
    share = smb_emulator.service.create_share("holders")
    share.get_file_client("plan.txt").upload_file(b"old")
    with smb_emulator.connect("holders") as tree:
        open_file(tree, "plan.txt")
        etag = cli.call("file", "show", "holders/plan.txt").json["etag"]
        for guard in (("--last-writer-wins",), ("--etag", etag)):
            ran = cli.call("file", "delete", "holders/plan.txt", *guard, "-o", "json")
            assert (ran.code, ran.error["service_code"]) == (49, "SharingViolation")
            assert ran.error["handles"][0]["access"] == ["Read", "Write"]
        [listed] = cli.call("file", "handle", "list", "holders/plan.txt").json
        assert (listed["path"], listed["handle_id"]) == ("holders/plan.txt", ran.error["handles"][0]["handle_id"])
        for words in (("handle", "close", "--close-all"), ("lock", "break")):
            shown = cli.call("file", *words[:2], "holders/plan.txt", *words[2:], "--dry-run").json
            assert [each["handle_id"] for each in shown] == [listed["handle_id"]]
        closed = cli.call("file", "handle", "close", "holders/plan.txt", "--handle-id", listed["handle_id"]).json
        assert (closed["closed"], closed["failed"], closed["outcome"]) == (1, 0, "committed")
        assert cli.call("file", "delete", "holders/plan.txt", "--etag", etag).code == 0


def test_each_command_tells_who_has_the_file_open(tmp_path: Path, smb_emulator: SmbEmulator) -> None:
    cli = CliWorld(tmp_path, smb_emulator.connection_string)
    share = smb_emulator.service.create_share("commands")
    for name in ("plan.txt", "other.txt"):
        share.get_file_client(name).upload_file(b"old")
    with smb_emulator.connect("commands") as tree:
        open_file(tree, "plan.txt")
        for words in (
            ("file", "put", "commands/plan.txt", "--last-writer-wins"),
            ("file", "copy", "commands/plan.txt", "--source", "commands/other.txt", "--last-writer-wins"),
            ("file", "rename", "commands/plan.txt", "commands/new.txt", "--last-writer-wins"),
            ("file", "rename", "commands/other.txt", "commands/plan.txt", "--last-writer-wins"),
            ("safe-update", "file:commands/plan.txt", "--append", "x"),
            ("lease", "acquire", "file:commands/plan.txt", "--infinite"),
        ):
            ran = cli.call(*words, "-o", "json", stdin=b"new")
            told = [each["access"] for each in ran.error.get("handles", [])]
            assert (words, ran.code, ran.error["address"], told) == (
                words,
                49,
                "file:commands/plan.txt",
                [["Read", "Write"]],
            )
