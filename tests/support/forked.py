"""Command lines in processes of their own that need no start-up: forked from one that has imported azguard already.

Such a process has its own pid, streams, environment, exit and exit status, also for who looks into /proc, and costs a
tenth of a real start. For tests of start-up there is ``cli_world.command``.

``forked_process`` passes a command line to the server, and is then what ``subprocess.Popen`` is for others. It can name
another module than azguard, which then runs as ``python -m`` runs it.
``command(…)`` is a program to start, for a shell: a small client (``forked_client``) passes its streams and its
environment to the server, waits for the fork and ends as it ended. The server is one for all workers of the tests, and
ends with the process that started it.
"""

import atexit
import ctypes
import gc
import importlib
import importlib.util
import marshal
import mimetypes
import mmap
import os
import pkgutil
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from tests.support import forked_client, scripted_service
from tests.support.places import REPOSITORY

# What commands import when they need it.
_LATE = (
    "azure.core.pipeline.transport._requests_basic",
    "azure.core.rest._requests_basic",
    "azure.data.tables",
    "azure.identity",
    "azure.storage.blob",
    "azure.storage.fileshare",
    "azure.storage.queue",
    "ctypes",
    "encodings.utf_8_sig",
    "jmespath",
    "jsonpatch",
    "pathspec",
    "platformdirs.unix",
    "pwd",
    "requests",
    "ruamel.yaml",
    "sqlite3",
    "typer._click.decorators",
)
# The same of what is not installed everywhere.
_OPTIONAL = ("smbprotocol.session", "smbprotocol.tree")
# These read the environment when they are imported, or are no module of a command.
_NOT_YET = ("azguard.demo", "azguard.emulators")
# What is read, written and refused before the first fork, by a service in which nothing is there.
_REHEARSED = ("blob show a/b -o json", "blob put a/b --allow-empty", "safe-update blob:a/b --set x=1", "lock show a/b")
_NOTHING = scripted_service.Answer(404, "BlobNotFound")
_MOST_BYTES = 1 << 20
# Where a fork writes its own command line and environment, for /proc.
_ROOM = "x" * 60_000
_MOST_DESCRIPTORS = 8
_STARTING = threading.Lock()
# Names the socket of the server that the workers share.
_SHARED = "PYTEST_FORKS"
# A busy machine is no fault.
_LONGEST_START_SECONDS = 100.0
# In /proc/PID/stat, after the name: where the arguments begin and end, and the environment.
_ARGUMENTS = 45
# What is larger has memory of its own, mapped for it.
_LARGEST_FREE_BYTES = 100_000
_LEAST_FREE_BYTES = 16
# Of each size.
_MOST_FREE = 10_000
_LARGE_PAGE_BYTES = 2 << 20
# The number of MADV_COLLAPSE, which Python does not name.
_COLLAPSE = 25


def command(*args: str) -> list[str]:
    """Return the command line that runs azguard in a fork."""
    return [sys.executable, "-I", "-S", forked_client.__file__, server(), *args]


def share() -> None:
    """Start a server for the workers that this process will start, and do not wait until it is ready."""
    os.environ[_SHARED] = start(__name__)


def server() -> str:
    """Return the path of the socket of the server, which is ready; start one first if need be."""
    # Threads that ask for it at once shall not start one each: that takes a second of the processor.
    with _STARTING:
        return _await_server()


@cache
def _await_server() -> str:
    return await_ready(os.environ.get(_SHARED) or start(__name__))


def await_ready(path: str) -> str:
    """Wait until there is a server's socket, and return its path."""
    until = time.monotonic() + _LONGEST_START_SECONDS
    while not os.path.exists(path):
        assert time.monotonic() < until, "the server of forks did not start"
        time.sleep(0.01)  # the server of forks tells by no event that it listens
    return path


def start(module: str, *words: str) -> str:
    """Start a module that serves forks until this process ends; return the path of its socket-to-be."""
    folder = tempfile.mkdtemp(prefix="azguard-forks-")
    path = os.path.join(folder, "s")
    environ = {**os.environ, "PYTHONPATH": str(REPOSITORY), "ROOM": _ROOM}
    line = [sys.executable, "-m", module, path, _ROOM, *words]
    running = subprocess.Popen(line, cwd=REPOSITORY, env=environ, stdin=subprocess.PIPE)

    def stop() -> None:
        running.communicate(timeout=60)
        shutil.rmtree(folder)

    atexit.register(stop)
    return path


def _import_all() -> None:
    """Import what commands need, and rehearse a few."""
    for module in pkgutil.walk_packages([str(REPOSITORY / "azguard")], "azguard."):
        if not module.name.startswith(_NOT_YET):
            importlib.import_module(module.name)
    for name in (*_LATE, *(each for each in _OPTIONAL if importlib.util.find_spec(each.partition(".")[0]))):
        importlib.import_module(name)
    _rehearse()


def serve(path: str) -> str:
    """Serve until stdin ends; each fork returns the name of the module that it is to run."""
    # The folder that it found is that of this process; a fork may have another in its environment.
    tempfile.tempdir = None
    assert threading.active_count() == 1
    # What is never looked at for garbage stays shared by all forks.
    gc.freeze()
    if sys.platform == "linux":
        _occupy_free_memory()
        _use_large_pages()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(f"{path}-")
    listening.listen(64)
    os.rename(f"{path}-", path)
    asked = _Forks(listening).serve()
    if asked is None:
        os._exit(0)
    return _become_command(asked)


def _rehearse() -> None:
    """Have done at once what else the first use in each fork builds, compiles and reads."""
    from azguard.cli.parsing import parser, tree
    from tests.support import patience
    from tests.support.cli_world import CliWorld

    patience.choose({})

    parser.build(tree.root)
    for _, command in tree.root.walk():
        parser.build(command)
    mimetypes.init()
    with tempfile.TemporaryDirectory() as folder, scripted_service.running(_NOTHING) as service:
        world = CliWorld(Path(folder), service.connection_string)
        for line in _REHEARSED:
            world.call(*line.split())


def _occupy_free_memory() -> None:
    """Allocate what is free between the memory in use: in a fork each use of it would copy the page around it."""
    library = ctypes.CDLL(None)
    malloc, sbrk = library.malloc, library.sbrk
    malloc.argtypes, malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
    sbrk.argtypes, sbrk.restype = [ctypes.c_ssize_t], ctypes.c_void_p
    last = sbrk(0)
    size = _LARGEST_FREE_BYTES
    while size >= _LEAST_FREE_BYTES:
        for _ in range(_MOST_FREE):
            if (place := malloc(size)) > last:
                # What is placed beyond all else is new.
                last = place
                break
        size = size * 7 // 8


def _use_large_pages() -> None:
    """Put the memory that all forks share into large pages: to copy the table of small ones is half of a fork's cost.

    A kernel that cannot do this refuses, and all is as before.
    """
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    with open("/proc/self/maps", encoding="ascii") as maps:
        ours = [line.split() for line in maps]
    for places, rights, _, _, _, *names in ours:
        if rights != "rw-p" or names not in ([], ["[heap]"]):
            continue
        first, last = (int(each, 16) // _LARGE_PAGE_BYTES * _LARGE_PAGE_BYTES for each in places.split("-"))
        if first + _LARGE_PAGE_BYTES < last:
            for advice in (mmap.MADV_HUGEPAGE, _COLLAPSE):
                madvise(first + _LARGE_PAGE_BYTES, last - first - _LARGE_PAGE_BYTES, advice)


class _Forks:
    """Makes the forks of this process, tells their clients how they ended, and kills a fork whose client is gone."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._clients: dict[int, socket.socket] = {}
        self._woken, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        # Any handler of Python's makes the end of a fork be written to the pipe.
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)

    def serve(self) -> socket.socket | None:
        """Return None once stdin has ended; in a fork, return its client."""
        while 0 not in (ready := self._wait()):
            if self._woken in ready:
                os.read(self._woken, 4096)
                self._tell_ends()
            for pid, client in self._clients.items():
                if client.fileno() in ready:
                    os.kill(pid, signal.SIGKILL)
            if self._listening.fileno() in ready:
                asked, _ = self._listening.accept()
                pid = os.fork()
                if pid == 0:
                    self._let_go()
                    return asked
                self._clients[pid] = asked
        for pid in self._clients:
            os.kill(pid, signal.SIGKILL)
        return None

    def _wait(self) -> set[int]:
        waiting = select.poll()
        for number in (0, self._woken, self._listening.fileno()):
            waiting.register(number, select.POLLIN)
        # Linux alone tells reliably that a client was killed, which has ended what it sends.
        for client in self._clients.values() if sys.platform == "linux" else ():
            waiting.register(client, select.POLLHUP)
        return {number for number, _ in waiting.poll()}

    def _tell_ends(self) -> None:
        for pid in list(self._clients):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                client = self._clients.pop(pid)
                with client, suppress(BrokenPipeError):  # The client was killed.
                    client.sendall(str(os.waitstatus_to_exitcode(status)).encode())

    def _let_go(self) -> None:
        """Let a fork be rid of what is its server's."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(self._woken)
        os.close(self._waker)
        for each in (self._listening, *self._clients.values()):
            each.close()


def _become_command(asked: socket.socket) -> str:
    """Take over what a client has sent, tell it our pid, and return the module to run."""
    content, sent, _, _ = socket.recv_fds(asked, _MOST_BYTES, _MOST_DESCRIPTORS)
    while piece := asked.recv(_MOST_BYTES):
        content += piece
    words, environ, folder, umask, opened = marshal.loads(content)
    for number in range(3):
        if number not in opened:
            os.close(number)
    for descriptor, number in zip(sent, opened, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(folder)
    os.umask(umask)
    # Only what differs: each change of the environment takes time that grows with its size.
    for name in os.environb.keys() - environ.keys():
        del os.environb[name]
    os.environb.update(environ.items() - os.environb.items())
    module, *arguments = map(os.fsdecode, words[1:])
    sys.argv = [str(REPOSITORY / "azguard/__main__.py"), *arguments]
    sys.stdin, sys.stdout, sys.stderr = _stream(0), _stream(1), _stream(2)
    if sys.platform == "linux":
        _show([os.fsencode(sys.executable), *words], [b"%b=%b" % each for each in environ.items()])
    asked.sendall(f"{os.getpid()} ".encode())
    asked.close()
    return module


def _run(module: str) -> None:
    """Run a module as ``python -m`` does, azguard without the time to compile anew what is imported already."""
    _name_agent(os.environ.get("AZURE_HTTP_USER_AGENT", ""))
    from tests.support import patience

    patience.choose(os.environ)
    if module == "azguard":
        importlib.import_module("azguard.__main__").main()
    else:
        runpy.run_module(module, run_name="__main__")
        raise SystemExit(0)


def _name_agent(name: str) -> None:
    """Have the requests of this process carry a name, by which the log of a race knows who sent them."""
    if name:
        from azguard.wire import call

        vars(call)["__version__"] += f" {name}"


def _show(words: list[bytes], environ: list[bytes]) -> None:
    """Let /proc tell the command line and the environment of this fork instead of the server's."""
    with open("/proc/self/stat", encoding="utf-8") as stat:
        places = [int(each) for each in stat.read().rpartition(")")[2].split()[_ARGUMENTS:]]
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        for texts, begin, end in ((words, places[0], places[1]), (environ, places[2], places[3])):
            memory.seek(begin)
            memory.write(b"".join(text + b"\0" for text in texts)[: end - begin - 1].ljust(end - begin, b"\0"))


def _stream(number: int) -> Any:
    """Return a standard stream as Python makes it at its start."""
    try:
        os.fstat(number)
    except OSError:
        return None
    if number == 0:
        return open(number, encoding="utf-8", closefd=False)
    errors = "strict" if number == 1 else "backslashreplace"
    stream = open(number, "w", encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115  # for the whole process
    stream.reconfigure(line_buffering=number == 2 or stream.isatty())
    return stream


def end(status: SystemExit) -> None:
    """End as Python does, but do not take modules apart: that alone would copy most of what all forks share.

    Where a stream cannot be flushed, return, so that Python says so in its own way.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # it has no public name
    atexit._run_exitfuncs()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return
    assert isinstance(status.code, int)
    os._exit(status.code)


if __name__ == "__main__":
    _import_all()
    wanted = serve(sys.argv[1])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        _run(wanted)
    except SystemExit as ended:
        end(ended)
        raise
