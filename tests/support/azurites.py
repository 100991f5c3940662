"""Azurites for tests: each empty and in memory, all in one process of Node.js, which the workers share.

One process costs a third of what eight cost: each would compile the same code while it runs. Another Azurite in it
takes 10 ms. For tests of the emulator's start and end there is ``background.run_private_azurite``.
"""

import atexit
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from azguard.emulators import azurite_install, azurite_process
from azguard.emulators.azurite_process import Azurite
from azguard.folders import Folders
from azguard.processes import locked_file

_SCRIPT = Path(__file__).with_suffix(".js")
# Names the folder of the process that the workers share.
_SHARED = "PYTEST_AZURITES"
# What is young and mostly ends young is looked through less often, which saves a tenth of the processor time.
_OPTIONS = ("--max-semi-space-size=64",)
# A busy machine is no fault.
_LONGEST_START_SECONDS = 100.0


def share(*, is_needed: bool) -> None:
    """Have all workers that this process will start use the same process, which the first of them starts.

    One that is needed is started already while they collect tests.
    """
    os.environ[_SHARED] = _make_folder()
    if is_needed:
        threading.Thread(target=_start_early, daemon=True).start()


def _start_early() -> None:
    # Why it does not start is told to the worker that needs it.
    with suppress(Exception), fresh():
        threading.Event().wait()


@contextmanager
def fresh() -> Iterator[Azurite]:
    """Run an empty Azurite for the length of a ``with`` block."""
    folder = Path(os.environ.get(_SHARED) or _own_folder())
    with locked_file.hold(folder / "lock"):
        connection, ports = _ask(folder / "socket") or _start(folder)
    with connection:
        yield Azurite(os.getpid(), "", azurite_install.VERSION, ports, None, None, "")


def _start(folder: Path) -> tuple[socket.socket, dict[str, int]]:
    """Start the process and return the first Azurite in it."""
    path = folder / "socket"
    path.unlink(missing_ok=True)
    installed = azurite_install.ensure(Folders.of(os.environ).emulator, os.environ, print)
    node, script = azurite_install.find_node(os.environ).program, Path(installed[-1]).resolve()
    words = [node, *_OPTIONS, str(_SCRIPT), str(path), str(script), *azurite_process.OPTIONS, "--inMemoryPersistence"]
    environ = azurite_process.prepare_environ(os.environ)
    with open(folder / "log", "ab") as log:
        process = subprocess.Popen(
            words, cwd=folder, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    process.returncode = 0  # It ends by itself, perhaps after this worker.
    until = time.monotonic() + _LONGEST_START_SECONDS
    while (found := _ask(path)) is None:
        assert time.monotonic() < until, (folder / "log").read_text()
        time.sleep(0.02)  # Azurite tells by no event that it listens
    return found


def _ask(path: Path) -> tuple[socket.socket, dict[str, int]] | None:
    """Return a connection and the ports of the Azurite that is there as long as the connection; None without one."""
    connection = socket.socket(socket.AF_UNIX)
    with suppress(FileNotFoundError, ConnectionError):
        connection.connect(str(path))
        with connection.makefile() as said:
            if line := said.readline():
                return connection, json.loads(line)
    connection.close()
    return None


@cache
def _own_folder() -> str:
    return _make_folder()


def _make_folder() -> str:
    folder = tempfile.mkdtemp(prefix="azguard-azurites-")
    atexit.register(shutil.rmtree, folder)
    return folder
