"""Each fault of the proxy, against a real local server and against Azurite."""

import asyncio
import http.client
import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from azguard.accounts import account
from azguard.emulators.azurite_process import Azurite
from tests.faults.rules import Rule, after, at_random, by_rules, operation
from tests.support import sdk_clients, threaded_server
from tests.support.cases import cases
from tests.support.emulator_world import until
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Chosen, Fault, ProxiedAnswer, Request
from tests.support.places import REPOSITORY


class _Server(ThreadingHTTPServer):
    """Remembers the bodies that were put, in their order."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.done: list[bytes] = []


class _Handler(BaseHTTPRequestHandler):
    """Answers a PUT with what was put, and says that it is noon."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_PUT(self) -> None:
        said = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.done.append(said)
        self.send_response(201)
        self.send_header("ETag", '"0x8DC1234567890AB"')
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def date_time_string(self, _timestamp: float | None = None) -> str:
        return "Tue, 31 Dec 2024 12:00:00 GMT"

    def log_message(self, *_words: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[_Server]:
    with threaded_server.running(_Server()) as running:
        yield running


@dataclass(frozen=True)
class _Heard:
    """What a client heard: a status and a body, or the name of the error."""

    status: int | str
    body: bytes = b""
    etag: str | None = None


@contextmanager
def _through(server: _Server, *faults: Fault | Chosen) -> Iterator[proxy.Proxy]:
    """Run a proxy that does these faults in turn, then none."""
    left = list(faults)
    with proxy.running(server.server_port, lambda request: left.pop(0) if left else Fault.NONE) as running:
        yield running


def _put(running: proxy.Proxy, body: bytes = b"content", patience: float = 60.0) -> _Heard:
    client = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
    try:
        client.request("PUT", "/x", body)
        client.sock.settimeout(patience)
        response = client.getresponse()
        return _Heard(response.status, response.read(), response.getheader("ETag"))
    except (OSError, http.client.HTTPException) as error:
        return _Heard(type(error).__name__)
    finally:
        client.close()


def _statuses(running: proxy.Proxy) -> list[tuple[Fault, int | None]]:
    return [(each.fault, each.status) for each in running.log]


@pytest.mark.parametrize(
    ("fault", "heard", "status"),
    [
        (Fault.DROP, "RemoteDisconnected", 201),
        (Fault.FAIL_AFTER, 503, 201),
        (Fault.HALF, "IncompleteRead", 201),
        (Fault.RESET, "ConnectionResetError", None),
        (Fault.FAIL_BEFORE, 503, None),
    ],
)
def test_a_fault_is_what_it_says_and_the_log_tells_the_truth(
    server: _Server, fault: Fault, heard: int | str, status: int | None
) -> None:
    with _through(server, fault) as running:
        assert _put(running).status == heard
        assert (server.done, _statuses(running)) == ([b"content"] if status else [], [(fault, status)])
        assert _put(running) == _Heard(201, b"content", '"0x8DC1234567890AB"')


def test_a_late_answer_is_kept_until_the_client_has_given_up(server: _Server) -> None:
    with _through(server, Fault.LATE) as running:
        assert _put(running, patience=0.2).status == "TimeoutError"
        until(lambda: running.log)
        assert (server.done, _statuses(running)) == ([b"content"], [(Fault.LATE, 201)])


def test_a_zombie_is_delivered_whole_after_the_client_gave_up(server: _Server) -> None:
    large = bytes(range(256)) * 10_000
    may_land = threading.Event()
    with _through(server, Chosen(Fault.ZOMBIE, may_land.is_set)) as running:
        assert _put(running, large, patience=0.2).status == "TimeoutError"
        assert _put(running, b"next").status == 201
        assert server.done == [b"next"]
        may_land.set()
        until(lambda: len(running.log) == 2)
        assert (server.done, _statuses(running)) == ([b"next", large], [(Fault.NONE, 201), (Fault.ZOMBIE, 201)])


def test_a_zombie_does_not_land_while_the_client_still_waits(server: _Server) -> None:
    with _through(server, Fault.ZOMBIE) as running:
        client = http.client.HTTPConnection("127.0.0.1", running.port)
        client.request("PUT", "/x", b"held")
        assert _put(running, b"next").status == 201
        assert server.done == [b"next"]
        client.close()
        until(lambda: server.done == [b"next", b"held"])


def test_half_an_answer_without_a_body_ends_inside_the_etag(server: _Server) -> None:
    with _through(server, Fault.HALF) as running:
        assert _put(running, b"").etag == '"0x8DC12'


def test_a_slow_answer_is_whole_and_never_silent_for_long(server: _Server, monkeypatch: pytest.MonkeyPatch) -> None:
    sleep, pauses = asyncio.sleep, list[float]()

    async def note(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", note)
    with _through(server, Fault.SLOW) as running:
        assert _put(running) == _Heard(201, b"content", '"0x8DC1234567890AB"')
    assert (sum(pauses) > 0.3, max(pauses) < 0.1) == (True, True)


def test_any_request_can_be_made_to_wait(server: _Server) -> None:
    go = threading.Event()
    with _through(server, Chosen(until=go.is_set)) as running:
        assert _put(running, b"first", patience=0.2).status == "TimeoutError"
        assert server.done == []
        go.set()
        until(lambda: server.done == [b"first"])


@pytest.mark.parametrize(("fault", "done"), [(Fault.STORED_AFTER, [b"1", b"2"]), (Fault.STORED_BEFORE, [b"1"])])
def test_a_stored_answer_is_given_to_a_later_request_on_the_same_connection(
    server: _Server, fault: Fault, done: list[bytes]
) -> None:
    kept: list[ProxiedAnswer] = []

    def decide(request: Request) -> Fault | Chosen:
        return Chosen(fault, stored=kept[0].raw) if len(kept) == 1 else Chosen(keeps=True)

    with proxy.running(server.server_port, decide, record=kept.append) as running:
        client = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
        heard = []
        for body in (b"1", b"2", b"3"):
            client.request("PUT", "/x", body)
            heard.append(client.getresponse().read())
        client.close()
    assert (heard, server.done, kept[1].status) == ([b"1", b"1", b"3"], [*done, b"3"], 201 if len(done) == 2 else None)


@pytest.mark.parametrize(
    ("ahead_seconds", "date"),
    [
        (0, "Tue, 31 Dec 2024 12:00:00 GMT"),
        (7200, "Tue, 31 Dec 2024 14:00:00 GMT"),
        (-43201, "Mon, 30 Dec 2024 23:59:59 GMT"),
    ],
)
def test_an_answer_can_tell_another_time_and_the_log_the_true_one(
    server: _Server, ahead_seconds: int, date: str
) -> None:
    with _through(server, Chosen(ahead_seconds=ahead_seconds)) as running:
        client = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
        client.request("PUT", "/x", b"")
        assert client.getresponse().getheader("Date") == date
        client.close()
        assert running.log[0].headers["date"] == "Tue, 31 Dec 2024 12:00:00 GMT"


def test_an_answer_can_be_made_to_name_its_request(server: _Server) -> None:
    with _through(server, Chosen(), Chosen(echoes=True, keeps=True)) as running:
        client = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
        heard = []
        for name in ("a", "b"):
            client.request("PUT", "/x", b"said", {"x-ms-client-request-id": name})
            answer = client.getresponse()
            heard.append((answer.getheader("x-ms-client-request-id"), answer.read()))
        client.close()
        assert heard == [(None, b"said"), ("b", b"said")]
        assert running.log[1].raw.endswith(b"\r\nx-ms-client-request-id: b\r\n\r\nsaid")


def test_answers_are_recorded_before_the_client_hears_them(server: _Server) -> None:
    recorded: list[ProxiedAnswer] = []
    with proxy.running(server.server_port, lambda request: Fault.NONE, record=recorded.append) as running:
        before = time.time()
        _put(running)
        (answer,) = recorded
        assert before <= (answer.sent or 0) <= (answer.answered or 0) <= time.time()
        assert (answer.committed, answer.etag, answer.headers["content-length"]) == (True, '"0x8DC1234567890AB"', "7")


def _request(method: str, query: str = "", **headers: str) -> Request:
    return Request(method, f"/account/container/blob{query}", headers)


def test_operations_have_names() -> None:
    asked = [
        _request("PUT"),
        _request("PUT", "?comp=block&blockid=1"),
        _request("PUT", "?restype=container"),
        _request("PUT", "?restype=container&comp=lease", **{"x-ms-lease-action": "acquire"}),
        _request("GET", "?restype=container&comp=list"),
        _request("HEAD"),
    ]
    assert [operation(each) for each in asked] == [
        "PUT blob", "PUT block", "PUT container", "PUT lease:acquire", "GET list", "HEAD blob",
    ]  # fmt: skip


def test_rules_count_the_requests_they_name() -> None:
    decide = by_rules([Rule.parse("put blob 2 drop"), Rule.parse("PUT * 3 reset"), Rule.parse("GET * * slow")])
    asked = [_request("PUT"), _request("GET"), _request("PUT"), _request("PUT", "?comp=metadata"), _request("PUT")]
    assert [decide(each) for each in asked] == [Fault.NONE, Fault.SLOW, Fault.DROP, Fault.RESET, Fault.NONE]


@cases("text", "", "PUT blob drop", "PUT blob x drop", "PUT blob 1 explode", "PUT blob 1 stored-after")
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not|invalid literal"):
        Rule.parse(text)


def test_the_same_seed_does_the_same_to_the_same_requests() -> None:
    def faults(seed: int, *, reads: bool = False) -> list[Fault]:
        decide = at_random(seed, 0.25, {Fault.DROP: 3, Fault.ZOMBIE: 1}, reads=reads)
        decided = [decide(_request("GET" if number % 2 else "PUT")) for number in range(400)]
        return [each.fault if isinstance(each, Chosen) else each for each in decided]

    assert faults(1) == faults(1) != faults(2)
    assert [set(faults(1)[1::2]), set(faults(1, reads=True)[1::2])] == [{Fault.NONE}, set(Fault) & {
        Fault.NONE, Fault.DROP, Fault.ZOMBIE}]  # fmt: skip
    assert 25 < sum(fault is not Fault.NONE for fault in faults(1)) < 80


def test_a_moment_passes_from_the_first_time_it_is_asked_for() -> None:
    clock = iter([5.0, 5.5, 6.0])
    passed = after(1.0, lambda: next(clock))
    assert [passed(), passed(), passed()] == [False, False, True]


@contextmanager
def _command(*words: str) -> Iterator[tuple[int, "subprocess.Popen[str]"]]:
    """Run the proxy as a command and yield its port."""
    running = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.proxy", *words],
        cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert running.stdout is not None
        yield int(running.stdout.readline()), running
    finally:
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=60)


def test_the_command_logs_what_azurite_really_did(azurite: Azurite, tmp_path: Path) -> None:
    from azure.core.exceptions import ServiceResponseError

    log = tmp_path / "truth.jsonl"
    rules = ("--rule", "PUT blob 2 drop", "--rule", "PUT blob 3 503-after")
    with _command("--upstream", str(azurite.ports["blob"]), *rules, "--log", str(log)) as (port, _):
        service = sdk_clients.blob_service(account.emulator({"blob": port}))
        container = service.get_container_client(f"truth{random.randrange(10**9)}")
        container.create_container()
        blob = container.get_blob_client("x")
        stamp, first = {"azguardlineage": "op.parent"}, blob.upload_blob(b"1")["etag"]
        with pytest.raises(ServiceResponseError):
            blob.upload_blob(b"2", overwrite=True, metadata=stamp, headers={"If-Match": first})
        with pytest.raises(Exception, match="ServerBusy"):
            blob.upload_blob(b"3", headers={"If-None-Match": "*"}, overwrite=True)
    told = [json.loads(line) for line in log.read_text().splitlines()]
    seen = [(each["operation"], each["fault"], each["status"], each["error"]) for each in told]
    assert seen == [
        ("PUT container", "none", 201, None),
        ("PUT blob", "none", 201, None),
        ("PUT blob", "drop", 201, None),
        ("PUT blob", "503-after", 409, "BlobAlreadyExists"),
    ]
    second = told[2]
    assert (second["if_match"], second["lineage"], told[1]["etag"]) == (first, "op.parent", first)
    assert [bool(second[name]) for name in ("etag", "client_request_id", "request_id")] == [True, True, True]
    assert second["sent"] < second["answered"]


def test_the_command_says_its_seed(azurite: Azurite) -> None:
    with _command("--upstream", str(azurite.ports["blob"]), "--share", "0.5", "--seed", "7") as (_, running):
        assert running.stderr is not None
        assert running.stderr.readline() == "seed 7\n"


def test_a_conditional_zombie_is_refused_by_azurite(azurite: Azurite) -> None:
    """What azguard builds on: a write with If-Match that is delivered late does no harm."""
    from azure.core.exceptions import ServiceResponseError

    spoil = by_rules([Rule.parse("PUT blob 2 zombie")])
    landed = threading.Event()

    def decide(request: Request) -> Fault | Chosen:
        return Chosen(Fault.ZOMBIE, landed.is_set) if spoil(request) is Fault.ZOMBIE else Fault.NONE

    with proxy.running(azurite.ports["blob"], decide) as running:
        service = sdk_clients.blob_service(account.emulator({"blob": running.port}))
        container = service.get_container_client(f"zombie{random.randrange(10**9)}")
        container.create_container()
        blob = container.get_blob_client("x")
        guard = {"If-Match": blob.upload_blob(b"1")["etag"]}
        with pytest.raises(ServiceResponseError):
            blob.upload_blob(b"2", overwrite=True, headers=guard, read_timeout=0.3)
        blob.upload_blob(b"3", overwrite=True, headers=guard)
        landed.set()
        until(lambda: len(running.log) == 4)
        assert blob.download_blob().readall() == b"3"
        assert [each.status for each in running.log[:4]] == [201, 201, 201, 412]
