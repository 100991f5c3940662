"""One cell of the matrix played out: a real command, the proxy, Azurite, and what the log says afterwards."""

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache, partial
from http import HTTPStatus
from io import BytesIO
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError

from azguard import address
from azguard.accounts import account
from azguard.accounts.account import Target
from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME
from azguard.address import Kind
from azguard.blobs.content import put_blob
from azguard.blobs.content.upload import Settings, Upload
from azguard.cli.parsing import command_line
from azguard.guards.resolve import Conditions
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY
from azguard.requests.trace import VARIABLE
from azguard.wire import client
from azguard.wire.client import Client, Limits
from azguard.wire.connections import Exchange, Reply
from azguard.wire.failures import ServiceRefusal
from tests.faults import entities, files, queues, truth
from tests.faults.matrix import Column, Rival, Row
from tests.faults.rules import operation
from tests.faults.stage import LEASE, ScopeStage, open_reads
from tests.support import sdk_clients
from tests.support.answering_client import ask
from tests.support.cli_world import CliWorld, Ran
from tests.support.emulator_world import until
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Chosen, Fault, ProxiedAnswer, Request
from tests.traces import records, rules

CONTAINER = "matrix"
# How long the client waits for an answer that is not to come in time: many cells wait for that. A slow answer takes
# longer. Every other answer has as long as the command gives it, so that a busy machine is no fault.
_SILENCE_SECONDS = 0.3
# Content of more than one block must be long for the service, not for what is tried here.
_SMALL = 2 * 1024
# What a person does to the content, for rows that open an editor.
_EDITOR = {"VISUAL": "", "EDITOR": "sed -i s/old/new/"}
_TRACE = "trace.jsonl"
_RIVAL = "rivalrivalrivalr"


class _Silence(Exchange):
    """Is over a moment after the proxy has met the request, however long that takes on a busy machine."""

    def __init__(self, is_met: Callable[[], bool], seconds: float, *, adds_time: bool) -> None:
        super().__init__(seconds, adds_time=adds_time)
        self._is_met = is_met

    def start_answer(self) -> None:
        """Wait for the proxy, and begin with the moment."""
        until(self._is_met)
        self._ends = time.monotonic() + _SILENCE_SECONDS


@dataclass
class Scene:
    """A cell under way."""

    row: Row
    column: Column
    cli: CliWorld
    direct: account.Account
    rival: Rival | None = None
    every: bool = False
    #: Whether it is the earlier run, without a fault, whose answer the run of the cell receives; ``stored`` is that.
    earlier: bool = False
    stored: bytes = b""
    running: proxy.Proxy | None = None
    armed: bool = False
    over: bool = False
    hits: list[Request] = field(default_factory=list)
    later: list[Request] = field(default_factory=list)
    met: int = 0
    message_id: str = ""

    @property
    def _cell(self) -> str:
        return f"{self.column.value}-earlier" if self.earlier else self.column.value

    @property
    def container(self) -> str:
        """Return the container's name: the shared one, unless the row is about containers."""
        own = "{container}" in self.row.command
        name = f"{'e-' if self.every else ''}{self.row.name}-{self._cell}"
        return name[:63] if own else CONTAINER

    @property
    def blob(self) -> str:
        """Return the blob's short address."""
        rival = self.rival.value if self.rival else "alone"
        return f"{CONTAINER}/{self.row.name}/{self._cell}/{rival}/{'every' if self.every else 'once'}"

    @property
    def entity(self) -> str:
        """Return the entity's short address."""
        rival = self.rival.value if self.rival else "alone"
        return f"{entities.TABLE}/{self.row.name}/{self._cell}-{rival}-{'every' if self.every else 'once'}"

    @property
    def queue(self) -> str:
        """Return the name of the row's queue."""
        beside = f"{self.rival.value}-" if self.rival else "e-" if self.every else ""
        return f"{beside}{self.row.name}-{self._cell}"[:63]

    @property
    def share(self) -> str:
        """Return the name of the row's share."""
        return f"{'e-' if self.every else ''}{self.row.name}-{self._cell}"[:63]

    @property
    def table(self) -> str:
        """Return the name of the row's table, which has letters and digits alone."""
        return self.share.replace("-", "")

    def fill(self, command: str) -> list[str]:
        """Return the words of a command line with the names of the row."""
        names = {
            "blob": self.blob,
            "container": self.container,
            "lease": LEASE,
            "entity": self.entity,
            "queue": self.queue,
            "message": f"{self.queue}/{self.message_id}",
            "share": self.share,
            "table": self.table,
        }
        return command.format(**names).split()

    @property
    def words(self) -> list[str]:
        """Return the row's command line, whose answer is JSON."""
        own, rest = command_line.split(self.fill(self.row.command))
        return [*own, *(["--timeout", "2s"] if self.every else []), "-o", "json", *rest]

    @property
    def log(self) -> list[ProxiedAnswer]:
        """Return the answers of the emulator."""
        assert self.running is not None
        return self.running.log

    @property
    def told(self) -> tuple[str, ...]:
        """Return the log as lines of JSON."""
        return tuple(json.dumps(truth.line(each)) for each in self.log)

    @property
    def broken(self) -> tuple[str, ...]:
        """Return what the steps of the command break of the rules of the protocol."""
        events = records.to_events(self.log, self.row.service)
        # The rival writes in this process too, and past the proxy.
        steps = [step for step in records.read(self.cli.root / _TRACE) if step["op"] != _RIVAL]
        return tuple(map(str, rules.Checker(steps, events).check()))

    @property
    def commits(self) -> list[ProxiedAnswer]:
        """Return the answers that say that the row's write was done."""
        wanted = self.row.commit or self.row.spoilt
        return [each for each in self.log if each.committed and operation(each.request) == wanted]

    # The play.

    def play(self, *, process: bool) -> Ran:
        """Run the row's command through the fault and return what it said, once everything has landed."""
        assert self.running is not None
        self._prepare(self.running)
        self.armed = True
        run = self.cli.run if process else self.cli.call
        with self._impatient() if self.column.silent else nullcontext():
            ran = run(*self.words, stdin=self.row.stdin.replace(b"{entity}", self.entity.encode()))
        self.over = True
        assert self.hits, "\n".join((f"nothing did {self.row.spoilt}: {ran.code}", ran.err, *self.told))
        until(lambda: self._landed)
        return ran

    def play_earlier(self) -> bytes:
        """Run the row's command elsewhere and return the answer that is stored for the cell."""
        self.earlier = True
        self.play(process=False)
        (stored,) = (each.raw for each in self.log if each.raw)
        return stored

    def decide(self, request: Request) -> Fault | Chosen:
        """Return what happens to a request of the command."""
        decided = self._spoil(request) if self.armed else Fault.NONE
        dated = self.armed and decided is Fault.NONE
        return Chosen(ahead_seconds=self.column.ahead_seconds) if dated else decided

    def _spoil(self, request: Request) -> Fault | Chosen:
        """Spoil the request that the row names, or every one from it on; what comes after it waits its turn."""
        spoilt = self._next(request)
        self.met += operation(request) == self.row.spoilt
        if spoilt:
            self.hits.append(request)
            if self.earlier:
                refused = self.column is Column.STORED_REFUSAL  # as the second copy of a conditional write is
                return Chosen(Fault.REPLAYED if refused else Fault.NONE, keeps=True, echoes=True)
            if self.column.stored:
                return Chosen(self.column.fault, stored=self.stored)
            return Chosen(self.column.fault, self._may_land if self.column.fault is Fault.ZOMBIE else None)
        if not self.hits or (operation(request) == "PUT block" and request.path != self.hits[0].path):
            return Fault.NONE  # before it, or on its way at the same time
        self.later.append(request)
        if len(self.later) == 1 and self.rival is not None:
            self._compete(self.rival)
        waits = {Column.ZOMBIE_FIRST: 1, Column.ZOMBIE_THEN: 2}.get(self.column)
        if waits is not None and len(self.later) >= waits:
            return Chosen(until=lambda: self._landed)
        return Fault.NONE

    def look(self) -> tuple[bytes | None, str | None]:
        """Return what is there now and the state of its lease.

        That is a blob's or a file's content, an entity's properties, nothing for a container, a table, a share or a
        directory, and None if it is gone. Nothing but a blob is looked at for a lease.
        """
        if "{table}" in self.row.command:
            return entities.look_at_table(self.direct, self.table), None
        if self.row.service == "table":
            return entities.content(self.direct, self.entity), None
        if self.row.service == "queue":
            return queues.content(self.direct, self.queue), None
        if self.row.service == "file":
            return files.content(self.direct, self.fill(self.row.command)[2]), None
        try:
            if "{container}" in self.row.command:
                self._container().get_container_properties()
                return b"", None
            found = ask(self.direct, "GET", self._target.address, {})
        except (HttpResponseError, ServiceRefusal) as error:
            if error.status_code != HTTPStatus.NOT_FOUND:
                raise
            return None, None
        return found.content, found.headers["x-ms-lease-state"]

    def _next(self, request: Request) -> bool:
        """Return whether this request is the one that is spoilt, if it arrives now."""
        named = operation(request) == self.row.spoilt and self.met + 1 >= self.row.nth
        return named and (self.every or not self.hits)

    @contextmanager
    def _impatient(self) -> Iterator[None]:
        """Make the client of this process give up the request that is spoilt after a moment, and no other."""
        send = client.send

        def hasty(
            sender: Client, method: str, url: str, headers: Mapping[str, str], body: bytes | None, limits: Limits
        ) -> Reply:
            parts, named = urlsplit(url), {name.lower(): value for name, value in headers.items()}
            if not self._next(Request(method, f"{parts.path}?{parts.query}", named)):
                return send(sender, method, url, headers, body, limits)
            count = len(self.hits)
            with patch.object(client, "Exchange", partial(_Silence, lambda: len(self.hits) > count)):
                return send(sender, method, url, headers, body, replace(limits, is_strict=True))

        with patch.object(client, "send", hasty):
            yield

    def _prepare(self, running: proxy.Proxy) -> None:
        """Do what the row does before, past the proxy."""
        if not self.row.before:
            return
        proxied = account.emulator({self.row.service: running.port})
        environ = self.cli.environ()
        with open_reads(Path(environ["AZGUARD_CACHE_DIR"]), environ["AZGUARD_SCOPE"]) as reads:
            stage = ScopeStage(
                direct=self.direct,
                proxied=proxied,
                reads=reads,
                blob=self.blob,
                container=self.container,
                entity=self.entity,
                queue=self.queue,
                call=self._call,
            )
            for step in self.row.before:
                step(stage)
        self.message_id = stage.message_id

    def _call(self, command: str, stdin: bytes) -> None:
        ran = self.cli.call(*self.fill(command), stdin=stdin)
        assert ran.code == 0, ran.err

    @property
    def _landed(self) -> bool:
        answered = {id(each.request) for each in self.log}
        return all(id(hit) in answered for hit in self.hits)

    def _may_land(self) -> bool:
        if self.column is Column.ZOMBIE_FIRST or self.over:
            return True
        asked = self.later[:1]
        return self.column is Column.ZOMBIE_THEN and any(each.request is asked[0] for each in self.log if asked)

    def _compete(self, rival: Rival) -> None:
        """Write as another; not through the proxy, whose thread this is."""
        if self.row.service == "table":
            entities.compete(self.direct, self.entity, rival)
            return
        if self.row.service == "queue":
            queues.compete(self.direct, self.queue, rival)
            return
        client = sdk_clients.blob(self.direct, self._target.address)
        if rival in (Rival.APPENDER, Rival.TWIN):
            client.append_block(b"new\n" if rival is Rival.TWIN else b"theirs\n")
            return
        if rival is Rival.FOREIGN:
            client.upload_blob(b"theirs", overwrite=True)
            return
        headers, etag, lineage = {"If-None-Match": "*"}, None, None
        try:
            found = client.get_blob_properties()
        except ResourceNotFoundError:
            pass
        else:
            etag, lineage = found.etag, found.metadata.get(KEY)
            headers = {"If-Match": etag}
        conditions = Conditions(headers, "if-match", etag, lineage=lineage, fence=9 if rival is Rival.HOLDER else None)
        upload = Upload(self._target, Settings(), conditions, Deadline(), _RIVAL).add_lineage()
        put_blob.put(upload, BytesIO(b'{"n": 10}'), lambda done: None)

    @property
    def _target(self) -> Target:
        return Target(self.direct, address.parse(self.blob, Kind.BLOB).address)

    def _container(self) -> Any:
        return sdk_clients.container(self.direct, address.parse(self.container, Kind.CONTAINER).address)


@contextmanager
def scene(
    root: Path, ports: Mapping[str, int], row: Row, column: Column, rival: Rival | None, every: bool
) -> Iterator[Scene]:
    """Set up a cell against the Azurite on these ports: a proxy and a private world for the command."""
    direct = _prepare(row.service, tuple(ports.items()))
    made = Scene(row, column, CliWorld(root), direct, rival, every)
    with proxy.running(ports[row.service], made.decide) as running:
        made.running = running
        endpoint = f"http://127.0.0.1:{running.port}/{EMULATOR_NAME}"
        key = f"AccountName={EMULATOR_NAME};AccountKey={EMULATOR_KEY}"
        text = f"{key};{row.service.title()}Endpoint={endpoint}"
        made.cli = CliWorld(root, text, {**_EDITOR, VARIABLE: str(root / _TRACE)}).with_cache()
        yield made


@cache
def _prepare(service: str, ports: tuple[tuple[str, int], ...]) -> account.Account:
    """Make what the cells of a service share, once for each process and Azurite; return the account."""
    direct = account.emulator(dict(ports))
    if service == "table":
        entities.prepare(direct)
    elif service == "blob":
        try:
            sdk_clients.container(direct, address.parse(CONTAINER, Kind.CONTAINER).address).create_container()
        except ResourceExistsError:
            pass  # by another process
    return direct


@dataclass(frozen=True)
class Story:
    """What a cell came to: what the command said, and what is true. ``etags`` are those of the commits."""

    ran: Ran
    etags: tuple[str | None, ...]
    content: bytes | None
    lease: str | None
    log: tuple[str, ...]
    #: The steps that the rules of the protocol do not allow.
    broken: tuple[str, ...]

    @property
    def told_etag(self) -> str | None:
        """Return the ETag in the result."""
        found: str | None = self.ran.json["etag"]
        return found


def play(
    root: Path, ports: Mapping[str, int], row: Row, column: Column, rival: Rival | None, every: bool, process: bool
) -> Story:
    """Play one cell against the Azurite on these ports, in a new folder under ``root``."""
    with _small_blocks(), scene(_make_folder(root), ports, row, column, rival, every) as played:
        if column.stored:
            with scene(_make_folder(root), ports, row, column, rival, every) as earlier:
                played.stored = earlier.play_earlier()
        ran = played.play(process=process)
        content, lease = played.look()
        etags = tuple(each.etag for each in played.commits)
        return Story(ran, etags, content, lease, played.told, played.broken)


def _make_folder(root: Path) -> Path:
    return Path(tempfile.mkdtemp(dir=root))


@contextmanager
def _small_blocks() -> Iterator[None]:
    with patch.object(put_blob, "SINGLE_BYTES", 2 * _SMALL), patch.object(put_blob, "BLOCK_BYTES", _SMALL):
        yield
