"""The Files emulator over SMB: a private Samba that serves the same shares, and ends with the emulator."""

import os
import random
import signal
import stat
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import ResourceExistsError
from azure.storage.fileshare import ShareFileClient
from smbprotocol.exceptions import SMBException
from smbprotocol.open import (
    CreateDisposition,
    CreateOptions,
    FilePipePrinterAccessMask,
    ImpersonationLevel,
    Open,
    ShareAccess,
)

from azguard.processes import identity
from tests.smb_matrix import __main__ as smb_matrix
from tests.support import smb_emulator as worlds
from tests.support.emulator_world import World, until
from tests.support.smb_emulator import SmbEmulator

_READ_WRITE = FilePipePrinterAccessMask.GENERIC_READ | FilePipePrinterAccessMask.GENERIC_WRITE
_SHARE_ALL = ShareAccess.FILE_SHARE_READ | ShareAccess.FILE_SHARE_WRITE | ShareAccess.FILE_SHARE_DELETE


def _open(tree: Any, path: str) -> Open:
    handle = Open(tree, path)
    handle.create(
        ImpersonationLevel.Impersonation,
        _READ_WRITE,
        0,
        _SHARE_ALL,
        CreateDisposition.FILE_OPEN_IF,
        CreateOptions.FILE_NON_DIRECTORY_FILE,
    )
    return handle


def _read_words(pid: int) -> list[str]:
    """Return the command line of a process; nothing if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def _list_pids() -> list[int]:
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]


def _find_folder(emulator: int) -> Path:
    """Return the folder in which an emulator's Samba keeps its state."""
    found = [identity.find(pid) for pid in _list_pids()]
    words = [_read_words(each.pid) for each in found if each is not None and each.parent == emulator]
    config = next(each[each.index("-s") + 1] for each in words if "-s" in each)
    return Path(config).parent


def test_what_is_written_over_smb_is_read_over_rest_and_has_a_new_etag(smb_emulator: SmbEmulator) -> None:
    share = smb_emulator.service.create_share("both-ways")
    file = share.get_file_client("a.txt")
    file.upload_file(b"over REST")
    before = file.get_file_properties().etag
    with smb_emulator.connect("both-ways") as tree:
        handle = _open(tree, "a.txt")
        seen = handle.read(0, 9)
        handle.write(b"over SMB!", 0)
        handle.close()
        _open(tree, "made.txt").close()

    assert (seen, file.download_file().readall()) == (b"over REST", b"over SMB!")
    assert file.get_file_properties().etag != before
    assert [each["name"] for each in share.list_directories_and_files()] == ["a.txt", "made.txt"]


def test_a_share_is_there_over_smb_at_once_and_gone_with_its_deletion(smb_emulator: SmbEmulator) -> None:
    service = smb_emulator.service
    service.create_share("first")
    with smb_emulator.connect("first") as first:
        handle = _open(first, "a.txt")
        service.create_share("second")
        with smb_emulator.connect("second"):
            pass
        service.delete_share("first")
        with pytest.raises(SMBException, match="STATUS_NETWORK_NAME_DELETED"):
            handle.write(b"lost", 0)
    with pytest.raises(SMBException, match="STATUS_BAD_NETWORK_NAME"), smb_emulator.connect("first"):
        pass


def test_smb_and_rest_conflict_as_microsoft_documents(
    smb_emulator: SmbEmulator, capsys: pytest.CaptureFixture[str]
) -> None:
    status = smb_matrix.main(
        ["--connection-string", smb_emulator.connection_string, "--smb-port", str(smb_emulator.smb_port)]
    )
    lines = capsys.readouterr().out.splitlines()

    assert ([line for line in lines if line.startswith("RED")], lines[-1], status) == ([], "129 rows, 0 red", 0)


def test_a_lease_keeps_smb_writers_away_after_a_new_start(tmp_path: Path) -> None:
    with worlds.run(tmp_path) as first:
        first.service.create_share("kept").get_file_client("a.txt").upload_file(b"one")
        lease = first.service.get_share_client("kept").get_file_client("a.txt").acquire_lease()
    with worlds.run(tmp_path) as second, second.connect("kept") as tree:
        with pytest.raises(SMBException, match="STATUS_SHARING_VIOLATION"):
            _open(tree, "a.txt")
        file = second.service.get_share_client("kept").get_file_client("a.txt")
        file.upload_file(b"two", lease=lease.id)
        moved = file.rename_file("b.txt", source_lease=lease.id)
        with pytest.raises(SMBException, match="STATUS_SHARING_VIOLATION"):
            _open(tree, "b.txt")
        moved.delete_file(lease=lease.id)
        _open(tree, "b.txt").close()


def test_16_clients_of_both_protocols_that_count_under_one_lock_lose_nothing(smb_emulator: SmbEmulator) -> None:
    """Eight lock the file by an open over SMB that shares nothing, eight by a lease over REST."""
    smb_emulator.service.create_share("count").get_file_client("n").upload_file(b"0000")

    def try_smb(tree: Any) -> bool:
        handle = Open(tree, "n")
        try:
            handle.create(ImpersonationLevel.Impersonation, _READ_WRITE, 0, 0, CreateDisposition.FILE_OPEN, 0)
        except SMBException:
            return False
        handle.write(b"%04d" % (int(handle.read(0, 4)) + 1), 0)
        handle.close()
        return True

    def try_rest(file: ShareFileClient) -> bool:
        try:
            lease = file.acquire_lease()
        except ResourceExistsError:
            return False
        value = int(file.download_file(lease=lease).readall()) + 1
        file.upload_range(b"%04d" % value, 0, 4, lease=lease)
        lease.release()
        return True

    def count(number: int) -> None:
        with smb_emulator.connect("count") as tree:
            file = smb_emulator.service.get_share_client("count").get_file_client("n")
            for _ in range(2):
                while not (try_smb(tree) if number % 2 else try_rest(file)):
                    # Longer than one turn takes, so that the tries do not fill the machine.
                    time.sleep(random.uniform(0.05, 0.2))

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(count, range(16)))

    assert smb_emulator.service.get_share_client("count").get_file_client("n").download_file().readall() == b"0032"


def test_another_key_is_refused(smb_emulator: SmbEmulator) -> None:
    smb_emulator.service.create_share("locked")
    other = SmbEmulator(smb_emulator.endpoint, smb_emulator.smb_port, smb_emulator.pid, key="wrong")
    with pytest.raises(SMBException, match="STATUS_LOGON_FAILURE"), other.connect("locked"):
        pass


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_samba_ends_with_the_emulator_however_that_ends(tmp_path: Path, number: int) -> None:
    if not Path("/proc").is_dir():
        pytest.skip("lists processes by /proc")
    with worlds.run(tmp_path) as emulator:
        emulator.service.create_share("open")
        with emulator.connect("open") as tree:
            _open(tree, "a.txt")
            # Closing a handle starts another server of Samba's.
            emulator.service.get_share_client("open").get_file_client("a.txt").close_all_handles()
            folder = _find_folder(emulator.pid)
            lines = {pid: " ".join(_read_words(pid)) for pid in _list_pids()}
            pids = [pid for pid, line in lines.items() if str(folder) in line]
            births = {pid: identity.find_birth(pid) for pid in pids}
            os.kill(emulator.pid, number)
            until(lambda: not any(birth and identity.find_birth(pid) == birth for pid, birth in births.items()))
    # A shell, the server, its two helpers, and a process for the connection; and what closes handles.
    assert len(pids) > 5
    assert any("samba-dcerpcd" in lines[pid] for pid in pids)
    assert not folder.exists()


# What is imported late is imported before root's rights are dropped: the folders above may be closed to other users.
_AS_NOBODY = """
import importlib.metadata, os, sys, uuid, xml.sax.saxutils
from azguard.emulators.files import __main__, server, arbiter
first = arbiter.Smb(__main__.ACCOUNT, __main__.KEY, "127.0.0.1", 0)
first._client._connect()
first.stop()
importlib.metadata.version("werkzeug")
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
sys.exit(__main__.main(["--port", "0", "--smb-port", "0", "--tied", "--location", sys.argv[1]]))
"""


def test_an_ordinary_user_can_run_it_and_close_handles(tmp_path: Path) -> None:
    worlds.need_samba()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(stat.S_IRWXU | stat.S_IRWXG | stat.S_IRWXO)
        process = subprocess.Popen(
            [sys.executable, "-c", _AS_NOBODY, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        rest, smb = process.stdout.readline().split()[-1], process.stdout.readline().rpartition(":")[2]
        emulator = SmbEmulator(rest, int(smb), process.pid)
        file = emulator.service.create_share("mine").get_file_client("a.txt")
        file.upload_file(b"one")
        with emulator.connect("mine") as tree:
            handle = _open(tree, "a.txt")
            listed = [each.path for each in file.list_handles()]
            closed = file.close_all_handles()
            with pytest.raises(SMBException, match="STATUS_FILE_CLOSED"):
                handle.write(b"two", 0)
        process.communicate(timeout=60)

    assert (listed, closed, process.returncode) == (
        ["a.txt"],
        {"closed_handles_count": 1, "failed_handles_count": 0},
        0,
    )


def test_start_and_status_name_its_port_and_run_passes_it_on(world: World) -> None:
    worlds.need_samba()
    started = world.json("emulator", "start", "--smb")
    status = world.json("emulator", "status")
    line = world.run("emulator", "env").stdout.splitlines()[1]
    answer = world.run("emulator", "run", "--smb", "--", "sh", "-c", "echo $AZGUARD_SMB_PORT")
    port = started["smb_endpoint"].rpartition(":")[2]

    assert (status["smb_endpoint"], line) == (f"smb://127.0.0.1:{port}", f"export AZGUARD_SMB_PORT='{port}'")
    assert (answer.returncode, answer.stdout.strip().isdecimal(), answer.stdout.strip() != port) == (0, True, True)


def test_without_samba_it_says_so_and_serves_rest_alone() -> None:
    script = (
        "import sys; from azguard.emulators.files import samba, __main__; samba._FOLDERS = (); "
        "sys.exit(__main__.main(['--port', '0', '--smb-port', '0', '--tied']))"
    )
    environ = {**os.environ, "PATH": os.devnull}
    process = subprocess.Popen(
        [sys.executable, "-c", script], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    rest, smb = process.stdout.readline(), process.stdout.readline()
    process.communicate(timeout=60)

    assert rest.startswith("Azure Files emulator: http://127.0.0.1:")
    assert smb == "SMB: not served: Samba is not installed: install the packages samba and samba-common-bin\n"
