"""Why no answer came: the proxy, the host's name, TLS, a stopped emulator, or time; each with a name of its own.

How long a service wants to be left alone (``Retry-After``) is noted once, where answers arrive, for all threads of this
process. Each service, by its host and port, has a time of its own; its latest answer counts.
"""

import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import urlsplit

from azguard import times
from azguard.accounts import endpoints
from azguard.accounts.endpoints import EMULATOR_NAME, NamedProxy
from azguard.accounts.exchanges import OF_ANOTHER_REQUEST, TOO_LONG, TRUNCATED
from azguard.errors import LoginFailed

_NO_BUNDLE = "Could not find a suitable TLS CA certificate bundle"
_TUNNEL = re.compile(r"Tunnel connection failed: (\d{3})\s*([^'\")]*)")
_SAYS_LATER = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
_SECONDS = re.compile(r"[0-9]+")
# Thirty years.
_MOST_SECONDS = 1e9
_until: dict[str, float] = {}


@dataclass(frozen=True)
class NoAnswer:
    """Why there was no answer, in one sentence, and the name of the cause with what its hint names."""

    message: str
    reason: str
    values: Mapping[str, object] = field(default_factory=dict)


# What the text of the innermost reason means, by its first words that fit.
_PLAIN = {
    "Network is unreachable": NoAnswer("this machine has no way to that network", reason="no_route"),
    "No route to host": NoAnswer("this machine has no way to that host", reason="no_route"),
    "Connection refused": NoAnswer("connection refused: nothing listens there", reason="nothing_listens"),
    "timed out": NoAnswer("timed out", reason="timed_out"),
    "Remote end closed": NoAnswer("the connection was closed before an answer came", reason="cut_off"),
    OF_ANOTHER_REQUEST: NoAnswer(OF_ANOTHER_REQUEST, reason="answer_of_another_request"),
    TOO_LONG: NoAnswer(TOO_LONG, reason="answer_too_long"),
    TRUNCATED: NoAnswer(TRUNCATED, reason="cut_off"),
    "Connection reset": NoAnswer("the connection was reset", reason="cut_off"),
}


def explain(error: BaseException, endpoint: str, service: str | None = None) -> NoAnswer:
    """Return why a request to an endpoint, of one of the four services or of an authority, got no answer.

    No other URL is repeated: it may hold a SAS, or a proxy's password.
    """
    host, proxy = urlsplit(endpoint).hostname or endpoint, endpoints.find_proxy(endpoint)
    text = str(error)
    if proxy is not None and (found := _by_proxy(error, host, proxy)):
        return found
    if found := _by_name(text, host, endpoint) or _by_tls(error, host):
        return found
    refused = "Connection refused" in text
    if refused and endpoints.is_loopback(host) and endpoint.endswith(f"/{EMULATOR_NAME}"):
        return _describe_stopped_emulator(endpoint, service)
    through = "" if proxy is None else f", through the proxy {proxy.address}"
    for words, plain in _PLAIN.items():
        if words in text:
            return NoAnswer(f"no answer from {endpoint}{through}: {plain.message}", plain.reason)
    return NoAnswer(f"no answer from {endpoint}{through}: {type(error).__name__}", reason="network_unclear")


def never_sent(cause: BaseException) -> bool:
    """Return whether an exception in a chain of causes proves that no byte of the request was sent.

    A token is fetched and a certificate verified before anything is said; a proxy that refuses a tunnel passes nothing
    on. Other TLS errors can come after the request was delivered.
    """
    if isinstance(cause, (ssl.SSLCertVerificationError, LoginFailed)):
        return True
    return _is_setting(cause) or _tunnel_refusal(cause) is not None


def is_final(error: BaseException) -> bool:
    """Return whether asking again soon cannot help: what answers there, or a setting of this machine, must change."""
    return TOO_LONG in str(error) or any(never_sent(cause) for cause in _causes(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and those that it holds, the outermost first."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        inner = getattr(cause, "inner_exception", None) or getattr(cause, "reason", None)
        inside = next((each for each in cause.args if isinstance(each, BaseException)), None)
        cause = inner if isinstance(inner, BaseException) else inside or cause.__cause__


def _is_setting(cause: BaseException) -> bool:
    from requests.exceptions import InvalidProxyURL, InvalidSchema, InvalidURL

    if isinstance(cause, OSError) and str(cause).startswith(_NO_BUNDLE):
        return True
    return isinstance(cause, (InvalidProxyURL, InvalidSchema, InvalidURL))


def _tunnel_refusal(cause: BaseException) -> "re.Match[str] | None":
    return _TUNNEL.match(str(cause)) if isinstance(cause, OSError) else None


def _by_proxy(error: BaseException, host: str, proxy: NamedProxy) -> NoAnswer | None:
    """Return the explanation of a failed connection by its proxy; None if the proxy had no part in the failure."""
    from urllib3.exceptions import NewConnectionError, ProxyError

    causes = list(_causes(error))
    text = str(error)
    names = _proxy_names(proxy, host)
    if refusal := next(filter(None, map(_tunnel_refusal, causes)), None):
        return describe_proxy_refusal(proxy, host, int(refusal[1]), refusal[2].strip())
    if "SOCKS" in text:
        return NoAnswer(f"the proxy in {proxy.variable} is a SOCKS proxy, which needs PySocks", reason="socks_proxy")
    if proxy.address == "?" or any(_is_setting(cause) for cause in causes if not isinstance(cause, OSError)):
        return NoAnswer(f"the proxy in {proxy.variable} is not a URL", reason="proxy_not_url", values=names)
    if not any(isinstance(cause, ProxyError) for cause in causes):
        return None
    if "only use HTTP and not HTTPS" in text:
        return NoAnswer(f"the proxy {proxy.address} speaks no TLS", reason="proxy_without_tls", values=names)
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return NoAnswer(
            f"the proxy {proxy.address} cannot be trusted: {_tls_words(text)}", reason="certificate_not_trusted"
        )
    if any(isinstance(cause, NewConnectionError) for cause in causes) or "timed out" in text:
        why = "its host name is not known" if "resolve" in text else _plain_meaning(text)
        return NoAnswer(f"the proxy {proxy.address} does not answer: {why}", reason="proxy_silent", values=names)
    return None


def _proxy_names(proxy: NamedProxy, host: str) -> dict[str, object]:
    return {"proxy": proxy.address, "variable": proxy.variable, "host": host}


def describe_proxy_refusal(proxy: NamedProxy, host: str, status: int, words: str = "") -> NoAnswer:
    """Return the explanation of a proxy's own refusal of a request to a host."""
    if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        return NoAnswer(
            f"the proxy {proxy.address} wants a user and a password (407), so {host} was not asked",
            reason="proxy_wants_password",
            values=_proxy_names(proxy, host),
        )
    answer = f"{status} {words}".strip()
    return NoAnswer(
        f"the proxy {proxy.address} refused the way to {host}: {answer}",
        reason="proxy_refuses",
        values=_proxy_names(proxy, host),
    )


def _by_name(text: str, host: str, endpoint: str) -> NoAnswer | None:
    if not any(words in text for words in ("Failed to resolve", "not known", "name resolution", "getaddrinfo")):
        return None
    if "Temporary failure" in text:
        return NoAnswer(f"no answer from {endpoint}: the name {host} cannot be looked up now", reason="dns_down")
    return NoAnswer(
        f"no answer from {endpoint}: the host name {host} is not known",
        reason="host_unknown",
    )


def _by_tls(error: BaseException, host: str) -> NoAnswer | None:
    text = str(error)
    if _NO_BUNDLE in text:
        return NoAnswer("there is no file of CA certificates where REQUESTS_CA_BUNDLE says", reason="ca_file_missing")
    if not any(isinstance(cause, ssl.SSLError) for cause in _causes(error)) and "SSL" not in text:
        return None
    if "WRONG_VERSION_NUMBER" in text:
        return NoAnswer(f"{host} speaks no TLS there", reason="no_tls_there")
    if "mismatch" in text or "doesn't match" in text:
        return NoAnswer(f"the TLS certificate at {host} is of another host", reason="certificate_of_another_host")
    if "expired" in text or "not yet valid" in text:
        return NoAnswer(f"the TLS certificate of {host} is not valid now", reason="certificate_not_valid_now")
    return NoAnswer(
        f"the TLS certificate of {host} is not trusted: {_tls_words(text)}", reason="certificate_not_trusted"
    )


def _tls_words(text: str) -> str:
    found = re.search(r"certificate verify failed: ([^(]+)", text)
    return found[1].strip() if found else "the TLS handshake failed"


def _plain_meaning(text: str) -> str:
    return next((plain.message for words, plain in _PLAIN.items() if words in text), "no connection")


def _describe_stopped_emulator(endpoint: str, service: str | None) -> NoAnswer:
    if service == "file":
        return NoAnswer(f"nothing listens at {endpoint}: Azurite alone has no Files", reason="emulator_without_files")
    return NoAnswer(
        f"the emulator is not running at {endpoint}",
        reason="emulator_stopped",
    )


def note_throttling(
    url: str, status: int, headers: Mapping[str, str], clock: Callable[[], float] = time.monotonic
) -> None:
    """Note what an answer from a URL says, if it is one that says later."""
    if status not in _SAYS_LATER and status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return
    seconds = _read_seconds(headers)
    if seconds is not None:
        _until[urlsplit(url).netloc] = clock() + seconds


def find_pause_seconds(endpoint: str, clock: Callable[[], float] = time.monotonic) -> float:
    """Return for how many seconds from now the service at an endpoint is to be left alone; 0 if it did not say so."""
    return max(0.0, _until.get(urlsplit(endpoint).netloc, 0.0) - clock()) if _until else 0.0


def _read_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that an answer asks for; a moment counts from the answer's own date, not from our clock."""
    text = headers.get("Retry-After", "").strip()
    if _SECONDS.fullmatch(text):
        return min(float(text), _MOST_SECONDS)
    until, now = times.find_http_date(text), times.find_http_date(headers.get("Date"))
    return None if until is None or now is None else max(0.0, (until - now).total_seconds())
