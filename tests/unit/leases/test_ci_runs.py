"""Whether a CI run is over: which service is asked, who gets a token, and what an answer proves."""

import base64
import json
from collections.abc import Mapping
from typing import Any

import pytest

from azguard.errors import AzguardError, Changed, Unavailable
from azguard.leases import ci_runs
from azguard.leases.ci_runs import RunCheck
from azguard.leases.owners import Owner
from azguard.requests.deadline import Deadline
from azguard.wire import client
from azguard.wire.connections import Headers, Reply
from tests.support.cases import cases

LOCK = "blob:locks/deploy"
GITHUB = "https://github.com/contoso/shop/actions/runs/71"
API = "https://api.github.com/repos/contoso/shop/actions/runs/71"
PIPELINES = "https://dev.azure.com/contoso/My%20Shop/_build/results?buildId=72"
BUILDS = "https://dev.azure.com/contoso/My%20Shop/_apis/build/builds/72?api-version=7.1"
TOKEN = {"GITHUB_TOKEN": "ghs_secret", "SYSTEM_ACCESSTOKEN": "pipelines_secret"}
ENTERPRISE = {"GITHUB_SERVER_URL": "https://git.contoso.com", "GITHUB_API_URL": "https://git.contoso.com/api/v3"}
SERVER = {"SYSTEM_COLLECTIONURI": "https://tfs.contoso.com:8443/tfs/main/"}
PAT = base64.b64encode(b":pat_secret").decode()


@cases(
    ("url", "environ", "asked", "authorization"),
    (GITHUB, {}, API, None),
    (GITHUB, TOKEN, API, "Bearer ghs_secret"),
    (GITHUB, {"GH_TOKEN": "gho_secret"}, API, "Bearer gho_secret"),
    (f"{GITHUB}/attempts/2", TOKEN, f"{API}/attempts/2", "Bearer ghs_secret"),
    (GITHUB, {**TOKEN, **ENTERPRISE}, API, None),
    ("https://git.contoso.com/contoso/shop/actions/runs/71", {**TOKEN, **ENTERPRISE},
     "https://git.contoso.com/api/v3/repos/contoso/shop/actions/runs/71", "Bearer ghs_secret"),
    (PIPELINES, TOKEN, BUILDS, "Bearer pipelines_secret"),
    (PIPELINES.replace("%20", " "), TOKEN, BUILDS, "Bearer pipelines_secret"),
    (PIPELINES, {"AZURE_DEVOPS_EXT_PAT": "pat_secret"}, BUILDS, f"Basic {PAT}"),
    (PIPELINES, {**TOKEN, **SERVER}, BUILDS, None),
    (PIPELINES, {**TOKEN, "SYSTEM_COLLECTIONURI": "https://dev.azure.com/fabrikam/"}, BUILDS, None),
    ("https://tfs.contoso.com:8443/tfs/main/shop/_build/results?buildId=72&view=logs", {**TOKEN, **SERVER},
     "https://tfs.contoso.com:8443/tfs/main/shop/_apis/build/builds/72?api-version=7.1", "Bearer pipelines_secret"),
)  # fmt: skip
def test_a_run_is_asked_about_at_its_own_service_and_a_token_goes_to_its_own_alone(
    url: str, environ: Mapping[str, str], asked: str, authorization: str | None
) -> None:
    found = ci_runs.locate(url, environ, LOCK)
    assert (found.api_url, found.authorization) == (asked, authorization)


@cases(
    "url",
    None,
    "",
    "https://evil.example/contoso/shop/actions/runs/71",
    "https://github.com.evil.example/contoso/shop/actions/runs/71",
    "https://github.com@evil.example/contoso/shop/actions/runs/71",
    "https://user:secret@github.com/contoso/shop/actions/runs/71",
    "https://evil.example#@github.com/contoso/shop/actions/runs/71",
    "https://evil.example\\@github.com/contoso/shop/actions/runs/71",
    "http://github.com/contoso/shop/actions/runs/71",
    "https://github.com:8443/contoso/shop/actions/runs/71",
    "https://github.com/../shop/actions/runs/71",
    "https://github.com/contoso/shop/actions/runs/71/../../../../user",
    "https://github.com/contoso/shop/actions/runs/٧",
    "https://dev.azure.com/../x/_build/results?buildId=72",
    "https://dev.azure.com/contoso/%2e%2e/_build/results?buildId=72",
    "https://dev.azure.com.evil.example/contoso/shop/_build/results?buildId=72",
    "https://dev.azure.com/contoso/shop/_build/results?buildId=x",
    "https://[::1/contoso/shop/actions/runs/71",
    "https://gitlab.com/contoso/shop/-/jobs/71",
    "file:///etc/passwd",
)
def test_no_service_is_asked_that_this_machine_does_not_name(url: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "get", lambda *arguments: pytest.fail(f"asked {arguments}"))
    with pytest.raises(Changed) as caught:
        RunCheck(TOKEN, Deadline(1.0)).check(of_run(url), LOCK)
    assert (caught.value.reason, "secret" in str(caught.value.message.replace(str(url), ""))) == (
        "run_not_askable",
        False,
    )


def test_a_token_is_not_sent_where_others_can_read_it() -> None:
    environ = {**TOKEN, "GITHUB_API_URL": "http://api.contoso.com"}
    with pytest.raises(Changed, match="over https alone"):
        ci_runs.locate(GITHUB, environ, LOCK)


def of_run(url: str | None, pid: int | None = 7) -> Owner:
    return Owner("ci", "runner", pid, "deploy.sh", "2026-11-22T09:00:00Z", run=url)


def answered(answer: Reply | OSError, monkeypatch: pytest.MonkeyPatch, url: str = GITHUB) -> AzguardError | None:
    """Return the error that a check ends with; None if the run is over."""

    def get(*_: Any) -> Reply:
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr(client, "get", get)
    try:
        RunCheck(TOKEN, Deadline(1.0)).check(of_run(url), LOCK)
    except AzguardError as error:
        return error
    return None


def reply(status: int, kind: str, content: bytes) -> Reply:
    return Reply(status, "", Headers([f"Content-Type: {kind}"]), content)


def run_is(status: object, number: int = 71) -> Reply:
    return reply(200, "application/json; charset=utf-8", json.dumps({"id": number, "status": status}).encode())


def test_a_run_that_is_completed_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    assert answered(run_is("completed"), monkeypatch) is None
    assert answered(run_is("completed", 72), monkeypatch, PIPELINES) is None


@pytest.mark.parametrize("status", ["in_progress", "queued", "waiting", "cancelling", "notStarted", "Completed", ""])
def test_a_run_that_is_anything_else_is_not_over(status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    error = answered(run_is(status), monkeypatch)
    assert (type(error), error and error.reason) == (Changed, "run_not_finished")


@cases(
    "answer",
    reply(404, "application/json", b'{"message": "Not Found"}'),
    reply(401, "application/json", b'{"id": 71, "status": "completed"}'),
    reply(203, "text/html", b"<html>sign in"),
    reply(302, "text/html", b""),
    reply(500, "application/json", b"{}"),
    reply(200, "text/html", b'{"id": 71, "status": "completed"}'),
    reply(200, "application/json", b"<html>"),
    reply(200, "application/json", b"[]"),
    reply(200, "application/json", b"[" * 100_000),
    reply(200, "application/json", b"\xff"),
    run_is("completed", 70),
    run_is(None),
    OSError("no network"),
)
def test_an_answer_that_does_not_say_is_never_taken_for_the_end(
    answer: Reply | OSError, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = answered(answer, monkeypatch)
    assert (type(error), error and error.reason) == (Unavailable, "run_unknown")


def test_a_state_that_drives_a_terminal_is_made_harmless_and_short(monkeypatch: pytest.MonkeyPatch) -> None:
    error = answered(run_is("\x1b[2J" + "x" * 5000), monkeypatch)
    assert error is not None
    assert "\x1b" not in error.message
    assert len(error.message) < 200


def test_a_lock_without_a_process_is_meant_to_outlive_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "get", lambda *_: run_is("completed"))
    with pytest.raises(Changed, match="is held without a process"):
        RunCheck(TOKEN, Deadline(1.0)).check(of_run(GITHUB, None), LOCK)
