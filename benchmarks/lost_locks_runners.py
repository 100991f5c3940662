"""The lock runners of the benchmark of lost locks: how each is started, and how its lock is taken from it."""

import json
import os
import re
import socket
import subprocess
import time
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from azguard.accounts import account
from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME
from azguard.emulators import background
from azguard.folders import Folders

HOST = "127.0.0.1"
_START_SECONDS = 30.0


class Runner(ABC):
    """A program that runs a command while it holds a lock.

    ``paths`` are the programs it ``needs``, by name; ``folder`` is its own, for locks, data and logs. Locks live on a
    server of its own for the length of ``serving``; ``port`` is 0 where there is none.
    """

    name: ClassVar[str]
    needs: ClassVar[tuple[str, ...]]
    loss: ClassVar[str]  # how its lock is taken away
    gives_notice: ClassVar[bool] = False  # whether its lock can also be broken so that its term runs out first
    patience: ClassVar[float]  # seconds within which a next holder gets in if it ever does
    _version_words: ClassVar[tuple[str, ...]] = ("version",)

    def __init__(self, paths: Mapping[str, str], folder: Path) -> None:
        self.paths = paths
        self.folder = folder
        self.port = 0

    @property
    def version(self) -> str:
        """Return the version it says it is."""
        found = re.search(r"\d+(\.\d+)+", self._run(self.paths[self.needs[0]], *self._version_words))
        return found[0] if found else "of unknown version"

    @property
    def environ(self) -> Mapping[str, str]:
        """Return what it needs in its environment, besides our own."""
        return {}

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Run the server that keeps its locks."""
        yield

    @abstractmethod
    def command(self, lock: str, port: int, words: Sequence[str]) -> list[str]:
        """Return the command line that runs ``words`` under a lock, waiting for it, by way of a port."""

    @abstractmethod
    def take_away(self, lock: str, *, at_once: bool = True) -> None:
        """Let the holder lose a lock, by the means its operators have; ``at_once``, or after notice of it."""

    def _run(self, *words: str) -> str:
        """Return what a command prints, on whichever stream."""
        done = subprocess.run(
            words,
            env={**os.environ, **self.environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
        )
        return done.stdout

    @contextmanager
    def _server(self, *words: str) -> Iterator[None]:
        with open(self.folder / "server.log", "wb") as log:
            process = subprocess.Popen(
                words, env={**os.environ, **self.environ}, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
            try:
                yield
            finally:
                process.kill()  # nothing of it is kept
                process.wait()


class Azguard(Runner):
    """``azguard lock run`` with leases of 60 s, as they come, on a private Azurite."""

    name = "azguard lock run"
    needs = ("azguard",)
    loss = "its lease broken, --lease-break-period 0"
    gives_notice = True
    patience = 90.0
    _version_words = ("--version",)

    @property
    def environ(self) -> Mapping[str, str]:
        return {"AZGUARD_CACHE_DIR": str(self.folder / "cache"), "AZGUARD_CONFIG_DIR": str(self.folder / "config")}

    @contextmanager
    def serving(self) -> Iterator[None]:
        with background.run_private_azurite(Folders.of(os.environ).emulator, os.environ) as mine:
            self.port = mine.ports["blob"]
            self._run(*self._azguard(self.port, "container", "create", "locks"))
            yield

    def command(self, lock: str, port: int, words: Sequence[str]) -> list[str]:
        return [*self._azguard(port, "lock", "run"), "--wait", "5m", f"blob:locks/{lock}", "--", *words]

    def take_away(self, lock: str, *, at_once: bool = True) -> None:
        period = ["--lease-break-period", "0"] if at_once else []
        self._run(*self._azguard(self.port, "lock", "break"), f"blob:locks/{lock}", "--yes", *period)

    def _azguard(self, port: int, *words: str) -> list[str]:
        blob = account.emulator({"blob": port}).endpoint("blob")
        connection = f"AccountName={EMULATOR_NAME};AccountKey={EMULATOR_KEY};BlobEndpoint={blob}"
        return [self.paths["azguard"], *words, "--connection-string", connection]


class Consul(Runner):
    """``consul lock``, its status not ignored; sessions of 15 s and a lock-delay of 15 s, as they come."""

    name = "consul lock -child-exit-code"
    needs = ("consul",)
    loss = "its session destroyed"
    # The session's term counts twice on the server, then the lock-delay, then up to 5 s until the next try.
    patience = 60.0

    @property
    def environ(self) -> Mapping[str, str]:
        return {"CHECKPOINT_DISABLE": "1"}  # it would ask for news of itself

    @contextmanager
    def serving(self) -> Iterator[None]:
        self.port, *others = _free_ports(4)
        names = ("-server-port", "-serf-lan-port", "-serf-wan-port")
        ports = [f"{name}={port}" for name, port in zip(names, others, strict=True)]
        agent = [self.paths["consul"], "agent", "-dev", f"-bind={HOST}", f"-client={HOST}"]
        with self._server(*agent, f"-http-port={self.port}", "-dns-port=-1", "-grpc-port=-1", *ports):
            _wait_until(lambda: bool(self._ask("GET", "status/leader")))
            yield

    def command(self, lock: str, port: int, words: Sequence[str]) -> list[str]:
        options = ["-child-exit-code", "-shell=false", f"-http-addr={HOST}:{port}"]
        return [self.paths["consul"], "lock", *options, lock, *words]

    def take_away(self, lock: str, *, at_once: bool = True) -> None:
        (key,) = self._ask("GET", f"kv/{lock}/.lock")
        self._ask("PUT", f"session/destroy/{key['Session']}")

    def _ask(self, method: str, path: str) -> Any:
        request = urllib.request.Request(f"http://{HOST}:{self.port}/v1/{path}", method=method)
        with urllib.request.urlopen(request, timeout=5) as answer:
            return json.load(answer)


class Etcd(Runner):
    """``etcdctl lock`` with leases of 10 s, as they come."""

    name = "etcdctl lock"
    needs = ("etcdctl", "etcd")
    loss = "its lease revoked"
    patience = 30.0

    @contextmanager
    def serving(self) -> Iterator[None]:
        self.port, peers = _free_ports(2)
        clients, others = f"http://{HOST}:{self.port}", f"http://{HOST}:{peers}"
        words = [self.paths["etcd"], "--data-dir", str(self.folder / "data"), "--initial-cluster", f"default={others}"]
        words += ["--listen-client-urls", clients, "--advertise-client-urls", clients]
        words += ["--listen-peer-urls", others, "--initial-advertise-peer-urls", others]
        with self._server(*words):
            _wait_until(lambda: "is healthy" in self._ask("endpoint", "health"))
            yield

    def command(self, lock: str, port: int, words: Sequence[str]) -> list[str]:
        return [self.paths["etcdctl"], f"--endpoints={HOST}:{port}", "lock", lock, "--", *words]

    def take_away(self, lock: str, *, at_once: bool = True) -> None:
        (key,) = json.loads(self._ask("get", "--prefix", f"{lock}/", "--write-out=json"))["kvs"]
        self._ask("lease", "revoke", f"{key['lease']:x}")

    def _ask(self, *words: str) -> str:
        return self._run(self.paths["etcdctl"], f"--endpoints={HOST}:{self.port}", *words)


class Flock(Runner):
    """``flock`` of util-linux: a lock of this machine's kernel on an open file, whatever becomes of the file's name."""

    name = "flock"
    needs = ("flock",)
    loss = "its file deleted"
    patience = 20.0
    _version_words = ("--version",)

    def command(self, lock: str, port: int, words: Sequence[str]) -> list[str]:
        return [self.paths["flock"], str(self.folder / lock), *words]

    def take_away(self, lock: str, *, at_once: bool = True) -> None:
        (self.folder / lock).unlink()


RUNNERS: tuple[type[Runner], ...] = (Azguard, Consul, Etcd, Flock)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports: list[int] = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _wait_until(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            if ready():
                return
        except (OSError, ValueError, subprocess.CalledProcessError):
            pass  # it does not listen yet, or has no leader yet
        if time.monotonic() > deadline:
            raise SystemExit("a server did not start; nothing was measured")
        time.sleep(0.1)  # a server tells by no event that it listens
