"""A private world for tests of the command line: one working folder, one cache, and runs of ``azguard`` in it.

``call`` runs a command line inside the test, fifteen times as fast as a start. ``fork`` and ``begin_fork`` run it in a
process of its own that was not started anew. ``run`` and ``begin`` start one, for tests of start-up.
"""

import gc
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Self
from unittest.mock import patch
from urllib.parse import urlsplit

from azguard.processes.signals import ENDING, restore_handlers
from tests.support import result_shapes
from tests.support.forked_process import ForkedProcess
from tests.support.places import REPOSITORY

# What of the caller's environment could change what a command does.
_OURS = ("AZURE_", "AZGUARD", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM", "_AZGUARD")

_CACHE = "etags.db"
_SENT = {
    "x-ms-version": "2021-12-02",
    "Accept": "application/json;odata=nometadata",
    "Content-Type": "application/json",
}


@dataclass(frozen=True)
class Ran:
    """What a run left: its exit status, stdout and stderr."""

    code: int
    stdout: bytes
    err: str
    words: tuple[str, ...] = field(default=(), compare=False)

    @property
    def out(self) -> str:
        """Return stdout as text."""
        return self.stdout.decode()

    @property
    def json(self) -> Any:
        """Return stdout as JSON; a result has the shape that its command tells."""
        found = json.loads(self.stdout)
        if self.code == 0:
            result_shapes.check(self.words, found)
        return found

    @property
    def error(self) -> dict[str, Any]:
        """Return the JSON error object on stderr."""
        found: dict[str, Any] = json.loads(self.err[self.err.index("{") :])["error"]
        return found


@dataclass(frozen=True)
class CliWorld:
    """A folder to work in, with its own cache, configuration and scope."""

    root: Path
    connection_string: str | None = None
    extra: Mapping[str, str] = field(default_factory=dict)

    def environ(self, scope: str = "test", env: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the environment of a run; a value of the empty text in ``env`` stays in it as such."""
        kept = {name: value for name, value in _read_environ().items() if not name.startswith(_OURS)}
        account = {} if self.connection_string is None else {"AZURE_STORAGE_CONNECTION_STRING": self.connection_string}
        return {
            **kept,
            "PYTHONPATH": os.pathsep.join(filter(None, (str(REPOSITORY), os.environ.get("PYTHONPATH")))),
            "AZGUARD_CACHE_DIR": str(self.root / ".cache"),
            "AZGUARD_CONFIG_DIR": str(self.root / ".config"),
            "AZGUARD_SCOPE": scope,
            **account,
            **self.extra,
            **(env or {}),
        }

    def run(
        self,
        *args: str,
        stdin: bytes = b"",
        scope: str = "test",
        env: Mapping[str, str] | None = None,
        timeout: float = 110,
    ) -> Ran:
        """Run ``python -m azguard`` in the folder and return what it left."""
        environ = self.environ(scope, env)
        done = subprocess.run(
            command(*args), input=stdin, capture_output=True, cwd=self.root, env=environ, timeout=timeout, check=False
        )
        return Ran(done.returncode, done.stdout, done.stderr.decode(), args)

    def fork(
        self,
        *args: str,
        stdin: bytes = b"",
        scope: str = "test",
        env: Mapping[str, str] | None = None,
        timeout: float = 110,
    ) -> Ran:
        """Run a command line in a process of its own, without the time of a start, and return what it left."""
        running = self.begin_fork(*args, scope=scope, env=env)
        out, err = running.communicate(stdin, timeout)
        return Ran(running.wait(), out, err.decode(), args)

    def begin(
        self, *args: str, scope: str = "test", env: Mapping[str, str] | None = None, **settings: Any
    ) -> "subprocess.Popen[bytes]":
        """Start ``python -m azguard`` in the folder, with pipes unless ``settings`` say otherwise."""
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command(*args), cwd=self.root, env=self.environ(scope, env), **(pipes | settings))

    def begin_fork(
        self, *args: str, scope: str = "test", env: Mapping[str, str] | None = None, **streams: Any
    ) -> ForkedProcess:
        """Begin a command line in a fork, with pipes unless told otherwise."""
        return ForkedProcess(args, self.root, self.environ(scope, env), **streams)

    def call(self, *args: str, stdin: bytes = b"", scope: str = "test", env: Mapping[str, str] | None = None) -> Ran:
        """Run a command line inside this process and return what it left."""
        from azguard.cli import app, signals
        from tests.support import patience

        environ = self.environ(scope, env)
        patience.choose(environ)
        with (
            _collecting(),
            here(self.root, environ),
            _streams(stdin) as (out, err),
            # A signal must not end the tests as it ends a command.
            patch.object(signals, "hasten", lambda status: None),
        ):
            code = app.run(list(args))
        return Ran(code, out.getvalue(), err.getvalue().decode(), args)

    def through(self, port: int) -> "CliWorld":
        """Return the same folder, with the emulator behind another port: a proxy's."""
        assert self.connection_string is not None
        return replace(self, connection_string=re.sub(r"(127\.0\.0\.1):\d+", rf"\1:{port}", self.connection_string))

    @property
    def port(self) -> int:
        """Return the port of the emulator's blob service."""
        found = re.search(r"BlobEndpoint=http://127\.0\.0\.1:(\d+)", self.connection_string or "")
        assert found is not None
        return int(found[1])

    def container(self) -> str:
        """Return a new container of no other test's, which another tool has made."""
        name = f"t{uuid.uuid4().hex[:20]}"
        self.make("blob", "PUT", f"{name}?restype=container")
        return name

    def make(self, service: str, method: str, path: str, content: Mapping[str, str] | None = None) -> None:
        """Make something past azguard, by one request; the SDK takes seven times as long."""
        assert self.connection_string is not None
        settings, sas = _sign(self.connection_string)
        place = urlsplit(settings[f"{service.capitalize()}Endpoint"])
        connection = HTTPConnection(place.hostname or "", place.port, timeout=110)
        with closing(connection):
            target = f"{place.path}/{path}{'&' if '?' in path else '?'}{sas}"
            connection.request(method, target, json.dumps(content) if content else None, _SENT)
            answer = connection.getresponse()
            assert answer.status == HTTPStatus.CREATED, (answer.status, answer.read())

    def with_cache(self) -> Self:
        """Write a cache without entries, which takes a third of the time in which a command makes one."""
        folder = self.root / ".cache"
        folder.mkdir(mode=0o700)
        file = folder / _CACHE
        file.touch(mode=0o600)
        file.write_bytes(_empty_cache())
        return self

    def file(self, name: str, content: bytes | str = b"") -> Path:
        """Write a file in the folder and return its path."""
        path = self.root / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path


@lru_cache(maxsize=4)
def _sign(connection_string: str) -> tuple[Mapping[str, str], str]:
    """Return the parts of a connection string, and a signature for all of its account."""
    from azure.storage.blob import generate_account_sas

    settings = dict(part.split("=", 1) for part in connection_string.split(";"))
    until = datetime.now(UTC) + timedelta(days=1)
    sas = generate_account_sas(settings["AccountName"], settings["AccountKey"], "sco", "rwdlacu", until, services="bqt")
    return settings, sas


@cache
def _empty_cache() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        assert CliWorld(Path(folder)).call("cache", "list").code == 0
        return (Path(folder) / ".cache" / _CACHE).read_bytes()


def command(*args: str) -> list[str]:
    """Return the command line that runs azguard."""
    return [sys.executable, "-m", "azguard", *args]


@contextmanager
def here(folder: Path, environ: Mapping[str, str]) -> Iterator[None]:
    """Stand in a folder with an environment, and go back with the handling of signals of before."""
    before, outside, hook = _read_environ(), os.getcwd(), sys.unraisablehook
    _set_environ(environ)
    os.chdir(folder)
    try:
        with restore_handlers(*ENDING):
            yield
    finally:
        os.chdir(outside)
        _set_environ(before)
        sys.unraisablehook = hook


def _set_environ(wanted: Mapping[str, str]) -> None:
    """Change only what differs: to clear the environment takes time that grows with the square of its size."""
    now = _read_environ()
    for name in now.keys() - wanted.keys():
        del os.environ[name]
    os.environ.update(wanted.items() - now.items())


def _read_environ() -> Mapping[str, str]:
    """Return the environment, which ``os.environ`` decodes anew each time."""
    data: Mapping[bytes, bytes] = os.environ._data  # type: ignore[attr-defined]  # there is no other way
    return _decode(frozenset(data.items()))


@lru_cache(maxsize=16)
def _decode(environ: frozenset[tuple[bytes, bytes]]) -> Mapping[str, str]:
    return {os.fsdecode(name): os.fsdecode(value) for name, value in environ}


@contextmanager
def _collecting() -> Iterator[None]:
    """Let go of what a run leaves, as the end of a process does: connections and files that only cycles refer to.

    All that a run makes is young until then, so that this takes a moment, however much there is besides.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.collect(1)
        gc.enable()


@contextmanager
def _streams(stdin: bytes) -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    """Replace the three standard streams by ones in memory."""
    before = sys.stdin, sys.stdout, sys.stderr
    out, err = io.BytesIO(), io.BytesIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), "utf-8")
    sys.stdout = io.TextIOWrapper(out, "utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(err, "utf-8", write_through=True)
    try:
        yield out, err
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            stream.detach()
        sys.stdin, sys.stdout, sys.stderr = before
