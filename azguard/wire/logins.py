"""The login: a CI job by its own OIDC token, else azure-identity's default chain.

A CI system's token ends after minutes. So it is asked for anew whenever the login needs one, and work that is longer
than its first login goes on. What ``az login`` was once given in a pipeline cannot be renewed like that.

Source: About security hardening with OpenID Connect, in the documentation of GitHub Actions; AzurePipelinesCredential
in that of azure-identity.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from azguard.accounts import endpoints
from azguard.accounts.endpoints import STORAGE_SCOPE, Cloud
from azguard.errors import LoginFailed
from azguard.times import iso
from azguard.wire import client, sdk

_GITHUB = ("ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "AZURE_CLIENT_ID", "AZURE_TENANT_ID")
_PIPELINES = (
    "SYSTEM_OIDCREQUESTURI", "SYSTEM_ACCESSTOKEN", "AZURESUBSCRIPTION_CLIENT_ID", "AZURESUBSCRIPTION_TENANT_ID",
    "AZURESUBSCRIPTION_SERVICE_CONNECTION_ID",
)  # fmt: skip
# A user who sets one of these means another identity than the job's own.
_CHOSEN = (
    "AZURE_CLIENT_SECRET",
    "AZURE_CLIENT_CERTIFICATE_PATH",
    "AZURE_FEDERATED_TOKEN_FILE",
    "AZURE_TOKEN_CREDENTIALS",
)
# What a service may ask for; the audiences of the clouds that are not the public one are storage's, too.
_STORAGE_SCOPES = (STORAGE_SCOPE, "https://storage.azure.us/.default", "https://storage.azure.cn/.default")
# A token with more time left is used again; azure-identity renews in its last five minutes as well.
_REUSED_SECONDS = 300.0
_CONNECT_SECONDS = 4.0
_ANSWER_SECONDS = 10.0
_TRIES = 3
_PAUSE_SECONDS = 0.5
# A program that hands out tokens, such as az, takes a second or two to start; azure-identity waits ten for its answer.
_PROGRAM_SECONDS = 10.0
_LEAST_PROGRAM_SECONDS = 3.0
_TIMEOUTS = {"connection_timeout": _CONNECT_SECONDS, "read_timeout": _ANSWER_SECONDS, "retry_total": _TRIES - 1}


@dataclass
class Login:
    """A credential that knows when its token ends and where it comes from. Threads may share it.

    It names the token's end as the cause where a new one cannot be had.
    """

    credential: Any
    #: Where the token comes from, for messages.
    source: str
    #: The URL of the authority that hands out the token; None if there are several.
    authority: str | None
    #: The name of the cause if none can be had.
    reason: str
    #: Whether a new token can be had for as long as the work takes.
    renewable: bool
    #: Is told the end of each token that cannot be renewed, on the clock of ``time.time``, and the ``reason``.
    tell_end: Callable[[float, str], None] = lambda ends, reason: None
    #: The endpoint that may not say which tenant's token it takes; None if all may.
    foreign_endpoint: str | None = None
    #: The tenant that the service named; None is the login's own.
    _tenant: str | None = None
    _tokens: dict[tuple[tuple[str, ...], str | None], Any] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get_token_info(self, *scopes: str, options: Any = None) -> Any:
        """Return a token; ``options`` may pass on what a service asked for in answer to an earlier token."""
        asked = dict(options or {})
        self._check_challenge(scopes, asked.get("tenant_id"))
        with self._lock:
            if self._tenant is not None:
                asked.setdefault("tenant_id", self._tenant)
            self._tenant = asked.get("tenant_id")
            known = self._tokens.get((scopes, self._tenant))
            if known is not None and not asked.get("claims") and _seconds_left(known) > _REUSED_SECONDS:
                return known
            try:
                found = self.credential.get_token_info(*scopes, options=asked)
            except Exception as error:  # azure-identity raises errors of many libraries; a token still valid goes on
                if known is not None and _seconds_left(known) > 0:
                    return known
                raise self._describe_failure(error, known) from error
            if not self.renewable:
                self.tell_end(float(found.expires_on), self.reason)
            self._tokens[scopes, self._tenant] = found
            return found

    def _check_challenge(self, scopes: tuple[str, ...], tenant: str | None) -> None:
        """Refuse to fetch what nothing of ours needs: it would be sent to the endpoint that asked for it."""
        other = next((each for each in scopes if each.replace("//.", "/.") not in _STORAGE_SCOPES), None)
        if other is not None:
            of_tenant = f" of the tenant {tenant}" if tenant else ""
            raise LoginFailed(
                f"the service asked for a token{of_tenant} for {other.removesuffix('/.default')}, "
                "and a login gives away tokens for storage only",
                reason="token_for_another_service",
            )
        if tenant is not None and self.foreign_endpoint is not None:
            raise LoginFailed(
                f"{self.foreign_endpoint}, which is not Azure's own host, asked for a token of the tenant {tenant}",
                reason="tenant_named_by_stranger",
            )

    def _describe_failure(self, error: Exception, known: Any) -> LoginFailed:
        why, *more = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        found = LoginFailed("", reason=self.reason)
        if isinstance(error, LoginFailed):
            found = error
        elif self.authority is not None and (silence := sdk.explain(error, self.authority)) is not None:
            why, more = silence.message, []
            found = silence
        if known is None:
            message = f"no login could be had from {self.source}: {why}"
        else:
            ended = iso(datetime.fromtimestamp(known.expires_on, UTC))
            message = f"the login's token ended at {ended}, and no new one could be had from {self.source}: {why}"
        # Of each credential in a chain, its first sentence.
        detail = tuple(line.partition(". ")[0] for line in more if "Credential: " in line)
        return found.but(message=message, detail=detail)


def choose(environ: Mapping[str, str], cloud: Cloud, seconds: float | None = None) -> Login:
    """Return the login of this machine or CI job, in a cloud; ``AZURE_AUTHORITY_HOST`` names another authority.

    ``seconds`` is how long the caller has for each program that is asked; None is as long as such a program may take.
    """
    try:
        return _choose(environ, cloud, _PROGRAM_SECONDS if seconds is None else seconds)
    except OSError as error:
        raise LoginFailed(
            f"the login cannot be made: {error.filename}: {error.strerror}", reason="login_malformed"
        ) from error
    except ValueError as error:
        raise LoginFailed(f"the login cannot be made: {error}", reason="login_malformed") from error


def _choose(environ: Mapping[str, str], cloud: Cloud, seconds: float) -> Login:
    authority: dict[str, Any] = {} if environ.get("AZURE_AUTHORITY_HOST") else {"authority": cloud.authority}
    if not any(environ.get(name) for name in _CHOSEN):
        if all(environ.get(name) for name in _GITHUB):
            return _of_github(environ, cloud, authority)
        if all(environ.get(name) for name in _PIPELINES):
            return _of_pipelines(environ, authority)
    patience = min(_PROGRAM_SECONDS, max(_LEAST_PROGRAM_SECONDS, seconds))
    return _of_machine(environ, {**authority, "process_timeout": patience})


def _of_machine(environ: Mapping[str, str], settings: Mapping[str, Any]) -> Login:
    from azure.identity import DefaultAzureCredential

    login = Login(
        DefaultAzureCredential(transport=sdk.make_transport(), **settings),
        source="this machine",
        authority=None,
        reason="no_login",
        # A user's login renews itself, and Kubernetes renews its file. What a CI system handed out once ends.
        renewable=not environ.get("CI") and not environ.get("TF_BUILD"),
    )
    if environ.get("GITHUB_ACTIONS"):
        return replace(login, reason="no_login_in_github")
    if environ.get("TF_BUILD"):
        return replace(login, reason="no_login_in_pipelines")
    return login


def _of_github(environ: Mapping[str, str], cloud: Cloud, settings: Mapping[str, Any]) -> Login:
    from azure.identity import ClientAssertionCredential

    url, token = environ["ACTIONS_ID_TOKEN_REQUEST_URL"], environ["ACTIONS_ID_TOKEN_REQUEST_TOKEN"]
    credential = ClientAssertionCredential(
        environ["AZURE_TENANT_ID"],
        environ["AZURE_CLIENT_ID"],
        lambda: _github_assertion(url, token, cloud.audience),
        transport=sdk.make_transport(),
        **_TIMEOUTS,
        **settings,
    )
    return _of_job(credential, "GitHub Actions", environ, settings, reason="federated_credential_missing")


def _of_pipelines(environ: Mapping[str, str], settings: Mapping[str, Any]) -> Login:
    from azure.identity import AzurePipelinesCredential

    credential = AzurePipelinesCredential(
        tenant_id=environ["AZURESUBSCRIPTION_TENANT_ID"],
        client_id=environ["AZURESUBSCRIPTION_CLIENT_ID"],
        service_connection_id=environ["AZURESUBSCRIPTION_SERVICE_CONNECTION_ID"],
        system_access_token=environ["SYSTEM_ACCESSTOKEN"],
        transport=sdk.make_transport(),
        **_TIMEOUTS,
        **settings,
    )
    return _of_job(credential, "Azure Pipelines", environ, settings, reason="service_connection_refused")


def _of_job(
    credential: Any, service: str, environ: Mapping[str, str], settings: Mapping[str, Any], *, reason: str
) -> Login:
    host = settings.get("authority") or environ["AZURE_AUTHORITY_HOST"]
    return Login(
        credential,
        source=f"the OIDC token of this {service} job",
        authority=host if "://" in host else f"https://{host}",
        reason=reason,
        renewable=True,
    )


def _github_assertion(url: str, token: str, audience: str, pause: Callable[[float], None] = time.sleep) -> str:
    """Ask GitHub for a fresh OIDC token of this job."""
    from urllib.parse import quote

    asked = f"{url}{'&' if '?' in url else '?'}audience={quote(audience, safe='')}"
    for attempt in range(_TRIES):
        status, value = _ask(asked, token)
        if value:
            return value
        if status is not None and status < HTTPStatus.INTERNAL_SERVER_ERROR and status != HTTPStatus.TOO_MANY_REQUESTS:
            break
        if attempt < _TRIES - 1:
            pause(_PAUSE_SECONDS * 2**attempt)
    if status is not None:
        told = f"GitHub's token service answered HTTP {status} without a token"
        raise LoginFailed(told, reason="job_without_id_token")
    proxy = endpoints.find_proxy(url)
    through = "" if proxy is None else f", through the proxy {proxy.address}"
    raise LoginFailed(f"GitHub's token service does not answer{through}", reason="token_service_silent")


def _ask(url: str, token: str) -> tuple[int | None, str | None]:
    """Return the status of the answer, None if there was none, and the token in it."""
    try:
        answer = client.get(url, f"Bearer {token}", _ANSWER_SECONDS)
        found = json.loads(answer.content)
    except OSError:
        return None, None
    except ValueError:
        return answer.status_code, None
    value = found.get("value") if isinstance(found, dict) else None
    return answer.status_code, value if answer.status_code < HTTPStatus.BAD_REQUEST and isinstance(value, str) else None


def _seconds_left(token: Any) -> float:
    return float(token.expires_on) - time.time()
