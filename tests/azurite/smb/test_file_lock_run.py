"""``file lock run``: what it lets in, what it keeps out, and its errors."""

import json
import socket
import subprocess

import pytest
from azure.core.exceptions import HttpResponseError

from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME
from tests.support import forked, scripted_service
from tests.support.emulator_world import until
from tests.support.file_lock_world import FileLockWorld, Share
from tests.support.scripted_service import Answer

KEY_OF_ANOTHER = "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="
# Eight loops of a shell, each of which takes a number from a file, adds one and puts it back, under the lock.
PROCESSES = 8
INCREMENTS = 2
INCREMENT = "n=$(cat count) && sleep 0.01 && echo $((n + 1)) > count"


def refused(share: Share, file: str, *, write: bool) -> str | None:
    """Return the error code of a read or a write of a file through REST, None if it is done."""
    try:
        if write:
            share.file(file).upload_range(b"x", offset=0, length=1)
        else:
            share.file(file).download_file(offset=0, length=1).readall()
    except HttpResponseError as error:
        return str(getattr(error, "error_code", error))
    return None


def test_the_command_runs_with_the_file_and_its_status_is_ours(world: FileLockWorld, share: Share) -> None:
    file = world.new()
    ran = world.run(f"{file}/deep/x.lock", "--", "sh", "-c", 'echo "$AZGUARD_FILE_LOCK"; exit 7')
    assert (ran.code, ran.out) == (7, f"file:{file}/deep/x.lock\n")
    assert share.file(f"{file}/deep/x.lock").get_file_properties().size == 0


@pytest.mark.parametrize(
    ("options", "reading", "writing"),
    [
        ([], "SharingViolation", "SharingViolation"),
        (["--share", "read"], None, "SharingViolation"),
        (["--shared"], None, "SharingViolation"),
        (["--shared", "--range", "0:1"], None, "FileLockConflict"),
        (["--range", "0:1"], "FileLockConflict", "FileLockConflict"),
        (["--range", "9:1"], None, None),
    ],
)
def test_rest_is_kept_out_as_long_as_the_file_is_locked(
    world: FileLockWorld, share: Share, options: list[str], reading: str | None, writing: str | None
) -> None:
    file = world.new()
    share.file(file).upload_file(b"0123456789")
    working = world.begin_working(file, *options)
    assert (refused(share, file, write=False), refused(share, file, write=True)) == (reading, writing)
    working.finish(0)
    assert working.ended().code == 0
    assert (refused(share, file, write=False), refused(share, file, write=True)) == (None, None)


def test_a_file_that_another_has_locked_is_waited_for_and_then_given_up(world: FileLockWorld) -> None:
    file = world.new()
    working = world.begin_working(file)
    ran = world.run(file, "--no-wait", "-E", "9", "--", "true")
    assert (ran.code, "is in use by others" in ran.err) == (9, True)
    ran = world.run(file, "--wait", "1s", "-o", "json", "--", "true")
    assert (ran.code, ran.error["kind"], ran.error["address"]) == (75, "gave_up", f"file:{file}")
    working.finish(0)
    assert working.ended().code == 0


def test_bytes_that_do_not_overlap_are_locked_beside_each_other(world: FileLockWorld) -> None:
    file = world.new()
    working = world.begin_working(file, "--range", "0:10")
    beside = world.run(file, "--range", "10:5", "--no-wait", "--", "true")
    over = world.run(file, "--range", "9:1", "--no-wait", "--", "true")
    assert (beside.code, over.code) == (0, 75)
    working.finish(0)


@pytest.mark.parametrize("options", [[], ["--range", "0:1"]])
def test_readers_are_beside_each_other_and_a_writer_is_alone(world: FileLockWorld, options: list[str]) -> None:
    file = world.new()
    reader = world.begin_working(file, "--shared", *options)
    codes = [world.run(file, *each, *options, "--no-wait", "--", "true").code for each in (["--shared"], [])]
    reader.finish(0)
    assert (reader.ended().code, codes) == (0, [0, 75])
    writer = world.begin_working(file, *options)
    assert world.run(file, "--shared", *options, "--no-wait", "--", "true").code == 75
    writer.finish(0)


def test_the_same_lock_again_inside_the_command_starts_at_once(world: FileLockWorld) -> None:
    file = world.new()
    again = forked.command("file", "lock", "run", file, "--no-wait", "--", "sh", "-c", "exit 4")
    assert world.run(file, "--", *again).code == 4


def test_the_same_file_in_another_way_inside_the_command_is_refused(world: FileLockWorld) -> None:
    file = world.new()
    ran = world.run(file, "--", *forked.command("file", "lock", "run", file, "--share", "read", "--", "true"))
    assert (ran.code, "in another way" in ran.err) == (2, True)


def test_a_lock_around_this_command_that_is_not_held_is_lost(world: FileLockWorld) -> None:
    file = world.new()
    saved = world.cli.root / "environ"
    world.run(file, "--", "sh", "-c", f"printenv AZGUARD_FILE_LOCKS > {saved}")
    ran = world.run(file, "--", "true", env={"AZGUARD_FILE_LOCKS": saved.read_text().strip()})
    assert (ran.code, "its azguard has ended" in ran.err) == (77, True)


def test_a_file_that_must_not_be_made_is_missing(world: FileLockWorld) -> None:
    ran = world.run(world.new(), "--no-create", "-o", "json", "--", "true")
    assert (ran.code, ran.error["service_code"]) == (44, "STATUS_OBJECT_NAME_NOT_FOUND")


def test_a_missing_share_is_named_with_the_command_that_makes_it(world: FileLockWorld) -> None:
    ran = world.run("nosuchshare/x", "--", "true")
    assert (ran.code, ran.err) == (
        44,
        "error: there is no share:nosuchshare\n"
        "hint: check the name: azguard share list; to create it: azguard share create nosuchshare\n",
    )


def test_a_share_of_nfs_is_told_from_a_missing_one(world: FileLockWorld) -> None:
    # The emulator is a standard account, which has no such share: it is missing over SMB, and a script tells of it.
    modified = "Thu, 09 May 2019 00:40:13 GMT"
    said = {"ETag": '"0x8D"', "Last-Modified": modified, "x-ms-share-quota": "1", "x-ms-enabled-protocols": "NFS"}
    with scripted_service.running(Answer(200, headers=said)) as told:
        known = f"AccountName={EMULATOR_NAME};AccountKey={EMULATOR_KEY}"
        string = told.connection_string.replace("AccountName=acc;AccountKey=a2V5", known)
        ran = world.run("nosuchshare/x", "--", "true", env={"AZURE_STORAGE_CONNECTION_STRING": string})
    assert (ran.code, "is a share of the protocol NFS" in ran.err) == (40, True)


def test_a_directory_is_not_locked(world: FileLockWorld, share: Share) -> None:
    folder = world.new()
    share.emulator.service.get_share_client(share.name).create_directory(folder.partition("/")[2])
    assert world.run(folder, "--", "true").code == 40


@pytest.mark.parametrize(
    ("credential", "code", "words"),
    [
        (f"AccountKey={KEY_OF_ANOTHER}", 41, "does not accept the account key"),
        ("SharedAccessSignature=sv=2024-08-04&sig=eA%3D%3D", 78, "a SAS was given"),
    ],
)
def test_only_the_account_key_is_taken(world: FileLockWorld, credential: str, code: int, words: str) -> None:
    endpoint = f"http://127.0.0.1:1/{EMULATOR_NAME}"
    string = f"AccountName={EMULATOR_NAME};{credential};FileEndpoint={endpoint}"
    ran = world.run(world.new(), "--", "true", env={"AZURE_STORAGE_CONNECTION_STRING": string})
    assert (ran.code, words in ran.err) == (code, True)


def test_a_port_where_nothing_listens_is_told(world: FileLockWorld) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = str(closed.getsockname()[1])
        ran = world.run(world.new(), "--smb-port", port, "--", "true")
    assert (ran.code, f"no connection to 127.0.0.1:{port}" in ran.err) == (53, True)


def test_a_server_that_does_not_answer_is_given_up(world: FileLockWorld) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = str(silent.getsockname()[1])
        ran = world.run(world.new(), "--smb-port", port, "--timeout", "1s", "--", "true")
    assert (ran.code, "does not answer as SMB" in ran.err) == (53, True)


def test_eight_shells_that_count_under_the_lock_lose_nothing(world: FileLockWorld) -> None:
    file = world.new()
    (world.cli.root / "count").write_text("0\n")
    words = forked.command("file", "lock", "run", file, "--wait", "100s", "--", "sh", "-c", INCREMENT)
    loop = f'for i in {" ".join("x" * INCREMENTS)}; do "$@" || exit; done'
    running = [
        subprocess.Popen(
            ["sh", "-c", loop, "sh", *words], cwd=world.cli.root, env=world.cli.environ(), stderr=subprocess.DEVNULL
        )
        for _ in range(PROCESSES)
    ]
    assert [each.wait(110) for each in running] == [0] * PROCESSES
    assert (world.cli.root / "count").read_text() == f"{PROCESSES * INCREMENTS}\n"


def test_a_command_that_is_told_to_end_frees_the_file(world: FileLockWorld) -> None:
    file = world.new()
    working = world.begin_working(file)
    working.running.process.terminate()
    assert working.ended().code == 143
    assert (world.run(file, "--no-wait", "--", "true").code, world.processes()) == (0, [])


def test_who_is_told_to_end_while_waiting_leaves_nothing(world: FileLockWorld) -> None:
    file = world.new()
    working = world.begin_working(file)
    waiting = world.begin(file, "--", "true")
    until(lambda: "waiting for" in waiting.err)
    waiting.process.terminate()
    assert waiting.ended().code == 143
    working.finish(0)
    assert (working.ended().code, world.processes()) == (0, [])


def test_the_heartbeat_file_is_there_while_the_file_is_locked(world: FileLockWorld) -> None:
    file = world.new()
    heartbeat = world.cli.root / "heartbeat"
    ran = world.run(file, "--heartbeat-file", str(heartbeat), "--", "cat", str(heartbeat))
    assert (ran.code, sorted(json.loads(ran.out)), heartbeat.exists()) == (0, ["held_until", "pid", "renewed"], False)
