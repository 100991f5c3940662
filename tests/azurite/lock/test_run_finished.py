"""``lock break --if-run-finished``: a CI service that is asked over the network, and the very lease that is broken."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from azguard.leases.owners import OWNER, SERVICE_CLOCK, Owner
from tests.support import threaded_server
from tests.support.cli_world import CliWorld

A = "aaaaaaaa-0000-4000-8000-000000000000"
SECRETS = {"GITHUB_TOKEN": "ghs_verysecret", "SYSTEM_ACCESSTOKEN": "pipelines_verysecret"}


@dataclass
class CiService:
    """A running service: what it answers, and what it was asked."""

    url: str = ""
    status: int = 200
    body: Any = None
    asked: list[tuple[str, str | None]] = field(default_factory=list)


@contextmanager
def running() -> Iterator[CiService]:
    service = CiService()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            service.asked.append((self.path, self.headers.get("Authorization")))
            content = json.dumps(service.body).encode()
            self.send_response(service.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_words: object) -> None:
            """Keep quiet."""

    with threaded_server.running(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        service.url = f"http://127.0.0.1:{server.server_address[1]}"
        yield service


@pytest.fixture
def ci() -> Iterator[CiService]:
    """Run a CI service that this machine's environment names."""
    with running() as service:
        yield service


def environ(ci: CiService) -> dict[str, str]:
    return {
        **SECRETS,
        "GITHUB_SERVER_URL": ci.url,
        "GITHUB_API_URL": f"{ci.url}/api/v3",
        "SYSTEM_COLLECTIONURI": f"{ci.url}/contoso/",
    }


def hold(cli: CliWorld, run: str | None) -> str:
    """Return a lock that a CI run holds, by its record."""
    from azure.storage.blob import BlobClient

    container = cli.container()
    client = BlobClient.from_connection_string(str(cli.connection_string), container, "deploy")
    client.upload_blob(b"")
    client.acquire_lease(-1, A)
    record = Owner("ci", "runner", 7, "deploy.sh", "2026-11-21T09:00:00Z", run=run, clock=SERVICE_CLOCK).tie_to_lease(
        A, None
    )
    client.set_blob_metadata({OWNER: record.as_metadata()}, lease=A)
    return f"blob:{container}/deploy"


def is_held(cli: CliWorld, lock: str) -> bool:
    held: bool = cli.call("lock", "show", lock).json["held"]
    return held


@pytest.mark.parametrize(
    ("path", "asked", "token"),
    [
        ("contoso/shop/actions/runs/71/attempts/2", "/api/v3/repos/contoso/shop/actions/runs/71/attempts/2",
         "Bearer ghs_verysecret"),
        ("contoso/shop/_build/results?buildId=71", "/contoso/shop/_apis/build/builds/71?api-version=7.1",
         "Bearer pipelines_verysecret"),
    ],
    ids=["github", "pipelines"],
)  # fmt: skip
def test_the_lock_of_a_finished_run_is_broken(cli: CliWorld, ci: CiService, path: str, asked: str, token: str) -> None:
    lock = hold(cli, f"{ci.url}/{path}")
    ci.body = {"id": 71, "status": "completed", "conclusion": "failure"}
    ran = cli.call("lock", "break", lock, "--if-run-finished", env=environ(ci))
    assert (ran.code, ran.json["broken"]["held_by"], is_held(cli, lock)) == (0, "ci@runner", False)
    assert ci.asked == [(asked, token)]


def test_the_lock_of_a_run_that_goes_on_stays(cli: CliWorld, ci: CiService) -> None:
    lock = hold(cli, f"{ci.url}/contoso/shop/actions/runs/71")
    ci.body = {"id": 71, "status": "in_progress"}
    ran = cli.call("lock", "break", lock, "--if-run-finished", "--yes", env=environ(ci))
    assert (ran.code, is_held(cli, lock)) == (42, True)
    assert "71 is in_progress" in ran.err


@pytest.mark.parametrize("status", [401, 404, 302, 503])
def test_a_service_that_does_not_say_breaks_and_shows_nothing(cli: CliWorld, ci: CiService, status: int) -> None:
    lock = hold(cli, f"{ci.url}/contoso/shop/actions/runs/71")
    ci.status, ci.body = status, {"id": 71, "status": "completed"}
    ran = cli.call("lock", "break", lock, "--if-run-finished", "--debug", env=environ(ci))
    assert (ran.code, is_held(cli, lock), "verysecret" in ran.err + ran.out) == (53, True, False)
    assert f"it answers HTTP {status}" in ran.err


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "https://no-such-host.invalid", "https://xn--a.invalid"])
def test_a_service_that_does_not_answer_breaks_nothing(cli: CliWorld, url: str) -> None:
    lock = hold(cli, f"{url}/contoso/shop/actions/runs/71")
    env = {**SECRETS, "GITHUB_SERVER_URL": url, "GITHUB_API_URL": f"{url}/api/v3"}
    ran = cli.call("lock", "break", lock, "--if-run-finished", "--timeout", "5s", env=env)
    assert (ran.code, is_held(cli, lock)) == (53, True)
    assert f"{url}: there is no answer" in ran.err


def test_a_record_that_names_another_service_gets_no_token_and_no_request(cli: CliWorld, ci: CiService) -> None:
    with running() as evil:
        evil.body = {"id": 71, "status": "completed"}
        lock = hold(cli, f"{evil.url}/contoso/shop/actions/runs/71")
        ran = cli.call("lease", "break", lock, "--if-run-finished", env=environ(ci))
        assert (ran.code, is_held(cli, lock), evil.asked, ci.asked) == (42, True, [], [])


def test_a_record_without_a_run_proves_nothing(cli: CliWorld, ci: CiService) -> None:
    lock = hold(cli, None)
    ran = cli.call("lock", "break", lock, "--if-run-finished", env=environ(ci))
    assert (ran.code, is_held(cli, lock)) == (42, True)
    assert "names no CI run" in ran.err


def test_the_next_run_keeps_its_lock(cli: CliWorld, ci: CiService, monkeypatch: pytest.MonkeyPatch) -> None:
    from azure.storage.blob import BlobClient

    from azguard.leases.ci_runs import RunCheck

    lock = hold(cli, f"{ci.url}/contoso/shop/actions/runs/71")
    ci.body = {"id": 71, "status": "completed"}
    check = RunCheck.check

    def check_and_hand_over(self: RunCheck, owner: Owner | None, address: str) -> None:
        check(self, owner, address)
        client = BlobClient.from_connection_string(str(cli.connection_string), *lock.split(":")[1].split("/"))
        record = Owner(
            "ci",
            "runner",
            8,
            "deploy.sh",
            "2026-11-21T09:05:00Z",
            run=f"{ci.url}/contoso/shop/actions/runs/72",
            clock=SERVICE_CLOCK,
        ).tie_to_lease(A, None)
        client.set_blob_metadata({OWNER: record.as_metadata()}, lease=A)

    monkeypatch.setattr(RunCheck, "check", check_and_hand_over)
    ran = cli.call("lock", "break", lock, "--if-run-finished", env=environ(ci))
    assert (ran.code, is_held(cli, lock)) == (42, True)
    assert "another holds the lease" in ran.err
