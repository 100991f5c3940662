"""Whether the CI run in the record of a holder is over: asked of GitHub or of Azure Pipelines, never guessed.

Others wrote the record, so its URL is not trusted: a question, and a token, go only to the service that this machine's
own environment names, or to github.com and dev.azure.com.

Source: https://docs.github.com/rest/actions/workflow-runs and
https://learn.microsoft.com/rest/api/azure/devops/build/builds/get
"""

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import field
from http import HTTPStatus
from urllib.parse import quote, unquote, urlsplit

from azguard.accounts import endpoints
from azguard.errors import Changed, Unavailable
from azguard.frozen import frozen
from azguard.leases.owners import Owner, escape
from azguard.requests.deadline import Deadline
from azguard.wire import client
from azguard.wire.connections import Reply

_GITHUB = "https://github.com"
_GITHUB_API = "https://api.github.com"
_PIPELINES_HOST = "dev.azure.com"
_COLLECTION_VARIABLES = ("SYSTEM_COLLECTIONURI", "SYSTEM_TEAMFOUNDATIONCOLLECTIONURI")
_ANSWER_SECONDS = 10.0
# A service calls the state of a run by one word.
_LONGEST_WORD = 40

_GITHUB_PATH = re.compile(
    r"/(?P<owner>[\w.-]+)/(?P<repo>[\w.-]+)/actions/runs/(?P<id>\d+)(/attempts/(?P<attempt>\d+))?", re.ASCII
)
_PIPELINES_PATH = re.compile(r"(?P<project>/.+)/_build/results")
_BUILD = re.compile(r"(?:.*&)?buildId=(?P<id>\d+)(?:&.*)?", re.ASCII)


@frozen
class CiRun:
    """A run of a CI service, and where to ask about it."""

    url: str
    #: What is asked.
    api_url: str
    #: The number of the run, which the answer must have too.
    id: int
    #: The value of the Authorization header; None asks without a login.
    authorization: str | None = field(default=None, repr=False)


@frozen
class RunCheck:
    """The condition that the run in a record is over."""

    environ: Mapping[str, str] = field(repr=False)
    deadline: Deadline

    def check(self, owner: Owner | None, address: str) -> None:
        """Ask whether the run in a record is over.

        Raises:
            Changed: it goes on, there is none, it is of a service that may not be asked, or the lease is to outlive it.
            Unavailable: the service does not say.
        """
        if owner is not None and owner.run and owner.pid is None:
            raise _refuse(f"{address} is held without a process, so that the end of its run is not its own", address)
        run = locate(None if owner is None else owner.run, self.environ, address)
        status = _read_status(run, _ask(run, self.deadline, address), address)
        if status != "completed":
            raise Changed(
                f"the run that holds {address} is not over: {run.url} is {status}",
                address=address,
                reason="run_not_finished",
            )


def locate(url: str | None, environ: Mapping[str, str], address: str) -> CiRun:
    """Return where to ask about a run."""
    if not url:
        raise _refuse(f"the record of who holds {address} names no CI run", address)
    found = _locate_on_github(url, environ) or _locate_on_pipelines(url, environ)
    if found is None:
        raise _refuse(f"no CI service that this machine knows has the run {url}", address)
    if found.authorization and not endpoints.is_private(found.api_url):
        raise _refuse(f"a token is sent over https alone, and {_origin(found.api_url)} is not", address)
    return found


def _refuse(words: str, address: str) -> Changed:
    return Changed(words, address=address, reason="run_not_askable")


def _locate_on_github(url: str, environ: Mapping[str, str]) -> CiRun | None:
    server = (environ.get("GITHUB_SERVER_URL") or _GITHUB).rstrip("/")
    origin, path, _ = _split(url)
    found = _GITHUB_PATH.fullmatch(path)
    if found is None or origin not in (_origin(server), _GITHUB) or {".", ".."} & {found["owner"], found["repo"]}:
        return None
    is_ours = origin == _origin(server)
    api = environ.get("GITHUB_API_URL") if is_ours else None
    token = (environ.get("GITHUB_TOKEN") or environ.get("GH_TOKEN")) if is_ours else None
    api = (api or (_GITHUB_API if origin == _GITHUB else f"{server}/api/v3")).rstrip("/")
    attempt = f"/attempts/{found['attempt']}" if found["attempt"] else ""
    return CiRun(
        url,
        f"{api}/repos/{found['owner']}/{found['repo']}/actions/runs/{found['id']}{attempt}",
        int(found["id"]),
        f"Bearer {token}" if token else None,
    )


def _locate_on_pipelines(url: str, environ: Mapping[str, str]) -> CiRun | None:
    origin, path, query = _split(url)
    found, build = _PIPELINES_PATH.fullmatch(path), _BUILD.fullmatch(query)
    own = next((environ[name] for name in _COLLECTION_VARIABLES if environ.get(name)), None)
    usual = f"https://{_PIPELINES_HOST}"
    if found is None or build is None or origin not in (_origin(own or usual), usual):
        return None
    if {".", ".."} & set(unquote(found["project"]).split("/")):
        return None
    # A token of a pipeline is for its own organization.
    is_ours = url.startswith(f"{(own or usual).rstrip('/')}/")
    return CiRun(
        url,
        f"{origin}{quote(unquote(found['project']), safe='/')}/_apis/build/builds/{build['id']}?api-version=7.1",
        int(build["id"]),
        _authorize_on_pipelines(environ) if is_ours else None,
    )


def _authorize_on_pipelines(environ: Mapping[str, str]) -> str | None:
    if token := environ.get("SYSTEM_ACCESSTOKEN"):
        return f"Bearer {token}"
    if token := environ.get("AZURE_DEVOPS_EXT_PAT"):
        return "Basic " + base64.b64encode(f":{token}".encode()).decode()
    return None


def _split(url: str) -> tuple[str | None, str, str]:
    """Return origin, path and query of a URL; a URL with a user, or that is malformed, has no origin."""
    try:
        parts = urlsplit(url)
        is_plain = parts.username is None and parts.password is None and not parts.fragment and "\\" not in url
    except ValueError:
        return None, "", ""
    return (_origin(url) if is_plain else None), parts.path, parts.query


def _origin(url: str) -> str | None:
    """Return scheme, host and port of a URL; None where it has none."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not host:
        return None
    return f"{parts.scheme}://{host}" + (f":{port}" if port else "")


def _ask(run: CiRun, deadline: Deadline, address: str) -> Reply:
    try:
        return client.get(run.api_url, run.authorization, min(_ANSWER_SECONDS, deadline.seconds))
    except OSError as error:
        raise _build_unknown(run, f"there is no answer ({error})", address) from error


def _read_status(run: CiRun, answer: Reply, address: str) -> str:
    """Return the state of the run as the service calls it."""
    if answer.status_code != HTTPStatus.OK:
        without = "" if run.authorization else ", and no token is set"
        raise _build_unknown(run, f"it answers HTTP {answer.status_code}{without}", address)
    try:
        found = json.loads(answer.content) if "json" in answer.headers.get("Content-Type", "") else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or found.get("id") != run.id or not isinstance(found.get("status"), str):
        raise _build_unknown(run, "its answer is not about this run: a login page, or a proxy", address)
    return escape(found["status"])[:_LONGEST_WORD]


def _build_unknown(run: CiRun, why: str, address: str) -> Unavailable:
    return Unavailable(
        f"whether the run {run.url} is over is not known: {_origin(run.api_url)}: {why}",
        address=address,
        reason="run_unknown",
    )
