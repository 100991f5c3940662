"""Why no answer came: the proxy, the host's name, TLS, a stopped emulator, or time; each with a name of its own."""

import re
from dataclasses import replace
from http import HTTPStatus
from urllib.parse import urlsplit

from azguard.accounts import endpoints
from azguard.accounts.endpoints import EMULATOR_NAME, NamedProxy
from azguard.wire.failures import Broken, BrokenAnswer, Cause, NoAnswer, NotConnected, NotOfTheService, Stage

_UNKNOWN_NAME = ("not known", "name resolution", "getaddrinfo", "No address associated", "label")


# What the text of a failed connection means, by its first words that fit.
_PLAIN = {
    "Network is unreachable": Cause("this machine has no way to that network", reason="no_route"),
    "No route to host": Cause("this machine has no way to that host", reason="no_route"),
    "Connection refused": Cause("connection refused: nothing listens there", reason="nothing_listens"),
    "timed out": Cause("timed out", reason="timed_out"),
    "Connection reset": Cause("the connection was reset", reason="cut_off"),
}
# What an answer that broke off is called; its own words say how.
_BROKEN = {
    **dict.fromkeys((Broken.CLOSED, Broken.RESET, Broken.TRUNCATED), Cause("", reason="cut_off")),
    Broken.TIMED_OUT: Cause("", reason="timed_out"),
    Broken.OF_ANOTHER_REQUEST: Cause("", reason="answer_of_another_request"),
    Broken.TOO_LONG: Cause("", reason="answer_too_long"),
}


def explain(failure: NoAnswer, endpoint: str, service: str | None = None) -> Cause:
    """Return why a request to an endpoint, of one of the four services or of an authority, got no answer.

    No other URL is repeated: it may hold a SAS, or a proxy's password.
    """
    host, proxy = urlsplit(endpoint).hostname or endpoint, endpoints.find_proxy(endpoint)
    place = endpoint if proxy is None else f"{endpoint}, through the proxy {proxy.address}"
    if isinstance(failure, BrokenAnswer):
        return replace(_BROKEN[failure.how], message=f"no answer from {place}: {failure.how.value}")
    if isinstance(failure, NotOfTheService):
        return _explain_stranger(failure, host, proxy, place)
    assert isinstance(failure, NotConnected)
    if proxy is not None and (found := _by_proxy(failure, host, proxy)):
        return found
    if found := _by_host(failure, host, endpoint, service):
        return found
    plain = _plain_meaning(str(failure)) or Cause(type(failure.error).__name__, reason="network_unclear")
    return replace(plain, message=f"no answer from {place}: {plain.message}")


def _explain_stranger(failure: NotOfTheService, host: str, proxy: NamedProxy | None, place: str) -> Cause:
    """Return the explanation of an answer that does not come from the service."""
    if proxy is not None and failure.status in (401, 403, 407):
        return _describe_proxy_refusal(proxy, host, failure.status, "")
    if failure.leads_to is not None:
        words = f"{place} answered {failure.status}, a redirection to {failure.leads_to}; it was not followed"
        return Cause(words, reason="redirected")
    if failure.altered is not None:
        return Cause(f"the answer of {place} was changed on its way: {failure.altered}", reason="answer_altered")
    return Cause(f"what answered for {place} is not Azure Storage: {failure.described}", reason="not_azure_storage")


def _by_host(failure: NotConnected, host: str, endpoint: str, service: str | None) -> Cause | None:
    """Return the explanation of a failed connection by the host or its certificate; None if neither was the cause."""
    text = str(failure)
    if failure.stage is Stage.HOST and _is_unknown_name(failure):
        return _explain_unknown_name(text, host, endpoint)
    if failure.stage is Stage.CA_FILE:
        words = "there is no file of CA certificates where REQUESTS_CA_BUNDLE says"
        return Cause(words, reason="ca_file_missing")
    is_timeout = isinstance(failure.error, TimeoutError)
    if failure.stage is Stage.TLS and not is_timeout:
        return _explain_tls(text, host)
    is_local = endpoints.is_loopback(host) and endpoint.endswith(f"/{EMULATOR_NAME}")
    if isinstance(failure.error, ConnectionRefusedError) and is_local:
        return _describe_stopped_emulator(endpoint, service)
    return None


def _is_unknown_name(failure: NotConnected) -> bool:
    return isinstance(failure.error, UnicodeError) or any(words in str(failure) for words in _UNKNOWN_NAME)


def _by_proxy(failure: NotConnected, host: str, proxy: NamedProxy) -> Cause | None:
    """Return the explanation of a failed connection by its proxy; None if the proxy had no part in the failure."""
    text, names = str(failure), _proxy_names(proxy, host)
    match failure.stage:
        case Stage.TUNNEL:
            return _describe_proxy_refusal(proxy, host, failure.status, failure.words)
        case Stage.SOCKS:
            words = f"the proxy in {proxy.variable} is a SOCKS proxy, which needs PySocks"
            return Cause(words, reason="socks_proxy")
        case Stage.PROXY_SETTING:
            return Cause(f"the proxy in {proxy.variable} is not a URL", reason="proxy_not_url", values=names)
        case Stage.PROXY_TLS if "WRONG_VERSION_NUMBER" in text:
            return Cause(f"the proxy {proxy.address} speaks no TLS", reason="proxy_without_tls", values=names)
        case Stage.PROXY_TLS:
            words = f"the proxy {proxy.address} cannot be trusted: {_tls_words(text)}"
            return Cause(words, reason="certificate_not_trusted")
        case Stage.PROXY:
            plain = _plain_meaning(text)
            why = plain.message if plain is not None else "no connection"
            why = "its host name is not known" if _is_unknown_name(failure) else why
            return Cause(f"the proxy {proxy.address} does not answer: {why}", reason="proxy_silent", values=names)
    return None


def _proxy_names(proxy: NamedProxy, host: str) -> dict[str, object]:
    return {"proxy": proxy.address, "variable": proxy.variable, "host": host}


def _describe_proxy_refusal(proxy: NamedProxy, host: str, status: int, words: str) -> Cause:
    """Return the explanation of a proxy's own refusal of a request to a host."""
    names = _proxy_names(proxy, host)
    if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        why = f"the proxy {proxy.address} wants a user and a password (407), so {host} was not asked"
        return Cause(why, reason="proxy_wants_password", values=names)
    why = f"the proxy {proxy.address} refused the way to {host}: {f'{status} {words}'.strip()}"
    return Cause(why, reason="proxy_refuses", values=names)


def _explain_unknown_name(text: str, host: str, endpoint: str) -> Cause:
    if "Temporary failure" in text:
        return Cause(f"no answer from {endpoint}: the name {host} cannot be looked up now", reason="dns_down")
    return Cause(f"no answer from {endpoint}: the host name {host} is not known", reason="host_unknown")


def _explain_tls(text: str, host: str) -> Cause:
    if "WRONG_VERSION_NUMBER" in text:
        return Cause(f"{host} speaks no TLS there", reason="no_tls_there")
    if "mismatch" in text or "doesn't match" in text:
        return Cause(f"the TLS certificate at {host} is of another host", reason="certificate_of_another_host")
    if "expired" in text or "not yet valid" in text:
        return Cause(f"the TLS certificate of {host} is not valid now", reason="certificate_not_valid_now")
    return Cause(f"the TLS certificate of {host} is not trusted: {_tls_words(text)}", reason="certificate_not_trusted")


def _tls_words(text: str) -> str:
    found = re.search(r"certificate verify failed: ([^(]+)", text)
    return found[1].strip() if found else "the TLS handshake failed"


def _plain_meaning(text: str) -> Cause | None:
    return next((plain for words, plain in _PLAIN.items() if words in text), None)


def _describe_stopped_emulator(endpoint: str, service: str | None) -> Cause:
    if service == "file":
        return Cause(f"nothing listens at {endpoint}: Azurite alone has no Files", reason="emulator_without_files")
    return Cause(f"the emulator is not running at {endpoint}", reason="emulator_stopped")
