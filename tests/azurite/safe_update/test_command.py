"""``azguard safe-update`` against Azurite: what a user, a script or a CI step sees."""

import json
import re
import shlex
import signal
import socket
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from azure.storage.blob import BlobClient, BlobSasPermissions, generate_blob_sas

from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME
from azguard.cache.etag_cache import EtagCache
from azguard.emulators.azurite_process import Azurite
from tests.support.cli_world import CliWorld, Ran
from tests.support.faultproxy import proxy

PYTHON = sys.executable
INCREMENT = (PYTHON, "-c", "import json, sys; c = json.load(sys.stdin); c['n'] += 1; json.dump(c, sys.stdout)")


@pytest.fixture
def address(cli: CliWorld) -> str:
    """Return the address of a blob with one counter in it, that the scope ``setup`` has made."""
    name = f"{cli.container()}/config.json"
    assert cli.call("blob", "put", name, scope="setup", stdin=b'{"n": 1}').code == 0
    return f"blob:{name}"


def content(cli: CliWorld, address: str) -> Any:
    return json.loads(cli.call("blob", "get", address.removeprefix("blob:"), scope="reader").stdout)


def client(cli: CliWorld, address: str) -> BlobClient:
    container, _, name = address.removeprefix("blob:").partition("/")
    return BlobClient.from_connection_string(cli.connection_string or "", container, name)


def kept(cli: CliWorld, ran: Ran) -> bytes:
    return Path(ran.error["kept"]).read_bytes()


# Changes


def test_an_update_says_all_there_is_to_say(cli: CliWorld, address: str) -> None:
    ran = cli.fork("safe-update", address, "--increment", "n")
    shown = cli.call("blob", "show", address.removeprefix("blob:")).json
    assert re.fullmatch(r"op:[A-Za-z0-9_-]{16}", ran.json["op_id"])
    assert {**ran.json, "op_id": None} == {
        "address": address,
        "etag": shown["etag"],
        "last_modified": shown["last_modified"],
        "version_id": None,
        "content_length": 8,
        "guard": "if-match",
        "attempts": 1,
        "conflicts": 0,
        "doubts": 0,
        "outcome": "committed",
        "created": False,
        "op_id": None,
        "applied_at": None,
        "written_since": None,
        "created_keys": [],
        "merged_with": None,
    }
    assert (ran.code, ran.err, content(cli, address)) == (0, "", {"n": 2})


def test_texts_and_lines_are_applied_once_and_told_when_nothing_changes(cli: CliWorld, address: str) -> None:
    log = f"{address}.log"
    first = cli.call("safe-update", address, "--set-string", "owner=null", "--increment", "n")
    again = cli.call("safe-update", address, "--set-string", "owner=null")
    keyed = [
        cli.call("safe-update", log, "--append-line", "deployed 1.4", "--create", "--op-id", "run-71") for _ in range(2)
    ]
    assert cli.call("safe-update", log, "--append-line", "deployed 1.5").code == 0
    assert [first.json["outcome"], again.json["outcome"]] == ["committed", "unchanged"]
    assert (content(cli, address), [each.json["outcome"] for each in keyed]) == (
        {"n": 2, "owner": "null"},
        ["committed", "applied_before"],
    )
    assert cli.call("blob", "get", log.removeprefix("blob:")).out == "deployed 1.4\ndeployed 1.5\n"


def test_a_command_gets_the_content_and_gives_the_new_one(cli: CliWorld, address: str) -> None:
    assert cli.call("safe-update", address, "--", *INCREMENT).code == 0
    assert content(cli, address) == {"n": 2}


def test_edits_are_applied_in_the_order_in_which_they_are_written(cli: CliWorld, address: str) -> None:
    for edits, found in (
        (("--set", "n=5", "--increment", "n=2"), {"n": 7}),
        (("--increment", "n", "--set", "n=5"), {"n": 5}),
    ):
        assert cli.call("safe-update", address, *edits).code == 0
        assert content(cli, address) == found


def test_a_command_that_fails_writes_nothing(cli: CliWorld, address: str) -> None:
    ran = cli.call("safe-update", address, "-o", "json", "--", PYTHON, "-c", "print('{}'); exit(3)")
    assert (ran.code, ran.out, ran.error["kind"], content(cli, address)) == (65, "", "transform_failed", {"n": 1})


def test_content_that_does_not_change_is_not_written(cli: CliWorld, address: str) -> None:
    before = client(cli, address).get_blob_properties().etag
    ran = cli.call("safe-update", address, "--set", "n=1")
    assert (ran.code, ran.json["outcome"], ran.json["etag"]) == (0, "unchanged", before)


def test_a_dry_run_prints_the_difference_and_writes_nothing(cli: CliWorld, address: str) -> None:
    ran = cli.call("safe-update", address, "--increment", "n", "--dry-run")
    lines = [line.replace(" ", "") for line in ran.out.splitlines()]
    changed = [line for line in lines if line.startswith(("-", "+")) and '"n"' in line]
    assert (ran.code, [line[0] for line in changed], content(cli, address)) == (0, ["-", "+"], {"n": 1})
    assert ran.err == ""


def test_a_dry_run_names_the_key_that_an_increment_would_create(cli: CliWorld, address: str) -> None:
    words = ("safe-update", address, "--increment", "nosuch", "--dry-run")
    shown, chosen = cli.call(*words), cli.call(*words, "-o", "json")
    assert shown.err == "--increment would create nosuch: there is no such key\n"
    assert (chosen.json["created_keys"], chosen.err) == (["nosuch"], "")


def test_a_dry_run_of_a_key_that_is_done_shows_that_nothing_would_be_done(cli: CliWorld, address: str) -> None:
    words = ("safe-update", address, "--increment", "n", "--op-id", "k")
    assert cli.call(*words).code == 0
    shown, told = cli.call(*words, "--dry-run"), cli.call(*words, "--dry-run", "-o", "json").json
    assert (shown.code, shown.out, "this --op-id was applied before" in shown.err) == (0, "", True)
    assert (told["outcome"], told["diff"]) == ("applied_before", "")


def test_what_is_not_there_is_44_and_created_only_if_asked_for(cli: CliWorld) -> None:
    address = f"blob:{cli.container()}/new.json"
    missing = cli.call("safe-update", address, "-o", "json", "--increment", "n")
    made = cli.call("safe-update", address, "--increment", "n", "--create")
    assert (missing.code, missing.error["hint"]) == (44, "add --create to make it")
    assert (made.json["created"], made.json["guard"], content(cli, address)) == (True, "if-none-match", {"n": 1})


def test_metadata_is_updated_beside_the_content(cli: CliWorld, address: str) -> None:
    ran = cli.call("safe-update", address, "--metadata", "--set", "owner=team")
    found = client(cli, address).get_blob_properties().metadata
    assert (ran.code, found["owner"], content(cli, address)) == (0, "team", {"n": 1})


def test_the_next_put_is_guarded_by_what_the_update_wrote(cli: CliWorld, address: str) -> None:
    cli.call("safe-update", address, "--increment", "n")
    put = ("blob", "put", address.removeprefix("blob:"))
    ours = cli.call(*put, stdin=b'{"n": 10}')
    cli.call("safe-update", address, "--increment", "n", scope="other")
    stale = cli.call(*put, stdin=b'{"n": 20}')
    assert (ours.code, stale.code, content(cli, address)) == (0, 42, {"n": 11})


# Identity


def test_the_same_key_is_applied_once(cli: CliWorld, address: str) -> None:
    runs = [cli.call("safe-update", address, "--increment", "n", "--op-id", "run 7") for _ in range(2)]
    assert [(ran.code, ran.json["outcome"], ran.json["attempts"]) for ran in runs] == [
        (0, "committed", 1),
        (0, "applied_before", 0),
    ]
    assert content(cli, address) == {"n": 2}


def test_a_key_whose_end_was_not_told_is_not_applied_again(cli: CliWorld, address: str) -> None:
    words = ("safe-update", address, "--increment", "n", "--op-id", "run 7", "-o", "json")
    with open("/dev/full", "wb") as full:
        running = cli.begin_fork(*words, stdout=full)
        running.communicate()
    client(cli, address).set_blob_metadata({})
    again = cli.call(*words)
    assert (running.returncode, again.code, content(cli, address)) == (73, 74, {"n": 2})


def test_a_key_whose_end_was_told_leaves_nothing_on_this_machine(cli: CliWorld, address: str) -> None:
    cli.call("safe-update", address, "--increment", "n", "--op-id", "run 7")
    line = f"safe-update {address} --increment n --op-id 'run 8'"
    cli.call("batch", stdin=line.encode())
    assert (content(cli, address), list((cli.root / ".cache" / "attempts").iterdir())) == ({"n": 3}, [])


def test_the_same_key_elsewhere_is_another_update(cli: CliWorld, address: str) -> None:
    other = f"{address}.copy"
    cli.call("safe-update", address, "--increment", "n", "--op-id", "run 7")
    source = client(cli, address)
    client(cli, other).upload_blob(source.download_blob().readall(), metadata=source.get_blob_properties().metadata)
    cli.call("safe-update", other, "--increment", "n", "--op-id", "run 7")
    assert content(cli, other) == {"n": 3}


def test_status_tells_what_became_of_a_key(cli: CliWorld, address: str) -> None:
    cli.call("safe-update", address, "--increment", "n", "--op-id", "done")
    ask = ("safe-update", address, "--status", "--op-id")
    committed, other = cli.call(*ask, "done"), cli.call(*ask, "never")
    client(cli, address).set_blob_metadata({})
    wiped = cli.call(*ask, "done")
    client(cli, address).delete_blob()
    gone = cli.call(*ask, "done", "-o", "json")
    assert [(ran.code, ran.json["outcome"]) for ran in (committed, other, wiped)] == [
        (0, "committed"),
        (44, "not_committed"),
        (74, "unknown"),
    ]
    assert (gone.code, gone.error["kind"]) == (44, "not_found")


def test_an_unconditional_put_is_no_beginning_of_history(cli: CliWorld, address: str) -> None:
    cli.call("safe-update", address, "--increment", "n", "--op-id", "done")
    cli.call("blob", "put", address.removeprefix("blob:"), "--last-writer-wins", stdin=b"{}", scope="other")
    assert cli.call("safe-update", address, "--status", "--op-id", "done").code == 74


# Leases


def test_a_lock_of_somebody_else_is_49_and_the_work_is_kept(cli: CliWorld, address: str) -> None:
    lease = client(cli, address).acquire_lease(-1)
    ran = cli.call("safe-update", address, "-o", "json", "--increment", "n")
    assert (ran.code, "azguard lease wait" in ran.error["hint"], kept(cli, ran)) == (49, True, b'{"n": 2}')
    inside = cli.call("safe-update", address, "--increment", "n", "--lease-id", lease.id)
    assert (inside.json["guard"], content(cli, address)) == ("if-match", {"n": 2})


def test_giving_up_keeps_the_work_and_names_the_command_that_resumes(cli: CliWorld, address: str) -> None:
    lease = client(cli, address).acquire_lease(-1)
    words = ("safe-update", address, "--increment", "n", "--wait", "3s")
    ran = cli.fork(*words, "-o", "json")
    assert (ran.code, ran.error["kind"], kept(cli, ran)) == (75, "gave_up", b'{"n": 2}')
    lease.release()
    again = shlex.split(ran.error["hint"].removeprefix("resume it: "))
    assert (again[:2], again[-2:]) == (["azguard", "safe-update"], ["--op-id", ran.error["op_id"]])
    resumed = cli.fork(*again[1:])
    assert (resumed.code, resumed.json["op_id"], content(cli, address)) == (0, ran.error["op_id"], {"n": 2})


def test_a_command_to_resume_holds_no_secret(cli: CliWorld, address: str) -> None:
    blob = client(cli, address)
    sas = generate_blob_sas(
        EMULATOR_NAME, blob.container_name, blob.blob_name, account_key=EMULATOR_KEY,
        permission=BlobSasPermissions(read=True, write=True), expiry=datetime.now(UTC) + timedelta(hours=1),
    )  # fmt: skip
    blob.acquire_lease(-1)
    ran = cli.call("safe-update", f"{blob.url}?{sas}", "--increment", "n", "--wait", "3s")
    assert (ran.code, sas.rpartition("sig=")[2] in ran.err, f"'{blob.url}?SAS'" in ran.err) == (75, False, True)


def test_a_guard_lease_is_released(cli: CliWorld, address: str) -> None:
    ran = cli.call("safe-update", address, "--increment", "n", "--guard", "lease")
    assert (ran.json["guard"], client(cli, address).get_blob_properties().lease.state) == ("lease", "available")


# Ends


def test_ctrl_c_in_the_command_writes_nothing_and_ends_with_130(cli: CliWorld, address: str) -> None:
    begun = cli.root / "begun"
    slow = f"import pathlib, time; pathlib.Path({str(begun)!r}).touch(); time.sleep(60)"  # it is ended meanwhile
    process = cli.begin_fork("safe-update", address, "--", PYTHON, "-c", slow)
    _until(begun.exists)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert (process.returncode, content(cli, address)) == (130, {"n": 1})


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_after_the_commit_does_not_hide_it(
    cli: CliWorld, address: str, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    record = EtagCache.record

    def disturbed(*words: Any, **settings: Any) -> Any:
        signal.raise_signal(number)
        return record(*words, **settings)

    monkeypatch.setattr(EtagCache, "record", disturbed)
    ran = cli.call("safe-update", address, "--increment", "n")
    assert (ran.code, ran.json["outcome"]) == (0, "committed")


def test_term_while_waiting_for_a_lease_leaves_nothing_behind(cli: CliWorld, address: str) -> None:
    lease = client(cli, address).acquire_lease(-1)
    process = cli.begin_fork("safe-update", address, "--increment", "n", "--wait", "-v")
    assert process.stderr is not None
    for line in process.stderr:
        if b"waiting" in line:
            break
    process.terminate()
    process.wait(60)
    lease.release()
    assert (process.returncode, content(cli, address)) == (143, {"n": 1})


def test_an_endpoint_that_is_not_there_is_53_long_before_the_deadline_of_an_update(offline: CliWorld) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/{EMULATOR_NAME}/site/a?sig=x"
        assert offline.fork("safe-update", url, "--set", "a=1", timeout=50).code == 53


# Lost answers, and many processes


def through(azurite: Azurite, port: int) -> dict[str, str]:
    """Return the environment in which the blob service is reached through a proxy."""
    blob = azurite.connection_string.replace(f":{azurite.ports['blob']}/", f":{port}/")
    return {"AZURE_STORAGE_CONNECTION_STRING": blob}


def first_write(*, faults: int = 1) -> Callable[[proxy.Request], proxy.Fault]:
    left = [proxy.Fault.DROP] * faults

    def decide(request: proxy.Request) -> proxy.Fault:
        return left.pop() if left and request.writes else proxy.Fault.NONE

    return decide


def test_without_a_lineage_a_lost_answer_says_what_to_do(cli: CliWorld, address: str, azurite: Azurite) -> None:
    with proxy.running(azurite.ports["blob"], first_write()) as running:
        env = through(azurite, running.port)
        ran = cli.call("safe-update", address, "-o", "json", "--increment", "n", "--no-lineage", env=env)
    assert (ran.code, ran.error["outcome"], kept(cli, ran)) == (74, "unknown", b'{"n": 2}')
    assert "azguard blob get" in ran.error["hint"]
    assert "--op-id" not in ran.error["hint"]


def _until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)  # another process makes it happen
