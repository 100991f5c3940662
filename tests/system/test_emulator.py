import contextlib
import json
import os
import random
import signal
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient, ContainerClient
from azure.storage.fileshare import ShareClient, ShareServiceClient
from azure.storage.queue import QueueServiceClient

from azguard.accounts.account import from_connection_string
from azguard.emulators import azurite_install, azurite_process, background
from azguard.emulators.background import Stopped
from azguard.processes import identity
from tests.support import emulator_world
from tests.support.cases import cases
from tests.support.cli_world import CliWorld
from tests.support.emulator_world import World, until
from tests.support.forked_process import ForkedProcess

# Takes the place of Azurite, says its pid, and never listens.
_DEAF = """
[ "$1" = --version ] && { echo 3.35.0; exit; }
echo $$ > "$AZGUARD_CACHE_DIR.pid"
exec node -e 'setInterval(() => {}, 1000)'
"""


# Fails where one of the packages is really loaded: in an empty folder there is none.
_LEAN = """
const { Model } = require("sequelize");
class Blobs extends Model {}
require("applicationinsights").TelemetryClient;
console.log(new Blobs() instanceof Model);
"""


def test_azurite_starts_without_the_packages_that_it_does_not_use(tmp_path: Path) -> None:
    (tmp_path / "main.js").write_text(_LEAN)
    words = (azurite_install.find_node(os.environ).program, "main.js")
    environ = azurite_process.prepare_environ(os.environ)
    done = subprocess.run(words, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("true\n", "")


def _deaf_pid(world: World) -> int | None:
    file = world.root / "cache.pid"
    return int(file.read_text()) if file.exists() and file.read_text() else None


def test_start_replaces_a_damaged_state_file_answers_is_found_from_another_process_and_stop_ends_it(
    world: World,
) -> None:
    world.folder.mkdir(parents=True)
    (world.folder / "azurite.json").write_text("{")
    started = world.json("emulator", "start")
    assert started == {
        "running": True,
        "already_running": False,
        "pid": started["pid"],
        "version": "3.35.0",
        "blob_endpoint": started["blob_endpoint"],
        "queue_endpoint": started["queue_endpoint"],
        "table_endpoint": started["table_endpoint"],
        "data": None,
        "log": str(world.folder / "azurite.log"),
        "started": started["started"],
        "file_endpoint": started["file_endpoint"],
        "files_pid": started["files_pid"],
        "smb_endpoint": None,
    }
    status = world.json("emulator", "status")
    del started["already_running"]
    assert status == {**started, "answering": True, "reason": None}
    assert world.json("emulator", "stop") == {
        "running": False,
        "outcome": "stopped",
        "pid": started["pid"],
        "reason": None,
    }
    assert (world.processes(), azurite_process.load(world.folder)) == ([], None)


_ENDPOINTS = ("blob_endpoint", "queue_endpoint", "table_endpoint", "file_endpoint")


def _choose_ports() -> list[str]:
    """Return options with ports that are free, and that no other program gets without asking for them."""
    services = ("blob", "queue", "table", "file")
    options: list[str] = []
    # Below what Linux and macOS give to those that ask for any port.
    for port in random.sample(range(20_000, 32_000), 100):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            options += [f"--{services[len(options) // 2]}-port", str(port)]
        if len(options) == 2 * len(services):
            break
    return options


def test_its_data_and_its_ports_are_kept_over_a_stop_and_the_cache_forgets_what_is_not(world: World) -> None:
    def list_known() -> str:
        return world.run("cache", "list", "--all-scopes", "-o", "tsv").stdout

    def connect() -> tuple[ContainerClient, ShareClient]:
        text = background.find_current(world.folder).connection_string
        share = ShareServiceClient.from_connection_string(text, retry_total=0).get_share_client("kept")
        return BlobServiceClient.from_connection_string(text).get_container_client("kept"), share

    first = world.json("emulator", "start", "--data", "data", *_choose_ports())
    container, share = connect()
    share.create_share()
    assert world.run("container", "create", "kept", "--emulator").returncode == 0
    world.run("emulator", "stop")
    assert world.processes() == []
    second = world.json("emulator", "start", "--data", "data")
    container, share = connect()
    assert (second["data"], container.exists()) == (str(world.root / "data"), True)
    assert share.get_share_properties().name == "kept"
    assert "container:kept" in list_known()
    world.run("emulator", "stop")
    taken = azurite_process.find_last(world.folder).ports["queue"]
    with socket.create_server(("127.0.0.1", taken)):
        third = world.json("emulator", "start")
    # It began empty.
    assert list_known() == ""
    same = [[run[name] == first[name] for name in _ENDPOINTS] for run in (second, third)]
    assert same == [[True, True, True, True], [True, False, True, True]]


@pytest.mark.parametrize("text", ["", "[]", '{"ports": {"blob": 1}}', '{"ports": {"blob": "x"}}', "\x00"])
def test_a_damaged_record_of_the_last_ports_counts_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "azurite-last.json").write_text(text)
    assert azurite_process.find_last(tmp_path) == azurite_process.LastRun({}, None)


@pytest.fixture(scope="module")
def chosen_port() -> int:
    """Return a port that is free, below those that the system gives to others meanwhile."""
    while True:
        port = random.randrange(20_000, 32_000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory, azurite_script: Path, chosen_port: int) -> Iterator[World]:
    """Return a world whose emulator runs, with a chosen port, though the caller has an Azurite of another account."""
    folder, words = tmp_path_factory.mktemp("started"), ("--table-port", str(chosen_port))
    with emulator_world.started(folder, azurite_script, *words, AZURITE_ACCOUNTS="mine:a2V5") as world:
        yield world


def test_starting_again_tells_where_it_already_runs(started: World) -> None:
    again = started.run("emulator", "start")
    running = started.json("emulator", "status")
    del running["answering"], running["reason"]
    assert (again.returncode, json.loads(again.stdout)) == (0, {**running, "already_running": True})


def test_a_cache_folder_may_be_named_from_here(started: World) -> None:
    named = started.run("emulator", "status", AZGUARD_CACHE_DIR="cache")
    kept = started.run("cache", "path", "--query", "path", "-o", "tsv", AZGUARD_CACHE_DIR="cache")
    assert (named.returncode, kept.stdout) == (0, f"{started.root / 'cache' / 'etags.db'}\n")


def test_what_another_user_could_have_put_there_is_neither_run_nor_believed(started: World) -> None:
    (started.root / "link").symlink_to("cache")
    (started.root / "open").mkdir()
    (started.root / "open").chmod(0o777)
    ran = [
        started.run("emulator", verb, AZGUARD_CACHE_DIR=name)
        for name in ("link", "open")
        for verb in ("start", "status", "stop", "env")
    ]
    assert ([each.returncode for each in ran], list((started.root / "open").iterdir())) == ([78] * 8, [])
    assert "can be written by other users" in ran[-1].stderr


def test_starting_again_with_other_wishes_is_refused(started: World) -> None:
    answer = started.run("emulator", "start", "--data", "elsewhere")
    assert (answer.returncode, answer.stdout) == (78, "")
    assert "its data is in memory" in answer.stderr


def test_one_that_runs_without_smb_is_not_given_it(started: World) -> None:
    answer = started.run("emulator", "start", "--smb")
    assert (answer.returncode, answer.stderr.splitlines()[0]) == (
        78,
        "error: the emulator is already running, but without SMB",
    )


def test_the_state_file_is_private(started: World) -> None:
    assert stat.S_IMODE((started.folder / "azurite.json").stat().st_mode) == 0o600


def test_chosen_ports_are_used(started: World, chosen_port: int) -> None:
    endpoint = started.json("emulator", "status")["table_endpoint"]
    assert endpoint == f"http://127.0.0.1:{chosen_port}/devstoreaccount1"


def test_the_callers_azurite_accounts_are_not_inherited(started: World) -> None:
    running = azurite_process.load(started.folder)
    assert running is not None
    client = BlobServiceClient.from_connection_string(running.connection_string)
    assert list(client.list_containers()) == []


def test_run_gives_the_command_an_emulator_of_its_own_and_its_input_output_options_and_status(started: World) -> None:
    script = 'echo "$AZURE_STORAGE_CONNECTION_STRING"; cat; echo aside >&2; echo "$@"; exit 7'
    options = ("--wait", "--help", "-q", "--", "-o")
    before, processes = started.json("emulator", "status"), sorted(started.processes())
    running = started.begin("emulator", "run", "--", "sh", "-c", script, "sh", *options)
    assert running.stdout is not None
    text = running.stdout.readline().strip()
    account = from_connection_string(text)
    assert (account.name, account.endpoint("blob") != before["blob_endpoint"]) == ("devstoreaccount1", True)
    listings = (
        BlobServiceClient.from_connection_string(text).list_containers(),
        QueueServiceClient.from_connection_string(text).list_queues(),
        TableServiceClient.from_connection_string(text).list_tables(),
        ShareServiceClient.from_connection_string(text).list_shares(),
    )
    assert [list(listing) for listing in listings] == [[], [], [], []]
    said = running.communicate("hello\n", timeout=60)
    assert (said, running.returncode) == (("hello\n--wait --help -q -- -o\n", "aside\n"), 7)
    # It leaves nothing running, and the one in the background as it is.
    assert (started.json("emulator", "status"), sorted(started.processes())) == (before, processes)


def test_of_several_starts_at_once_one_wins_and_the_others_report_it(world: World) -> None:
    starts = [ForkedProcess(("emulator", "start"), world.root, world.environ) for _ in range(4)]
    results = [json.loads(each.communicate(timeout=60)[0]) for each in starts]
    assert sorted(result["already_running"] for result in results) == [False, True, True, True]
    assert (len({result["pid"] for result in results}), len({result["files_pid"] for result in results})) == (1, 1)
    assert len(world.processes()) == 2


def test_a_taken_port_is_named_and_nothing_is_left_running(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        answer = world.run("emulator", "start", "--queue-port", str(port))
    assert (answer.returncode, answer.stdout, answer.stderr.splitlines()[0]) == (
        78,
        "",
        f"error: port {port} is taken",
    )
    assert (world.processes(), azurite_process.load(world.folder)) == ([], None)


def test_a_port_taken_by_another_azurite_says_so(world: World, azurite: azurite_process.Azurite) -> None:
    port = azurite.ports["queue"]
    answer = world.run("emulator", "start", "--blob-port", str(port))
    assert answer.stderr.splitlines()[0] == f"error: port {port} is taken by another Azurite-Queue"


@cases("port", "", "0", "65536", "http", "-1", "²")
def test_what_is_not_a_port_is_refused(world: World, port: str) -> None:
    assert world.run("emulator", "start", f"--blob-port={port}").returncode == 2


def test_a_port_given_twice_is_refused(world: World) -> None:
    answer = world.run("emulator", "start", "--blob-port", "4000", "--queue-port", "4000")
    assert (answer.returncode, answer.stderr.splitlines()[0]) == (2, "error: port 4000 is given twice")


def test_a_free_port_that_is_snatched_away_is_replaced(world: World) -> None:
    world.program(
        "azurite",
        f"""
[ "$1" = --version ] && {{ echo 3.35.0; exit; }}
mkdir "$AZGUARD_CACHE_DIR.first" && {{ echo 'listen EADDRINUSE: address already in use'; exit 1; }}
exec node {world.azurite} "$@"
""",
    )
    answer = world.run("emulator", "start")
    assert (answer.returncode, world.json("emulator", "status")["answering"]) == (0, True)


def test_stop_without_an_emulator_says_so(world: World) -> None:
    answer = world.run("emulator", "stop")
    assert (answer.returncode, json.loads(answer.stdout)["outcome"]) == (0, "not_running")


def test_status_without_an_emulator_exits_44(world: World) -> None:
    answer = world.run("emulator", "status")
    assert (answer.returncode, json.loads(answer.stdout)["reason"]) == (44, "no emulator was started")


def _kill(pid: int) -> None:
    """Kill an emulator from outside."""
    os.kill(pid, signal.SIGKILL)
    until(lambda: identity.find_birth(pid) is None)


def test_after_it_was_killed_status_says_so_start_starts_anew_and_stop_cleans_up(world: World) -> None:
    first = world.json("emulator", "start")
    _kill(first["pid"])
    answer = world.run("emulator", "status")
    status = json.loads(answer.stdout)
    assert (answer.returncode, status["running"]) == (44, False)
    assert "was killed or crashed" in status["reason"]
    answer = world.run("emulator", "start", "--data", "data")
    again = json.loads(answer.stdout)
    assert again["already_running"] is False
    assert "was killed or crashed" in answer.stderr
    # The shares of the one before were in memory, and are gone as the blobs are.
    assert (identity.find_birth(first["files_pid"]), (world.root / "data" / "file" / "files.db").exists()) == (
        None,
        True,
    )
    os.kill(again["files_pid"], signal.SIGSTOP)
    answer = world.run("emulator", "status")
    assert (answer.returncode, "the Files emulator, lives" in json.loads(answer.stdout)["reason"]) == (44, True)
    _kill(again["files_pid"])
    status = world.json("emulator", "status")
    assert (status["answering"], status["file_endpoint"]) == (True, None)
    assert "the Files emulator (process" in status["reason"]
    _kill(again["pid"])
    first, second = world.json("emulator", "stop"), world.json("emulator", "stop")
    assert (first["outcome"], second["outcome"]) == ("was_gone", "not_running")


def test_a_process_that_has_the_pid_now_is_never_killed(world: World) -> None:
    world.folder.mkdir(parents=True)
    (world.folder / "azurite.lock").touch()
    with subprocess.Popen(["sleep", "60"]) as stranger:
        try:
            ports = {"blob": 1, "queue": 2, "table": 3}
            azurite_process.write(
                world.folder,
                azurite_process.Azurite(stranger.pid, "another birth", "3.35.0", ports, None, None, "then"),
            )
            stopped = world.json("emulator", "stop")
            assert (stopped["outcome"], stranger.poll()) == ("was_gone", None)
        finally:
            stranger.kill()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', "\0"])
def test_a_damaged_state_file_is_said(world: World, text: str) -> None:
    world.folder.mkdir(parents=True)
    (world.folder / "azurite.json").write_text(text)
    assert "was damaged" in world.json("emulator", "status")["reason"]


@pytest.mark.parametrize("command", [("emulator", "status"), ("emulator", "stop"), ("table", "list", "--emulator")])
def test_a_state_file_that_cannot_be_read_exits_78(offline: CliWorld, command: tuple[str, ...]) -> None:
    # As little to be read, or deleted, as another user's.
    for name in ("azurite.json", "files.json"):
        (offline.root / ".cache" / "emulator" / name).mkdir(parents=True)
    ran = offline.call(*command)
    assert (ran.code, "is it another user's?" in ran.err) == (78, True)


def test_a_folder_that_cannot_be_written_exits_78(world: World) -> None:
    (world.root / "cache").touch()
    answer = world.run("emulator", "start")
    assert (answer.returncode, answer.stdout, world.processes()) == (78, "", [])
    assert "hint: set AZGUARD_CACHE_DIR" in answer.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_start_that_is_interrupted_leaves_nothing_running(world: World, number: signal.Signals) -> None:
    world.program("azurite", _DEAF)
    start = world.begin("emulator", "start")
    until(lambda: _deaf_pid(world))
    start.send_signal(number)
    start.communicate(timeout=60)
    until(lambda: world.processes() == [])
    assert (start.returncode != 0, azurite_process.load(world.folder)) == (True, None)


def test_an_azurite_that_does_not_answer_exits_53_and_is_ended(world: World) -> None:
    world.program("azurite", _DEAF)
    answer = world.run("emulator", "start", "--wait", "1s")
    assert (answer.returncode, answer.stderr.splitlines()[0]) == (
        53,
        "error: Azurite did not answer within 1 s",
    )
    assert world.processes() == []


def test_an_azurite_that_dies_exits_53_with_its_last_words(world: World) -> None:
    world.program("azurite", '[ "$1" = --version ] && { echo 3.35.0; exit; }; echo out of cheese; exit 1')
    answer = world.run("emulator", "start")
    assert (answer.returncode, answer.stderr.splitlines()[:2]) == (
        53,
        ["error: Azurite ended before it answered", "  azurite: out of cheese"],
    )


def test_stop_in_process_returns_what_it_found(tmp_path: Path) -> None:
    assert background.stop(tmp_path / "nothing") == Stopped(False, "not_running")
    assert not (tmp_path / "nothing").exists()


def test_a_data_folder_that_cannot_be_made_exits_78(world: World) -> None:
    # Not even root can make a folder there.
    assert world.run("emulator", "start", "--data", "/proc/azguard-data").returncode == 78


def test_a_data_folder_that_is_a_file_exits_78(world: World) -> None:
    (world.root / "data").touch()
    answer = world.run("emulator", "start", "--data", "data")
    assert (answer.returncode, answer.stdout, world.processes()) == (78, "", [])


def test_a_taken_file_port_is_named_and_nothing_is_left_running(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        answer = world.run("emulator", "start", "--file-port", str(port))

    assert (answer.returncode, answer.stderr.splitlines()[0]) == (78, f"error: port {port} is taken")
    assert (world.processes(), azurite_process.load(world.folder)) == ([], None)
