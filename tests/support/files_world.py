"""Shares and files for tests: an emulator of theirs, and what is made, and looked into, past azguard."""

import os
import re
import signal
import subprocess
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME
from azguard.emulators import azurite_process, files_process
from tests.support.cli_world import CliWorld, Ran
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Chosen, Fault, ProxiedAnswer, Request
from tests.support.forked_process import ForkedProcess

#: Faults that leave something different behind each. FAIL_AFTER leaves what DROP does, and RESET what FAIL_BEFORE does:
#: only the transport tells them apart, one for all commands. They are tried in tests/faults.
FAULTS = (Fault.DROP, Fault.FAIL_BEFORE, Fault.REPLAYED)


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """Run a Files emulator on a free port; return its connection string, which names no other service."""
    with tempfile.TemporaryFile() as log:
        emulator, child = files_process.launch(os.environ, 0, None, str(folder), log, 60)
        try:
            yield (
                f"DefaultEndpointsProtocol=http;AccountName={EMULATOR_NAME};AccountKey={EMULATOR_KEY};"
                f"FileEndpoint={emulator.endpoint}"
            )
        finally:
            azurite_process.discard(child)


def share(cli: CliWorld) -> str:
    """Return a new share of no other test's."""
    name = f"s{uuid.uuid4().hex[:20]}"
    sdk(cli, name).create_share()
    return name


def sdk(cli: CliWorld, name: str) -> Any:
    """Return the SDK's client of a share."""
    return _service(str(cli.connection_string)).get_share_client(name)


@lru_cache(maxsize=4)
def _service(connection_string: str) -> Any:
    from azure.storage.fileshare import ShareServiceClient

    return ShareServiceClient.from_connection_string(connection_string, retry_total=0, allow_trailing_dot=True)


def make(cli: CliWorld, content: bytes = b"old", path: str = "plan.txt", **settings: Any) -> str:
    """Write a file in a new share as another tool does, and return its address."""
    name = share(cli)
    sdk(cli, name).get_file_client(path).upload_file(content, **settings)
    return f"{name}/{path}"


def client(cli: CliWorld, file: str) -> Any:
    """Return the SDK's client of a file."""
    name, _, path = file.partition("/")
    return sdk(cli, name).get_file_client(path)


def names(cli: CliWorld, share: str, folder: str = "") -> list[str]:
    """Return the names of all that is in a folder, past azguard."""
    return [each.name for each in sdk(cli, share).list_directories_and_files(folder)]


def port(cli: CliWorld) -> int:
    """Return the port of the emulator."""
    found = re.search(r"FileEndpoint=http://127\.0\.0\.1:(\d+)", str(cli.connection_string))
    assert found is not None
    return int(found[1])


def through(cli: CliWorld, proxy_port: int) -> CliWorld:
    """Return the same folder, with the emulator behind a proxy."""
    text = str(cli.connection_string)
    begins = "FileEndpoint=http://127.0.0.1:"
    return replace(cli, connection_string=text.replace(f"{begins}{port(cli)}", f"{begins}{proxy_port}"))


def spoilt(
    cli: CliWorld, fault: Fault, *words: str, which: str, stdin: bytes = b""
) -> tuple[Ran, list[tuple[str, bool]]]:
    """Run a command whose first request with ``which`` in its method and target meets a fault.

    Return what it left, and which of those requests were really done.
    """
    met: list[Request] = []

    def decide(request: Request) -> Fault:
        if which not in f"{request.method} {request.path}" or met:
            return Fault.NONE
        met.append(request)
        return fault

    with proxy.running(port(cli), decide) as between:
        ran = through(cli, between.port).call(*words, "-o", "json", "--timeout", "10s", stdin=stdin)
    log = [
        (each.request.method, each.committed)
        for each in between.log
        if which in f"{each.request.method} {each.request.path}"
    ]
    return ran, log


def meanwhile(cli: CliWorld, which: str, act: Callable[[], object], *words: str, stdin: bytes = b"") -> Ran:
    """Run a command, and do something before its first request with ``which`` in it is passed on.

    What that does to a lease is in it, too.
    """
    done: list[object] = []

    def decide(request: Request) -> Fault:
        if not done and which in f"{request.method} {request.path} {request.headers.get('x-ms-lease-action', '')}":
            done.append(act())
        return Fault.NONE

    with proxy.running(port(cli), decide) as between:
        return through(cli, between.port).call(*words, "-o", "json", stdin=stdin)


@dataclass
class Killer:
    """The emulator behind a proxy, and the request at which a run is killed."""

    #: The same folder, behind the proxy.
    world: CliWorld
    _at: str = ""
    _is_after: bool = False
    _loses: str = ""
    _fault: Fault = Fault.FAIL_AFTER
    _number: signal.Signals = signal.SIGKILL
    _child: ForkedProcess | None = None
    _begun: threading.Event = field(default_factory=threading.Event)

    def interrupt(self, at: str, *words: str) -> int:
        """Run a command and interrupt it, as Ctrl-C does, once such a request is done, of which the answer is kept."""
        self._number = signal.SIGINT
        try:
            return self.kill(at, *words, after=True)
        finally:
            self._number = signal.SIGKILL

    def kill(self, at: str, *words: str, after: bool = False, loses: str = "", fault: Fault = Fault.FAIL_AFTER) -> int:
        """Run a command until its first request with ``at`` in its method and target, and return its exit status.

        What it does to a lease counts, too. The request is not passed on. With ``after`` only its answer is not. The
        first request with ``loses`` in it meets ``fault``.
        """
        self._at, self._is_after, self._loses, self._fault = at, after, loses, fault
        self._begun.clear()
        self._child = self.world.begin_fork(*words, stdin=subprocess.DEVNULL)
        self._begun.set()
        self._child.communicate(timeout=60)
        self._at = ""
        # Now nothing of it is left, the locks of its notes neither.
        return self._child.wait()

    def decide(self, request: Request) -> Fault | Chosen:
        """Kill the run if this is its request, and keep the request; or let it pass, and keep the answer."""
        if self._loses and self._loses in request.path:
            self._loses = ""
            return self._fault
        if not self._is_at(request):
            return Fault.NONE
        if self._is_after:
            return Fault.LATE
        self._end()
        return Chosen(until=lambda: False)

    def note(self, answer: ProxiedAnswer) -> None:
        """Kill the run if this is the answer to its request."""
        if self._is_after and self._is_at(answer.request):
            self._end()

    def _is_at(self, request: Request) -> bool:
        action = request.headers.get("x-ms-lease-action", "")
        return bool(self._at) and self._at in f"{request.method} {request.path} {action}"

    def _end(self) -> None:
        assert self._begun.wait(60)
        assert self._child is not None
        self._child.send_signal(self._number)


@contextmanager
def killing(cli: CliWorld) -> Iterator[Killer]:
    """Put a proxy before the emulator, so that a run can be killed at one of its requests."""
    killer = Killer(cli)
    with proxy.running(port(cli), killer.decide, record=killer.note) as between:
        killer.world = through(cli, between.port)
        yield killer
