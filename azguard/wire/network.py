"""A connection to a host that can be trusted: its name looked up, through a proxy where one is named, with TLS.

Nothing of a request is sent before the connection is whole. So what fails here was not sent.

``REQUESTS_CA_BUNDLE`` and ``CURL_CA_BUNDLE`` name a file or a folder of CA certificates, as they do for requests; by
default they are those of certifi.
"""

import os
import socket
import threading
import time
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import SplitResult, unquote, urlsplit

from azguard.accounts import endpoints
from azguard.frozen import frozen
from azguard.wire.failures import SUCCESSES, NotConnected, Stage

if TYPE_CHECKING:
    import ssl

T = TypeVar("T")
_PORTS = {"http": 80, "https": 443}
_CA_FILES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
# A proxy says in a few lines that the way is open; this is as much as a head of the service may have.
_MOST_OF_A_PROXY = 64 * 1024


@frozen
class Origin:
    """What a connection leads to."""

    scheme: str
    host: str
    port: int


@frozen
class Way:
    """How an origin is reached: directly, or through a proxy."""

    origin: Origin
    #: The proxy's URL, with its user and password; None is directly.
    proxy: str | None

    @property
    def is_forwarded(self) -> bool:
        """Return whether the proxy reads the request and passes it on, which it does for http."""
        return self.proxy is not None and self.origin.scheme == "http" and not self.proxy.startswith("socks")


def find_way(url: str) -> Way:
    """Return the way to the host of a URL.

    Raises:
        NotConnected: it is none that can be asked.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS[parts.scheme]
    except (ValueError, KeyError) as error:
        raise NotConnected(Stage.SETTING, error) from error
    return Way(Origin(parts.scheme, parts.hostname or "", port), endpoints.find_proxy_url(url))


def connect(way: Way, seconds: float, clock: Callable[[], float] = time.monotonic) -> Any:
    """Return a connected socket, made within so many seconds.

    Raises:
        NotConnected: there is none; nothing of a request was sent.
    """
    ends = clock() + seconds

    def left() -> float:
        return max(0.001, ends - clock())

    context = find_context() if way.origin.scheme == "https" else None
    if way.proxy is None:
        sock = _connect(way.origin.host, way.origin.port, left(), Stage.HOST)
    else:
        sock = _connect_by_proxy(way, way.proxy, left)
    return sock if context is None else _secure(sock, way.origin.host, context, left(), Stage.TLS)


def proxy_headers(way: Way) -> dict[str, str]:
    """Return the headers that a proxy wants, which reads them if it forwards requests."""
    parts = urlsplit(way.proxy or "")
    if parts.username is None:
        return {}
    user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"Proxy-Authorization": f"Basic {b64encode(user.encode('latin-1')).decode()}"}


def _connect(host: str, port: int, seconds: float, stage: Stage) -> socket.socket:
    # As bytes, a name in ASCII needs no codec, whose tables take 3 ms to import.
    place: Any = (host.encode() if host.isascii() else host, port)
    try:
        if _is_address(host):
            sock = socket.create_connection(place, seconds)
        else:
            # In a thread of its own: nothing else ends a look-up before its time, Ctrl-C included.
            sock = _within(seconds, lambda: socket.create_connection(place, seconds))
    except (OSError, UnicodeError) as error:
        raise NotConnected(stage, error) from error
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _is_address(host: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, UnicodeError):
            continue
        return True
    return False


def _within(seconds: float, call: Callable[[], T]) -> T:
    ended: list[T | BaseException] = []

    def run() -> None:
        try:
            ended.append(call())
        except BaseException as error:  # noqa: BLE001  # raised again where it is waited for
            ended.append(error)

    thread = threading.Thread(target=run, name="connect", daemon=True)
    thread.start()
    thread.join(seconds)
    if not ended:
        raise TimeoutError("timed out")
    if isinstance(ended[0], BaseException):
        raise ended[0]
    return ended[0]


def _connect_by_proxy(way: Way, proxy: str, left: Callable[[], float]) -> Any:
    """Return a socket to a proxy, or through it where the request is not for the proxy to read."""
    try:
        parts = urlsplit(proxy)
        port = parts.port
    except ValueError as error:
        raise NotConnected(Stage.PROXY_SETTING, error) from error
    if parts.scheme.startswith("socks"):
        return _connect_by_socks(way.origin, parts, port or 1080, left())
    if parts.scheme not in _PORTS or not parts.hostname:
        raise NotConnected(Stage.PROXY_SETTING, ValueError("not a URL of a proxy"))
    sock = _connect(parts.hostname, port or _PORTS[parts.scheme], left(), Stage.PROXY)
    if parts.scheme == "https":
        sock = _secure(sock, parts.hostname, find_context(), left(), Stage.PROXY_TLS)
    if not way.is_forwarded:
        _open_tunnel(sock, way, left)
    return sock


def _connect_by_socks(origin: Origin, proxy: SplitResult, port: int, seconds: float) -> Any:
    try:
        import socks  # type: ignore[import-untyped]  # it has no types
    except ImportError as error:
        raise NotConnected(Stage.SOCKS, error) from error
    try:
        return socks.create_connection(
            (origin.host, origin.port),
            timeout=seconds,
            proxy_type=socks.PROXY_TYPE_SOCKS4 if proxy.scheme.startswith("socks4") else socks.PROXY_TYPE_SOCKS5,
            proxy_addr=proxy.hostname,
            proxy_port=port,
            proxy_rdns=proxy.scheme.endswith(("h", "a")),
            proxy_username=proxy.username and unquote(proxy.username),
            proxy_password=proxy.password and unquote(proxy.password),
        )
    except OSError as error:
        raise NotConnected(Stage.PROXY, error) from error


def _open_tunnel(sock: Any, way: Way, left: Callable[[], float]) -> None:
    """Ask a proxy to pass on what is sent from now on.

    Raises:
        NotConnected: it does not; ``status`` and ``words`` are its answer.
    """
    host = f"[{way.origin.host}]" if ":" in way.origin.host else way.origin.host
    place = f"{host}:{way.origin.port}"
    lines = [f"CONNECT {place} HTTP/1.1", f"Host: {place}"]
    lines += [f"{name}: {value}" for name, value in proxy_headers(way).items()]
    found = b""
    try:
        sock.settimeout(left())
        sock.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
        while b"\r\n\r\n" not in found and len(found) < _MOST_OF_A_PROXY:
            sock.settimeout(left())
            if not (received := sock.recv(1024)):
                raise ConnectionResetError("Remote end closed connection without response")
            found += received
    except OSError as error:
        sock.close()
        raise NotConnected(Stage.PROXY, error) from error
    _, status, words = [*found.partition(b"\r\n")[0].decode("latin-1").split(" ", 2), "", ""][:3]
    if not status.isdigit() or int(status) not in SUCCESSES:
        sock.close()
        code = int(status) if status.isdigit() else 0
        refusal = OSError(f"Tunnel connection failed: {status} {words}")
        raise NotConnected(Stage.TUNNEL, refusal, status=code, words=words.strip())


def _secure(sock: Any, host: str, context: "ssl.SSLContext", seconds: float, stage: Stage) -> Any:
    """Return a socket over which only a host with a certificate of that name can read.

    Raises:
        NotConnected: its certificate is not trusted, or it speaks no TLS.
    """
    import ssl

    try:
        sock.settimeout(seconds)
        if isinstance(sock, ssl.SSLSocket):
            # TLS to a proxy, and inside it to the service.
            from urllib3.util.ssltransport import SSLTransport

            return SSLTransport(sock, context, server_hostname=host)
        return context.wrap_socket(sock, server_hostname=host)
    except (OSError, ValueError) as error:
        sock.close()
        raise NotConnected(stage, error) from error


def find_context() -> "ssl.SSLContext":
    """Return which certificates are trusted.

    Raises:
        NotConnected: the file of CA certificates that is named is not there, or holds none.
    """
    try:
        return _context(next((found for name in _CA_FILES if (found := os.environ.get(name))), None))
    except OSError as error:
        raise NotConnected(Stage.CA_FILE, error) from error


@cache
def _context(authorities: str | None) -> "ssl.SSLContext":
    import ssl

    if authorities is None:
        import certifi

        authorities = certifi.where()
    if os.path.isdir(authorities):  # the text is only passed on
        return ssl.create_default_context(capath=authorities)
    return ssl.create_default_context(cafile=authorities)
