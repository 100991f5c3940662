"""The Files emulator as other projects use it: a process of its own, and the SDK as it is."""

import base64
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError
from azure.storage.fileshare import FileSasPermissions, ShareServiceClient, generate_file_sas

from azguard.emulators.files.__main__ import ACCOUNT, KEY


@dataclass
class Running:
    """One emulator, by its process."""

    process: subprocess.Popen[str]
    endpoint: str

    @property
    def service(self) -> ShareServiceClient:
        return ShareServiceClient.from_connection_string(
            f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};FileEndpoint={self.endpoint}",
            retry_total=0,
        )


def _begin(folder: Path) -> Running:
    command = [sys.executable, "-m", "azguard.emulators.files", "--port", "0", "--location", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return Running(process, process.stdout.readline().split()[-1])


def _end(running: Running, number: int = signal.SIGTERM) -> int:
    running.process.send_signal(number)
    assert running.process.stdout is not None
    running.process.stdout.close()
    return running.process.wait(60)


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = _begin(tmp_path_factory.mktemp("files"))
    yield running
    assert _end(running) == 0


def test_a_large_file_goes_up_and_down_as_it_is(emulator: Running) -> None:
    """Larger than what the SDK reads at once: 32 MiB."""
    share = emulator.service.create_share("large")
    content = random.Random(1).randbytes(40 * 1024**2)
    file = share.get_file_client("file.bin")
    file.upload_file(content, max_concurrency=4)

    assert file.download_file(max_concurrency=4).readall() == content
    assert file.get_file_properties().size == len(content)


def test_a_tree_of_hundreds_of_files_is_walked_page_by_page(emulator: Running) -> None:
    share = emulator.service.create_share("tree")
    names = {f"d{number % 10}/file {number} é.txt" for number in range(200)}
    for number in range(10):
        share.create_directory(f"d{number}")
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda name: share.get_file_client(name).create_file(0), names))
    for name in sorted(names)[::20]:
        share.get_file_client(name).upload_file(name.encode())
    found = {
        f"{each['name']}/{inner['name']}"
        for each in share.list_directories_and_files()
        for inner in share.list_directories_and_files(each["name"], results_per_page=7)
    }

    assert found == names
    assert all(share.get_file_client(name).download_file().readall() == name.encode() for name in sorted(names)[::20])


def test_snapshots_renames_copies_and_leases_work_together(emulator: Running) -> None:
    share = emulator.service.create_share("together")
    file = share.get_file_client("a.txt")
    file.upload_file(b"one")
    snapshot = share.create_snapshot()["snapshot"]
    lease = file.acquire_lease()
    with pytest.raises(HttpResponseError, match="LeaseIdMissing"):
        file.upload_file(b"two")
    file.upload_file(b"two", lease=lease)
    other = share.get_file_client("b.txt")
    other.start_copy_from_url(file.url)
    moved = file.rename_file("c.txt", source_lease=lease)
    old = emulator.service.get_share_client("together", snapshot=snapshot).get_file_client("a.txt")

    contents = [each.download_file().readall() for each in (old, other, moved)]
    assert (contents, moved.get_file_properties().lease.state) == ([b"one", b"two", b"two"], "leased")


def test_of_16_clients_that_create_one_directory_one_succeeds(emulator: Running) -> None:
    share = emulator.service.create_share("race")

    def create(number: int) -> bool:
        try:
            share.create_directory("only-one")
        except ResourceExistsError:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(create, range(16))) == 1


def test_16_clients_that_count_under_a_lease_lose_nothing(emulator: Running) -> None:
    share = emulator.service.create_share("count")
    share.get_file_client("n").upload_file(b"0")

    def count(number: int) -> None:
        file = share.get_file_client("n")
        for _ in range(2):
            lease = None
            while lease is None:
                try:
                    lease = file.acquire_lease()
                except ResourceExistsError:
                    # Longer than one turn takes, so that the tries do not fill the machine.
                    time.sleep(random.uniform(0.05, 0.2))
            value = int(file.download_file(lease=lease).readall()) + 1
            file.upload_file(str(value).encode(), lease=lease)
            lease.release()

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(count, range(16)))

    assert share.get_file_client("n").download_file().readall() == b"32"


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    """Of four files two are kept as they were written, one is renamed, and one deleted."""
    running = _begin(tmp_path)
    share = running.service.create_share("work")
    acknowledged = []
    pid = running.process.pid

    def write(number: int) -> None:
        file = share.get_file_client(f"f{number}")
        try:
            file.upload_file(b"x" * number, metadata={"n": str(number)})
            if number % 4 == 1:
                file.rename_file(f"renamed{number}")
            if number % 4 == 2:
                file.delete_file()
        except Exception:  # noqa: BLE001  # it was killed meanwhile
            return
        acknowledged.append(number)
        if number == 60:
            os.kill(pid, signal.SIGKILL)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(1, 120)))
    assert _end(running, 0) == -signal.SIGKILL
    again = _begin(tmp_path)
    share = again.service.get_share_client("work")
    there = {each.name for each in share.list_directories_and_files()}
    expected: dict[int, list[tuple[str, int, str]]] = {}
    found: dict[int, list[tuple[str, int, str]]] = {}
    for number in acknowledged:
        names = {f"f{number}", f"renamed{number}"} & there
        expected[number] = [] if number % 4 == 2 else [("renamed" if number % 4 == 1 else "f", number, str(number))]
        found[number] = []
        for name in names:
            file = share.get_file_client(name).download_file()
            content, metadata = file.readall(), file.properties.metadata
            found[number].append((name.rstrip("0123456789"), content.count(b"x"), metadata["n"]))
    _end(again)

    assert len(acknowledged) >= 50
    assert found == expected


def test_what_is_no_request_leaves_no_traceback_and_a_signature_is_not_logged(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-m", "azguard.emulators.files", "--port", "0", "--log", str(log)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    port = int(re.findall(r":(\d+)/", process.stdout.readline())[0])
    answers = []
    for request in (b"GARBAGE\r\n\r\n", b"GET /devstoreaccount1/w?sig=SECRET&ss=f HTTP/1.1\r\nHost: x\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            answers.append(connection.makefile("rb").read().count(b"<Code>AuthenticationFailed"))
    process.terminate()
    process.stdout.close()
    _, said = process.communicate(timeout=60)

    assert (answers, said) == ([0, 1], "")
    assert ("SECRET" in log.read_text(), "sig=redacted" in log.read_text()) == (False, True)


def test_two_emulators_do_not_share_a_folder(tmp_path: Path) -> None:
    running = _begin(tmp_path)
    command = [sys.executable, "-m", "azguard.emulators.files", "--port", "0", "--location", str(tmp_path)]
    second = subprocess.run(command, capture_output=True, text=True)
    _end(running)

    assert (second.returncode, second.stderr) == (1, f"error: {tmp_path} is in use by another emulator\n")


def test_data_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "files.db").write_text("no database " * 100)
    command = [sys.executable, "-m", "azguard.emulators.files", "--port", "0", "--location"]
    running = [
        subprocess.Popen([*command, str(tmp_path / name)], stderr=subprocess.PIPE, text=True)
        for name in ("file", "damaged")
    ]
    assert [(each.communicate()[1], each.returncode) for each in running] == [
        (f"error: {tmp_path}/file: File exists\n", 1),
        (f"error: the data in {tmp_path}/damaged cannot be used: file is not a database\n", 1),
    ]


def test_a_port_that_is_taken_is_named(emulator: Running) -> None:
    port = re.findall(r":(\d+)/", emulator.endpoint)[0]
    command = [sys.executable, "-m", "azguard.emulators.files", "--port", port]
    second = subprocess.run(command, capture_output=True, text=True)

    assert (second.returncode, port in second.stderr) == (1, True)


def test_a_tied_emulator_ends_as_any_other(emulator: Running) -> None:
    taken = re.findall(r":(\d+)/", emulator.endpoint)[0]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    told = []
    for port in (taken, "0"):
        command = [sys.executable, "-m", "azguard.emulators.files", "--tied", "--port", port]
        with subprocess.Popen(command, text=True, **pipes) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            if process.stdout.readline():
                process.terminate()
            told.append((process.wait(60), process.stderr.read().partition(taken)[0]))

    assert told == [(1, "error: 127.0.0.1:"), (0, "")]


def test_a_signal_at_the_first_line_ends_it_in_order() -> None:
    """The signal comes while the line is being written, so before the emulator can wait for one."""
    script = """
import io, os, signal, sys
from azguard.emulators.files import __main__ as emulator

class Line(io.StringIO):
    def flush(self):
        os.kill(os.getpid(), signal.SIGTERM)

sys.stdout = Line()
sys.exit(emulator.main(["--port", "0"]))
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)

    assert (ended.returncode, ended.stderr) == (0, "")


def test_each_account_has_its_own_key_and_its_own_shares(tmp_path: Path) -> None:
    keys = {name: base64.b64encode(name.encode()).decode() for name in ("mine", "yours")}
    command = [sys.executable, "-m", "azguard.emulators.files", "--port", "0", "--location", str(tmp_path)]
    options = [word for name, key in keys.items() for word in ("--account", f"{name}:{key}")]
    process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    endpoint = process.stdout.readline().split()[-1]
    mine, yours = (
        ShareServiceClient(
            endpoint.replace("/mine", f"/{name}"), credential={"account_name": name, "account_key": key}, retry_total=0
        )
        for name, key in keys.items()
    )
    mine.create_share("work").get_file_client("f").upload_file(b"content")
    refused = ShareServiceClient(endpoint, credential={"account_name": "mine", "account_key": keys["yours"]})
    with pytest.raises(HttpResponseError, match="AuthenticationFailed"):
        list(refused.list_shares())
    names = [[share.name for share in service.list_shares()] for service in (mine, yours)]
    may = FileSasPermissions(read=True)
    sas = generate_file_sas("mine", "work", ["f"], keys["mine"], permission=may, expiry="2100-01-01T00:00:00Z")
    copy = yours.create_share("work").get_file_client("copy")
    copy.create_file(7)
    copy.upload_range_from_url(f"{endpoint}/work/f?{sas}", offset=0, length=7, source_offset=0)
    content = copy.download_file().readall()
    _end(Running(process, endpoint))

    assert (endpoint.rpartition("/")[2], names, content) == ("mine", [["work"], []], b"content")


def test_the_fixture_for_other_projects_works(tmp_path: Path) -> None:
    folder = Path(__file__).parents[2] / "examples" / "files-emulator"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        "-c",
        "/dev/null",
    ]
    # The options of this run are not those of another project.
    environ = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    done = subprocess.run([*command, str(folder)], capture_output=True, text=True, cwd=tmp_path, env=environ)

    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout
