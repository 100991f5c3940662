"""Why no answer came: the proxy, the host's name, TLS, a stopped emulator, or time; each with its own way out."""

import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlsplit

from azguard.accounts import proxies
from azguard.accounts.proxies import Proxy
from azguard.accounts.transport import TRUNCATED
from azguard.accounts.well_known import EMULATOR_NAME
from azguard.errors import LoginFailed

_NEEDS_TIME = "give it longer: --timeout 60s"
_NO_BUNDLE = "Could not find a suitable TLS CA certificate bundle"
_TUNNEL = re.compile(r"Tunnel connection failed: (\d{3})\s*([^'\")]*)")
# What the text of the innermost reason says, by its first words that fit, and what to do about it.
_PLAIN = (
    ("Network is unreachable", "this machine has no way to that network", "check the network and the VPN"),
    ("No route to host", "this machine has no way to that host", "check the network and the VPN"),
    ("Connection refused", "connection refused: nothing listens there", "check the host and the port of the endpoint"),
    ("timed out", "timed out", f"a firewall may be in the way; or {_NEEDS_TIME}"),
    ("Remote end closed", "the connection was closed before an answer came", "try again"),
    (TRUNCATED, TRUNCATED, "try again"),
    ("Connection reset", "the connection was reset", "try again"),
)  # fmt: skip


@dataclass(frozen=True)
class Reason:
    """Why there was no answer, in one sentence, and what to do."""

    message: str
    hint: str


def explain(error: BaseException, endpoint: str, service: str | None = None) -> Reason:
    """Return why a request to an endpoint, of one of the four services or of an authority, got no answer.

    No other URL is repeated: it may hold a SAS, or a proxy's password.
    """
    host, proxy = urlsplit(endpoint).hostname or endpoint, proxies.between(endpoint)
    text = str(error)
    if proxy is not None and (found := _by_proxy(error, host, proxy)):
        return found
    if found := _by_name(text, host, endpoint) or _by_tls(error, host):
        return found
    refused = "Connection refused" in text
    if refused and proxies.is_loopback(host) and endpoint.endswith(f"/{EMULATOR_NAME}"):
        return _stopped_emulator(endpoint, service)
    through = "" if proxy is None else f", through the proxy {proxy.address}"
    for words, meaning, way_out in _PLAIN:
        if words in text:
            return Reason(f"no answer from {endpoint}{through}: {meaning}", way_out)
    return Reason(f"no answer from {endpoint}{through}: {type(error).__name__}", "check the network, then try again")


def never_sent(cause: BaseException) -> bool:
    """Return whether an exception in a chain of causes proves that no byte of the request was sent.

    A token is fetched and a certificate verified before anything is said; a proxy that refuses a tunnel passes nothing
    on. Other TLS errors can come after the request was delivered.
    """
    if isinstance(cause, (ssl.SSLCertVerificationError, LoginFailed)):
        return True
    return _is_setting(cause) or _tunnel_refusal(cause) is not None


def is_final(error: BaseException) -> bool:
    """Return whether asking again soon cannot help: the settings of this machine or of the proxy must change."""
    return any(never_sent(cause) for cause in _causes(error))


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


def _by_proxy(error: BaseException, host: str, proxy: Proxy) -> Reason | None:
    """Return what the proxy has to do with it; None if it has nothing to."""
    from urllib3.exceptions import NewConnectionError, ProxyError

    causes, text = list(_causes(error)), str(error)
    past = f"or go past it, if {host} may be reached directly: NO_PROXY={host}"
    if refusal := next(filter(None, map(_tunnel_refusal, causes)), None):
        return refused_by(proxy, host, int(refusal[1]), refusal[2].strip())
    if "SOCKS" in text:
        return Reason(f"the proxy in {proxy.variable} is a SOCKS proxy, which needs PySocks", "pip install pysocks")
    if proxy.address == "?" or any(_is_setting(cause) for cause in causes if not isinstance(cause, OSError)):
        return Reason(f"the proxy in {proxy.variable} is not a URL", f"write {proxy.variable}=http://HOST:PORT")
    if not any(isinstance(cause, ProxyError) for cause in causes):
        return None
    if "only use HTTP and not HTTPS" in text:
        return Reason(f"the proxy {proxy.address} speaks no TLS", f"write {proxy.variable}=http://{proxy.address}")
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return Reason(f"the proxy {proxy.address} cannot be trusted: {_tls_words(text)}", _CA_HINT)
    if any(isinstance(cause, NewConnectionError) for cause in causes) or "timed out" in text:
        why = "its host name is not known" if "resolve" in text else _plain_meaning(text)
        return Reason(f"the proxy {proxy.address} does not answer: {why}", f"check {proxy.variable}, {past}")
    return None


def refused_by(proxy: Proxy, host: str, status: int, words: str = "") -> Reason:
    """Return what a proxy's own refusal of a request to a host means."""
    if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        return Reason(
            f"the proxy {proxy.address} wants a user and a password (407), so {host} was not asked",
            f"{proxy.variable}=http://USER:PASSWORD@{proxy.address}",
        )
    answer = f"{status} {words}".strip()
    return Reason(
        f"the proxy {proxy.address} refused the way to {host}: {answer}",
        f"ask for {host} to be allowed there; or go past it, if it may be reached directly: NO_PROXY={host}",
    )


def _by_name(text: str, host: str, endpoint: str) -> Reason | None:
    if not any(words in text for words in ("Failed to resolve", "not known", "name resolution", "getaddrinfo")):
        return None
    if "Temporary failure" in text:
        return Reason(f"no answer from {endpoint}: the name {host} cannot be looked up now", "check the network's DNS")
    return Reason(
        f"no answer from {endpoint}: the host name {host} is not known",
        "check the account's name; of another cloud: --endpoint-suffix, for example core.chinacloudapi.cn",
    )


_CA_HINT = "if a proxy or a firewall opens TLS here, name its CA certificate: export REQUESTS_CA_BUNDLE=FILE"


def _by_tls(error: BaseException, host: str) -> Reason | None:
    text = str(error)
    if _NO_BUNDLE in text:
        return Reason("there is no file of CA certificates where REQUESTS_CA_BUNDLE says", "mend its path")
    if not any(isinstance(cause, ssl.SSLError) for cause in _causes(error)) and "SSL" not in text:
        return None
    if "WRONG_VERSION_NUMBER" in text:
        return Reason(f"{host} speaks no TLS there", "check the port, or write the endpoint with http://")
    if "mismatch" in text or "doesn't match" in text:
        return Reason(f"the TLS certificate at {host} is of another host", f"check the endpoint; {_CA_HINT}")
    if "expired" in text or "not yet valid" in text:
        return Reason(f"the TLS certificate of {host} is not valid now", "check this machine's clock: date -u")
    return Reason(f"the TLS certificate of {host} is not trusted: {_tls_words(text)}", _CA_HINT)


def _tls_words(text: str) -> str:
    found = re.search(r"certificate verify failed: ([^(]+)", text)
    return found[1].strip() if found else "the TLS handshake failed"


def _plain_meaning(text: str) -> str:
    return next((meaning for words, meaning, _ in _PLAIN if words in text), "no connection")


def _stopped_emulator(endpoint: str, service: str | None) -> Reason:
    if service == "file":
        return Reason(f"nothing listens at {endpoint}: Azurite has no Files", "use a real account for files")
    return Reason(
        f"the emulator is not running at {endpoint}",
        'azguard emulator start, then eval "$(azguard emulator env)"',
    )
